"""A regression by devices as the fold of its reports: first a search for location and scale, then rounds that grow.

A round asks max(16, 3 % of the people so far) about one point and design, and what comes is booked under them; what
comes while the next round is open is booked under its own, in its own segment. After each round the state of the
recursion is what is kept, so letters can be scrubbed. Estimates on the way are those of a study that ends then.
"""

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import numpy as np

from sottovoce.collector.fold import AGAIN, AHEAD, ENDED, LATE, LETTER, REPLAYED, TAKEN, ClosedRound, Pauses, PointFold
from sottovoce.collector.ids import IdIndex
from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import Reports
from sottovoce.protocol.device_regression import TIGHT, block_of_word, cell_of_word, channel_of_word, word_of
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.protocol.regression.decode import BITS
from sottovoce.protocol.regression.dithered.state import AskedUnder, DitheredState, check_state, init
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.quantile.conversation import Conversation
from sottovoce.server.quantile.search import Found
from sottovoce.server.regression.dithered.arrivals import book, look_if_due
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.dithered.method import BY_SHARE
from sottovoce.server.regression.pilot import USED_UP, guess_of, out_of_reach, search
from sottovoce.server.regression.plan import RegressionPlan

STRANGE = "the log holds rounds that this regression does not ask; use the log and version of it."
SEARCHING = "the first people are asked where the responses lie; there are no coefficients yet."


class KeptRun(NamedTuple):
    """Where one channel's recursion stands after a round, without the segments that were kept before."""

    before: int
    state: DitheredState


class RegressionRound:
    """A round that takes letters: under what each channel's people are asked, and who has answered."""

    def __init__(self, number: int, states: tuple[DitheredState, ...], wanted: int, begun: float) -> None:
        self.number, self.wanted, self.begun = number, wanted, begun
        self.asked = tuple(AskedUnder(state.point, state.design) for state in states)
        self.segments = tuple(len(state.behind) for state in states)
        self.shares: tuple[list[float], ...] = tuple(asked.design.upto.tolist() for asked in self.asked)
        self.seen = IdIndex(wanted)
        self.filled: float | None = None
        self.newest = begun
        self.empty()

    def empty(self) -> None:
        """Forget what came; ids that have answered stay known."""
        self.words: tuple[list[int], ...] = tuple([] for _ in self.asked)
        self.letters: tuple[list[int], ...] = tuple([] for _ in self.asked)

    @property
    def came(self) -> int:
        """Return how many have answered."""
        return sum(map(len, self.words))

    def closes(self, now: float, pauses: Pauses) -> bool:
        """Tell whether it is time to close; never without an answer."""
        if pauses.are_over(self.filled, self.newest, now):
            return True
        return self.came > 0 and now >= self.begun + pauses.deadline


class RegressionFold:
    """One group's regression: where each channel's recursion stands, the open round, and what is late to the last."""

    def __init__(self, plan: RegressionPlan, people: int, nonce: str, pauses: Pauses, now: float) -> None:
        self.plan, self.people, self._nonce, self.pauses = plan, people, nonce, pauses
        self.studies: tuple[DitheredStudy, ...] = ()
        self.states: tuple[DitheredState, ...] = ()
        self.pilot: PointFold[Conversation[Found]] | None = None
        self.round: RegressionRound | None = None
        self.late: RegressionRound | None = None
        self._failed: str | None = None  # why no regression can follow the search
        self._before = self._rounds = self._late = 0  # reports and rounds of the search; late answers that were booked
        self._alphabets: list[tuple[list[int], list[float]]] = []  # of each channel's blocks, and how often they are
        self._told: tuple[int, list[dict[str, Any]]] | None = None
        if plan.settings.searches:
            taus, rate = plan.settings.taus, rate_of(binary(plan.design.epsilon))
            talk = Conversation(lambda: search(rate, float(np.mean(taus))))
            self.pilot = PointFold(talk, pauses, now)
        else:
            self._start(None, now)

    def _start(self, found: Found | None, now: float) -> None:
        """Begin the recursion, from what the search found or what was given."""
        settings = self.plan.settings
        guess = self.plan.guess(None if found is None else guess_of(found, settings.taus, self.plan.p))
        self.studies = tuple(each for each in self.plan.studies(guess) if isinstance(each, DitheredStudy))
        self.states = tuple(init(study) for study in self.studies)
        self._alphabets = [(each.alphabets.tolist(), each.tables.upto.tolist()) for each in self.studies]
        if self.pilot is not None:
            self._before, self._rounds, self.pilot = self.pilot.reports, self.pilot.log.rounds, None
        self._begin(now)

    def _start_after_search(self, now: float) -> None:
        """Begin the recursion, if the search has ended; one that has used up its people ends the study."""
        if self.pilot is not None and self.pilot.over and self.pilot.method.query(self.pilot.log) is None:
            found = self.pilot.method.outcome(self.pilot.log)
            self._failed = out_of_reach(found)
            if not self._failed:
                self._start(found, now)

    @property
    def _asked_so_far(self) -> int:
        """Return how many people the recursion has heard."""
        return sum(state.people for state in self.states)

    def _begin(self, now: float) -> None:
        """Open the next round, unless all people have answered."""
        self._rounds += 1
        so_far = self._asked_so_far
        wanted = min(BY_SHARE.size(so_far), self.people - self._before - so_far)
        self.round = RegressionRound(self._rounds, self.states, wanted, now) if wanted > 0 else None

    @property
    def reports(self) -> int:
        """Return how many reports were taken."""
        if self.pilot is not None:
            return self.pilot.reports
        return self._before + self._asked_so_far + sum(each.came for each in (self.round, self.late) if each)

    @property
    def over(self) -> bool:
        """Tell whether nobody is asked any more."""
        return self.pilot.over if self.pilot is not None else self.round is None

    @property
    def asked(self) -> dict[str, Any] | None:
        """Return the round and how many answers it needs; a point of the search, or under what each channel asks."""
        if self.pilot is not None:
            return self.pilot.asked
        now = self.round
        if now is None or now.filled is not None:
            return None
        channels = [
            {"point": each.point.tolist(), **{key: part.tolist() for key, part in each.design._asdict().items()}}
            for each in now.asked
        ]
        return {"round": now.number, "needs": [max(now.wanted - now.came, 1)], "channels": channels}

    def take(self, id: bytes, round: int, point: int, letter: int, now: float) -> str:
        """Take one report under its own round, or say why not; the letter must be one of its word's alphabet."""
        if self.pilot is not None:
            return self.pilot.take(id, round, point, letter, now)
        if self.round is None:
            return ENDED
        if round == self.round.number:
            return self._heard(self.round, id, point << 8 | letter, now)
        if self.late is not None and round == self.late.number:
            return self._heard(self.late, id, point << 8 | letter, now)
        return LATE if round < self.round.number else AHEAD

    def restore(self, reports: Reports, now: float) -> None:
        """Take reports that were taken before; leave out those of rounds that are over."""
        if self.pilot is not None:
            self.pilot.restore(reports, now)
            return
        numbers = [each.number for each in (self.round, self.late) if each is not None]
        for id, round, _, point, letter in reports[np.isin(reports["round"], numbers)].tolist():
            self.take(bytes(id), round, point, letter, now)

    def knows(self, id: bytes, round: int) -> bool:
        """Tell whether an id has answered in a round that still takes answers."""
        if self.pilot is not None:
            return self.pilot.knows(id, round)
        rounds = (each for each in (self.round, self.late) if each is not None)
        return any(each.number == round and each.seen.known(id) is not None for each in rounds)

    def _heard(self, round: RegressionRound, id: bytes, letter: int, now: float) -> str:
        """Take a letter into a round, or say why not."""
        word = word_of(self._nonce, round.number, id)
        channel = channel_of_word(word, len(self.studies))
        if cell_of_word(word, round.shares[channel]) != TIGHT:
            letters = BITS
        else:
            blocks, upto = self._alphabets[channel]
            letters = blocks[block_of_word(word, upto)]
        if letter >= letters:
            return LETTER
        known = round.seen.said(id, letter)
        if known is not None:
            return AGAIN if known == letter else REPLAYED
        round.words[channel].append(word)
        round.letters[channel].append(letter)
        round.newest = now
        if round.filled is None and round.came >= round.wanted:
            round.filled = now
        return TAKEN

    def close(self, now: float) -> ClosedRound | None:
        """Close the open round, if it is time, and open the next."""
        if self.pilot is not None:
            closed = self.pilot.close(now)
            self._start_after_search(now)
            return closed
        open_ = self.round
        if open_ is None or not open_.closes(now, self.pauses):
            return None
        kept = []
        for channel, (study, state) in enumerate(zip(self.studies, self.states, strict=True)):
            after = state
            for round in (self.late, open_):
                if round is not None:
                    words, letters = (
                        np.array(round.words[channel], np.uint64),
                        np.array(round.letters[channel], np.int64),
                    )
                    after = book(study, after, round.segments[channel], round.asked[channel], words, letters)
            before = max(len(state.behind) - 1, 0)  # late letters may change the newest of them
            after = look_if_due(study, after)
            kept.append(KeptRun(before, after._replace(behind=after.behind[before:])))
        late = 0 if self.late is None else self.late.came
        sums = [late, *(b64encode(codec.to_bytes(each)).decode() for each in kept)]
        closed = ClosedRound(open_.number, json.dumps(sums))
        self.follow(closed, now)
        return closed

    def follow(self, closed: ClosedRound, now: float) -> None:
        """Go on from what the open round came to; refuse what it cannot have come to."""
        if self.pilot is not None:
            self.pilot.follow(closed, now)
            self._start_after_search(now)
            return
        open_ = self.round
        if open_ is None or open_.number != closed.round:
            raise BadInput(STRANGE)
        try:
            late, *texts = json.loads(closed.sums)
            kept = [codec.from_bytes(b64decode(text, validate=True), KeptRun) for text in texts]
            fits = type(late) is int and late >= 0 and all(before >= 0 for before, _ in kept)
        except (ValueError, TypeError, BadInput):
            fits, late, kept = False, 0, []
        if not fits or len(kept) != len(self.states):
            raise BadInput(STRANGE)
        states = tuple(
            state._replace(behind=(*now_.behind[:before], *state.behind))
            for now_, (before, state) in zip(self.states, kept, strict=True)
        )
        for study, state in zip(self.studies, states, strict=True):
            check_state(study, state)
        self.states, self._late = states, self._late + late
        self._begin(now)
        open_.empty()
        self.late = open_ if self.round is not None else None

    def estimate(self) -> dict[str, Any]:
        """Return rounds, reports, and the coefficients of each level, with intervals where the people tell enough."""
        found = {"reports": self.reports, "late": self._late, "over": self.over, "rounds": self._rounds - 1}
        nothing = {"tau": None, "interval": None, "estimate": None}
        if self.pilot is not None:
            found |= {"late": self.pilot.log.late, "rounds": self.pilot.log.rounds}
            why = (self._failed or USED_UP) if self.pilot.over else SEARCHING
            levels = [{"tau": tau, "coefficients": None, "why": why} for tau in self.plan.settings.taus]
            return {**found, **nothing, "levels": levels}
        if self._told is None or self._told[0] != self._rounds:
            self._told = self._rounds, self._levels()
        return {**found, **nothing, "levels": self._told[1]}

    def _levels(self) -> list[dict[str, Any]]:
        """Return the coefficients of each level in the units of the rows."""
        fits = [DitheredFit.of(study, state) for study, state in zip(self.studies, self.states, strict=True)]
        result = self.plan.result(fits, self._before + self._asked_so_far, private=True)
        return [
            {
                "tau": tau,
                "coefficients": [
                    {
                        "name": name,
                        "estimate": row.value,
                        "interval": row.interval if row.bounded else None,  # JSON has no infinity
                        "why": row.reason,
                    }
                    for name, row in table.items()
                ],
                "why": None,
            }
            for tau, table in zip(result.taus, result.tables(self.plan.level), strict=True)
        ]
