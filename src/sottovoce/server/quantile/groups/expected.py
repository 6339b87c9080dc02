"""How far the interval of every group will reach, and what would be asked of whom, before anybody is asked."""

from dataclasses import replace
from typing import Any

from sottovoce.inference.common.several import each_of
from sottovoce.server.description import WIDTH, finite
from sottovoce.server.explanation import ExpectedWidth, Explanation
from sottovoce.server.quantile.expected import ROUNDS, expected_width, explain_quantile
from sottovoce.server.quantile.groups.plan import GroupsPlan

MOST_ROWS = 40
HOWS = {"staged": "staged", "pairs": "staged, few records", "certified": "certified"}


def expected_widths(plan: GroupsPlan) -> list[ExpectedWidth]:
    """Return how wide the interval of every group will be; help between groups can only shorten it."""
    each = each_of(plan.level, len(plan.names), not plan.shrinkage) if plan.simultaneous else plan.level
    return [
        expected_width(study, plan.method(name), each, plan.left, of=name)
        for name, study in zip(plan.names, plan.plans, strict=True)
    ]


def explain_groups(plan: GroupsPlan, seeded: bool = False) -> Explanation:
    """Say what a study of groups would do."""
    widths, together = expected_widths(plan), "all together" if plan.simultaneous else "each"
    what = (
        f"the {plan.whole.tau:.6g} quantile of the {plan.whole.roster.unit.plural} in each of {len(plan.names)} groups "
        f"by {plan.by}, each record for its own group alone"
    )
    found = explain_quantile(
        plan.whole,
        "certified" if plan.certified else "staged",
        plan.level,
        widths,
        rounds=ROUNDS["certified" if plan.certified else "staged"],
        what=what,
        warnings=plan.warnings,
        seeded=seeded,
    )
    asked = [*found.asked, ("Intervals", f"{100 * plan.level:.6g} %, {together}")]
    asked += [("Left out", ", ".join(f"{group.name} ({group.records:,})" for group in plan.left_out))] * bool(
        plan.left_out
    )
    values: dict[str, Any] = {
        **found.values,
        "groups": [
            {
                "name": name,
                "records": sum(study.roster.sizes),
                "method": plan.expects[name],
                "expected": {**width._asdict(), "value": finite(width.value)},
            }
            for name, study, width in zip(plan.names, plan.plans, widths, strict=True)
        ],
        "by": plan.by,
        "simultaneous": plan.simultaneous,
        "shrinkage": plan.shrinkage or None,
        "left_out": [group._asdict() for group in plan.left_out],
    }
    return replace(found, asked=asked, table=_table(plan, widths), values=values, in_table=True)


def _table(plan: GroupsPlan, widths: list[ExpectedWidth]) -> list[str]:
    """Return the groups: their records, how they are likely to be answered, and how far their intervals will reach."""
    lines = [f"{'group':<24}{'records':>11}  {'expected interval':<32}", "-" * WIDTH]
    for name, study, width in list(zip(plan.names, plan.plans, widths, strict=True))[:MOST_ROWS]:
        shown = name if len(name) <= 24 else name[:23] + "…"
        told = width._replace(of="").text.removeprefix("from about the ").replace("quantile, about ", "quantile, ")
        lines.append(f"{shown:<24}{sum(study.roster.sizes):>11,}  {told}, {HOWS[plan.expects[name]]}")
    more = len(plan.names) - MOST_ROWS
    return [*lines, f"and {more:,} more groups"] if more > 0 else lines
