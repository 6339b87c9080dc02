"""The table under a conformal threshold, in plain text."""

import math
from typing import TYPE_CHECKING

from sottovoce.server.conformal.base import NOT_PROTECTED
from sottovoce.server.description import WIDTH, wrapped

if TYPE_CHECKING:
    from sottovoce.server.conformal.result import ConformalThreshold

MOST_ROWS = 24
SHUFFLED = (
    "Shuffling the messages would not add to it: that takes messages that hide a whole site, and more than 232 of them "
    "at delta 1e-6."
)


def summary(result: "ConformalThreshold") -> str:
    """Return the promise, the threshold, its coverage, every site with its order and votes, and what is protected."""
    lines = [
        f" Conformal threshold, alpha = {result.alpha:.6g} ".center(WIDTH, "="),
        *wrapped("Promise", result.estimand),
        *wrapped("Threshold", _value(result)),
        *wrapped("Coverage", coverage_line(result)),
        *([] if math.isinf(result.value) else wrapped("Confidence", _single(result))),
        *wrapped("Made from", _made(result)),
    ]
    if result.paper is not None and result.rule != "paper" and result.paper[:3] != result.choice[:3]:
        lines += wrapped("Paper's rule", f"mean {result.paper.mean:.4f}, standard deviation {result.paper.sd:.4f}")
    lines += wrapped("Private", _private(result))
    if result.edges:
        lines += wrapped(
            "Public grid",
            f"{len(result.edges):,} edges from {result.edges[0]:.6g} to {result.edges[-1]:.6g}, and beyond",
        )
    if result.dropped:
        lines += wrapped("Left out", f"{result.dropped:,} missing values")
    lines += ["-" * WIDTH, *_sites(result), "-" * WIDTH]
    for warning in result.warnings:
        lines += wrapped("Warning", warning)
    for hint in result.hints:
        lines += wrapped("Hint", hint)
    lines += wrapped(
        "Holds for", "new scores that come from the sites' common law; see report(scores) where sites differ"
    )
    if result.spent is not None:
        lines += wrapped("Protected", result.promise)
    return "\n".join([*lines, "=" * WIDTH])


def coverage_line(result: "ConformalThreshold") -> str:
    """Say what coverage is known, and how surely."""
    if result.spent is not None:  # the spread of the law that is promised is not that of the coverage
        return f"at least {result.coverage:.4f} on average"
    return f"{result.coverage:.4f} on average, standard deviation {result.spread:.4f}"


def protected(result: "ConformalThreshold") -> str:
    """Say what a finished round protects, and what it does not."""
    spent = result.spent or ()
    finite = [epsilon for epsilon in spent if math.isfinite(epsilon)]
    unit = "person" if result.per_person else "record"
    worst = max(finite)
    text = (
        f"Each site sent one cell of the public grid, drawn so that another score of one {unit} shifts the odds of any "
        f"cell by at most a factor {math.exp(worst):.3g} (epsilon {worst:.3g}, computed from the integers of the "
        "mechanism). "
    )
    exposed = [name for name, epsilon in zip(result.names, spent, strict=True) if math.isinf(epsilon)]
    if exposed:
        text += f"Not so at {', '.join(exposed)}, where scores were sent as they are. "
    if result.seeded:
        text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
    return f"{text}{NOT_PROTECTED} {SHUFFLED}"


def _value(result: "ConformalThreshold") -> str:
    if math.isinf(result.value):
        return "infinite: the prediction set holds everything" if result.value > 0 else "minus infinity: an empty set"
    return f"{result.value:.6g}"


def _single(result: "ConformalThreshold") -> str:
    least = "at least " if result.spent is not None else ""
    return f"of calibrations like this one {least}{result.confidence:.1%} cover {1 - result.alpha:.6g} or more"


def _made(result: "ConformalThreshold") -> str:
    """Say which of how many values was taken."""
    total = sum(votes * len(asked) for votes, asked in zip(result.plan.votes, result.plan.orders, strict=True))
    scores = sum(fact.size for fact in result.facts)
    drawn = (
        f" (drawn, with probability {result.chance:.3f} for rank {result.choice.rank:,})"
        if result.settings.exact
        else ""
    )
    return (
        f"rank {result.rank:,} of {total:,} votes{drawn}, {len(result.names):,} "
        f"site{'' if len(result.names) == 1 else 's'}, {scores:,} scores; rule {result.rule!r}"
    )


def _private(result: "ConformalThreshold") -> str:
    if result.spent is None:
        return "no: sites sent scores"
    how = f"{result.mechanism}, one message a site"
    return f"yes ({how})" if result.private else f"no (simulation, or no budget at some site; {how})"


def _sites(result: "ConformalThreshold") -> list[str]:
    """Lay out the sites; of many only the first."""
    rows = [_row("site", "scores", "order", "votes", "epsilon"), "-" * WIDTH]
    epsilon = result.spent or (math.inf,) * len(result.names)
    for name, fact, asked, votes, spent in list(
        zip(result.names, result.facts, result.plan.orders, result.plan.votes, epsilon, strict=True)
    )[:MOST_ROWS]:
        rows.append(_row(name, f"{fact.size:,}", ", ".join(map(str, asked)), f"{votes:,}", f"{spent:.4g}"))
    if len(result.names) > MOST_ROWS:
        rows.append(f"and {len(result.names) - MOST_ROWS:,} more sites")
    return rows


def _row(name: str, scores: str, order: str, votes: str, epsilon: str) -> str:
    shown = name if len(name) <= 24 else name[:23] + "…"
    return f"{shown:<24}{scores:>12}{order:>24}{votes:>8}{epsilon:>10}"
