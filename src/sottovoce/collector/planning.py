"""What a study would come to, told before it begins: its epsilon, its rounds, and how wide its intervals will be.

Everything follows from public numbers, and nobody is asked. The widths are those of `server.quantile.expected`.
"""

import json
import math
from typing import Any, NamedTuple

from sottovoce.collector.study import CollectedStudy, collected_of
from sottovoce.core.errors import BadInput
from sottovoce.server.explanation import VALUES, ExpectedWidth
from sottovoce.server.quantile.expected import FAR, ROUNDS, assumption_of, expected_reach, expected_width
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.levels_plan import LevelsPlan
from sottovoce.server.quantile.plan import QuantilePlan, barely
from sottovoce.server.regression.expected import barely as barely_supported
from sottovoce.server.regression.expected import expected_widths
from sottovoce.server.regression.plan import RegressionPlan

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
EVEN = (
    "answers spread evenly between the bounds: where more lie around the quantile the interval is shorter, where "
    "fewer do, as in a tail, longer"
)


class PlannedLevel(NamedTuple):
    """One quantile of a study: its plan, the level of its interval, and the part of the people who answer for it."""

    plan: QuantilePlan
    level: float
    part: float


def planned(given: Any) -> dict[str, Any]:
    """Return what a study would come to, or refuse it in the sentence with which it could not begin.

    >>> found = planned({"name": "age", "people": 5_000, "quantile": {"tau": 0.5, "epsilon": 1.0, "bounds": [0, 120]}})
    >>> found["expected"][0]["text"], round(found["expected"][0]["width"]), found["rounds"]
    ('from about the 0.403 to the 0.597 quantile', 23, 'about 40 rounds')
    """
    if not isinstance(given, dict):
        raise BadInput("a study is an object with a name, people and a question; give what its file would hold.")
    study = collected_of(given)
    rounds = ROUNDS.get(study.method, "as many rounds as the people allow")
    if study.until is not None:
        rounds += f", fewer once the interval is no longer than {study.until:g}"
    return {
        "epsilon": study.epsilon,
        "people": study.people * len(study.groups),
        "rounds": rounds,
        "grace": study.pauses.grace,
        "expected": _expected(study),
        "warnings": _warnings(study),
        "toml": study_toml(given),
    }


def _expected(study: CollectedStudy) -> list[dict[str, Any]]:
    """Return how wide every interval of a study will be."""
    plan = study.plan
    if isinstance(plan, RegressionPlan):
        return [_expected_coefficient(each, plan) for each in expected_widths(plan, study.people)]
    if isinstance(plan, LevelsPlan):
        joint = 1 - (1 - plan.level) / len(plan.plans)
        levels = [PlannedLevel(each, joint, part) for each, part in zip(plan.plans, plan.parts, strict=True)]
    else:
        levels = [PlannedLevel(plan, study.level, 1.0)]
    return [_expected_quantile(each, study.method) for each in levels]


def _warnings(study: CollectedStudy) -> list[str]:
    """Return what is worth knowing; of few people, how far the interval of this method will reach."""
    plan = study.plan
    if isinstance(plan, RegressionPlan):
        return list(barely_supported(plan, study.people))
    if study.method != "sequence" or isinstance(plan, LevelsPlan) or not plan.warnings:
        return list(plan.warnings)
    ends = expected_reach(plan, study.method, study.level)
    return [barely(plan.crowd, plan.tau, plan.support, CERTIFIED, ends)]


def _expected_coefficient(width: ExpectedWidth, plan: RegressionPlan) -> dict[str, Any]:
    """Return the width of a coefficient: in values where a density was guessed, else in levels."""
    guessed = plan.settings.density is not None
    return {
        "of": width.of,
        "low": None,
        "high": None,
        "text": f"about {width.value:.3g} wide" + ("" if guessed else " in levels, between the ends of its column"),
        "width": width.value if guessed and math.isfinite(width.value) else None,
        "assuming": "the density that was guessed" if guessed else "no density, so levels are told",
    }


def _expected_quantile(asked: PlannedLevel, method: str) -> dict[str, Any]:
    """Return a width as JSON can say it: in levels always, in values where public guesses allow it."""
    plan = asked.plan
    width = expected_width(plan, method, asked.level, asked.part)
    value, assumed = width.value, assumption_of(plan, method)
    low, high = width.low or 0.0, 1.0 if width.high is None else width.high
    if min(low, 1 - high) < FAR * min(plan.tau, 1 - plan.tau):
        value = math.inf
    elif width.unit != VALUES and plan.bounds is not None:
        value = (high - low) * (plan.bounds[1] - plan.bounds[0])
        assumed = assumed.replace("no public scale is given, so levels are told", EVEN)
    elif width.unit != VALUES:
        value = math.inf
    return {
        "of": f"{plan.tau:g}",
        "low": low,
        "high": high,
        "text": width.text.partition(", about")[0],
        "width": value if math.isfinite(value) else None,
        "assuming": assumed,
    }


def study_toml(given: dict[str, Any]) -> str:
    r"""Return a study as the text of its file: plain values first, then a table each.

    >>> study_toml({"name": "age", "people": 5000, "quantile": {"tau": 0.5, "bounds": [0, 120]}})
    'name = "age"\npeople = 5000\n\n[quantile]\ntau = 0.5\nbounds = [0, 120]\n'
    """
    return "\n".join(_lines(given, "")).lstrip("\n") + "\n"


def _lines(given: dict[str, Any], above: str) -> list[str]:
    """Return the lines of a table, and of the tables in it."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in given.items() if not isinstance(value, dict)]
    for key, value in given.items():
        if isinstance(value, dict) and value:
            lines += ["", f"[{above}{_key(key)}]", *_lines(value, f"{above}{_key(key)}.")]
    return lines


def _key(key: str) -> str:
    """Return a key of TOML, quoted where it must be."""
    return key if key and _BARE.issuperset(key) else _value(key)


def _value(value: Any) -> str:
    """Return a value of TOML, whose texts and numbers are those of JSON but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
