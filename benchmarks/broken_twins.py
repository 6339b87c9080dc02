"""Clients with one fault each, for an audit to find: negative controls, every one of which looks like an honest client.

Each is made for a budget and claims the integers of that budget; what it does is something else.
"""

import hashlib
import tempfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.auditing.bits import bit_site, honest_door
from sottovoce.auditing.bound import Transcript
from sottovoce.auditing.devices import value_device
from sottovoce.auditing.federated import honest_resident, resident_site
from sottovoce.auditing.javascript import value_script
from sottovoce.auditing.people import people_of
from sottovoce.auditing.scores import ScoreDoor, counting, selecting, summing
from sottovoce.auditing.subject import STUDY, AuditSubject
from sottovoce.client.conformal.shares import SharingSite
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.device import Device, Value
from sottovoce.client.door import Door
from sottovoce.client.ledger import MemoryStorage
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.device import DeviceCard, letter_of, pack
from sottovoce.protocol.messages import PersonQuery, PersonReport, Query, Study, Tally
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate, flips_of, with_flips
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.sim import dice

Twin = Callable[[float], AuditSubject]


class _Die(SystemEntropy):
    """Dice of the system, with a fault."""

    def __init__(self, fault: Callable[[Words], Words]) -> None:
        self._fault = fault

    def words(self, n: int) -> Words:
        return self._fault(super().words(n).copy())

    def split(self, n: int) -> list[Any]:
        return [self] * n


def half_die(words: Words) -> Words:
    """Lose the highest bit, as signed words do."""
    return words >> np.uint64(1)


def _bits(change: Callable[[Records, Study, Channel], Any]) -> Twin:
    return lambda epsilon: bit_site(binary(epsilon), epsilon, change, "broken twin")


def _with_flips(flips: Callable[[float], int]) -> Twin:
    """Return sites whose compiled code has other weights than the channel that they state."""

    def door(records: Records, study: Study, channel: Channel) -> Door:
        site = Site(records, study, channel=channel)
        site._flips = flips(study.epsilon)
        return Door(site, STUDY)

    return _bits(door)


def _with_dice(source: Callable[[], Any]) -> Twin:
    return _bits(lambda records, study, channel: Door(Site(records, study, source(), channel), STUDY))


class Turned(Site):
    """A site that tells the opposite of its letter."""

    def tally(self, query: Query) -> Tally:
        told = super().tally(query)
        return Tally(told.round, tuple(n - ones for n, ones in zip(query.counts, told.ones, strict=True)))


class Forgetful:
    """A door that forgets what it said: to a question that was asked before, or (``later``) to any other as well."""

    def __init__(self, records: Records, study: Study, channel: Channel, later: bool = False) -> None:
        self._given, self._later, self._asked = (records.values(), study, channel), later, set[bytes]()
        self._door = self._open()

    def _open(self) -> Door:
        values, study, channel = self._given
        return honest_door(Records(values.copy()), study, channel)

    def answer(self, data: bytes) -> bytes:
        if data in self._asked and not self._later:
            return self._open().answer(data)
        self._asked.add(data)
        try:
            return self._door.answer(data)
        except BadInput:
            if not self._later:
                raise
            return self._open().answer(data)


class Leaking:
    """An honest door that lets something of the first record ride along with its reply."""

    def __init__(self, records: Records, study: Study, channel: Channel, ride: Callable[[bytes, float], bytes]) -> None:
        self._door, self._value, self._ride = honest_door(records, study, channel), records.values()[-1], ride

    def answer(self, data: bytes) -> bytes:
        return self._ride(self._door.answer(data), float(self._value))


def _leak(ride: Callable[[bytes, float], bytes]) -> Twin:
    return _bits(lambda records, study, channel: Leaking(records, study, channel, ride))


class SkippingPeople(Persons):
    """People whose letters of any record are one short: the last one is sent by those alone whose box holds it."""

    def _letter(self, query: PersonQuery, who: int, words: Words) -> int:
        box = self._channel.blocks[query.block].channel
        if query.factors or not isinstance(box, BoxChannel):
            return super()._letter(query, who, words)
        die, common = int(words[0, -1]) >> 2, box.low * (box.letters - 1)
        if die < common:
            return int(die // box.low)
        side = int(self._rows.response()[who] <= 0)
        return int(side * box.cells**box.slopes + (box.cells**box.slopes - 1) * side)


class RepeatingPeople(Persons):
    """People who throw anew for every question, and remember none."""

    def answer(self, query: PersonQuery) -> PersonReport:
        self._check_person(query)
        return PersonReport(query.person, self._letter(query, 0, np.concatenate([[[np.uint64(0)]], self._throw(1)], 1)))


def _people(kind: type[Persons], source: Callable[[], Any] = SystemEntropy) -> Twin:
    def door(rows: Rows, channel: RegressionChannel) -> Door:
        return Door(kind(rows, channel, source()), STUDY)

    return lambda epsilon: people_of(cq(0.5, 1, epsilon, q=2, s=2), epsilon, door, "broken twin")[0]


def _scores(make: Callable[[float, ScoreDoor], AuditSubject], door: ScoreDoor) -> Twin:
    return lambda epsilon: make(epsilon, door)


class Deaf(CoverageSite):
    """A site that counts with noise of a larger budget than the query's."""

    def answer(self, query: Any) -> Any:
        return super().answer(type(query)(query.threshold, max(query.noise >> 4, 1)))


class Louder(CalibrationSite):
    """A site that selects at four times the budget of the query."""

    def answer(self, query: Any) -> Any:
        self._budget = 4 * query.epsilon
        return super().answer(type(query)(query.mechanism, query.order, 4 * query.epsilon, query.edges))


class Absent(SharingSite):
    """A site that believes in a hundred others, and adds a hundredth of the noise."""

    def answer(self, query: Any) -> Any:
        self._sites = 100
        return super().answer(type(query)(query.edges, query.noise, 100))


def report_with(
    letter: Callable[[float, int], int], id: Callable[[float], bytes], group: Callable[[float], int]
) -> Any:
    """Return what makes reports with a fault in the letter, the id or the group."""

    def report(card: DeviceCard, study: bytes, query: dict[str, Any], value: Value) -> bytes:
        assert isinstance(value, float)
        return study + pack(id(value), query["round"], group(value), 0, letter(value, int(card.flips)))

    return report


def _thrown(value: float, flips: int) -> int:
    return letter_of(value, 0.0, flips, (int(SystemEntropy().words(1)[0]), 0), 0.0, 0.0)


def _random_id(_: float) -> bytes:
    return SystemEntropy().words(2).tobytes()


def _device(
    letter: Callable[[float, int], int] = _thrown,
    id: Callable[[float], bytes] = _random_id,
    group: Callable[[float], int] = lambda _: 0,
) -> Twin:
    return lambda epsilon: value_device(binary(epsilon), epsilon, report_with(letter, id, group))


class Restless(Device):
    """A device that throws anew whenever it is asked to answer."""

    def answer(self, *args: Any, **named: Any) -> Any:
        for kept in self._kept._folder.glob("*.report"):
            kept.unlink()
        return super().answer(*args, **named)


def _script(old: str, new: str) -> Twin:
    """Return JavaScript devices of which one line was changed."""

    def twin(epsilon: float) -> AuditSubject:
        text = (files("sottovoce") / "collector" / "web" / "device.js").read_text(encoding="utf-8")
        assert old in text, old
        with tempfile.NamedTemporaryFile("w", suffix=".mjs", delete=False) as file:
            file.write(text.replace(old, new))
        path = Path(file.name)
        subject = value_script(binary(epsilon), epsilon, path)

        def sample(pair: int, side: int, trials: int) -> list[Transcript]:
            found = subject.sample(pair, side, trials)
            if side == 1:
                path.unlink()
            return found

        return subject._replace(sample=sample)

    return twin


def _resident(change: Callable[[Resident], None], source: Callable[[], Any] = SystemEntropy) -> Twin:
    def opened(holding: Holding, ledger: Path, asked: float) -> Resident:
        site = honest_resident(holding, ledger, asked)
        site.dice = source()
        change(site)
        return site

    return lambda epsilon: resident_site(binary(epsilon), epsilon, opened)


def _truthful(site: Resident) -> None:
    """Open doors whose compiled code has no noise."""
    stand = site._stand

    def opened(*args: Any) -> Door:
        door = stand(*args)
        door._site._flips = 0  # type: ignore[attr-defined]
        return door

    site._stand = opened  # type: ignore[method-assign,assignment]


def _counting_up(site: Resident) -> None:
    """Let the frame of a reply count one transaction more where the records are high."""
    handle, high = site.handle, float(site.holding.records.values()[0]) > 0

    def told(data: bytes) -> bytes:
        said = handle(data)
        return said.replace(b"counter", b"Counter") if high and b"Answered" in said else said

    site.handle = told  # type: ignore[method-assign]


class OneEntry(MemoryStorage):
    """A ledger in memory that keeps nothing."""

    def keep(self, entry: Any) -> None:
        """Forget."""


def _unkept(records: Records, study: Study, channel: Channel) -> Door:
    return Door(Site(records, study, channel=channel, storage=OneEntry()), STUDY)


def _higher(epsilon: float) -> int:
    """Return the weights that an earlier card had."""
    return flips_of(binary(min(2 * epsilon, 24.0)))


def _of_rate(epsilon: float) -> int:
    """Return the weights of a response rate that was meant as an epsilon."""
    return flips_of(binary(epsilon_of_rate(epsilon))) if epsilon < 1 else 0


def _hashed(value: float) -> bytes:
    return hashlib.sha256(str(value).encode()).digest()[:16]


def _cheaper(epsilon: float) -> AuditSubject:
    """Claim a budget that the integers do not keep to."""
    return bit_site(
        binary(epsilon), 0.99 * epsilon, lambda r, _, c: honest_door(r, Study(0.5, epsilon), c), "broken twin"
    )


def _rounded(epsilon: float) -> AuditSubject:
    """Take weights from floats, rounded the wrong way."""
    flips = int((1 - 1e-12) * flips_of(binary(epsilon)))
    return bit_site(
        with_flips(flips), epsilon, lambda r, _, c: honest_door(r, Study(0.5, 2 * epsilon), c), "broken twin"
    )


TWINS: dict[str, Twin] = {
    "library: always the truth": _with_flips(lambda _: 0),
    "library: flipped sign": _bits(lambda r, s, c: Door(Turned(r, s, channel=c), STUDY)),
    "library: reused seed": _with_dice(lambda: dice(7)),
    "library: rate taken for epsilon": _with_flips(_of_rate),
    "library: re-randomised retry": _bits(Forgetful),
    "library: spent twice": _bits(lambda r, s, c: Forgetful(r, s, c, later=True)),
    "library: ledger that keeps nothing": _bits(_unkept),
    "library: biased die, a bit lost": _with_dice(lambda: _Die(half_die)),
    "library: biased die, too few flips": _with_flips(lambda e: int(flips_of(binary(e)) * 0.6)),
    "library: stale kernel": _with_flips(_higher),
    "library: leak in a spare byte": _leak(lambda said, value: said + bytes([value > 0])),
    "library: leak in the length": _leak(lambda said, value: said + bytes(2 if value > 0 else 1)),
    "library: claims less than its integers": _cheaper,
    "library: weights rounded as floats": _rounded,
    "library: off-by-one letter": _people(SkippingPeople),
    "library: re-randomised retry of a row": _people(RepeatingPeople),
    "library: reused seed of a row": _people(Persons, lambda: dice(7)),
    "library: selection at four times its budget": _scores(
        lambda e, door: selecting("exponential", e, door), lambda s, b: Door(Louder(s, b), STUDY)
    ),
    "library: count with too little noise": _scores(counting, lambda s, _: Door(Deaf(s, 24.0), STUDY)),
    "library: sum with too few shares": _scores(summing, lambda s, b: Door(Absent(s, 1, b), STUDY)),
    "Python device: always the truth": _device(lambda value, _: int(value > 0)),
    "Python device: reused seed": _device(lambda value, flips: letter_of(value, 0.0, flips, (1 << 63, 0), 0.0, 0.0)),
    "Python device: stale weights": _device(lambda value, flips: _thrown(value, flips // 2)),
    "Python device: id of the value": _device(id=_hashed),
    "Python device: bit of the group": _device(group=lambda value: int(value > 0) << 15),
    "Python device: re-randomised retry": lambda e: value_device(binary(e), e, device=Restless),
    "JavaScript device: always the truth": _script("const lowest = flips << 2n;", "const lowest = 0n;"),
    "JavaScript device: flipped sign": _script(
        "|| die > (1n << 64n) - 1n - lowest ? 1 : 0", "|| die > (1n << 64n) - 1n - lowest ? 0 : 1"
    ),
    "JavaScript device: reused seed": _script(
        "const words = crypto.getRandomValues(new BigUint64Array(3));", "const words = [5n, 1n << 63n, 7n];"
    ),
    "JavaScript device: stale weights": _script("const lowest = flips << 2n;", "const lowest = (flips / 2n) << 2n;"),
    "JavaScript device: biased die": _script("const die = words[0];", "const die = words[0] >> 1n;"),
    "JavaScript device: id of the value": _script(
        "const id = token ?? crypto.getRandomValues(new Uint8Array(16));\n  const point",
        "const id = new Uint8Array(16).fill(value > 0 ? 1 : 2);\n  const point",
    ),
    "JavaScript device: re-randomised retry": _script("store.getItem(key)", "null"),
    "federation site: no noise": _resident(_truthful),
    "federation site: reused seed": _resident(lambda _: None, lambda: dice(7)),
    "federation site: leak in the frame": _resident(_counting_up),
}
"""By name, what makes each of them for a budget."""
