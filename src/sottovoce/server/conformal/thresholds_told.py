"""What thresholds by group say of themselves: a table of groups, plain values, a page for outsiders, a picture."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.core.checks import first_few
from sottovoce.core.digits import number_text
from sottovoce.server.description import WIDTH, Description, Outside, finite, labelled, of_column
from sottovoce.server.picture import INK, SOFT, WARM, clear, new_figure, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMMON, TOGETHER, INFINITE = "common", "together", "infinite"
RESTS = {
    COMMON: "the common threshold of all sites, made of the same messages",
    TOGETHER: "one threshold of their own scores together",
    INFINITE: "an infinite threshold: every set holds everything",
}
REST_HOLDS = {
    COMMON: "the common threshold holds for scores of the distribution that all sites have in common, if they have one",
    TOGETHER: "the shared threshold holds for a score drawn from these groups together, and not for each of them",
    INFINITE: "",
}
OWN_HOLDS = "new scores of the same group: each group calibrates for itself, so groups may differ as they like"
MOST_ROWS, MOST_DRAWN = 40, 60  # groups in a table and in a picture

# Thresholds describe themselves by these functions, so that they cannot name their class without a circle of imports.
ThresholdsToDescribe = Any  # a ConformalThresholds


def describe(found: ThresholdsToDescribe) -> Description:
    """Return what the thresholds say of themselves: guarantee, groups, every group, what is protected."""
    rows = [
        ("Promise", found.estimand),
        ("Groups", f"{len(found):,}, of which {len(found.own):,} have a threshold of their own"),
    ]
    if found.small:
        rows.append(("Small", f"{first_few(found.small)}: {RESTS[found.rest]}"))
    if (common := found.common) is not None:
        least = "at least " if common.spent is not None else ""
        for_whom = f"for a site that took no part (coverage {least}{common.coverage:.4f}, if sites are alike)"
        rows.append(("Common", f"{common.text_value()}, {for_whom}"))
    why = "no: sites sent scores" if found.epsilon is None else "no (simulation, or no budget at some site)"
    rows += [("Private", "yes" if found.private else why), *found.cost]
    cells = _cells(found)
    table = [_row(row) for row in cells[: MOST_ROWS + 1]]
    table.insert(1, "-" * WIDTH)
    if len(found) > MOST_ROWS:
        table.append(f"and {len(found) - MOST_ROWS:,} more groups")
    notes = [*labelled("Warning", found.warnings), ("Holds for", OWN_HOLDS)]
    notes += [("Protected", found.privacy_statement)] if found.epsilon is not None else []
    title = f"Thresholds by group, alpha = {found.alpha:.6g}"
    return Description(title, rows, table, notes, _plain_values(found), cells, _outside(found))


def _cells(found: ThresholdsToDescribe) -> list[tuple[str, ...]]:
    """Write every group, cell by cell; the head first."""
    rows: list[tuple[str, ...]] = [("group", "sites", "scores", "threshold", "coverage", "epsilon")]
    for group, sites in found.members.items():
        each, value = found.own.get(group), found.value_of(group)
        counts = (f"{len(sites):,}", f"{found.sizes[group]:,}")
        told = number_text(float(f"{value:.6g}")) if math.isfinite(value) else "infinite"
        if each is None:
            rows.append((group, *counts, told, found.rest, ""))
            continue
        least = "" if each.spent is None else ">="
        paid = "none" if each.spent is None else f"{max(each.spent):.4g}"
        rows.append((group, *counts, told, f"{least}{each.coverage:.4f}", paid))
    return rows


def _row(row: tuple[str, ...]) -> str:
    """Lay one line of the table of groups."""
    name, *cells = row
    shown = name if len(name) <= 24 else name[:23] + "…"
    return f"{shown:<25}" + "".join(f"{each:>{width}}" for each, width in zip(cells, (7, 9, 13, 12, 12), strict=True))


def _plain_values(found: ThresholdsToDescribe) -> dict[str, Any]:
    """Return everything that may be passed on, in plain numbers."""
    return {
        "alpha": found.alpha,
        "guarantee": found.guarantee,
        "delta": found.settings.delta if found.settings.conditional else None,
        "simultaneous": found.simultaneous,
        "column": found.column or None,
        "private": found.private,
        "estimand": found.estimand,
        "groups": [
            {
                "name": group,
                "value": finite(found.value_of(group)),
                "sites": list(sites),
                "scores": found.sizes[group],
                "own": group in found.own,
                "threshold": found.own[group].plain_values() if group in found.own else None,
            }
            for group, sites in found.members.items()
        ],
        "small": list(found.small),
        "rest": found.rest if found.small else None,
        "common": None if found.common is None else found.common.plain_values(),
        "together": None if found.together is None else found.together.plain_values(),
        "promise": found.privacy_statement,
        "warnings": list(found.warnings),
    }


def _outside(found: ThresholdsToDescribe) -> Outside:
    """Return what somebody outside the study asks."""
    what = f"score ({found.column})" if found.column else "score"
    question = (
        f"Up to which {what} does a prediction set reach in each of {len(found):,} groups, so that it misses a new "
        f"case of the group with probability {found.alpha:.6g} at most?"
    )
    shown = list(found.values.items())[:MOST_ROWS]
    answer = "; ".join(f"{group}: {number_text(value) if math.isfinite(value) else 'none'}" for group, value in shown)
    assumed = [
        "New scores of a group come from the distribution that its scores have; groups may differ.",
        "The model was fitted without the records of these scores, and the public grid without a look at them.",
    ]
    if found.small and REST_HOLDS[found.rest]:
        assumed.append(f"Where groups have too few scores, {REST_HOLDS[found.rest]}.")
    settings = (
        ("Part that may be missed (alpha)", f"{found.alpha:.6g}"),
        ("Guarantee", found.guarantee + (", all groups at once" if found.simultaneous else "")),
    )
    return Outside(question, f"{answer}.", found.privacy_statement, tuple(assumed), settings)


def small_warning(
    members: Mapping[str, Sequence[str]], sizes: Mapping[str, int], small: Sequence[str], rest: str
) -> tuple[str, ...]:
    """Say which groups are too small for a threshold of their own, and what they have instead."""
    if not small:
        return ()
    told = [f"{group!r} ({sizes[group]:,} score{'' if sizes[group] == 1 else 's'})" for group in small]
    listed = ", ".join(told[:4]) + (f" and {len(told) - 4:,} more" if len(told) > 4 else "")
    holds = f"; {REST_HOLDS[rest]}" if REST_HOLDS[rest] else ""
    have = f"of {len(members):,} groups they have {RESTS[rest]}{holds}"
    return (f"too few scores for a threshold of their own: {listed}; {have}",)


def draw_thresholds(found: ThresholdsToDescribe) -> "Figure":
    """Draw the thresholds of all groups, the lowest first."""
    ordered = sorted(found.members, key=lambda group: (found.value_of(group), group))
    half = MOST_DRAWN // 2
    shown = ordered if len(ordered) <= MOST_DRAWN else [*ordered[:half], *ordered[-half:]]
    known = [value for value in found.values.values() if math.isfinite(value)] or [1.0]
    low, high = min(0.0, *known), max(known)
    room = 0.06 * (high - low) or 1.0
    figure = new_figure(7.6, 1.9 + 0.24 * len(shown))
    axes = figure.subplots()
    rest = {COMMON: "too small: the common one", TOGETHER: "too small: one together", INFINITE: "too small: infinite"}
    for mark, colour, words, held in (
        ("o", SOFT, "a threshold of its own", found.own),
        ("D", WARM, rest[found.rest], found.small),
    ):
        places = [place for place, group in enumerate(shown) if group in held]
        ends = [min(found.value_of(shown[place]), high + room) for place in places]
        if places:
            axes.plot(ends, places, mark, color=colour, ms=6, label=words)
    for place, group in enumerate(shown):
        if math.isinf(found.value_of(group)):
            axes.plot(high + room, place, ">", color=WARM, ms=8, clip_on=False)
    if found.common is not None and math.isfinite(found.common.value):
        axes.axvline(found.common.value, color=INK, lw=1.1, ls=":", label="in common, for a site that took no part")
    axes.set_yticks(range(len(shown)), [short(group) for group in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(low - (room if low < 0 else 0), high + 1.5 * room)
    axes.set_xlabel(f"threshold{of_column(found.column)}")
    first = f"Thresholds of {len(found)} groups, {len(found.own)} of them of their own"
    axes.set_title(f"{first}\neach covers {1 - found.alpha:.6g} of its group", fontsize=11, loc="left")
    clear(axes)
    axes.grid(visible=False, axis="y")
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    return figure
