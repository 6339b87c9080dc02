"""What a result says on the page: estimates, ends and widths as texts and as numbers, beside what was planned."""

from typing import Any

from sottovoce.core.unit import Unit
from sottovoce.explore.planning import width_text
from sottovoce.explore.words import on_page
from sottovoce.server.description import finite
from sottovoce.server.quantile.levels import QuantilesResult
from sottovoce.server.quantile.result import QuantileResult

_SAID = ("Warning", "Caution", "No interval")


def told(result: QuantileResult | QuantilesResult) -> dict[str, Any]:
    """Return all that the page shows of a result; no record is in it."""
    about = result.describe()
    assert about.outside is not None
    several = isinstance(result, QuantilesResult)
    first = result.results[0] if isinstance(result, QuantilesResult) else result
    unit, step = first.plan.roster.unit, first.plan.resolution
    ends = result.intervals if isinstance(result, QuantilesResult) else (result.interval,)
    taus = result.taus if isinstance(result, QuantilesResult) else (result.tau,)
    points = result.estimates if isinstance(result, QuantilesResult) else (result.estimate,)
    spent = result.epsilon_in_all or {}
    return {
        "headline": result.headline,
        "answer": about.outside.answer,
        "question": about.outside.question,
        "promise": about.outside.privacy,
        "assumptions": list(about.outside.assumptions),
        "notes": [on_page(text) for label, text in about.notes if label in _SAID],
        "private": result.private,
        "jointly": several,
        "reports": sum(each.reports for each in (result.results if isinstance(result, QuantilesResult) else (result,))),
        "in_all": max(spent.values(), default=None),
        "estimates": [
            {
                "of": tau,
                "estimate": finite(point),
                "low": finite(low),
                "high": finite(high),
                "text": {
                    name: result.format(each) for name, each in (("estimate", point), ("low", low), ("high", high))
                },
                "width": width_text(high - low, unit) if not step else _steps(high - low, unit, step),
            }
            for tau, point, (low, high) in zip(taus, points, ends, strict=True)
        ],
    }


def _steps(width: float, unit: Unit, step: float) -> str | None:
    """Write a width between two multiples of a step; it may be none."""
    return "one value" if width == 0 else width_text(width, unit, step)
