"""All studies of a collector over one log: begun, looked up by the 16 bytes that name them, kept together.

Uploads that come together share one commit. If a commit fails, the folds know more than the log does, or less, so
nothing more is taken until the log can be used again and the folds are made anew from it.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sottovoce.collector.gathering import Gathering, Uploaded
from sottovoce.collector.log_connection import AWAY, LogAway
from sottovoce.collector.peers import Part
from sottovoce.collector.store import ALONE, CollectorStore, KeptStudy, unscrubbed
from sottovoce.collector.study import CollectedStudy, collected_of
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import IDENTITY, card_text, read_card

MOST_STUDIES = 200  # of one collector
SLACK = 30.0  # seconds that a commit or another host's clock may be late


class CollectedStudies:
    """The studies of a log; those that it holds already go on.

    Where groups are divided among processes, this is the ``part`` of one: ``base`` is the log of the first, in which
    studies and keys stand, and ``others`` are those of all others, from which their groups are followed.
    """

    def __init__(
        self,
        store: CollectorStore,
        clock: Callable[[], float] = time.time,
        part: Part = ALONE,
        base: CollectorStore | None = None,
        others: Sequence[CollectorStore] = (),
    ) -> None:
        self._store, self._clock, self._failed, self.part = store, clock, False, part
        self._base, self._others, self._looked = base or store, others, 0.0
        self._all: dict[bytes, Gathering] = {}
        self.rounds = 0  # that have closed since the start: whoever looks on sees by it that something moved
        self.look()

    def look(self) -> None:
        """Take up studies and states that stand in the log by now, and follow the groups of other processes."""
        before, since = self._moves, self._looked - SLACK
        self._looked = time.time()
        names = {gathering.study.name: gathering for gathering in self._all.values()}
        for name, kept in self._base.studies():
            if name in names:
                names[name].state = kept.state
            elif kept.given is not None:
                self._add(collected_of(json.loads(kept.given), f"study {name!r} of the log"), kept)
        for name, gathering in ((each.study.name, each) for each in self._all.values()):
            for other in self._others:
                rounds = other.rounds(name, since if name in names else 0.0)
                gathering.mirror(rounds if gathering.follows(rounds) else other.rounds(name))
        self.rounds += self._moves - before

    @property
    def shared(self) -> bool:
        """Tell whether all processes write to one log."""
        return self._store.shared

    @property
    def broken(self) -> bool:
        """Tell whether a log cannot be used; then nothing is taken until `reopen` and `refold`."""
        return self._failed or any(store.lost for store in (self._store, self._base, *self._others))

    def leave(self) -> None:
        """Take nothing more until `reopen` and `refold`."""
        self._failed = True
        self._store.leave()

    def reopen(self) -> None:
        """Open the logs again that were lost; it may take seconds, and touches no fold."""
        for store in {id(each): each for each in (self._store, self._base, *self._others)}.values():
            if store.lost:
                store.reopen()

    def refold(self) -> None:
        """Make all folds anew from the log: what was folded and not kept is to be sent again."""
        before, self._all, self._looked = self._all, {}, 0.0
        try:
            self.look()
        except BaseException:
            self._all = before
            raise
        for known, gathering in before.items():
            if known in self._all:
                self._all[known].refusals, self._all[known].elsewhere = gathering.refusals, gathering.elsewhere
        self._failed = False
        self.rounds += 1

    def __iter__(self):  # type: ignore[no-untyped-def]  # of gatherings, in the order in which they were begun
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def _add(self, study: CollectedStudy, kept: KeptStudy) -> Gathering:
        """Take a study up from the log."""
        gathering = Gathering(study, kept, self._store, self._clock, self.part)
        self._all[gathering.identity] = gathering
        return gathering

    def begin(self, study: CollectedStudy, given: dict[str, Any]) -> Gathering:
        """Begin a study, or go on with it; other terms under the same name are refused."""
        running = {gathering.study.name: gathering for gathering in self._all.values()}
        if study.name not in running and len(running) >= MOST_STUDIES:
            raise BadInput(f"a collector runs up to {MOST_STUDIES} studies; start another one with a log of its own.")
        kept = enrol(self._base, study, given)
        return running.get(study.name) or self._add(study, kept)

    def create(self, given: Any) -> Gathering:
        """Begin a study that is not there yet, from what would stand in its file."""
        if not isinstance(given, dict):
            raise BadInput("a study is an object with a name, people and a question; give what its file would hold.")
        study = collected_of(given)
        if self._base.known(study.name) is not None:
            raise BadInput("the log holds a study of this name; choose another name.")
        return self.begin(study, given)

    def named(self, study: str) -> Gathering | None:
        """Return the study that 32 hexadecimal digits name, if there is one."""
        try:
            return self._all.get(bytes.fromhex(study))
        except ValueError:
            return None

    def upload(self, body: bytes) -> Uploaded:
        """Check and fold the reports of an upload; `commit` keeps them, and only then may they be acknowledged."""
        self._check_whole()
        gathering = self._all.get(body[:IDENTITY])
        if gathering is None:
            raise BadInput("the upload belongs to no study of this collector; send it to where its study is run.")
        return gathering.upload(body)

    def commit(self) -> None:
        """Keep all that was folded, and close the rounds whose time has come."""
        self._check_whole()
        before = self._moves
        try:
            for gathering in self._all.values():
                gathering.write(self._store)
            self._store.commit()
        except BaseException:
            self.leave()
            raise
        self.rounds += self._moves - before

    @property
    def _moves(self) -> int:
        """Return how many rounds are closed in all."""
        return sum(len(gathering.trajectory) for gathering in self._all.values())

    def _check_whole(self) -> None:
        """Refuse to go on once a commit has failed: a later one would leave a gap in the log."""
        if self.broken:
            raise LogAway(AWAY)

    def set_state(self, gathering: Gathering, state: object) -> None:
        """Pause, open or close a study; one that is closed stays so."""
        wanted = gathering.check_state(state)
        self.commit()
        if not self._base.set_state(gathering.study.name, wanted):  # another host has closed it meanwhile
            gathering.state = "closed"
        gathering.check_state(wanted)
        gathering.state = wanted

    def scrub(self, gathering: Gathering) -> Iterator[int]:
        """Remove the letters of closed rounds from the log, so that ids and sums stay; return how many, by steps.

        A log that is a file holds the reports of one process; of a shared one, all parts are scrubbed.
        """
        self.commit()
        name, part = gathering.study.name, self.part
        rounds = self._store.rounds(name)
        gathering.mirror(rounds)
        for each in [Part(k, part.of) for k in range(part.of)] if self._store.shared else [part]:
            going = [group for group, fold in enumerate(gathering.folds) if each.owns(group) and not fold.over]
            yield from self._store.scrub(name, unscrubbed(rounds, going), each.number)


def enrol(store: CollectorStore, study: CollectedStudy, given: dict[str, Any]) -> KeptStudy:
    """Write a study into the log, or return how it stands there; refuse other terms under the same name."""
    said = json.dumps(given, sort_keys=True)
    known = store.known(study.name)
    if known is None:
        words = SystemEntropy().words(4).tobytes()
        secret = SystemEntropy().words(4).tobytes() if study.tokens else None
        fresh = KeptStudy(card_text(study.card(words[:8].hex())), said, words[16:], "open", secret)
        known = store.begin(study.name, fresh)
    if known.given is None and _terms(known.card) == card_text(study.card("")):
        store.set_given(study.name, said)  # a log of an earlier version, which kept no file
        return known._replace(given=said)
    if known.given != said:
        raise BadInput("the log holds a study of the same name with other terms; rename one, or give another log.")
    return known


def _terms(card: str) -> str:
    """Return the text of a card without its nonce."""
    from msgspec.structs import replace

    return card_text(replace(read_card(card), nonce=""))
