"""Table B.2 of the paper on data integration: its coverages, ours, and how far apart they are."""

import csv
import math
from collections import defaultdict
from pathlib import Path

from sottovoce_papers.simulation.integration.table_b2 import METHODS, POWERS, SHIFTS, Cell, coverage

PRINTED = Path(__file__).parents[1] / "papers" / "data-integration" / "table-b2.print.csv"
SEED = 2024


def printed() -> dict[tuple[float, str, float], float]:
    with PRINTED.open(newline="") as lines:
        return {
            (float(row["beta"]), row["method"], float(row["bias"])): 100 * float(row["value"])
            for row in csv.DictReader(lines)
        }


def run(replications: int) -> None:
    table = printed()
    apart: dict[str, list[float]] = defaultdict(list)
    print(f"\nTable B.2: coverage in percent, as printed, ours ({replications} replications), ours less printed")
    print(f"{'':>16}" + "".join(f"{shift:>8.3f}" for shift in SHIFTS))
    for power in POWERS:
        found = [coverage(Cell(power, shift), replications, SEED) for shift in SHIFTS]
        for name in METHODS:
            theirs = [table[power, name, round(shift, 3)] for shift in SHIFTS]
            ours = [100 * each[name] for each in found]
            differences = [mine - their for mine, their in zip(ours, theirs, strict=True)]
            apart[name] += differences
            for label, row in (("printed", theirs), ("ours", ours), ("", differences)):
                head = f"{power:.2f} {name}" if label == "printed" else label
                print(f"{head:>16}" + "".join(f"{value:>8.1f}" for value in row))
    for name, differences in apart.items():
        rms = math.sqrt(sum(value**2 for value in differences) / len(differences))
        print(f"   {name:<11} root mean square {rms:5.2f} points, largest {max(map(abs, differences)):5.2f}")
    print(
        "   ADP(decay) is not reproduced by its printed lambda, 5 log N / sqrt N; all of it is printed in steps of 0.2."
    )
