"""Digests that were seen, and whose they are: found again in time that hardly grows with how many there are."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Words

_Owners = npt.NDArray[np.int64]
_BITS = 22
_MASK = np.uint64((1 << _BITS) - 1)


class Run(NamedTuple):
    """Digests, ascending, and whose they are."""

    digests: Words
    owners: _Owners


class DigestIndex:
    """Digests in a few sorted runs, each at least twice as long as the next, behind a filter of their last bits."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._filter = np.zeros(1 << _BITS, bool)

    def __len__(self) -> int:
        return sum(len(run.digests) for run in self.runs)

    def add(self, digests: Words, owners: _Owners) -> None:
        """Keep digests, ascending."""
        if not len(digests):
            return
        self._filter[digests & _MASK] = True
        self.runs.append(Run(digests, owners))
        while len(self.runs) > 1 and len(self.runs[-2].digests) < 2 * len(self.runs[-1].digests):
            self.runs[-2:] = [_joined(*self.runs[-2:])]

    def find(self, digests: Words) -> tuple[npt.NDArray[np.int64], _Owners]:
        """Return which of some digests are known, each beside an owner that has it; one pair an owner."""
        maybe = np.flatnonzero(self._filter[digests & _MASK])
        places, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for run in self.runs if len(maybe) else ():
            sought = digests[maybe]
            first = np.searchsorted(run.digests, sought, side="left")
            times = np.searchsorted(run.digests, sought, side="right") - first
            at = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
            places.append(np.repeat(maybe, times))
            owners.append(run.owners[np.repeat(first, times) + at])
        place, owner = np.concatenate(places), np.concatenate(owners)
        if len(place):
            place, owner = np.unique(np.stack([place, owner]), axis=1)
        return place, owner

    def thin(self, most: int) -> np.uint64:
        """Keep only the smallest digests, so many; return the smallest that was left out."""
        run = self.runs[0]
        for other in self.runs[1:]:
            run = _joined(run, other)
        limit: np.uint64 = run.digests[most]
        kept = int(np.searchsorted(run.digests, limit, side="left"))
        self.runs = []
        self._filter[:] = False
        self.add(run.digests[:kept], run.owners[:kept])
        return limit


def _joined(one: Run, two: Run) -> Run:
    """Sort two runs into one."""
    digests = np.concatenate([one.digests, two.digests])
    order = np.argsort(digests, kind="stable")  # of two sorted runs: one pass
    return Run(digests[order], np.concatenate([one.owners, two.owners])[order])
