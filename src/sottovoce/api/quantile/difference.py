"""The difference of a quantile between two groups of sites, or of two results."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sottovoce.api.quantile.federated import run_study
from sottovoce.api.quantile.planning import PlannedStudy, origin, plan_study
from sottovoce.client.answered import shared_columns
from sottovoce.client.fingerprint import mark
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.client.record import overlap
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers, confidence, label_text, nearest
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit, uncensored
from sottovoce.server.explanation import VALUES, ExpectedWidth, Explanation
from sottovoce.server.quantile.difference import Difference
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.stored import InAll


@public
def compare(first: QuantileResult, second: QuantileResult, level: float | None = None) -> Difference:
    """Return the difference of two results over different records.

    Parameters
    ----------
    first, second
        Two results; they must not share records, for then they would not be independent.
    level
        The confidence level; that of the first result if not given.
    """
    if not all(isinstance(each, QuantileResult) for each in (first, second)):
        raise BadInput("compare takes two results of federated_quantile; give those, and a confidence level.")
    if first is second:
        raise BadInput("the two results are one and the same; compare different groups of sites.")
    _check_units(first.plan.roster.unit, second.plan.roster.unit)
    one, two = origin(first), origin(second)
    if one is not None and two is not None:
        check_comparable(one, two)
    return Difference(first, second, confidence(first.level if level is None else level), in_all=_dearer(first, second))


def _dearer(first: QuantileResult, second: QuantileResult) -> InAll:
    """Return what the records of both groups have cost in all; of sites of one name the dearer."""
    if first.in_all is None or second.in_all is None:
        return None
    names = [*first.in_all, *(name for name in second.in_all if name not in first.in_all)]
    return {name: max(first.in_all.get(name, 0.0), second.in_all.get(name, 0.0)) for name in names}


def check_comparable(first: SiteTable, second: SiteTable) -> None:
    """Refuse two groups of different kinds, or that hold the same records and so do not answer independently."""
    _check_units(first.unit, second.unit)
    columns = [*first.columns, *second.columns]
    if overlap(first.records, second.records) or shared_columns(columns, mark(columns)) is not None:
        raise BadInput("the two groups share records, so they are not independent; compare different groups of sites.")


@public
def quantile_difference(first: Any, second: Any, tau: Any, epsilon: Any, **options: Any) -> Difference:
    """Estimate the difference of a quantile between two groups of sites.

    Parameters
    ----------
    first, second
        Two groups of sites, as for `federated_quantile`, with different records.
    tau, epsilon
        As for `federated_quantile`; a mapping of budgets may name the sites of both groups.
    **options
        As for `federated_quantile`.

    Examples
    --------
    >>> import sottovoce as sv
    >>> g = sv.sim.dice(3).generator()
    >>> d = sv.quantile_difference([g.normal(1.0, 1.0, 40_000)], [g.normal(0.0, 1.0, 40_000)], 0.5, 2.0,
    ...                            randomness=sv.sim.dice(4))
    >>> bool(d.interval.low < 1.0 < d.interval.high), d.pvalue < 1e-6
    (True, True)
    """
    randomness, progress = options.pop("randomness", None), options.pop("progress", None)
    check_callers(randomness, progress)
    studies = plan_difference(first, second, tau, epsilon, **options)
    say_before(*studies.warnings)
    dice = (None, None) if randomness is None else randomness.split(2)
    one, two = (run_study(study, own, progress) for study, own in zip(studies, dice, strict=True))
    return compare(one, two)


class PlannedDifference(NamedTuple):
    """Two studies of which nothing is spent yet, and whose answers will be compared."""

    first: PlannedStudy
    second: PlannedStudy

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        return tuple(dict.fromkeys(text for study in self for text in study.warnings))

    def explain(self, seeded: bool = False) -> Explanation:
        """Return what would be asked of both groups, and how wide the interval of the difference will be."""
        one, two = (study.explain(seeded) for study in self)
        widths = [one.widths[0]._replace(of="first"), two.widths[0]._replace(of="second")]
        if widths[0].unit == widths[1].unit == VALUES:
            widths.append(ExpectedWidth("difference", math.hypot(one.width, two.width), VALUES))
        return replace(
            one,
            title=f"{one.title}, of a difference",
            asked=[(f"{label} {n}", text) for n, each in ((1, one), (2, two)) for label, text in each.asked],
            privacy=max((one, two), key=lambda each: max(map(_paid, each.values["sites"]))).privacy,
            widths=widths,
            warnings=[*one.warnings, *two.warnings],
            hints=[*one.hints, *two.hints],
            table=[*one.table, *two.table[2:]],
            values={"first": dict(one.values), "second": dict(two.values)},
        )


def _paid(site: Mapping[str, Any]) -> float:
    """Return what a record of a site pays."""
    return math.inf if site["epsilon"] is None else float(site["epsilon"])


def plan_difference(first: Any, second: Any, tau: Any, epsilon: Any, **options: Any) -> PlannedDifference:
    """Check all input of `quantile_difference` without asking any record."""
    missing = options.get("missing", "refuse")
    if options.get("after") is not None:
        raise BadInput("after belongs to federated_quantile; go on with each group by itself, and compare the results.")
    tables = [
        group if isinstance(group, SiteTable) else read_sites(group, missing=missing) for group in (first, second)
    ]
    check_comparable(*tables)
    shares = options.pop("shares", "pooled")
    check_names({"tau": tau, "epsilon": epsilon, "shares": shares}, tables)
    one, two = (
        plan_study(table, _own(tau, table), _own(epsilon, table), shares=_own(shares, table), **options)
        for table in tables
    )
    return PlannedDifference(one, two)


def _own(value: Any, table: SiteTable) -> Any:
    """Return the part of a mapping that names the sites of one group."""
    if not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if label_text(name) in table.names}


def check_names(mappings: Mapping[str, Any], tables: list[SiteTable]) -> None:
    """Refuse a mapping that names a site of neither group."""
    known = {name for table in tables for name in table.names}
    for what, value in mappings.items():
        unknown = [name for name in value if label_text(name) not in known] if isinstance(value, Mapping) else []
        if unknown:
            near = nearest(unknown[0], known)
            raise BadInput(f"{what} names {unknown[0]!r}{near}, which is a site of neither group; correct it.")


def _check_units(first: Unit, second: Unit) -> None:
    """Refuse to compare what is measured differently, or has no differences."""
    for unit in (first, second):
        uncensored(unit, "a difference")
    if first.kind == second.kind and first.categories != second.categories:
        raise BadInput("the two groups declare different categories; compare like with like.")
    if first.kind != second.kind:
        raise BadInput(
            f"the first group measures {first.plural} and the second {second.plural}; compare like with like."
        )
