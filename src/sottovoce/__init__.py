"""Private quantiles, with honest intervals: over many sites, under local differential privacy."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "federated_quantile": "sottovoce.facade.federated",
    "federated_quantiles": "sottovoce.facade.levels",
    "quantile_difference": "sottovoce.facade.difference",
    "compare": "sottovoce.facade.difference",
    "integrated_quantile": "sottovoce.facade.integrated",
    "SiteSummary": "sottovoce.facade.site_summary",
    "conformal_threshold": "sottovoce.facade.conformal",
    "conformal_coverage": "sottovoce.design.coverage.table",
    "coverage_report": "sottovoce.facade.conformal_report",
    "FederatedConformalRegressor": "sottovoce.facade.conformal_regressor",
    "FederatedConformalClassifier": "sottovoce.facade.conformal_classifier",
    "PrivateQuantileRegressor": "sottovoce.facade.regressor",
    "read_frame": "sottovoce.facade.tables",
    "read_files": "sottovoce.facade.tables",
    "asymptotic_variance": "sottovoce.inference.asymptotic",
    "BadInput": "sottovoce.errors",
    "Refused": "sottovoce.errors",
    "Lost": "sottovoce.errors",
    "sim": "sottovoce.sim",
}

if TYPE_CHECKING:
    from sottovoce import sim as sim
    from sottovoce.design.coverage.table import conformal_coverage as conformal_coverage
    from sottovoce.errors import BadInput as BadInput
    from sottovoce.errors import Lost as Lost
    from sottovoce.errors import Refused as Refused
    from sottovoce.facade.conformal import conformal_threshold as conformal_threshold
    from sottovoce.facade.conformal_classifier import FederatedConformalClassifier as FederatedConformalClassifier
    from sottovoce.facade.conformal_regressor import FederatedConformalRegressor as FederatedConformalRegressor
    from sottovoce.facade.conformal_report import coverage_report as coverage_report
    from sottovoce.facade.difference import compare as compare
    from sottovoce.facade.difference import quantile_difference as quantile_difference
    from sottovoce.facade.federated import federated_quantile as federated_quantile
    from sottovoce.facade.integrated import integrated_quantile as integrated_quantile
    from sottovoce.facade.levels import federated_quantiles as federated_quantiles
    from sottovoce.facade.regressor import PrivateQuantileRegressor as PrivateQuantileRegressor
    from sottovoce.facade.site_summary import SiteSummary as SiteSummary
    from sottovoce.facade.tables import read_files as read_files
    from sottovoce.facade.tables import read_frame as read_frame
    from sottovoce.inference.asymptotic import asymptotic_variance as asymptotic_variance

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import sottovoce` and `--help` stay instant."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'sottovoce' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"sottovoce.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
