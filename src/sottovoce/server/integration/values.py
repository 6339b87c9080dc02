"""A target and its sources as plain values, ready for strict JSON."""

from typing import TYPE_CHECKING, Any

from sottovoce.api.integration.measure import KnownSite
from sottovoce.server.description import finite

if TYPE_CHECKING:
    from sottovoce.server.integration.result import IntegratedResult


def values(result: "IntegratedResult") -> dict[str, Any]:
    """Return everything as plain values, ready for strict JSON: what is infinite is None."""
    low, high = result.interval
    own = result.target_interval
    return {
        "estimand": result.estimand,
        "tau": result.tau,
        "method": result.method,
        "estimate": result.estimate,
        "interval": {"low": finite(low), "high": finite(high), "level": result.level},
        "target_interval": {"low": finite(own.low), "high": finite(own.high), "level": result.level},
        "length_ratio": finite(result.length_ratio),
        "uniformly_valid": result.uniformly_valid,
        "reason": result.reason,
        "bound": None if (limits := result.settings.bound) is None else {k: finite(v) for k, v in limits.items()},
        "unit": result.unit.kind,
        "text": {"estimate": result.format(result.estimate), "low": result.format(low), "high": result.format(high)},
        "weights": dict(result.weights),
        "sites": [_site(result, site) for site in result.known],
        "left_out": [site.name for site in result.known[1:] if not site.usable] + list(result.absent),
        "private": result.private,
        "epsilon": {name: finite(epsilon) for name, epsilon in result.epsilon.items()},
        "reports": result.reports,
        "rounds": result.rounds,
        "resolution": result.resolution or None,
        "warnings": list(result.warnings),
        "promise": result.promise,
    }


def _site(result: "IntegratedResult", site: KnownSite) -> dict[str, Any]:
    """Return one site as plain values."""
    return {
        "name": site.name,
        "role": "target" if site is result.target else "source",
        "kind": site.kind,
        "estimate": result.rounded(site.measured.estimate),
        "low": finite(result.rounded(site.low)),
        "high": finite(result.rounded(site.high)),
        "error": finite(site.measured.std_error),
        "df": finite(site.measured.df),
        "epsilon": None if site.epsilon is None else finite(site.epsilon),
        "records": site.records,
        "reports": site.reports,
        "weight": result.weights[site.name],
    }
