"""What a collector is told of a study: a TOML file with a name, the question, the groups, and how rounds close.

    name = "start-up time"
    question = "How many milliseconds did the app take to start?"
    groups = ["4.1", "4.2"]       # public; left out, all people are one group
    people = 50_000               # about how many will answer in each group

    [quantile]
    tau = 0.99                    # or several, [0.5, 0.9]: people are divided between them, intervals hold jointly
    epsilon = 1.0
    method = "sequence"           # holds at every time; or "staged", "certified"; of several levels one of these
    bounds = [0, 60_000]

    [rounds]
    deadline = 3600               # seconds after which a round closes with the answers that came
    grace = 1.0                   # a round with all its answers closes once none has come for so many seconds

    [devices]
    tokens = false                # true: reports count with tokens alone, which the operator issues

Each group is a conversation of its own with the people of that group, about the same question. A table [regression] in
place of [quantile] asks for the coefficients of a regression (`collector.regression_study`).
"""

import math
import stat
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.collector.fold import Fold, Pauses, QuantileFold
from sottovoce.collector.regression_fold import RegressionFold
from sottovoce.collector.regression_study import pilot_flips, plan_regression, regression_terms
from sottovoce.core.checks import confidence, is_one_of, nearest, number, unknown
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.core.shown import quoted
from sottovoce.core.unit import NUMBER
from sottovoce.protocol.device import DeviceCard
from sottovoce.server.quantile.feasibility import CERTIFIED
from sottovoce.server.quantile.levels import StagedQuantiles
from sottovoce.server.quantile.levels_plan import LevelsPlan, plan_levels
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.sequence import SequenceQuantile
from sottovoce.server.regression.plan import RegressionPlan

METHODS = ("sequence", "staged", "certified")
_TOP = {"name", "question", "groups", "people", "quantile", "regression", "rounds", "devices"}
_ASKED = {"tau", "epsilon", "level", "method", "bounds", "scale", "resolution", "kind", "until", "split"}
LARGEST = 1 << 20  # bytes of a study's file
MOST_GROUPS, MOST_PEOPLE, LONGEST = 1_000, 1_000_000_000, 300


class CollectedStudy(NamedTuple):
    """A study that was checked: all that is needed to begin its conversations anew."""

    name: str
    question: str
    groups: tuple[str, ...]
    people: int
    plan: QuantilePlan | LevelsPlan | RegressionPlan
    method: str
    level: float
    until: float | None
    pauses: Pauses
    tokens: bool = False

    def card(self, nonce: str) -> DeviceCard:
        """Return the public card that devices check."""
        about: dict[str, Any] = {"name": self.name, "groups": self.groups, "question": self.question, "nonce": nonce}
        about["tokens"] = self.tokens
        if isinstance(self.plan, RegressionPlan):
            return DeviceCard(
                **about,
                taus=self.plan.settings.taus,
                epsilon=self.plan.settings.epsilon,
                flips=str(pilot_flips(self.plan)),
                regression=regression_terms(self.plan),
            )
        plans = self.plan.plans if isinstance(self.plan, LevelsPlan) else [self.plan]
        plan = plans[0]
        return DeviceCard(
            **about,
            taus=tuple(each.tau for each in plans),
            epsilon=plan.budgets[0],
            flips=str(plan.flips[0]),
            resolution=plan.resolution,
            bounds=plan.bounds,
        )

    @property
    def epsilon(self) -> float:
        """Return what one report costs, computed from the channel's integers."""
        if isinstance(self.plan, RegressionPlan):
            return self.plan.epsilon
        plan = self.plan.whole if isinstance(self.plan, LevelsPlan) else self.plan
        return plan.epsilons["people"]

    def fold(self, coin: bytes, now: float, nonce: str = "") -> Fold:
        """Begin the fold of one group; ``nonce`` is that of the card, by which devices find their questions."""
        plan = self.plan
        if isinstance(plan, RegressionPlan):
            return RegressionFold(plan, self.people, nonce, self.pauses, now)
        if isinstance(plan, LevelsPlan):
            several = StagedQuantiles(plan.plans, plan.parts, self.level, coin, plan.certified)
            return QuantileFold(several, self.pauses, now)
        if self.method == "sequence":
            return QuantileFold(SequenceQuantile(plan, self.level, coin, self.until), self.pauses, now)
        certified = self.method == "certified" or plan.atoms
        return QuantileFold(StagedQuantile(plan, self.level, coin, certified), self.pauses, now)


def read_collected(path: str | Path) -> tuple[CollectedStudy, dict[str, Any]]:
    """Read a study from its file, or refuse; return what was said, too."""
    where = str(path)
    try:
        at = Path(path)
        if not stat.S_ISREG(at.stat().st_mode):
            raise BadInput(f"{where} is not a file; give the TOML file of a study.")
        if at.stat().st_size > LARGEST:
            raise BadInput(f"{where} is larger than {LARGEST:,} bytes; a study is a short TOML file.")
        text = at.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise BadInput(f"{where} cannot be read; give the TOML file of a study.") from None
    try:
        given = tomllib.loads(text)
        return collected_of(given, where), given
    except (tomllib.TOMLDecodeError, RecursionError):
        raise BadInput(f"{where} is not TOML; correct its syntax.") from None


def collected_of(given: dict[str, Any], where: str = "the study") -> CollectedStudy:
    """Check all that is said of a study, before anybody is asked.

    >>> collected_of({"name": "age", "people": 5_000, "quantile": {"tau": 0.5, "epsilon": 1.0}}).method
    'sequence'
    """
    _only(given, _TOP, where)
    name, question = _text(given, "name", where), _text(given, "question", where, "")
    if not name:
        raise BadInput(f"{where} has no name; give name = a short text.")
    groups = given.get("groups", ["all"])
    if not (isinstance(groups, list) and groups and all(_is_text(each) and each.strip() for each in groups)):
        raise BadInput(f"groups of {where} must be names of up to {LONGEST} printable characters; correct them.")
    if len(set(groups)) < len(groups) or len(groups) > MOST_GROUPS:
        raise BadInput(f"groups of {where} must be up to {MOST_GROUPS:,} different names; give each once.")
    people = given.get("people")
    if type(people) is not int or not 1 <= people <= MOST_PEOPLE:
        raise BadInput(f"people of {where} must be a whole number: about how many will answer in each group; give it.")
    ends = _pauses(given.get("rounds", {}), where), _tokens(given.get("devices", {}), where)
    if ("regression" in given) == ("quantile" in given):
        raise BadInput(f"{where} needs one table of what is asked, [quantile] or [regression]; give one of them.")
    if "regression" in given:
        fitted = plan_regression(given["regression"], people, where)
        return CollectedStudy(name, question, tuple(groups), people, fitted, "regression", fitted.level, None, *ends)
    asked = given["quantile"]
    if not isinstance(asked, dict):
        raise BadInput(f"[quantile] of {where} must be a table; write tau and epsilon below it.")
    _only(asked, _ASKED, f"[quantile] of {where}")
    if missing := [each for each in ("tau", "epsilon") if each not in asked]:
        raise BadInput(f"[quantile] of {where} has no {missing[0]}; give it.")
    if not number(asked["epsilon"], "epsilon") < math.inf:
        raise BadInput("people's devices answer in private: epsilon must be finite; give a number such as 1.")
    return CollectedStudy(name, question, tuple(groups), people, *_planned(dict(asked), people), *ends)


def _planned(terms: dict[str, Any], people: int) -> tuple[QuantilePlan | LevelsPlan, str, float, float | None]:
    """Plan what is asked of one quantile, or of several; return the method, the level and where to stop with it."""
    several = isinstance(terms["tau"], list)
    method = terms.pop("method", "staged" if several else "sequence")
    level, until = confidence(terms.pop("level", 0.95)), terms.pop("until", None)
    if not is_one_of(method, METHODS):
        raise unknown("method", method, METHODS)
    if until is not None:
        until = number(until, "until")
        if method != "sequence" or not 0 < until < math.inf:
            raise BadInput('until is a positive length, for method = "sequence" alone; correct it or leave it out.')
    roster = Roster(("people",), (people,), NUMBER)
    if several:
        taus, split = terms.pop("tau"), terms.pop("split", None)
        return plan_levels(roster, taus, level=level, method=method, split=split, **terms), method, level, until
    if "split" in terms:
        raise BadInput("split divides people between several levels, and tau is one; leave it out.")
    certified = method in ("certified", "sequence")
    plan = plan_quantile(roster, **terms, limits=CERTIFIED, confidence=level, certified=certified)
    return plan, method, level, until


def _tokens(given: Any, where: str) -> bool:
    """Check whether devices need tokens."""
    if not isinstance(given, dict):
        raise BadInput(f"[devices] of {where} must be a table; give tokens = true, or leave it out.")
    _only(given, {"tokens"}, f"[devices] of {where}")
    if type(given.get("tokens", False)) is not bool:
        raise BadInput(f"tokens of [devices] of {where} must be true or false; correct it.")
    return bool(given.get("tokens", False))


def _pauses(given: Any, where: str) -> Pauses:
    """Check when rounds close."""
    if not isinstance(given, dict):
        raise BadInput(f"[rounds] of {where} must be a table; give deadline or grace.")
    _only(given, set(Pauses._fields), f"[rounds] of {where}")
    deadline, grace = (number(given.get(key, Pauses._field_defaults[key]), key) for key in Pauses._fields)
    if not (0 < deadline < 1e9 and 0 <= grace <= deadline):
        raise BadInput(f"[rounds] of {where}: deadline must be positive seconds and grace at most that; correct them.")
    return Pauses(deadline, grace)


def _only(given: dict[str, Any], known: set[str], where: str) -> None:
    """Refuse a word that is not known."""
    for key in given:
        if key not in known:
            raise BadInput(f"{where} does not know {quoted(key)}{nearest(key, sorted(known))}; correct or remove it.")


def _text(given: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    """Return a short text without control characters, or refuse."""
    value = given.get(key, default)
    if not _is_text(value):
        raise BadInput(f"{key} of {where} must be a text of up to {LONGEST} printable characters; correct it.")
    return str(value)


def _is_text(value: object) -> bool:
    """Tell whether a value is a short text that shows as it is: nothing in it steers what comes after."""
    return isinstance(value, str) and len(value) <= LONGEST and value.isprintable()
