"""Results that can be kept: pickled, copied, written as JSON, and read back as what they were.

The JSON of a result has its description for people and programs and, under ``stored``, the state it is made from, by
which every interval and test can be computed again. There is no record in either.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from sottovoce.core import codec
from sottovoce.core.checks import kind_of
from sottovoce.core.errors import BadInput
from sottovoce.server.description import Description
from sottovoce.server.markup import in_notebook
from sottovoce.server.page import check_page, page, write_page
from sottovoce.server.picture import as_png

FORMAT = 1

InAll = dict[str, float] | None  # what the records of each site have cost, this study included


@dataclass(frozen=True, eq=False)
class StoredResult(ABC):
    """A result that describes itself once, and can be stored."""

    kind: ClassVar[str]

    # what the records of each site have cost in the process that made the result, this study included; None: simulated
    in_all: InAll = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    @abstractmethod
    def headline(self) -> str:
        """Return the result in one line: what was asked, estimate and interval, and what a record paid."""

    @abstractmethod
    def describe(self) -> Description:
        """Return what the result says of itself."""

    @abstractmethod
    def draw(self) -> Any:
        """Return the picture of the result, as a figure of matplotlib, or refuse where there is nothing to draw."""

    @abstractmethod
    def to_state(self) -> Any:
        """Return the plain state the result is made from (`core.codec`)."""

    @classmethod
    @abstractmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the result again from what JSON kept of its state."""

    @property
    def epsilon_in_all(self) -> Mapping[str, float] | None:
        """Return what the records of each site have cost in all, this study and earlier ones of its process."""
        return self.in_all

    @property
    def cost(self) -> list[tuple[str, str]]:
        """Return a row that says what the records have cost in all."""
        return cost_row(self.in_all)

    def with_cost(self, found: Description) -> Description:
        """Add to a description what the records have cost in all."""
        return replace(found, rows=[*found.rows, *self.cost])

    def summary(self) -> str:
        """Return a table that a statistician reads at a glance."""
        return self.describe().text()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON; `from_dict` reads it back."""
        stored = {"format": FORMAT, "kind": self.kind, "state": codec.to_plain(self.to_state())}
        stored["in_all"] = codec.to_plain(self.in_all)
        return {**self.describe().values, **cost_values(self.epsilon_in_all), "stored": stored}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Make a result again from what `to_dict` gave."""
        found = cls.from_state(stored_state(values, cls.kind))
        cost = values["stored"].get("in_all")
        return replace(found, in_all=None if cost is None else codec.from_plain(cost, dict[str, float]))

    def save(self, path: str | Path) -> Path:
        """Write the result as JSON; `sv.load` reads it back."""
        target = given_path(path)
        try:
            target.write_text(json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{target} cannot be written ({error.strerror or error}); give another path.") from None
        return target

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one page on the result for readers outside: question, answer, picture, privacy, limits, settings.

        Parameters
        ----------
        path
            A file that ends in .html. The page stands alone: no script, no link, and the picture inside it.
        """
        target = check_page(path)
        return write_page(report_text(self), target)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{self.headline}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return in_notebook(self.headline, self.describe())


def report_text(result: StoredResult) -> str:
    """Return the page that `StoredResult.report` writes."""
    picture: bytes | str
    try:
        picture = as_png(result.draw())
    except ImportError:
        picture = "No picture: matplotlib is not installed where this report was written."
    except BadInput as error:
        picture = f"No picture: {error}"
    return page(result.headline, result.describe(), picture, getattr(result, "private", False))


def cost_row(in_all: Mapping[str, float] | None) -> list[tuple[str, str]]:
    """Say what records have cost in all, where it is known."""
    if not in_all:
        return []
    worst = max(in_all.values())
    text = f"up to epsilon {worst:.4g} a record" if math.isfinite(worst) else "no bound, since some had no budget"
    return [("Cost in all", f"{text}; all studies of these records in this process")]


def cost_values(in_all: Mapping[str, float] | None) -> dict[str, Any]:
    """Return what records have cost in all as plain values; what is infinite is None."""
    if in_all is None:
        return {"epsilon_in_all": None}
    return {"epsilon_in_all": {name: value if math.isfinite(value) else None for name, value in in_all.items()}}


def given_path(path: Any) -> Path:
    """Return a path, or refuse what is none."""
    if not isinstance(path, str | os.PathLike):
        raise BadInput(f"a file is named by its path, not by {kind_of(path)}; give text such as 'result.json'.")
    return Path(path).expanduser()


def stored_kind(values: Any) -> str:
    """Return what kind of result plain values hold, or refuse."""
    stored = values.get("stored") if isinstance(values, dict) else None
    kind = stored.get("kind") if isinstance(stored, dict) else None
    if not isinstance(kind, str):
        raise BadInput("this is not a stored result; give what result.save or result.to_dict made.")
    return kind


def stored_state(values: Any, kind: str) -> Any:
    """Return the plain state of a stored result of a kind, or refuse."""
    if stored_kind(values) != kind:
        raise BadInput(f"this is not a stored {kind} but another result; read it with sv.load.")
    if values["stored"].get("format") != FORMAT:
        raise BadInput(f"the result is stored in another format than {FORMAT}; read it with the version that wrote it.")
    return values["stored"].get("state")
