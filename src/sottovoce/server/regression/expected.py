"""What a regression would ask, and how wide the intervals of its coefficients will be, from public numbers alone.

The predicted widths are those of the design at its public moments, for the density that was guessed, with the people
who are asked about moments and beside the point, and with what doubt about the slope adds (`predicted`).
Without a guess they are told in levels: how far the level moves when a covariate goes from its middle to its end and
its coefficient is off by one half of its interval.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import two_sided
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.description import finite
from sottovoce.server.explanation import LEVELS, VALUES, ExpectedWidth, Explanation
from sottovoce.server.quantile.search import Found
from sottovoce.server.regression.pilot import QUARTILE, Guess, guess_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.predicted import predict

BARELY = 0.25  # levels to each side: intervals that reach farther tell little
LONGER = 1.15  # the paper's intervals over those of the limit (docs/decisions/0055)


def half_widths(plan: RegressionPlan, people: float, contrasts: Floats | None = None) -> Floats:
    """Return half the expected width of every scaled coefficient, or contrast, in levels: (levels, p + 1)."""
    z, settings = two_sided(plan.level), plan.settings
    if settings.inference != "dithered":
        errors = plan.design.alternative.errors
        if contrasts is not None:
            errors = np.sqrt(np.square(errors) @ np.square(contrasts))
        return np.asarray(LONGER * z * errors / math.sqrt(people))
    guess, own = plan.guess(_unit_guess(plan)), people / len(plan.design.channels)
    found = []
    for study in plan.studies(guess):
        assert isinstance(study, DitheredStudy)
        halves = predict(study, own, plan.level, contrasts).halves
        found.append(halves * study.density[:, None])
    return np.concatenate(found)


def _unit_guess(plan: RegressionPlan) -> Guess:
    """Return what the search finds where responses are normal, of which covariates explain a third; none is needed."""
    return guess_of(Found(0.0, QUARTILE, ()), plan.settings.taus, plan.p)


def expected_widths(plan: RegressionPlan, people: int) -> list[ExpectedWidth]:
    """Return how wide the interval of every coefficient will be, raw where a density was guessed."""
    density = plan.settings.density
    halves = half_widths(plan, people, None if density is None else plan.bounds.to_raw.T)
    found = []
    for at, tau in enumerate(plan.settings.taus):
        level = f", tau {tau:g}" if len(plan.settings.taus) > 1 else ""
        told = 2 * halves[at] / (1.0 if density is None else density[at])
        for name, width in zip(("intercept", *plan.bounds.names), told, strict=True):
            found.append(ExpectedWidth(f"{name}{level}", float(width), LEVELS if density is None else VALUES))
    return found


def barely(plan: RegressionPlan, people: int) -> tuple[str, ...]:
    """Say where so many people tell little of some coefficient, before anybody is asked."""
    worst = float(half_widths(plan, people).max())
    if not worst > BARELY:
        return ()
    needed = float(people)
    for _ in range(20):  # the excess falls faster than the root of the people: from below
        needed *= max(float(half_widths(plan, needed).max()) / BARELY, 1.0)
    unit = 10 ** max(len(str(math.ceil(needed))) - 2, 0)
    return (
        f"the regression is barely supported: the interval of some coefficient will reach about {worst:.2g} levels to "
        f"each side; about {math.ceil(needed / unit) * unit:,} people would leave this zone",
    )


def explain_regression(plan: RegressionPlan, people: int) -> Explanation:
    """Say what a regression would do."""
    design, settings, density = plan.design, plan.settings, plan.settings.density
    letters, epsilon = max(channel.letters for channel in design.channels), plan.epsilon
    guess = 1.0 if density is None else float(density.min())
    scale = 1 / (math.sqrt(people) * guess)
    first = "the first people tell location and scale; " if settings.searches else ""
    asked = [
        ("Question", f"how the {', '.join(f'{tau:g}' for tau in settings.taus)} quantile depends on {plan.p} columns"),
        ("Answers", f"one of {letters} letters each, {people:,} people, each once; {first}channel {design.name}"),
    ]
    shift = f"a report shifts the odds between any two rows by at most a factor {math.exp(min(epsilon, 700)):.3g}"
    private = f"Each person answers once, with one randomised letter; {shift} (epsilon {epsilon:.3g})."
    known = f"a density of {guess:g} at the quantile, the public guess" if density is not None else ""
    return Explanation(
        f"Plan, nothing asked: quantile regression, {plan.level:.4g} intervals",
        asked,
        private if math.isfinite(epsilon) else "No privacy: exact scores would be sent.",
        expected_widths(plan, people),
        f"{known or 'no density is guessed, so levels are told'}; covariates with the public second moments",
        barely(plan, people),
        [*design.explain(people, guess).splitlines(), "Features are scaled to [-1, 1] by their bounds."],
        {
            "channel": design.name,
            "why": design.why,
            "split": design.split,
            "tau": list(design.taus),
            "epsilon": finite(design.epsilon),
            "people": people,
            "letters": letters,
            "density": guess,
            "alternatives": [
                {
                    "channel": each.name,
                    "errors": (each.errors * scale).tolist(),
                    "people": each.trace / design.alternative.trace,
                }
                for each in sorted(design.alternatives, key=lambda each: each.trace)
            ],
        },
    )
