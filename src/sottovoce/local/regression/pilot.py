"""The search for location and scale, one person after another: as `server.regression.method` asks, from a stream."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sottovoce.client.regression.randomize_row import count_above
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Ints, Words
from sottovoce.core.errors import SearchFailed
from sottovoce.protocol.randomised_response import binary, flips_of, rate_of
from sottovoce.server.regression.pilot import USED_UP, Guess, guess_of, out_of_reach, search


class Pilot:
    """Asks people bits about their response until location and scale are found; its state is the log of answers."""

    def __init__(self, taus: tuple[float, ...], p: int, epsilon: float) -> None:
        self._setting = (taus, p, epsilon)
        self._flips = flips_of(binary(epsilon))
        self._log: list[Ints] = []
        self.guess: Guess | None = None
        self.people = 0
        self._search = search(rate_of(binary(epsilon)), float(np.mean(taus)))
        self._ask = next(self._search)
        self._begin()

    def take(self, rows: Rows, where: npt.NDArray[np.uint64], words: Words) -> int:
        """Ask as many of the people ``where`` as the search still needs; return how many that was."""
        done = 0
        while self.guess is None and done < len(where):
            place = int(np.argmax(self._left > 0))
            n = min(int(self._left[place]), len(where) - done)
            part = slice(done, done + n)
            point = float(self._ask.points[place])
            self._ones[0, place] += count_above(rows.response(), where[part], words[part, -1], self._flips, point)
            self._left[place] -= n
            done += n
            if not self._left.any():
                self._hand_over(self._ones)
        self.people += done
        return done

    def _hand_over(self, ones: Ints) -> None:
        """Hand the answers to the search, which asks again or is done."""
        self._log.append(ones)
        try:
            self._ask = self._search.send(ones)
        except StopIteration as stop:
            if reason := out_of_reach(stop.value):
                raise SearchFailed(reason, parameter=("density", "size")) from None
            self.guess = guess_of(stop.value, self._setting[0], self._setting[1])
            return
        self._begin()
        if not self._left.any():
            raise SearchFailed(USED_UP, parameter=("density", "size"))

    def _begin(self) -> None:
        self._ones = np.zeros(self._ask.counts.shape, dtype=np.int64)
        self._left = self._ask.counts[0].copy()

    def __getstate__(self) -> dict[str, Any]:
        return {"setting": self._setting, "log": self._log, "people": self.people, "now": (self._ones, self._left)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*state["setting"])  # type: ignore[misc]
        for ones in state["log"]:
            self._hand_over(ones)
        self.people = state["people"]
        self._ones, self._left = (part.copy() for part in state["now"])
