"""What a question will come to, told to the page before anybody is asked: width, who answers, what it costs and risks.

All of it follows from public numbers and guesses; what the records themselves show goes to the terminal alone.
"""

import math
from collections.abc import Callable
from typing import Any

from sottovoce.api.asking import check_cost, limit
from sottovoce.api.explored import ExploredFile, RowCost, plan_of_all
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.explore.question import AskedQuestion, KnownGuess, question_of
from sottovoce.explore.words import on_page
from sottovoce.planner.asking import plan
from sottovoce.planner.forecast import StudyForecast
from sottovoce.server.description import finite
from sottovoce.server.explanation import in_future
from sottovoce.server.quantile.plan import QuantilePlan

Whisper = Callable[[str], None]
MOST_LISTED = 24  # sites whose sizes are told


def planned(asked: AskedQuestion, file: ExploredFile, whisper: Whisper = lambda _: None) -> dict[str, Any]:
    """Return what a question will come to, or refuse it in the sentence with which it could not be asked."""
    question, guess = question_of(asked, file)
    study = file.plan(question)
    explained = study.explain()
    for hint in explained.hints:
        whisper(f"column {asked.value}: {on_page(hint)}")
    public = plan_of_all(study)
    asks = {each["name"]: each["records"] for each in explained.values["sites"]}
    epsilon = max(public.epsilons.values())
    forecast = _forecast(asked, guess, public, asks)
    return {
        "records": sum(asks.values()),
        "missing": sum(public.roster.dropped.values()),
        "unplaced": public.roster.unplaced,
        "sites": {
            "count": len(asks),
            "smallest": min(asks.values()),
            "largest": max(asks.values()),
            "listed": list(asks.items())[:MOST_LISTED],
        },
        "left_out": list(explained.values["sites_left_out"]),
        "widths": [
            {
                "of": tau,
                "low": each.low,
                "high": each.high,
                **_values(forecast, at, public.roster.unit, public.resolution),
            }
            for at, (tau, each) in enumerate(zip(question.taus, explained.widths, strict=True))
        ],
        "assuming": explained.assumption.partition(";")[0] if forecast is None else forecast.question.assumption,
        "kind": public.roster.unit.kind,
        "promise": in_future(explained.privacy),
        "warnings": [on_page(text) for text in explained.warnings],
        "epsilon": epsilon,
        "odds": math.exp(epsilon),
        "truth": 1 / (1 + math.exp(-epsilon)),
        "cost": cost_told(file.cost(question, study)),
    }


def cost_told(cost: RowCost) -> dict[str, Any]:
    """Return what rows have paid and would have paid, the limit, and why that is too much, if it is."""
    try:
        check_cost(cost.after, cost.before)
        refused = None
    except BadInput as error:
        refused = on_page(str(error))
    return {**cost._asdict(), "limit": finite(limit.now()), "refused": refused}


def _forecast(
    asked: AskedQuestion, guess: KnownGuess, public: QuantilePlan, asks: dict[str, int]
) -> StudyForecast | None:
    """Return the plan of `sv.plan` for the sites that take part; None for categories, which have no distances."""
    if public.roster.unit.kind == "category":
        return None
    taus = sorted(asked.taus)
    said: dict[str, Any] = {"bounds": guess.bounds, "sd": guess.sd, "kind": public.kind}
    said["resolution"] = public.resolution or None
    return plan(
        "quantile",
        tau=taus if len(taus) > 1 else taus[0],
        epsilon=asked.epsilon,
        people=asks,
        level=asked.level,
        method=asked.method,
        **{name: value for name, value in said.items() if value is not None},
    )


def _values(forecast: StudyForecast | None, at: int, unit: Unit, step: float) -> dict[str, Any]:
    """Return the width of an interval in values, by the guess and by other shapes, and what it were without privacy."""
    if forecast is None or forecast.question.unit != "values":
        return {"width": None}
    width = forecast.widths[at]
    without = next(each.widths[at] for each in forecast.yardsticks if each.model == "no privacy")
    return {
        "width": finite(width.value),
        "text": width_text(width.value, unit, step),
        "shortest": width_text(width.shortest, unit, step),
        "longest": width_text(width.longest, unit, step),
        "without": width_text(without, unit),
    }


def width_text(width: float, unit: Unit, step: float = 0.0) -> str | None:
    """Write a width as the page shows it, to two digits; None where there is none.

    >>> from sottovoce.core.unit import NUMBER
    >>> width_text(3.14159, NUMBER), width_text(0.3, NUMBER, 1.0), width_text(math.inf, NUMBER)
    ('3.1', 'less than 1', None)
    """
    if not math.isfinite(width):
        return None
    if step and width < step:
        return f"less than {unit.format_width(step, step, step)}"
    return unit.format_width(width, width, step)
