"""Compare this tree with another in one run: ``python -m benchmarks.against OLD_TREE [--only WORD ...] [--json]``.

Both trees make the same calls of the public interface, in turn, each in a process of its own that compiled before. The
figures are times of the processor; the ratio is the median of new / old over the turns, with its quartiles.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LIMIT = 1.05
LEAST = 0.2  # seconds that one turn takes at least: short calls are repeated
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

IMPORT = "import time; start = time.process_time(); import sottovoce; print(time.process_time() - start)"
HELP = """
import resource, sys, subprocess
subprocess.run([sys.executable, "-m", "sottovoce", "--help"], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""
COLD = {"import sottovoce": IMPORT, "sottovoce --help": HELP}


class Ratio(NamedTuple):
    """What a call costs in both trees."""

    name: str
    old: float
    new: float
    ratio: float
    low: float
    high: float
    turns: int


def cases(sv: Any, folder: Path) -> dict[str, Callable[[], Callable[[], object]]]:
    """Return what makes each call ready; only public names, so that any tree can be asked."""

    def normal(seed: int, *shape: int) -> Any:
        return sv.sim.dice(seed).generator().normal(size=shape)

    def quantile(records: int, sites: int, **options: Any) -> Callable[[], Callable[[], object]]:
        def ready() -> Callable[[], object]:
            data = list(normal(1, sites, records // sites))
            return lambda: sv.federated_quantile(data, 0.7, 1.0, **options)

        return ready

    def levels() -> Callable[[], object]:
        data = list(normal(2, 10, 100_000))
        return lambda: sv.federated_quantiles(data, [0.25, 0.5, 0.75], 1.0)

    def regression(people: int, p: int, inference: str) -> Callable[[], Callable[[], object]]:
        def ready() -> Callable[[], object]:
            generator = sv.sim.dice(3).generator()
            x = generator.uniform(-1, 1, size=(people, p))
            y = 1 + x @ (1 / (1 + generator.random(p))) + generator.normal(size=people)
            box = [(-1.0, 1.0)] * p
            return lambda: sv.PrivateQuantileRegressor(0.5, 2.0, bounds=box, inference=inference).fit(x, y)

        return ready

    def integration() -> Callable[[], object]:
        target, *sources = [values + 0.01 * at for at, values in enumerate(normal(4, 6, 50_000))]
        named = {f"source {at}": values for at, values in enumerate(sources)}
        return lambda: sv.integrated_quantile(target, named, 0.5, 1.0)

    def conformal(sites: int, **options: Any) -> Callable[[], Callable[[], object]]:
        def ready() -> Callable[[], object]:
            sizes = [round(10 + 1990 * at / (sites - 1)) for at in range(sites)]
            scores = [abs(normal(at, size)) for at, size in enumerate(sizes)]
            return lambda: sv.conformal_threshold(scores, 0.1, **options)

        return ready

    def report() -> Callable[[], object]:
        scores = [abs(normal(at, 1000)) for at in range(100)]
        made = sv.conformal_threshold(scores, 0.1)
        return lambda: sv.coverage_report(made, scores)

    def reading() -> Callable[[], object]:
        path = folder / "records.csv"
        values = normal(5, 1_000_000).tolist()
        rows = (f"clinic {at % 10},{value:.6f}\n" for at, value in enumerate(values))
        path.write_text("clinic,wait\n" + "".join(rows), encoding="utf-8")
        return lambda: sv.read_files(path, value="wait", site="clinic")

    private = {"epsilon": 1.0, "maximum": 5.0}
    return {
        "staged, 1e6 records at 2 sites": quantile(1_000_000, 2),
        "staged, 1e5 records at 100 sites": quantile(100_000, 100),
        "staged, 1e6 records at 10,000 sites": quantile(1_000_000, 10_000),
        "staged, three levels, 1e6 records": lambda: levels(),
        "recursion, 1e6 records at 10 sites": quantile(1_000_000, 10, method="regression"),
        "regressor, dithered, 3e5 people, p = 2": regression(300_000, 2, "dithered"),
        "regressor, dithered, 1e5 people, p = 8": regression(100_000, 8, "dithered"),
        "regressor, self-normalised, 3e5, p = 2": regression(300_000, 2, "self-normalised"),
        "regressor, self-normalised, 1e5, p = 8": regression(100_000, 8, "self-normalised"),
        "integrated, target and 5 sources": lambda: integration(),
        "conformal, open, 1,000 sites": conformal(1000),
        "conformal, private, 100 sites": conformal(100, **private),
        "conformal, local, 100 sites": conformal(100, mechanism="local", **private),
        "conformal, aggregate, 100 sites": conformal(100, mechanism="aggregate", **private),
        "coverage report, 100 sites": lambda: report(),
        "reading a CSV of 1e6 rows": lambda: reading(),
    }


def serve(source: Path) -> None:
    """Time calls in this process as they are asked for: a line with name and times in, a line with seconds out."""
    import sottovoce as sv

    assert Path(sv.__file__).is_relative_to(source), "another sottovoce comes first"
    with tempfile.TemporaryDirectory() as folder:
        known = cases(sv, Path(folder))
        name, call = "", None
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["name"] != name:
                call = None  # before the next data are made
                name, call = asked["name"], known[asked["name"]]()
            assert call is not None
            start = time.process_time()
            for _ in range(asked["times"]):
                call()
            print(time.process_time() - start, flush=True)


class Tree:
    """A tree that is timed: fresh processes for what is cold, one lasting process for the rest."""

    def __init__(self, root: Path) -> None:
        self.source = (root / "src").resolve()
        if not (self.source / "sottovoce").is_dir():
            raise SystemExit(f"{root} holds no src/sottovoce: give the root of a checkout.")
        self.environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(self.source)}
        self.worker: subprocess.Popen[str] | None = None

    def cold(self, name: str) -> float:
        command = [sys.executable, "-P", "-c", COLD[name]]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        return float(done.stdout)

    def warm(self, name: str, times: int) -> float:
        if self.worker is None:
            self.worker = subprocess.Popen(
                [sys.executable, "-P", __file__, "--serve", str(self.source)],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        self.worker.stdin.write(json.dumps({"name": name, "times": times}) + "\n")
        self.worker.stdin.flush()
        said = self.worker.stdout.readline()
        if not said:
            raise SystemExit(f"{self.source} failed at: {name}.")
        return float(said)

    def close(self) -> None:
        if self.worker is not None and self.worker.stdin is not None:
            self.worker.stdin.close()
            self.worker.wait()


def measure(name: str, old: Tree, new: Tree, turns: int) -> Ratio:
    """Time both trees in turn, each going first every other time."""
    times = 1
    if name in COLD:
        for tree in (old, new):
            tree.cold(name)
    else:
        for tree in (old, new):
            tree.warm(name, 1)  # compiled, read, and in the caches
        times = max(1, math.ceil(LEAST / max(old.warm(name, 1), 1e-6)))
    spent: dict[Tree, list[float]] = {old: [], new: []}
    for turn in range(turns):
        for tree in (old, new) if turn % 2 else (new, old):
            spent[tree].append(tree.cold(name) if name in COLD else tree.warm(name, times) / times)
    ratios = [after / before for before, after in zip(spent[old], spent[new], strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if turns > 1 else ratios * 3
    return Ratio(
        name,
        statistics.median(spent[old]),
        statistics.median(spent[new]),
        statistics.median(ratios),
        low,
        high,
        turns,
    )


def names() -> list[str]:
    """Return everything that can be compared."""
    return [*COLD, *cases(None, Path())]


def line(found: Ratio) -> str:
    """Write a comparison; one beyond the limit, spread and all, is marked."""
    mark = "  slower" if found.low > LIMIT else "  unsure" if found.ratio > LIMIT else ""
    costs = f"{1000 * found.old:10.1f} {1000 * found.new:10.1f}"
    return f"{found.name:40}{costs} {found.ratio:8.3f}   {found.low:.3f} to {found.high:.3f}{mark}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("old", type=Path, nargs="?", metavar="OLD_TREE", help="the root of the other checkout")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="WORD", help="what has one of these words in its name"
    )
    parser.add_argument("--turns", type=int, default=9, help="how often each is timed")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve is not None:
        serve(options.serve)
        return
    if options.old is None:
        parser.error("give the root of the other checkout")
    chosen = [name for name in names() if any(word in name for word in options.only)]
    old, new = Tree(options.old), Tree(ROOT)
    found = []
    if not options.json:
        print(f"{'':40}{'old, ms':>10} {'new, ms':>10} {'new/old':>8}   quartiles of {options.turns} turns")
    try:
        for name in chosen:
            found.append(measure(name, old, new, options.turns))
            if not options.json:
                print(line(found[-1]), flush=True)
    finally:
        old.close()
        new.close()
    if options.json:
        print(json.dumps([each._asdict() for each in found], indent=1))


if __name__ == "__main__":
    main()
