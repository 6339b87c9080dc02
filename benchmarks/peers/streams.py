"""One quantile of a stream, without privacy: time an update, error, and what has to be kept.

river's Quantile (the P-square algorithm) and the sketches of datasketches are pushed values in the order in which they
come; a stream that ascends is the hard case. Sottovoce asks records that stay where they are, in a random order of its
own, so the order does not matter to it, and it needs the records at hand; it follows one level, chosen beforehand.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import sottovoce as sv
from benchmarks.ordinary_cells import KNOWN, UNSEEN
from benchmarks.peers.installed import Peer, peer
from benchmarks.peers.sheets import Comparison, Sheet, figure, seconds
from sottovoce.core.arrays import Floats
from sottovoce.core.codec import to_bytes
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.quantile.recursion import walk
from sottovoce.server.quantile.recursion.schedule import decay, elapsed
from sottovoce.sim import dice

TAUS = (0.5, 0.9, 0.99)
POPULATIONS = {  # with public bounds, which the recursion needs where values are tied
    "waits, 40 % to five minutes": (0.0, 600.0),
    "prices ending in .99": (0.0, 1000.0),
    "incomes": (0.0, 1e6),
    "85 % zeros": (0.0, 1e6),
}


class Stream(NamedTuple):
    """What has run through a library: how it is asked for a level, and the bytes that it keeps."""

    ask: Callable[[float], float]
    kept: int


Feeder = Callable[[Floats], Stream]
Library = Callable[[float, tuple[float, float]], Feeder]  # a level and public bounds: what is fed


def by_numpy(values: Floats) -> Stream:
    """Keep everything, and sort."""
    return Stream(lambda tau: float(np.quantile(values, tau, method="inverted_cdf")), values.nbytes)


def ours(method: str, epsilon: float) -> Library:
    """Return a method of `federated_quantile`, for one level."""

    def at(tau: float, bounds: tuple[float, float]) -> Feeder:
        def feed(values: Floats) -> Stream:
            try:
                estimate = float(sv.federated_quantile([values], tau, epsilon, method=method, bounds=bounds).estimate)
            except (sv.Infeasible, sv.SearchFailed):
                estimate = math.nan
            return Stream(lambda _: estimate, state_bytes())

        return feed

    return at


def state_bytes() -> int:
    """Return how many bytes the recursion's state is, sent or stored, whatever the number of records."""
    taus, channels, pace = np.full(1, 0.5), (binary(1.0),), decay([0.5])
    study = walk.WalkStudy(taus, np.ones(1), channels, np.array([1000]), elapsed([4], 1000), 7.0, pace)
    return len(to_bytes(walk.init(study)))


def by_river(module: Any) -> Library:
    """Return river's quantile of one level, fed one by one, as it is made to be."""

    def at(tau: float, _bounds: object) -> Feeder:
        def feed(values: Floats) -> Stream:
            quantile = module.Quantile(tau)
            for value in values.tolist():
                quantile.update(value)
            return Stream(lambda _: float(quantile.get()), len(quantile._quantile.__getstate__()))

        return feed

    return at


def by_sketch(make: Callable[[], Any], single: bool = False) -> Library:
    """Return a sketch for every level, fed whole arrays or one by one."""

    def feed(values: Floats) -> Stream:
        sketch = make()
        if single:
            for value in values.tolist():
                sketch.update(value)
        else:
            sketch.update(values)
        return Stream(lambda tau: float(sketch.get_quantile(tau)), len(sketch.serialize()))

    return lambda *_: feed


def libraries() -> tuple[dict[str, Library], tuple[Peer, ...]]:
    """Return what can be run here."""
    river, sketches = peer("river", "river.stats"), peer("datasketches", "datasketches")
    found: dict[str, Library] = {
        "numpy, all values kept": lambda *_: by_numpy,
        "Sottovoce, recursion, no privacy": ours("regression", math.inf),
        "Sottovoce, default, no privacy": ours("staged", math.inf),
        "Sottovoce, default, epsilon 1": ours("staged", 1.0),
    }
    if river.module is not None:
        found["river, one by one"] = by_river(river.module)
    if (module := sketches.module) is not None:
        found["datasketches KLL, one by one"] = by_sketch(lambda: module.kll_doubles_sketch(200), single=True)
        found["datasketches KLL, array"] = by_sketch(lambda: module.kll_doubles_sketch(200))
        found["datasketches t-digest, array"] = by_sketch(lambda: module.tdigest_double(200))
        found["datasketches REQ, array"] = by_sketch(lambda: module.req_floats_sketch(12))
    return found, (river, sketches)


def relative_error(ordered: Floats, estimate: float, tau: float) -> float:
    """Return how far a value is from the stream's own quantile, in parts of the spread between its outer twentieths.

    >>> relative_error(np.arange(1.0, 101.0), 53.0, 0.5)
    0.03333333333333333
    """
    low, own, high = np.quantile(ordered, [0.05, tau, 0.95], method="inverted_cdf")
    return float(abs(estimate - own) / (high - low))


class Measured(NamedTuple):
    """Mean error for each level, seconds an update, bytes kept."""

    errors: tuple[float, ...]
    update: float
    kept: int


def measure(found: Mapping[str, Library], n: int, draws: int, ascending: bool, seed: int) -> dict[str, Measured]:
    """Feed every library the same streams."""
    known = {population.name: population for population in (*KNOWN, *UNSEEN)}
    generator = dice(seed).generator()
    errors: dict[tuple[str, float], list[float]] = {(name, tau): [] for name in found for tau in TAUS}
    updates: dict[str, list[float]] = {name: [] for name in found}
    kept = dict.fromkeys(found, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at in range(draws):
            name, bounds = list(POPULATIONS.items())[at % len(POPULATIONS)]
            values = np.clip(known[name].sample(generator, n), *bounds)
            ordered = np.sort(values)
            stream = ordered if ascending else values
            for name, library in found.items():
                for tau in TAUS:
                    feeder = library(tau, bounds)
                    start = time.process_time()
                    fed = feeder(stream)
                    answer = fed.ask(tau)
                    updates[name].append((time.process_time() - start) / n)
                    errors[name, tau].append(relative_error(ordered, answer, tau))
                    kept[name] = max(kept[name], fed.kept)
    return {
        name: Measured(
            tuple(statistics.fmean(errors[name, tau]) for tau in TAUS), statistics.median(updates[name]), kept[name]
        )
        for name in found
    }


def run(n: int = 1_000_000, draws: int = 8) -> Comparison:
    """Compare streams in random order and ascending."""
    found, peers = libraries()
    mixed, ascending = (measure(found, n, draws, way, 71) for way in (False, True))
    rows = tuple(
        (
            name,
            seconds(each.update),
            figure(each.update / mixed["Sottovoce, default, no privacy"].update, 2),
            *("no answer" if math.isnan(error) else figure(error, 2) for error in each.errors + ascending[name].errors),
            f"{each.kept:,}",
        )
        for name, each in mixed.items()
    )
    columns = (
        "library", "an update", "times ours", *(f"error at {tau:g}" for tau in TAUS),
        *(f"ascending, {tau:g}" for tau in TAUS), "bytes kept",
    )  # fmt: skip
    note = (
        "Errors: distances from the stream's own quantile, in parts of the spread between its .05 and .95 quantiles, "
        f"the mean of {draws} streams of {n:,} values ({'; '.join(POPULATIONS)}). No answer, to one stream "
        "at least: too few records for the level, said before any is asked, or a recursion that ran away, said too. "
        "Sottovoce keeps its bytes beside the records, which stay at the site; numpy keeps them all."
    )
    sheet = Sheet("A quantile of a stream", columns, rows, note)
    question = (
        "What does an update cost, how exact is the answer, what is kept, and does the order of the values matter?"
    )
    return Comparison("Quantiles of streams", question, (sheet,), tuple(_findings(mixed, ascending)), peers)


def _findings(mixed: Mapping[str, Measured], ascending: Mapping[str, Measured]) -> list[str]:
    """Say what the table shows."""
    sketches = [name for name in mixed if name.startswith("datasketches")]
    said = []
    if sketches:
        own = mixed["Sottovoce, default, no privacy"]
        told = [at for at, error in enumerate(own.errors) if not math.isnan(error)]  # levels that ours answers
        best = min(sketches, key=lambda name: sum(mixed[name].errors[at] for at in told))
        times = sum(mixed[best].errors[at] for at in told) / max(sum(own.errors[at] for at in told), 1e-300)
        said.append(
            f"The nearest sketch here, {best}, is {figure(times, 2)} times as far off as our default without privacy, "
            f"and its update takes {figure(mixed[best].update / own.update, 2)} times as long."
        )
        said.append(
            "A sketch answers every level, afterwards, can be merged, and takes values as they come: without a need "
            "for privacy it is the better tool. It shows values of single records to whoever holds it."
        )
    if "river, one by one" in mixed:
        worst = max(ascending["river, one by one"].errors)
        said.append(
            "river keeps least, and depends on the order: in an ascending stream it is up to "
            f"{figure(worst, 2)} of the spread off."
        )
    return said
