"""A site's policy as its operator writes it: who it is, which column answers, and what it may cost; a TOML file.

    name = "north"
    source = "admissions 2026"        # whose records these are; what is charged where nobody is enrolled by an id

    [records]
    value = "wait"
    person = "patient"                # optional: one record a person, and epsilon is counted by person
    features = ["age"]                # optional: columns of numbers that regressions may use; value is the response
    categories = ["ward"]             # optional: likewise, columns of categories

    [limits]
    epsilon = 1.0                     # the most that one study may cost a record
    total = 4.0                       # the most that all studies may cost a record, or the source
    studies = ["waiting times*"]      # optional: names of studies that may be asked
    methods = ["quantile"]            # optional
    open = false                      # whether scores and order statistics may leave without privacy

A site does what its policy allows and nothing else; what a study asks beyond it is refused, with the reason.
"""

import math
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.client.door import SiteLimits
from sottovoce.core.censoring import read_censoring
from sottovoce.core.errors import BadInput
from sottovoce.federation.study import NAME, check_names, read_toml, text_of
from sottovoce.protocol.card import METHODS
from sottovoce.protocol.wire import LARGEST

_TEXTS = ("person", "delimiter", "decimal", "spool", "censored", "flag")
_RECORDS = {"value", "features", "categories", "missing", *_TEXTS}
_LIMITS = {"epsilon", "total", "studies", "methods", "open", "rounds", "points", "message", "sites"}


class RecordColumns(NamedTuple):
    """Which column of the files answers, and how it is read."""

    value: str
    person: str | None = None
    missing: str = "refuse"
    delimiter: str | None = None
    decimal: str | None = None
    spool: str | None = None  # a folder for a column larger than memory
    censored: str | None = None  # limits beyond which values are symbols, as "<5"
    flag: str | None = None  # the column that marks such values
    features: tuple[str, ...] = ()  # of numbers, for regressions
    categories: tuple[str, ...] = ()  # of categories


class SitePolicy(NamedTuple):
    """What a site is ready to do."""

    name: str
    source: str
    records: RecordColumns
    epsilon: float  # of one study
    total: float  # of all studies
    studies: tuple[str, ...] = ("*",)
    methods: tuple[str, ...] = METHODS
    open: bool = False
    sites: int = 1  # the fewest that a study must have
    limits: SiteLimits = SiteLimits()

    def check_study(self, name: str, method: str, sites: int) -> None:
        """Refuse a study that the policy does not allow."""
        if not any(fnmatchcase(name, pattern) for pattern in self.studies):
            raise BadInput("the policy of this site does not allow a study of this name; ask its operator.")
        if method not in self.methods:
            raise BadInput(f"the policy of this site does not allow {method} studies; ask its operator.")
        if sites < self.sites:
            raise BadInput(
                f"the policy of this site asks for studies of at least {self.sites} sites; ask its operator."
            )

    def check_budget(self, epsilon: float) -> None:
        """Refuse a study that would cost a record too much."""
        if math.isinf(epsilon) and not self.open:
            raise BadInput("the policy of this site allows no study without privacy; give it a budget.")
        if not 0 < epsilon <= self.epsilon and not (math.isinf(epsilon) and self.open):
            raise BadInput(
                f"the study costs a record more than epsilon {self.epsilon:g}, which the policy of this site allows; "
                "ask for less."
            )


def read_policy(path: str | Path) -> SitePolicy:
    """Read a site policy from a TOML file, or refuse."""
    return policy_of(read_toml(path), str(path))


def policy_of(given: dict[str, Any], where: str = "the policy") -> SitePolicy:
    """Check what a policy says; a budget is never assumed.

    >>> limits = {"epsilon": 1.0, "total": 3.0}
    >>> policy_of({"name": "north", "source": "waits", "records": {"value": "wait"}, "limits": limits}).total
    3.0
    """
    check_names(given, {"name", "source", "records", "limits"}, where)
    name, source = text_of(given, "name", where), text_of(given, "source", where)
    if not NAME.fullmatch(name):
        raise BadInput(f"the name in {where} must be up to 100 letters, digits, blanks and .,:()+-; rename the site.")
    records, limits = given.get("records", {}), given.get("limits", {})
    if not (isinstance(records, dict) and isinstance(limits, dict)):
        raise BadInput(f"{where} must have the tables [records] and [limits]; write them.")
    check_names(records, _RECORDS, f"[records] of {where}")
    check_names(limits, _LIMITS, f"[limits] of {where}")
    if records.get("missing", "refuse") not in ("refuse", "drop"):
        raise BadInput(f'missing in [records] of {where} must be "refuse" or "drop"; choose one.')
    for each in _TEXTS:
        if each in records and not isinstance(records[each], str):
            raise BadInput(f"{each} in [records] of {where} must be text; correct it.")
    beside = {
        each: _texts(records[each], f"{each} in [records] of {where}")
        for each in ("features", "categories")
        if each in records
    }
    columns = RecordColumns(**{**records, **beside, "value": text_of(records, "value", f"[records] of {where}")})
    if beside and columns.spool is not None:
        raise BadInput(f"[records] of {where} has a spool, which holds one column; leave out features, or spool.")
    if columns.censored is not None and (beside or columns.spool is not None):
        raise BadInput(f"[records] of {where} has limits, which go with value alone; leave censored out.")
    read_censoring(columns.censored)
    epsilon = _positive(limits.get("epsilon"), f"epsilon in [limits] of {where}")
    total = _positive(limits.get("total"), f"total in [limits] of {where}")
    opened = limits.get("open", False)
    if not isinstance(opened, bool):
        raise BadInput(f"open in [limits] of {where} must be true or false; choose one.")
    methods = _texts(limits.get("methods", list(METHODS)), f"methods in [limits] of {where}")
    unknown = [each for each in methods if each not in METHODS]
    if unknown:
        raise BadInput(f"methods in [limits] of {where} must be some of {', '.join(METHODS)}; correct them.")
    studies = _texts(limits.get("studies", ["*"]), f"studies in [limits] of {where}")
    sizes = SiteLimits(
        epsilon,
        _whole(limits.get("points", 10_000), f"points in [limits] of {where}"),
        _whole(limits.get("rounds", 1_000_000), f"rounds in [limits] of {where}"),
        min(LARGEST, _whole(limits.get("message", LARGEST), f"message in [limits] of {where}")),
    )
    sites = _whole(limits.get("sites", 1), f"sites in [limits] of {where}")
    return SitePolicy(name, source, columns, epsilon, total, studies, methods, opened, sites, sizes)


def _positive(value: Any, where: str) -> float:
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise BadInput(f"{where} must be a positive number; say what a record may cost.")
    return float(value)


def _whole(value: Any, where: str) -> int:
    if type(value) is not int or value < 1:
        raise BadInput(f"{where} must be a whole number from 1 on; correct it.")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise BadInput(f"{where} must be a list of texts; correct it.")
    return tuple(value)
