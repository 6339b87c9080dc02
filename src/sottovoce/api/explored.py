"""One file whose every column may be asked about: sites of any column, plans, runs, and what each row has paid.

A row pays whichever of its columns is asked, so costs are added up by row, exactly; `api.asking`, which knows records
by their values, could not see that two columns are of the same people.
"""

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sottovoce.api.asking import check_cost
from sottovoce.api.quantile.federated import run_study
from sottovoce.api.quantile.levels import PlannedLevels, plan_levels, run_levels
from sottovoce.api.quantile.planning import PlannedStudy, Progress, plan_study
from sottovoce.client.reading.formats import Marks
from sottovoce.client.reading.frames import check_column_names, one_row_a_person, read_frame
from sottovoce.client.reading.labels import code_labels, code_persons, number_persons
from sottovoce.client.reading.table import SiteTable, read_sites
from sottovoce.client.reading.whole_file import WHOLE, FileColumn, OpenedFile, open_file
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import nearest
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.core.shown import quoted
from sottovoce.core.unit import Unit
from sottovoce.server.quantile.levels import QuantilesResult
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.result import QuantileResult

KEPT = 8  # choices of columns whose sites are kept
MOST_SITES = 2000  # of a column; more are rather people
MOST_NUMBERS = 30  # different whole numbers that may be names of sites; more are records, and names are shown
_AGAIN = "these records have answered before"  # what `api.asking` warns of; here it is told beforehand, and exactly
_ROW = "row"


class FileQuestion(NamedTuple):
    """One or several quantiles of a column, over the sites that another column names, or over one of them."""

    value: str
    taus: tuple[float, ...]
    epsilon: float
    site: str | None = None
    only: str | None = None
    method: str = "staged"
    level: float = 0.95
    bounds: tuple[Any, Any] | None = None
    scale: Any = None
    resolution: Any = None
    kind: str | None = None


class HeldBack(BadInput):
    """A refusal that says what is in the records: for whoever holds them alone."""


class RowCost(NamedTuple):
    """What the dearest of the rows that a question would ask has paid so far, and would have paid with it."""

    before: float
    after: float


class _Chosen(NamedTuple):
    """Sites of two columns, and which rows of the file their records are of."""

    table: SiteTable
    rows: Mapping[str, Ints]


class ExploredFile:
    r"""A file, the sites that its columns make, and what its rows have paid in this process.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "waits.csv"
    ...     _ = path.write_text("wait,clinic\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(4000)))
    ...     file = ExploredFile(path)
    >>> question = FileQuestion("wait", (0.5,), 1.0, site="clinic")
    >>> file.cost(question), file.plan(question).plan.names
    (RowCost(before=0.0, after=1.0), ('a', 'b'))
    """

    def __init__(
        self, path: str | Path, person: str | None = None, delimiter: str | None = None, decimal: str | None = None
    ) -> None:
        opened = open_file(path, Marks(delimiter, decimal))
        self.name = Path(path).name
        self.person, self.left_out = person, 0
        self._file = opened
        if person is not None:
            self._file, self.left_out = _one_row_each(opened, person)
        self._paid = np.zeros(self._file.rows)
        self._chosen: dict[tuple[str, str | None, str | None], _Chosen] = {}
        self._lock = threading.RLock()

    @property
    def rows(self) -> int:
        """Return how many rows may answer."""
        return self._file.rows

    @property
    def columns(self) -> Sequence[FileColumn]:
        """Return what is public of the columns; the one of persons is none to ask about."""
        return [column for column in self._file.columns if column.name != self.person]

    @property
    def spent(self) -> float:
        """Return what the dearest row has paid so far."""
        return float(self._paid.max(initial=0.0))

    @property
    def hints(self) -> Sequence[str]:
        """Return what was noticed in the file: for whoever holds it."""
        return self._file.hints

    def unit(self, question: FileQuestion) -> Unit:
        """Return what the values of a question measure."""
        return self._sites(question).table.unit

    def sites(self, question: FileQuestion) -> Mapping[str, int]:
        """Return the sites among which one may be chosen, and how many records each has."""
        roster = self._sites(question._replace(only=None)).table.roster
        return dict(zip(roster.names, roster.sizes, strict=True))

    def plan(self, question: FileQuestion) -> PlannedStudy | PlannedLevels:
        """Check a question and plan it; nobody is asked."""
        table = self._sites(question).table
        known = {name: getattr(question, name) for name in ("level", "method", "bounds", "scale", "resolution", "kind")}
        if len(question.taus) > 1:
            return plan_levels(table, sorted(question.taus), question.epsilon, **known)
        return plan_study(table, question.taus[0] if question.taus else None, question.epsilon, **known)

    def cost(self, question: FileQuestion, planned: PlannedStudy | PlannedLevels | None = None) -> RowCost:
        """Return what the rows of a question, which may be planned already, have paid and would have paid with it."""
        return self._cost(question, _budgets(self.plan(question) if planned is None else planned))

    def run(self, question: FileQuestion, progress: Progress | None = None) -> QuantileResult | QuantilesResult:
        """Ask: from here on records answer, and their rows pay before the first question."""
        planned = self.plan(question)
        paid, rows = _budgets(planned), self._sites(question).rows
        with self._lock:
            cost = self._cost(question, paid)
            check_cost(cost.after, cost.before)
            for name, own in paid.items():
                self._paid[rows[name]] += own
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", _AGAIN, UserWarning)
                found = _run(planned, progress)
        except BadInput:  # raised before any record has answered
            with self._lock:
                for name, own in paid.items():
                    self._paid[rows[name]] -= own
            raise
        in_all = {name: float(self._paid[rows[name]].max()) for name in paid}
        if isinstance(found, QuantilesResult):
            return replace(found, in_all=in_all, results=tuple(replace(each, in_all=in_all) for each in found.results))
        return replace(found, in_all=in_all)

    def _cost(self, question: FileQuestion, paid: Mapping[str, float]) -> RowCost:
        """Return what the dearest row has paid, and will have with these budgets."""
        rows = self._sites(question).rows
        before = {name: float(self._paid[rows[name]].max()) for name in paid}
        return RowCost(max(before.values()), max(before[name] + own for name, own in paid.items()))

    def _sites(self, question: FileQuestion) -> _Chosen:
        """Return the sites of a question, made once."""
        key = (question.value, question.site, question.only)
        with self._lock:
            found = self._chosen.pop(key, None) or self._made(*key)
            self._chosen[key] = found  # as the latest
            if len(self._chosen) > KEPT:
                del self._chosen[next(iter(self._chosen))]
            return found

    def _made(self, value: str, site: str | None, only: str | None) -> _Chosen:
        """Make sites of two columns: missing values are left out and counted."""
        if only is not None:
            whole = self._sites(FileQuestion(value, (), 0.0, site))
            if only not in whole.rows:
                raise BadInput(f"there is no site {quoted(only)}{nearest(only, whole.rows)}; choose one of the sites.")
            return _Chosen(whole.table.only([only]), {only: whole.rows[only]})
        column = self._column(value, "value")
        if site == value:
            raise BadInput(f"column {quoted(value)} is chosen for values and for sites; choose two columns.")
        present = column.is_valid()
        if pa.types.is_floating(column.type):
            present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(column), False)))
        places = np.where(present.to_numpy(), np.arange(self.rows, dtype=np.float64), np.nan)
        held = None if site is None else self._column(site, "site")
        try:
            table = self._read(column, value, held, site)
            table.marks  # noqa: B018 - sites that share records are refused here
        except BadInput as error:
            raise HeldBack(str(error)) from None
        numbers = self._read(places, _ROW if site != _ROW else f"{_ROW} number", held, site)
        rows = {name: held.astype(np.int64) for name, held in zip(numbers.names, numbers.columns, strict=True)}
        assert [len(each) for each in rows.values()] == [len(each) for each in table.columns]
        person = self.person is not None
        return _Chosen(replace(table, column=value, per_person=person, left_out=self.left_out), rows)

    def _read(self, values: Any, value: str, sites: Any, site: str | None) -> SiteTable:
        """Read the sites of two columns, or one site that is called as the file is."""
        if site is None:
            return read_sites({Path(self.name).stem.removesuffix(".csv"): values}, missing="drop")
        column = pa.array(values) if isinstance(values, np.ndarray) else values
        return read_frame(pa.table({value: column, site: sites}), value=value, site=site, missing="drop")

    def _column(self, name: str, role: str) -> Any:
        """Return a column for a role, or refuse one that cannot have it."""
        known = {column.name: column for column in self.columns}
        if name not in known:
            raise BadInput(f"the file has no column {quoted(name)}{nearest(name, known)}; choose one of its columns.")
        fit = known[name].holds_values if role == "value" else known[name].holds_labels
        if not fit:
            use = "be asked about" if role == "value" else "say where a record is held"
            raise BadInput(f"column {quoted(name)} holds {known[name].kind} and cannot {use}; choose another one.")
        column = self._file.table().column(name)
        most, what = (MOST_NUMBERS, "numbers") if known[name].kind == WHOLE else (MOST_SITES, "labels")
        if role == "site" and len(code_labels(column, f"column {quoted(name)}", None).labels) > most:
            raise BadInput(
                f"column {quoted(name)} holds more than {most:,} different {what}, as records do; choose the column "
                "that says where a record is held."
            )
        return column


def warm() -> None:
    """Load what a first plan would wait for."""
    plan_study([np.arange(3000.0)], 0.5, 1.0).explain()


def plan_of_all(planned: PlannedStudy | PlannedLevels) -> QuantilePlan:
    """Return the plan of who takes part; of several levels, the one that they share."""
    return planned.plan.whole if isinstance(planned, PlannedLevels) else planned.plan


def _budgets(planned: PlannedStudy | PlannedLevels) -> dict[str, float]:
    """Return what every site that takes part pays."""
    plan = plan_of_all(planned)
    return dict(zip(plan.names, plan.budgets, strict=True))


def _run(planned: PlannedStudy | PlannedLevels, progress: Progress | None) -> QuantileResult | QuantilesResult:
    """Ask; the noise is the operating system's."""
    if isinstance(planned, PlannedLevels):
        return run_levels(planned, None, progress)
    return run_study(planned, None, progress)


def _one_row_each(opened: OpenedFile, person: str) -> tuple[OpenedFile, int]:
    """Draw one row of each person, for all questions; return how many others are left out."""
    check_column_names([person])
    names = [column.name for column in opened.columns]
    if person not in names:
        raise BadInput(f"the file has no column {quoted(person)}{nearest(person, names)}; correct --person.")
    where = f"column {quoted(person)}"
    persons = number_persons(code_persons(opened.table().column(person), where), where)
    drawn = one_row_a_person(persons, SystemEntropy().words)
    return OpenedFile(opened.table().take(pa.array(drawn))), opened.rows - len(drawn)
