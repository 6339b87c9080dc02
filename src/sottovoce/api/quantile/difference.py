"""The difference of a quantile between two groups of sites, or of two results."""

from collections.abc import Mapping
from typing import Any

from sottovoce.api.quantile.federated import run_study
from sottovoce.api.quantile.planning import origin, plan_study, say_before
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.client.record import overlap
from sottovoce.core.checks import check_callers, confidence, label_text
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.core.unit import Unit
from sottovoce.server.quantile.difference import Difference
from sottovoce.server.quantile.result import QuantileResult


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
    return Difference(first, second, confidence(first.level if level is None else level))


def check_comparable(first: SiteTable, second: SiteTable) -> None:
    """Refuse two groups of different kinds, or that hold the same records and so do not answer independently."""
    _check_units(first.unit, second.unit)
    if overlap(first.records, second.records):
        raise BadInput("the two groups share records, so they are not independent; compare different groups of sites.")


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
    missing = options.get("missing", "refuse")
    if options.get("after") is not None:
        raise BadInput("after belongs to federated_quantile; go on with each group by itself, and compare the results.")
    check_callers(randomness, progress)
    tables = [
        group if isinstance(group, SiteTable) else read_sites(group, missing=missing) for group in (first, second)
    ]
    check_comparable(*tables)
    shares = options.pop("shares", "pooled")
    check_names({"tau": tau, "epsilon": epsilon, "shares": shares}, tables)
    studies = [
        plan_study(table, _own(tau, table), _own(epsilon, table), shares=_own(shares, table), **options)
        for table in tables
    ]
    say_before(*(text for study in studies for text in study.warnings))
    dice = (None, None) if randomness is None else parts_of(randomness, 2)
    one, two = (run_study(study, own, progress) for study, own in zip(studies, dice, strict=True))
    return compare(one, two)


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
            raise BadInput(f"{what} names {unknown[0]!r}, which is a site of neither group; correct it.")


def _check_units(first: Unit, second: Unit) -> None:
    """Refuse to compare what is measured differently."""
    if first.kind == second.kind and first.categories != second.categories:
        raise BadInput("the two groups declare different categories; compare like with like.")
    if first.kind != second.kind:
        raise BadInput(
            f"the first group measures {first.plural} and the second {second.plural}; compare like with like."
        )
