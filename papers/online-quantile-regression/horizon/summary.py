"""Sum up what `recursion.cu` wrote: errors at the horizons, coverage, lengths and volumes, one line a number.

Usage: python summary.py cells.txt critical.json FOLDER PEOPLE REPLICATIONS OUT.csv
"""

import csv
import json
import math
import sys
from pathlib import Path

import numpy as np

MOST, LOOKS = 9, 10_000
HORIZONS = [h for power in range(3, 9) for h in (10**power, 3 * 10**power)]
TREES = {"HiGrad [4, 4]": (4, 4), "HiGrad [4, 8]": (4, 8), "HiGrad [4, 4, 4]": (4, 4, 4)}
GRID = [(t, p, e) for t in (0.5, 0.75) for p in (1, 2, 5, 8) for e in ("0.5", "1", "2", "4", "8", "16", "inf")]


def ball(d):
    """Return the volume of the unit ball."""
    return math.pi ** (d / 2) / math.gamma(d / 2 + 1)


def judge(centre, shape, scalar, bound):
    """Return coverage by coordinate, dense, ellipsoid; and lengths, volume, from estimates and covariances."""
    d = centre.shape[1]
    dense = np.full(d, d**-0.5)
    found = {}
    for k in range(d):
        half = scalar * np.sqrt(shape[:, k, k])
        found[f"coverage_coordinate_{k}"] = np.abs(centre[:, k]) <= half
        found[f"length_coordinate_{k}"] = 2 * half
    half = scalar * np.sqrt(np.einsum("a,rab,b->r", dense, shape, dense))
    found["coverage_dense"] = np.abs(centre @ dense) <= half
    found["length_dense"] = 2 * half
    solved = np.linalg.solve(shape, centre[:, :, None])[:, :, 0]
    found["coverage_ellipsoid"] = np.einsum("ra,ra->r", centre, solved) <= bound
    found["volume_ellipsoid"] = ball(d) * bound ** (d / 2) * np.sqrt(np.linalg.det(shape))
    found["error"] = np.linalg.norm(centre, axis=1)
    found["bias_coordinate_0"] = centre[:, 0]
    return found


def self_normalised(centre, sums, people):
    """Return the matrices V_n / n from the sums over the looks."""
    d, runs = centre.shape[1], len(centre)
    step = people // LOOKS
    total = np.zeros((runs, d, d))
    rows, columns = np.tril_indices(d)
    total[:, rows, columns] = sums[:, : len(rows)]
    total[:, columns, rows] = sums[:, : len(rows)]
    lean = sums[:, 54 : 54 + d]
    times = step * np.arange(1, LOOKS + 1, dtype=np.float64)
    pull = lean[:, :, None] * centre[:, None, :]
    about = total - pull - pull.transpose(0, 2, 1) + np.sum(times**2) * centre[:, :, None] * centre[:, None, :]
    return about * step / float(people) ** 2 / people


def tree_shape(segments, branching, people):
    """Return the mean of the leaves and its estimated covariance, for averages (runs, nodes, d) level by level."""
    counts = [1]
    for b in branching:
        counts.append(counts[-1] * b)
    nodes, leaves = sum(counts), counts[-1]
    weights = np.array(counts) / nodes
    starts = np.cumsum([0, *counts[:-1]])
    path = np.array([[starts[k] + leaf // (leaves // counts[k]) for k in range(len(counts))] for leaf in range(leaves)])
    each = people // nodes
    template = sum(weights[k] ** 2 / each * (path[:, None, k] == path[None, :, k]) for k in range(len(counts)))
    at_leaves = np.einsum("l,rtld->rtd", weights, segments[:, path])
    centre = at_leaves.mean(1)
    apart = at_leaves - centre[:, None]
    spread = np.einsum("rta,tu,rub->rab", apart, np.linalg.inv(template), apart) / (leaves - 1)
    return centre, spread * template.sum() / leaves**2, leaves


def main():
    """Read, judge, write."""
    cells, critical, folder, people, runs, out = sys.argv[1:]
    folder, people, runs = Path(folder), int(float(people)), int(runs)
    lines = Path(cells).read_text().splitlines()[1:]
    sizes = [int(line.split()[0]) for line in lines]
    values = json.loads(Path(critical).read_text())
    with Path(out).open("w", newline="") as lines_out:
        written = csv.writer(lines_out, lineterminator="\n")
        _write(written, sizes, values, folder, people, runs)


def _write(written, sizes, values, folder, people, runs):
    """Write every number of every cell that was run."""
    horizons = [h for h in HORIZONS if h <= people]
    written.writerow(["tau", "p", "epsilon", "method", "n", "quantity", "value", "error", "replications"])

    def write(cell, method, n, found):
        for quantity, numbers in found.items():
            numbers = np.asarray(numbers, dtype=np.float64)
            spread = numbers.std(ddof=1) / math.sqrt(len(numbers))
            written.writerow([*GRID[cell], method, n, quantity, f"{numbers.mean():.6g}", f"{spread:.3g}", len(numbers)])

    if (folder / "sn.avg").exists():
        paths = np.fromfile(folder / "sn.paths").reshape(-1, len(sizes), runs, MOST)
        final = np.fromfile(folder / "sn.avg").reshape(len(sizes), runs, MOST)
        norm = np.fromfile(folder / "sn.norm").reshape(len(sizes), runs, 63)
        for c, d in enumerate(sizes):
            for at, n in enumerate(horizons):
                write(c, "point", n, {"error": np.linalg.norm(paths[at, c, :, :d], axis=1)})
            centre = final[c, :, :d]
            shape = self_normalised(centre, norm[c], people)
            write(c, "SN", people, judge(centre, shape, values["sn"], values["sn_ellipsoid"][str(d)]))
    if (folder / "dc.avg").exists():
        flat, at = np.fromfile(folder / "dc.avg").reshape(-1, MOST), 0
        for c, d in enumerate(sizes):
            groups = d + 4
            part = flat[at : at + runs * groups].reshape(runs, groups, MOST)[:, :, :d]
            at += runs * groups
            centre = part.mean(1)
            apart = part - centre[:, None]
            shape = np.einsum("rga,rgb->rab", apart, apart) / (groups - 1) / groups
            write(c, "DC", people, judge(centre, shape, values["t"][str(groups)], values["hotelling"][f"{d},{groups}"]))
    for method, branching in TREES.items():
        name = ",".join(map(str, branching))
        if not (folder / f"{name}.avg").exists():
            continue
        counts = [1]
        for b in branching:
            counts.append(counts[-1] * b)
        flat, at, levels = np.fromfile(folder / f"{name}.avg").reshape(-1, MOST), 0, []
        for count in counts:
            levels.append(flat[at : at + len(sizes) * runs * count].reshape(len(sizes), runs, count, MOST))
            at += len(sizes) * runs * count
        for c, d in enumerate(sizes):
            segments = np.concatenate([level[c][:, :, :d] for level in levels], axis=1)
            centre, shape, leaves = tree_shape(segments, branching, people)
            bound = values["hotelling"][f"{d},{leaves}"]
            write(c, method, people, judge(centre, shape, values["t"][str(leaves)], bound))


if __name__ == "__main__":
    main()
