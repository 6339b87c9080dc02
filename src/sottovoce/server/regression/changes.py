"""Whether the parameters of a regression are still those that its first batch was asked with."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from sottovoce.core.bounds import Bounds, read_bounds
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.server.regression.settings import Settings, read_settings

PARAMETERS = {"taus": "tau", "several": "tau"}  # of settings that have another name


def check_unchanged(first: Settings, bounds: Bounds, randomness: RandomSource | None, given: Mapping[str, Any]) -> None:
    """Refuse a parameter that was changed since the first batch; its people answered to the old one."""
    now = read_settings(given)
    names = [each.name for each in fields(Settings) if each.name != "bounds"]
    changed = [PARAMETERS.get(name, name) for name in names if not _same(getattr(first, name), getattr(now, name))]
    again = read_bounds(now.bounds, bounds.names)
    if not (np.array_equal(again.low, bounds.low) and np.array_equal(again.high, bounds.high)):
        changed.append("bounds")
    if given["randomness"] is not randomness:
        changed.append("randomness")
    if changed:
        raise BadInput(f"{changed[0]} was changed since the first partial_fit; call fit to begin anew, or set it back.")


def _same(before: Any, now: Any) -> bool:
    """Compare numbers, names and arrays; of a channel that somebody built, whether it is the same one."""
    if isinstance(before, np.ndarray) or isinstance(now, np.ndarray):
        return before is not None and now is not None and np.array_equal(before, now)
    return bool(before is now or before == now)
