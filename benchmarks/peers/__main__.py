"""Run with ``make bench-peers``, or ``python -m benchmarks.peers [PART ...] [--write PAGE] [--quick]``."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.peers import central_quantiles, conformal, randomised_response, regression, streams
from benchmarks.peers.page import write
from benchmarks.peers.sheets import Comparison

PARTS: Mapping[str, Callable[[], Comparison]] = {
    "randomised-response": randomised_response.run,
    "central-quantiles": central_quantiles.run,
    "conformal": conformal.run,
    "regression": regression.run,
    "streams": streams.run,
}
QUICK: Mapping[str, Callable[[], Comparison]] = {
    "randomised-response": lambda: randomised_response.run(500, 20_000, 2),
    "central-quantiles": lambda: central_quantiles.run(3, (1_000, 3_000), 3),
    "conformal": lambda: conformal.run((49, 99), (500,), 2),
    "regression": lambda: regression.run(((2_000, 2),)),
    "streams": lambda: streams.run(20_000, 2),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the Markdown page to write")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all runs; figures say little")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]}; the parts are {', '.join(PARTS)}")
    found = []
    for part in options.parts:
        found.append((QUICK if options.quick else PARTS)[part]())
        print(found[-1].text(), flush=True)
    if options.write is not None:
        write(options.write, found)


if __name__ == "__main__":
    main()
