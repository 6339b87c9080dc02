"""Private quantiles with confidence intervals, over many sites, under local differential privacy."""

from typing import TYPE_CHECKING, Any

_HOMES = {
    "federated_quantile": "sottovoce.api.quantile.federated",
    "federated_quantiles": "sottovoce.api.quantile.levels",
    "group_quantiles": "sottovoce.api.quantile.groups",
    "expected_shortfall": "sottovoce.api.quantile.shortfall",
    "quantile_difference": "sottovoce.api.quantile.difference",
    "compare": "sottovoce.api.quantile.difference",
    "integrated_quantile": "sottovoce.api.integration",
    "explain": "sottovoce.api.explain",
    "plan": "sottovoce.planner.asking",
    "audit": "sottovoce.auditing.audit",
    "SiteSummary": "sottovoce.server.integration.site_summary",
    "conformal_threshold": "sottovoce.api.conformal.threshold",
    "conformal_thresholds": "sottovoce.api.conformal.thresholds",
    "conformal_coverage": "sottovoce.server.conformal.coverage.table",
    "coverage_report": "sottovoce.api.conformal.report",
    "FederatedConformalRegressor": "sottovoce.api.conformal.regressor",
    "FederatedConformalClassifier": "sottovoce.api.conformal.classifier",
    "PrivateQuantileRegressor": "sottovoce.api.regression.regressor",
    "read_frame": "sottovoce.api.tables",
    "read_files": "sottovoce.api.tables",
    "load": "sottovoce.server.load",
    "limit": "sottovoce.api.asking",
    "asymptotic_variance": "sottovoce.inference.quantile.asymptotic",
    "BadInput": "sottovoce.core.errors",
    "Infeasible": "sottovoce.core.errors",
    "SearchFailed": "sottovoce.core.errors",
    "sim": "sottovoce.sim",
    "__version__": "sottovoce.core.version",
}
_FORMER = {"Refused": "Infeasible", "Lost": "SearchFailed"}  # old names, each with the one it has now

if TYPE_CHECKING:
    from sottovoce import sim as sim
    from sottovoce.api.asking import limit as limit
    from sottovoce.api.conformal.classifier import FederatedConformalClassifier as FederatedConformalClassifier
    from sottovoce.api.conformal.regressor import FederatedConformalRegressor as FederatedConformalRegressor
    from sottovoce.api.conformal.report import coverage_report as coverage_report
    from sottovoce.api.conformal.threshold import conformal_threshold as conformal_threshold
    from sottovoce.api.conformal.thresholds import conformal_thresholds as conformal_thresholds
    from sottovoce.api.explain import explain as explain
    from sottovoce.api.integration import integrated_quantile as integrated_quantile
    from sottovoce.api.quantile.difference import compare as compare
    from sottovoce.api.quantile.difference import quantile_difference as quantile_difference
    from sottovoce.api.quantile.federated import federated_quantile as federated_quantile
    from sottovoce.api.quantile.groups import group_quantiles as group_quantiles
    from sottovoce.api.quantile.levels import federated_quantiles as federated_quantiles
    from sottovoce.api.quantile.shortfall import expected_shortfall as expected_shortfall
    from sottovoce.api.regression.regressor import PrivateQuantileRegressor as PrivateQuantileRegressor
    from sottovoce.api.tables import read_files as read_files
    from sottovoce.api.tables import read_frame as read_frame
    from sottovoce.auditing.audit import audit as audit
    from sottovoce.core.errors import BadInput as BadInput
    from sottovoce.core.errors import Infeasible as Infeasible
    from sottovoce.core.errors import SearchFailed as SearchFailed
    from sottovoce.inference.quantile.asymptotic import asymptotic_variance as asymptotic_variance
    from sottovoce.planner.asking import plan as plan
    from sottovoce.server.conformal.coverage.table import conformal_coverage as conformal_coverage
    from sottovoce.server.integration.site_summary import SiteSummary as SiteSummary
    from sottovoce.server.load import load as load

    Refused, Lost = Infeasible, SearchFailed
    __version__: str

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import sottovoce` and `--help` stay instant."""
    from importlib import import_module

    if name in _FORMER:
        from sottovoce.core.deprecation import say_former

        say_former(f"sv.{name}", f"sv.{_FORMER[name]}", since="0.1.0", gone="0.3.0")
        name = _FORMER[name]
    if name not in _HOMES:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    try:
        home = import_module(_HOMES[name])
    except ModuleNotFoundError as error:
        if error.name == "sklearn":
            told = f"sv.{name} needs scikit-learn: install it with: pip install scikit-learn"
        elif str(error.name).startswith(f"{__name__}."):
            told = f"sv.{name} is not part of sottovoce-client, which answers queries: install sottovoce itself"
        else:
            raise
        raise ModuleNotFoundError(told, name=error.name) from None
    if name == "__version__":
        return home.VERSION
    return home if home.__name__ == f"sottovoce.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
