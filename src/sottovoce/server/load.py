"""Reading a stored result back, whatever kind it is; a kind's code is imported when one is read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sottovoce.core.calling import public
from sottovoce.core.errors import BadInput
from sottovoce.server.stored import StoredResult, given_path, stored_kind


@public
def load(path: str | Path) -> Any:
    """Read a stored result back.

    Parameters
    ----------
    path
        A file that ``result.save(path)`` wrote.
    """
    source = given_path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadInput(f"{path} cannot be read ({reason}); give a file that result.save wrote.") from None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is not JSON; give a file that result.save wrote.") from None
    return from_dict(values)


def from_dict(values: Any) -> Any:
    """Make a result again from the values that its `to_dict` gave, whatever kind of result it was."""
    kind = stored_kind(values)
    if kind not in KINDS:
        raise BadInput("the stored result is of a kind that this version does not know; read it with a newer one.")
    return KINDS[kind]().from_dict(values)


def _quantile() -> type[StoredResult]:
    from sottovoce.server.quantile.result import QuantileResult

    return QuantileResult


def _quantiles() -> type[StoredResult]:
    from sottovoce.server.quantile.levels import QuantilesResult

    return QuantilesResult


def _difference() -> type[StoredResult]:
    from sottovoce.server.quantile.difference import Difference

    return Difference


def _shortfall() -> type[StoredResult]:
    from sottovoce.server.quantile.shortfall.result import ShortfallResult

    return ShortfallResult


def _groups() -> type[StoredResult]:
    from sottovoce.server.quantile.groups.result import GroupQuantilesResult

    return GroupQuantilesResult


def _regression() -> type[StoredResult]:
    from sottovoce.server.regression.result import RegressionResult

    return RegressionResult


def _integrated() -> type[StoredResult]:
    from sottovoce.server.integration.result import IntegratedResult

    return IntegratedResult


def _sensitivity() -> type[StoredResult]:
    from sottovoce.server.integration.result import Sensitivity

    return Sensitivity


def _threshold() -> type[StoredResult]:
    from sottovoce.server.conformal.result import ConformalThreshold

    return ConformalThreshold


def _pooled() -> type[StoredResult]:
    from sottovoce.server.conformal.pooled_result import PooledThreshold

    return PooledThreshold


def _thresholds() -> type[StoredResult]:
    from sottovoce.server.conformal.thresholds import ConformalThresholds

    return ConformalThresholds


def _report() -> type[StoredResult]:
    from sottovoce.server.conformal.report import CoverageReport

    return CoverageReport


KINDS: dict[str, Callable[[], type[StoredResult]]] = {
    "quantile": _quantile,
    "quantiles": _quantiles,
    "difference": _difference,
    "shortfall": _shortfall,
    "group-quantiles": _groups,
    "regression": _regression,
    "integrated": _integrated,
    "sensitivity": _sensitivity,
    "threshold": _threshold,
    "pooled-threshold": _pooled,
    "thresholds": _thresholds,
    "coverage-report": _report,
}
