"""Results that can be kept: pickled, copied, written as JSON, and read back as what they were.

The JSON of a result has its description for people and programs and, under ``stored``, the state it is made from, by
which every interval and test can be computed again. There is no record in either.
"""

import json
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.server.description import Description

FORMAT = 1
KINDS = {  # what is stored, by name, and who reads it back
    "regression": "sottovoce.server.regression.result:RegressionResult",
    "quantile": "sottovoce.server.quantile.result:QuantileResult",
    "quantiles": "sottovoce.server.quantile.levels:QuantilesResult",
    "difference": "sottovoce.server.quantile.difference:Difference",
    "integrated": "sottovoce.server.integration.result:IntegratedResult",
    "sensitivity": "sottovoce.server.integration.result:Sensitivity",
    "threshold": "sottovoce.server.conformal.result:ConformalThreshold",
    "pooled-threshold": "sottovoce.server.conformal.pooled:PooledThreshold",
    "coverage-report": "sottovoce.server.conformal.report:CoverageReport",
}


class StoredResult(ABC):
    """A result that describes itself once, and can be stored."""

    kind: ClassVar[str]

    @abstractmethod
    def describe(self) -> Description:
        """Return what the result says of itself."""

    @abstractmethod
    def to_state(self) -> Any:
        """Return the plain state the result is made from (`core.codec`)."""

    @classmethod
    @abstractmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the result again from what JSON kept of its state."""

    def summary(self) -> str:
        """Return a table that a statistician reads at a glance."""
        return self.describe().text()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON; `from_dict` reads it back."""
        stored = {"format": FORMAT, "kind": self.kind, "state": codec.to_plain(self.to_state())}
        return {**self.describe().values, "stored": stored}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Make a result again from what `to_dict` gave."""
        found = from_dict(values)
        if not isinstance(found, cls):
            raise BadInput(f"this is a stored {type(found).__name__}, not a {cls.__name__}; read it with sv.load.")
        return found

    def save(self, path: str | Path) -> Path:
        """Write the result as JSON; `sv.load` reads it back."""
        target = Path(path)
        try:
            target.write_text(json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{target} cannot be written ({error.strerror or error}); give another path.") from None
        return target

    def __str__(self) -> str:
        return self.summary()


def load(path: str | Path) -> Any:
    """Read a stored result back.

    Parameters
    ----------
    path
        A file that ``result.save(path)`` wrote.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
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
    stored = values.get("stored") if isinstance(values, dict) else None
    if not isinstance(stored, dict) or stored.get("kind") not in KINDS:
        raise BadInput("this is not a stored result; give what result.save or result.to_dict made.")
    if stored.get("format") != FORMAT:
        raise BadInput(f"the result is stored in another format than {FORMAT}; read it with the version that wrote it.")
    home, _, name = KINDS[stored["kind"]].partition(":")
    result: StoredResult = getattr(import_module(home), name)
    return result.from_state(stored.get("state"))
