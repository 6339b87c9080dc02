"""Run with ``make bench``, or ``python -m benchmarks [staged|walks|speed ...] [--replications N] [--jobs N]``."""

import argparse
import os

from benchmarks import speed, staged, walks


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["speed", "walks", "staged"], help="speed, walks, staged")
    parser.add_argument("--replications", type=int, default=400, help="replications a cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    if "speed" in options.parts:
        speed.run()
    if "walks" in options.parts:
        walks.run(max(options.replications, 1000), options.jobs)
    if "staged" in options.parts:
        staged.run(options.replications, options.jobs)


if __name__ == "__main__":
    main()
