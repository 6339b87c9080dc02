"""Randomised response on one bit: what a report costs, and whether all say the opposite as often as they should.

One report at a time is what a device sends; many at once is what a site answers with. Each mechanism gets the same
epsilon and as many truths of 0 as of 1. OpenDP flips a bit vector at once (its RAPPOR primitive, whose own price is
that of a whole vector; here every bit is another person's), pure-LDP is asked for direct encoding of two values, and
bare numpy throws its generator, or words of the operating system.
"""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from benchmarks.peers.installed import Peer, peer
from benchmarks.peers.sheets import Comparison, Sheet, figure, seconds
from benchmarks.peers.timing import Timed, interleaved
from sottovoce.client.device import make_report
from sottovoce.client.quantile.encode import speak
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import DeviceCard, card_text, identity
from sottovoce.protocol.messages import Query, Study
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.sim import dice

EPSILON = 1.0
SYSTEM, SEEDED = "operating system", "generator, not for secrets"


class Way(NamedTuple):
    """A way to randomise bits: called with truths, it returns how many letters differ from them."""

    name: str
    words: str  # whose random words
    account: str  # the epsilon it states itself
    ready: Callable[[int], Callable[[], int]]


def _halves(n: int) -> Any:
    """Return as many zeros as ones, in turn."""
    return np.arange(n) % 2 == 1


def ours(epsilon: float) -> tuple[Way, Way, Way]:
    """Return a device's report, a site's answer, and the bare kernel."""
    channel = binary(epsilon)
    exact = f"{channel.epsilon:.12f}"
    text = card_text(DeviceCard("bits", (0.5,), epsilon, str(flips_of(channel)), nonce="00"))
    card = DeviceCard("bits", (0.5,), epsilon, str(flips_of(channel)), nonce="00")
    study = identity(text)
    query = {"study": study.hex(), "round": 1, "group": 0, "points": [0.5], "periods": [0.0], "needs": [1]}

    def one(n: int) -> Callable[[], int]:
        truths = _halves(n).tolist()
        return lambda: sum((make_report(card, study, query, float(bit))[-1] == 1) != bit for bit in truths)

    def site(n: int) -> Callable[[], int]:
        # a site says how many letters are 1: of truths alike those that are not are the opposites
        sites = [Site(Records(np.full(n // 2, bit)), Study(0.5, epsilon)) for bit in (0.0, 1.0)]
        ask = Query(1, (0.5,), (n // 2,))

        def work() -> int:
            zeros, ones = (int(each.tally(ask).ones[0]) for each in sites)
            return zeros + n // 2 - ones

        return work

    def kernel(n: int) -> Callable[[], int]:
        truths = _halves(n).astype(float)
        where, letters = np.arange(n, dtype=np.uint64), np.empty(n, dtype=np.uint8)
        moves = np.zeros(2)

        def work() -> int:
            speak(truths, where, SystemEntropy().words(n), flips_of(channel), 0.0, 0.5, 0.0, 0.0, moves, letters)
            return int(np.count_nonzero(letters != truths))

        return work

    return (
        Way("Sottovoce, a device's report of 41 bytes", SYSTEM, exact, one),
        Way("Sottovoce, a site's answer", SYSTEM, exact, site),
        Way("Sottovoce, its kernel alone", SYSTEM, exact, kernel),
    )


def opendp_ways(module: Any, epsilon: float) -> tuple[Way, Way, Way]:
    """Return OpenDP's boolean, the same in constant time, and its bit vector."""
    module.enable_features("contrib")
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    measures = [module.m.make_randomized_response_bool(keep, constant_time=constant) for constant in (False, True)]
    vector = module.m.make_randomized_response_bitvec(
        module.bitvector_domain(max_weight=1), module.discrete_distance(), f=2 * (1 - keep)
    )

    def one(measure: Any) -> Callable[[int], Callable[[], int]]:
        def ready(n: int) -> Callable[[], int]:
            truths = _halves(n).tolist()
            return lambda: sum(measure(bit) != bit for bit in truths)

        return ready

    def many(n: int) -> Callable[[], int]:
        packed = np.packbits(_halves(n))

        def work() -> int:
            letters = np.frombuffer(vector(packed.tobytes()), dtype=np.uint8)
            return int(np.bitwise_count(letters ^ packed).sum())

        return work

    said = [f"{measure.map(1):.12f}" for measure in measures]
    return (
        Way("OpenDP, a truth value", SYSTEM, said[0], one(measures[0])),
        Way("OpenDP, a truth value in constant time", SYSTEM, said[1], one(measures[1])),
        Way("OpenDP, a bit vector", SYSTEM, f"{vector.map(1) / 2:.12f}", many),
    )


def pure_ldp_way(module: Any, epsilon: float) -> Way:
    """Return pure-LDP's direct encoding of two values."""
    client = module.DEClient(epsilon, 2, index_mapper=lambda value: value)

    def ready(n: int) -> Callable[[], int]:
        truths = _halves(n).astype(int).tolist()
        return lambda: sum(client.privatise(bit) != bit for bit in truths)

    return Way("pure-LDP, direct encoding", SEEDED, "as given", ready)


def numpy_ways(epsilon: float) -> tuple[Way, Way, Way]:
    """Return numpy's generator bit by bit and at once, and numpy on words of the operating system."""
    flip = 1 / (1 + math.exp(epsilon))
    generator = dice(41).generator()

    def one(n: int) -> Callable[[], int]:
        truths = _halves(n).tolist()
        return lambda: sum((bit ^ (generator.random() < flip)) != bit for bit in truths)

    def many(n: int) -> Callable[[], int]:
        truths = _halves(n)
        return lambda: int(np.count_nonzero((truths ^ (generator.random(n) < flip)) != truths))

    def system(n: int) -> Callable[[], int]:
        truths, below = _halves(n), np.uint64(int(flip * 2**64))

        def work() -> int:
            words = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)  # noqa: TID251 - the floor itself
            return int(np.count_nonzero((truths ^ (words < below)) != truths))

        return work

    return (
        Way("bare numpy, one by one", SEEDED, "none", one),
        Way("bare numpy, its generator", SEEDED, "none", many),
        Way("bare numpy, the system's words", SYSTEM, "none", system),
    )


def _sheet(title: str, ways: list[Way], n: int, turns: int, note: str) -> tuple[Sheet, dict[str, Timed]]:
    """Time ways against the first, and count how often they say the opposite."""
    differing = dict.fromkeys((way.name for way in ways), 0)

    def counting(way: Way) -> Callable[[], Callable[[], object]]:
        def ready() -> Callable[[], object]:
            work = way.ready(n)

            def counted() -> None:
                differing[way.name] += work()

            return counted

        return ready

    timed = interleaved({way.name: counting(way) for way in ways}, turns)
    total, flip = n * (turns + 1), 1 / (1 + math.exp(EPSILON))
    rows = tuple(
        (
            way.name,
            seconds(timed[way.name].seconds / n),
            timed[way.name].spread,
            way.words,
            way.account,
            f"{differing[way.name] / total:.5f}",
            figure(float(binomtest(differing[way.name], total, flip).pvalue), 2),
        )
        for way in ways
    )
    columns = ("mechanism", "a report", "times the first", "random words", "its own epsilon", "opposites", "p")
    return Sheet(title, columns, rows, f"{note} Opposites: of {total:,} reports, expected {flip:.5f}."), timed


def _agreement(chances: Sequence[float]) -> str:
    """Say whether all mechanisms keep to the probability that they should have, at a false alarm of 1e-6 in all."""
    wrong = sum(p < 1e-6 / len(chances) for p in chances)
    verdict = "All agree on the probability" if not wrong else f"{wrong} of {len(chances)} miss the probability"
    return f"{verdict}: p is that of the exact binomial test, and one row in twenty lies below .05 by chance."


def run(singles: int = 20_000, batch: int = 1_000_000, turns: int = 9) -> Comparison:
    """Compare one report at a time, and many at once."""
    peers: tuple[Peer, Peer] = (
        peer("opendp", "opendp.prelude"),
        peer("pure-ldp", "pure_ldp.frequency_oracles.direct_encoding"),
    )
    opendp, pure = peers
    device, site, kernel = ours(EPSILON)
    single, plain, system = numpy_ways(EPSILON)
    one, many = [device], [site, kernel]
    if opendp.module is not None:
        truth, constant, vector = opendp_ways(opendp.module, EPSILON)
        one, many = [*one, truth, constant], [*many, vector]
    if pure.module is not None:
        one.append(pure_ldp_way(pure.module, EPSILON))
    first, _ = _sheet("One report at a time", [*one, single], singles, turns, "Calls of Python, one after the other.")
    second, timed = _sheet("Many at once", [*many, system, plain], batch, turns, f"{batch:,} bits a call.")
    findings = [
        _agreement([float(row[-1]) for sheet in (first, second) for row in sheet.rows]),
        f"Bare numpy's generator takes {timed[plain.name].ratio:.2g} times what a site's answer does, but is not "
        "made for secrets; the system's words alone take "
        f"{timed[system.name].ratio:.2g} times as long as a site's whole answer.",
        "A device's report does more than the others: it checks card, study, round and value, and packs 41 bytes.",
        "OpenDP's boolean can run in constant time; Sottovoce's kernel branches on no record, and promises no more.",
        "OpenDP's bit vector is made for one person's vector, of which two bits may differ; here every bit is another "
        "person's, so that half of the price that it states is a bit's.",
        "OpenDP is called from Python, as here most would; what a call costs in Rust was not measured.",
    ]
    question = (
        f"One bit, epsilon {EPSILON:g}: the truth with probability {1 - 1 / (1 + math.exp(EPSILON)):.5f}, else its "
        "opposite. What does a report cost, whose random words does it use, and who computes epsilon?"
    )
    return Comparison("Randomised response", question, (first, second), tuple(findings), peers)
