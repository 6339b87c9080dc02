r"""Make the table behind the self-normalised ellipsoid's critical values in 3 to 20 dimensions.

`Q = W' M^-1 W` with `M = int B B'`, a normal vector `W` and a bridge `B` in `d` dimensions, independent. Given `M` the
vector `M^-1/2 W` has density `(2 pi)^(-d/2) det(M)^(1/2) exp(-t' M t / 2)`; all directions are alike, so the density of
`sqrt(Q)` at `r` is proportional to

    r^(d-1) E[det(M)^(1/2) exp(-r^2 M_11 / 2)] = r^(d-1) sqrt(r / sinh r) D(r),    D(r) = E_r det(M)^(1/2),

where under `E_r` the Karhunen-Loeve variances `v_k = 1/(pi k)^2` of the first bridge become `v_k / (1 + r^2 v_k)`.
Only `D` is simulated, on the same normals for every `r`: it changes slowly, its errors at different `r` go together,
and they cancel where the density is normalised to one. The terms left out of the expansion are replaced by a Wishart
matrix of the same mean and the same variances. What is kept is `log(D(r) / sqrt(E_r M_11))`, a smooth function, as
Chebyshev coefficients in `r / (r + SCALE)`.

Run `python scripts/make_ellipsoid_table.py` (about five minutes on one core) to write the table anew; with `--check` it
prints the values of two dimensions beside the exact ones. Both seeds are printed for each dimension, each with its
standard error.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sottovoce.core.kernels import njit
from sottovoce.inference.regression import vector_normalised
from sottovoce.inference.regression.vector_normalised import FURTHEST, SCALE, mean_square, radius
from sottovoce.sim import dice

Array = NDArray[np.float64]

TABLE = Path(vector_normalised.__file__).with_name(vector_normalised.TABLE)
TERMS, NODES, BATCHES, PATHS = 96, 20, 40, 2_400_000
SEEDS = (20_240_601, 20_240_602)


@njit(cache=True)
def add_roots_of_determinants(
    normals: Array, tail: Array, first: Array, others: Array, tail_first: Array, out: Array
) -> None:
    """Add det(M)^(1/2) of each path to `out`, at every node's variances of the first bridge."""
    paths, terms, d = normals.shape
    nodes = first.shape[0]
    x, block = np.empty(d - 1), np.empty((d - 1, d - 1))
    cross, square = np.empty((nodes, d - 1)), np.empty(nodes)
    for path in range(paths):
        block[:, :] = tail[path, 1:, 1:]
        for node in range(nodes):
            square[node] = tail_first[node] ** 2 * tail[path, 0, 0]
            for i in range(d - 1):
                cross[node, i] = tail_first[node] * tail[path, i + 1, 0]
        for k in range(terms):
            for i in range(d - 1):
                x[i] = others[k] * normals[path, k, i + 1]
                for j in range(i + 1):
                    block[i, j] += x[i] * x[j]
            for node in range(nodes):
                y = first[node, k] * normals[path, k, 0]
                square[node] += y * y
                for i in range(d - 1):
                    cross[node, i] += y * x[i]
        weight = 1.0
        for i in range(d - 1):
            for j in range(i + 1):
                entry = block[i, j]
                for k in range(j):
                    entry -= block[i, k] * block[j, k]
                block[i, j] = entry / block[j, j] if j < i else math.sqrt(entry)
            weight *= block[i, i]
        for node in range(nodes):
            rest = square[node]
            for i in range(d - 1):
                entry = cross[node, i]
                for k in range(i):
                    entry -= block[i, k] * cross[node, k]
                cross[node, i] = entry / block[i, i]
                rest -= cross[node, i] ** 2
            out[node] += weight * math.sqrt(rest)


def simulate(d: int, seed: int, paths: int, radii: Array) -> Array:
    """Return D at each radius, one row a batch."""
    generator = dice(seed).generator()
    variances = 1.0 / (math.pi * np.arange(1, TERMS + 1)) ** 2
    rest = 1.0 / (math.pi * np.arange(TERMS + 1, 50 * TERMS)) ** 2
    mean, square = 1.0 / 6.0 - variances.sum(), 1.0 / 90.0 - (variances**2).sum()
    freedom = mean**2 / square
    first = np.sqrt(variances / (1.0 + radii[:, None] ** 2 * variances))
    tail_first = np.sqrt((rest / (1.0 + radii[:, None] ** 2 * rest)).sum(1) / rest.sum())
    sums, size = np.zeros((BATCHES, radii.size)), 1000
    for batch in sums:
        for _ in range(max(paths // BATCHES // size, 1)):
            # Bartlett: a lower triangle of normals with chi variables on the diagonal is the root of a Wishart matrix.
            root = np.tril(generator.standard_normal((size, d, d)), -1)
            root[:, range(d), range(d)] = np.sqrt(
                2.0 * generator.standard_gamma((freedom - np.arange(d)) / 2.0, (size, d))
            )
            tail = mean / freedom * (root @ root.transpose(0, 2, 1))
            normals = generator.standard_normal((size, TERMS, d))
            add_roots_of_determinants(normals, tail, first, np.sqrt(variances), tail_first, batch)
    return sums


def fit(sums: Array, nodes: Array, radii: Array) -> tuple[float, ...]:
    """Return the Chebyshev coefficients that pass through the simulated nodes."""
    heights = np.log(sums / np.sqrt(mean_square(radii)))
    heights -= heights.mean()
    coefficients = np.polynomial.chebyshev.chebfit(nodes, heights, NODES - 1)
    return tuple(round(float(c), 8) for c in coefficients)


def make(d: int, paths: int) -> tuple[tuple[float, ...], float]:
    """Return the coefficients of both seeds together and the relative standard error of the 95 % value."""
    nodes = np.cos(math.pi * (np.arange(NODES) + 0.5) / NODES)
    share = (nodes + 1.0) / 2.0 * FURTHEST / (FURTHEST + SCALE)
    radii = SCALE * share / (1.0 - share)
    pieces = []
    for seed in SEEDS:
        sums = simulate(d, seed + 1000 * d, paths, radii)
        pieces.append(sums)
        value, error = jackknife(d, sums, nodes, radii)
        report(f"d = {d:2d}, seed {seed}: 95 % value {value:.4f}, relative standard error {error:.1e}")
    both = np.concatenate(pieces)
    value, error = jackknife(d, both, nodes, radii)
    report(f"d = {d:2d}, both seeds:    95 % value {value:.4f}, relative standard error {error:.1e}")
    return fit(both.sum(0), nodes, radii), error


def jackknife(d: int, sums: Array, nodes: Array, radii: Array) -> tuple[float, float]:
    """Return the 95 % critical value and its relative standard error, by leaving out one batch after the other."""
    value = radius(0.95, d, fit(sums.sum(0), nodes, radii)) ** 2
    without = np.array([radius(0.95, d, fit(sums.sum(0) - one, nodes, radii)) ** 2 for one in sums])
    batches = len(sums)
    return value, float(np.sqrt((batches - 1) / batches * np.sum((without - without.mean()) ** 2)) / value)


def report(line: str) -> None:
    """Say how far it has come."""
    sys.stderr.write(line + "\n")


def main() -> None:
    """Write the table, or check the scheme where the exact value is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="two dimensions only, beside the exact value; nothing written"
    )
    if parser.parse_args().check:
        make(2, PATHS // 2)
        report(f"d =  2, exact:         95 % value {vector_normalised.ellipsoid_value(0.95, 2):.4f}")
        return
    rows, errors = {}, {}
    for d in range(3, 21):
        rows[d], errors[d] = make(d, PATHS // d)
    TABLE.write_text(written(rows, errors))


def written(rows: dict[int, tuple[float, ...]], errors: dict[int, float]) -> str:
    """Return the table: a line for each dimension, the relative error at 95 % and the coefficients."""
    head = ["dimension", "relative_error", *(f"c_{i}" for i in range(NODES))]
    lines = [[str(d), f"{errors[d]:.1e}", *(f"{c:.8f}" for c in row)] for d, row in rows.items()]
    return "".join(",".join(line) + "\n" for line in [head, *lines])


if __name__ == "__main__":
    main()
