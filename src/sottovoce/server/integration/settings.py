"""How a target and its sources are combined: checked before anything is asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from sottovoce.core.checks import confidence, label_text, number
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.inference.integration import kabaila_giri, weighted
from sottovoce.inference.integration.weighted import METHODS as PAPER

METHODS = ("valid", "conservative", "known-bound", *PAPER)


@dataclass(frozen=True)
class ChainSettings:
    """How the paper's chains are run at private sites (3.6): how many, and the constant and power of the step."""

    number: int = 10
    constant: float = 1.0
    power: float = 0.6


@dataclass(frozen=True)
class IntegrationSettings:
    """How sites are combined: checked, and nothing asked yet."""

    method: str
    level: float
    tau: float
    bound: Mapping[str, float] | None = field(hash=False)
    variance: str
    quantile: str
    caution: float
    chains: ChainSettings | None
    slack: float = 0.0  # by which a summary of rounded records may differ from what dithered records estimate


def check_settings(
    method: Any, level: Any, tau: Any, variance: Any, quantile: Any, caution: Any, sites: Any, chains: Any
) -> IntegrationSettings:
    """Check how sites are combined."""
    for what, value, known in (
        ("method", method, METHODS),
        ("variance", variance, weighted.VARIANCES),
        ("quantile", quantile, weighted.QUANTILES),
        ("sites", "staged" if sites is None else sites, ("staged", "chains")),
    ):
        if not isinstance(value, str) or value not in known:
            raise BadInput(f"{what} {value!r} is unknown; choose one of {', '.join(map(repr, known))}.")
    asked = confidence(level)
    if method == "valid":
        kabaila_giri.table(asked)
    walks = method in PAPER if sites is None else sites == "chains"
    if walks and method not in PAPER:
        raise BadInput(f"chains belong to the paper's methods, not to {method!r}; leave sites out.", parameter="sites")
    margin = number(caution, "caution")
    if method not in PAPER and (variance, quantile, margin) != ("printed", "z", 1.96):
        named = ("variance", "quantile", "caution")
        raise BadInput("variance, quantile and caution belong to the paper's methods; leave them out.", parameter=named)
    if not 0 <= margin < math.inf:
        raise BadInput(f"caution must be a number of errors, 0 or more, not {caution!r}; the paper's is 1.96.")
    if isinstance(chains, bool) or not isinstance(chains, Integral) or chains < 2:
        raise BadInput(f"chains must be a whole number of at least 2, not {chains!r}; the paper's is 10.")
    walk = ChainSettings(int(chains)) if walks else None
    level_asked = number(tau, "tau") if not isinstance(tau, Mapping) else math.nan
    return IntegrationSettings(method, asked, level_asked, None, variance, quantile, margin, walk)


def with_bound(
    settings: IntegrationSettings, bound: Any, names: Sequence[str], unit: Unit, step: float
) -> IntegrationSettings:
    """Add the bound of each source, where the method needs one; ``step`` is that of dithered records, or zero."""
    if settings.method != "known-bound":
        if bound is not None:
            text = f"bound belongs to method 'known-bound', not to {settings.method!r}; choose one."
            raise BadInput(text, parameter="bound")
        return settings
    if bound is None:
        raise BadInput("method 'known-bound' needs bound=, the largest difference between a source and the target.")
    if not isinstance(bound, Mapping):
        limits = dict.fromkeys(names, width_of(bound, "bound", unit))
    else:
        given = {label_text(name): value for name, value in bound.items()}
        unknown, absent = [n for n in given if n not in names], [n for n in names if n not in given]
        if unknown or absent:
            text = f"names {unknown[0]!r}, which is no source" if unknown else f"says nothing of source {absent[0]!r}"
            raise BadInput(f"bound {text}; give one for each source, or one number for all.")
        limits = {name: width_of(given[name], f"bound of source {name!r}", unit) for name in names}
    return replace(settings, bound=limits, slack=step / 2)


def width_of(value: Any, where: str, unit: Unit) -> float:
    """Return a width in the unit of the records, or refuse one below zero."""
    if isinstance(value, str) and unit.kind != "number":
        width = Unit("duration").parse(value, where=where) / (86400 if unit.kind == "date" else 1)
    else:
        width = number(value, where)
    if not width >= 0:
        raise BadInput(f"{where} is {value!r}; give the largest difference you allow, 0 or more.")
    return width


def check_numbers(settings: IntegrationSettings, name: str, trusted: bool, records: int | None) -> None:
    """Refuse a site that lacks a number which the method needs."""
    if settings.method != "valid" and not trusted:
        raise BadInput(
            f"source {name!r} has no standard error to be trusted, and method {settings.method!r} needs one; "
            "leave it out, or use method 'valid'."
        )
    if settings.method == "decay" and records is None:
        raise BadInput(f"method 'decay' needs the number of records of {name!r}; give n= in its summary.")
