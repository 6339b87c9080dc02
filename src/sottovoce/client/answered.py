"""Which rows have answered in this process, and what that has cost them: a second question to the same rows adds up.

Rows are found again by content (`client.fingerprint`) and by identity, whoever asks: a second call or fit,
cross-validation, two files of equal content. What is kept is digests under a key of the process and epsilons, never a
value; other processes do not know of it. A limit, if one is set, refuses whatever would pass it.
"""

import math
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from sottovoce.client.digest_index import DigestIndex
from sottovoce.client.fingerprint import FEW, Column, Fingerprints, same_column, too_many
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

MOST = 1 << 22  # rows whose digests are kept, all studies together; beyond it, a smaller part of each
_SETTLED = 1_000  # columns of a study whose places in memory are kept; those of more sites are known by content


@dataclass
class AnsweredRows:
    """What this process has asked of which rows."""

    costs: list[float] = field(default_factory=list)  # epsilon of each column that has answered
    parts: list[float] = field(default_factory=list)  # which part of its rows is in a sample
    taken: list[int] = field(default_factory=list)  # how many rows of it are in a sample
    like: list[float] = field(default_factory=list)  # how often a row there has its like
    sizes: list[int] = field(default_factory=list)
    ordered: list[int] = field(default_factory=list)  # a digest of its rows in their order
    whole: DigestIndex = field(default_factory=DigestIndex)  # of columns, by their rows in any order
    rows: DigestIndex = field(default_factory=DigestIndex)  # of the rows in samples
    homes: dict[int, list[tuple[weakref.ref[object], int]]] = field(default_factory=lambda: defaultdict(list))
    latest: tuple[Fingerprints, int, tuple[float, ...]] | None = None  # what was looked up last, and when
    limit: float = math.inf
    lost: bool = False  # that rows have answered in another process, which nobody here can find again
    lock: threading.RLock = field(default_factory=threading.RLock)

    def look(self, columns: Sequence[Column], marks: Fingerprints) -> tuple[float, ...]:
        """Return what the dearest row of each column has cost in this process so far."""
        with self.lock:
            if self.latest is None or self.latest[0] is not marks or self.latest[1] != len(self.costs):
                known = self._known(columns, marks)
                cost = self._rows(marks, known)
                for at, owners in known.items():
                    cost[at] += sum(self.costs[owner] for owner in owners)
                self.latest = marks, len(self.costs), tuple(cost.tolist())
            return self.latest[2]

    def with_study(
        self, columns: Sequence[Column], marks: Fingerprints, epsilons: Sequence[float]
    ) -> tuple[float, ...]:
        """Return what each column would have cost with a study, or refuse what would pass the limit."""
        past = self.look(columns, marks)
        total = tuple(before + float(own) for before, own in zip(past, epsilons, strict=True))
        self.check(max(total, default=0.0), max(past, default=0.0))
        return total

    def book(self, columns: Sequence[Column], marks: Fingerprints, epsilons: Sequence[float]) -> tuple[float, ...]:
        """Add the cost of a study that is about to ask; return what each column has cost with it, or refuse."""
        with self.lock:
            total, first = self.with_study(columns, marks, epsilons), len(self.costs)
            for at, column in enumerate(columns if len(columns) <= _SETTLED else ()):
                self._settle(column, first + at)
            ascending = np.argsort(marks.together, kind="stable")
            self.whole.add(marks.together[ascending], first + ascending)
            self.sizes += marks.sizes.tolist()
            self.ordered += marks.ordered.tolist()
            self.costs += map(float, epsilons)
            self.parts += [marks.part] * len(columns)
            self.like += marks.like.tolist()
            self.taken += np.bincount(marks.owner, minlength=len(columns)).tolist()
            self.rows.add(marks.sample, first + marks.owner)
            self._thin()
        return total

    def check(self, total: float, past: float) -> None:
        """Refuse what would cost a row more than the limit."""
        if total > self.limit * (1 + 1e-12):
            spent = f", of which {past:.4g} is spent already" if past else ""
            raise BadInput(
                f"with this study these records would have cost epsilon {total:.4g} in all{spent}, and the limit is "
                f"{self.limit:.4g}; ask for less, ask other records, or raise the limit.",
                parameter="limit",
            )

    def clear(self) -> None:
        """Forget everything, the limit too: for tests, since nothing that was said can be taken back."""
        with self.lock:
            self.__dict__.update({name: value for name, value in vars(AnsweredRows()).items() if name != "lock"})

    def __copy__(self) -> Self:
        """Share the memory: what a copy asks has answered for all."""
        return self

    def __deepcopy__(self, seen: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[[bool], "AnsweredRows"], tuple[bool]]:
        """Copy nothing but that there was something: digests are of this process, and stay in it."""
        return _elsewhere, (self.lost or bool(self.costs),)

    def _settle(self, column: Column, owner: int) -> None:
        """Remember where a column lies, for as long as it does."""
        home: object = column if column.base is None else column.base
        try:
            self.homes[_address(column)].append((weakref.ref(home), owner))
        except TypeError:  # bytes of another library: found by content alone
            return

    def _known(self, columns: Sequence[Column], marks: Fingerprints) -> dict[int, set[int]]:
        """Return, by the place of a column, the earlier columns that are the same one."""
        alike: dict[int, list[int]] = defaultdict(list)
        for at, owner in zip(*(each.tolist() for each in self.whole.find(marks.together)), strict=True):
            if self.sizes[owner] == marks.sizes[at]:
                alike[at].append(owner)
        return {at: self._whole(columns[at], marks, at, owners) for at, owners in alike.items()}

    def _whole(self, column: Column, marks: Fingerprints, at: int, alike: Sequence[int]) -> set[int]:
        """Return those of equal columns that are this one: by content that is no chance, or in the same place."""
        if not len(column):
            return set()
        here = {owner for home, owner in self.homes.get(_address(column), []) if home() is not None}
        found = {owner for owner in alike if owner in here}
        ordered = {owner for owner in alike if self.ordered[owner] == int(marks.ordered[at])}
        if len(found) < len(alike) and same_column(column, ordered=False):
            return set(alike)
        if len(found | ordered) > len(found) and same_column(column, ordered=True):
            return found | ordered
        return found

    def _rows(self, marks: Fingerprints, known: Mapping[int, set[int]]) -> Floats:
        """Return what the dearest row of each column has cost beside the earlier columns that are the same."""
        cost = np.zeros(len(marks.sizes))
        places, owners = self.rows.find(marks.sample)
        if len(places) < FEW:
            return cost
        pairs, at, counts = np.unique(
            marks.owner[places] * len(self.costs) + owners, return_inverse=True, return_counts=True
        )
        mine = np.bincount(marks.owner, minlength=len(cost))
        again = np.zeros(len(counts), bool)
        for pair, (joined, count) in enumerate(zip(pairs.tolist(), counts.tolist(), strict=True)):
            column, owner = divmod(joined, len(self.costs))
            shared = min(marks.part, self.parts[owner])
            of = min(mine[column] * shared / marks.part, self.taken[owner] * shared / self.parts[owner])
            again[pair] = owner not in known.get(column, ()) and too_many(
                count, of, max(marks.like[column], self.like[owner])
            )
        counted = again[at]
        if counted.any():
            rows = np.bincount(places[counted], np.array(self.costs)[owners[counted]], minlength=len(marks.sample))
            np.maximum.at(cost, marks.owner, rows)
        return cost

    def _thin(self) -> None:
        """Keep a smaller part of all rows when they become too many."""
        if len(self.rows) > MOST:
            part = float(self.rows.thin(MOST // 2)) / 2.0**64
            self.taken = np.bincount(self.rows.runs[0].owners, minlength=len(self.costs)).tolist()
            self.parts = [min(each, part) for each in self.parts]


MEMORY = AnsweredRows()


def _elsewhere(lost: bool) -> AnsweredRows:
    """Return what another process knows of the rows that have answered: nothing."""
    return AnsweredRows(lost=lost)


def _address(column: Column) -> int:
    """Return where in memory a column begins."""
    return int(column.__array_interface__["data"][0])


def shared_columns(columns: Sequence[Column], marks: Fingerprints) -> tuple[int, int] | None:
    """Return two columns of one study that hold the same rows, the whole of them or more than by chance."""
    seen: dict[tuple[int, int], list[int]] = defaultdict(list)
    twice = len(np.unique(marks.together)) < len(columns)
    for at, key in enumerate(zip(marks.sizes.tolist(), marks.together.tolist(), strict=True)) if twice else ():
        for other in seen[key] if key[0] > 1 else ():
            if same_column(columns[at], bool(marks.ordered[at] == marks.ordered[other])):
                return other, at
        seen[key].append(at)
    sample, owner = marks.sample, marks.owner
    beside = np.flatnonzero((np.diff(sample) == 0) & (np.diff(owner) != 0))
    if len(beside) < FEW:
        return None
    pairs, counts = np.unique(owner[beside] * len(columns) + owner[beside + 1], return_counts=True)
    mine = np.bincount(owner, minlength=len(columns))
    for joined, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        one, two = divmod(joined, len(columns))
        if too_many(count, min(mine[one], mine[two]), max(marks.like[one], marks.like[two])):
            return min(one, two), max(one, two)
    return None
