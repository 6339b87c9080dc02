"""Omega: against every letter written out, against simulation, and against the paper's printed errors."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad
from tests.protocol.written_out import dense_channel

from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import Block, RegressionChannel, open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel
from sottovoce.protocol.regression.lp import chances, lp_pair
from sottovoce.server.regression.mixing import MixedPart, mixture
from sottovoce.server.regression.omega import covariance, covariates, omega
from sottovoce.sim.randomness import dice

Floats = npt.NDArray[np.float64]


def written_out(block: Block, whole: RegressionChannel, level: int, second: float, mean: float) -> Floats:
    """E D D' of a block that speaks of slopes 1..count, by summing over symbols and letters."""
    channel, p = block.channel, whole.p
    sides, odds = whole.side_scores(level), np.diff([0.0, *whole.taus, 1.0])[::-1]
    found = np.zeros((p + 1, p + 1))
    if isinstance(channel, Channel):
        places = len(channel.vertices) // 2
        letters = np.outer(odds, chances(places, second, mean)).ravel() @ channel.distribution
        found[:2, :2] = channel.table.T @ (letters[:, None] * channel.table)
        return found
    assert isinstance(channel, BoxChannel)
    dense = dense_channel(channel, sides if block.side else np.array([whole.radius]))
    if block.side:
        symbols = odds
        for _ in range(channel.slopes):
            symbols = np.multiply.outer(symbols, chances(channel.positions, second, mean))
    else:
        symbols = np.zeros((channel.positions,) * channel.slopes)
        for odd, side in zip(odds, sides, strict=True):
            each = np.array(odd)
            for _ in range(channel.slopes):
                each = np.multiply.outer(each, chances(channel.positions, second, mean, side / whole.radius))
            symbols = symbols + each
    letters = np.asarray(symbols).ravel() @ dense.distribution
    places_of = [0] * block.side + list(range(1, channel.slopes + 1))
    found[np.ix_(places_of, places_of)] = dense.table.T @ (letters[:, None] * dense.table)
    return found


@pytest.mark.parametrize("tau", [0.5, 0.9])
@pytest.mark.parametrize("mean", [0.0, 0.2])
@pytest.mark.parametrize(
    "shape", [(2, 0, 1, 1), (2, 1, 4, 1), (2, 2, 5, 2), (1, 1, 3, 1), (1, 2, 6, 3), (2, 1, 20, 7)], ids=str
)
def test_boxes_letter_by_letter(tau: float, mean: float, shape: tuple[int, int, int, int]) -> None:
    channel, p = box_channel("box", 1.5, *shape), max(shape[1], 1)
    gains = np.ones((1, p + 1))
    whole = RegressionChannel.__new__(RegressionChannel)  # one block alone may leave coordinates out
    for field, value in (("taus", (tau,)), ("p", p)):
        object.__setattr__(whole, field, value)
    block = Block(1.0, channel, tuple(range(1, shape[1] + 1)), gains)
    object.__setattr__(whole, "blocks", (block,))
    expected = written_out(block, whole, 0, 0.4, mean)
    assert omega(whole, 0.4, [mean] * p) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_matrix_letter_by_letter() -> None:
    whole = RegressionChannel("lp", (0.75,), 1, (Block(1.0, lp_pair(0.75, 1.0, 9.0), (1,), np.ones((1, 2))),))
    for second, mean in ((1 / 3, 0.0), (0.5, 0.4)):
        expected = written_out(whole.blocks[0], whole, 0, second, mean)
        assert omega(whole, second, [mean]) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_several_levels_letter_by_letter() -> None:
    whole = box((0.2, 0.5, 0.9), 2, 3.0, slopes=2, cells=6, width=2)
    for level in range(3):
        expected = written_out(whole.blocks[0], whole, level, 1 / 3, 0.0)
        assert omega(whole, level=level) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_open_is_the_exact_score() -> None:
    cross = np.array([[0.4, 0.1], [0.1, 0.3]])
    found = omega(open_channel(0.75, 2), cross, [0.1, -0.2])
    assert found == pytest.approx(0.1875 * np.array([[1, 0.1, -0.2], [0.1, 0.4, 0.1], [-0.2, 0.1, 0.3]]), abs=1e-15)


def uniforms(seed: int, rows: int, columns: int) -> Floats:
    return ((dice(seed).words(rows * columns) >> np.uint64(11)) / 2.0**53).reshape(rows, columns)


@pytest.mark.parametrize("name", ["cq", "box", "lp", "mixture"])
def test_by_simulation(name: str) -> None:
    """Six standard errors at each of 9 entries: a false alarm in fewer than one of 1e6 runs."""
    tau, p, n, known = 0.75, 2, 60_000, covariates(2)
    whole = {
        "cq": lambda: cq(tau, p, 2.0, q=3, s=2),
        "box": lambda: box((tau,), p, 4.0, slopes=1, cells=10, width=3, alone=0.2),
        "lp": lambda: mixture("lp", (tau,), 1.0, known, [MixedPart(lp_pair(tau, 1.0, 36.0), None)]),
        "mixture": lambda: mixture(
            "both", (tau,), 1.0, known,
            [MixedPart(box_channel("slopes", 1.0, 1, 2, 3), (1, 2)), MixedPart(box_channel("side", 1.0, 2), ())],
        ),
    }[name]()  # fmt: skip
    u = uniforms(7, n, 8)
    z, score = 2 * u[:, :2] - 1, np.where(u[:, 2] < tau, 1 - tau, -tau)
    asked = np.searchsorted(np.cumsum([b.probability for b in whole.blocks])[:-1], u[:, 3], side="right")
    gradient = np.zeros((n, p + 1))
    for t, block in enumerate(whole.blocks):
        rows = np.flatnonzero(asked == t)
        # a random slope of the two, or both in order
        turned = (u[rows, 4] < 0.5) & (block.slopes is None)
        chosen = np.where(turned[:, None], [2, 1], [1, 2])[:, : block.count]
        decoded = spoken(block, whole, score[rows], np.take_along_axis(z[rows], chosen - 1, axis=1), u[rows, 4:])
        if block.side:
            gradient[rows, 0] = decoded[:, 0] * block.gains[0, 0]
        for i, j in enumerate(chosen.T):
            gradient[rows, j] = decoded[:, int(block.side) + i] * block.gains[0, j]
    products = gradient[:, :, None] * gradient[:, None, :]
    error = products.std(axis=0) / math.sqrt(n)
    assert (np.abs(products.mean(axis=0) - omega(whole)) <= 6 * error + 1e-12).all()
    assert (np.abs(gradient.mean(axis=0)) <= 6 * gradient.std(axis=0) / math.sqrt(n)).all()


def spoken(block: Block, whole: RegressionChannel, score: Floats, z: Floats, u: Floats) -> Floats:
    """What people's letters decode to: each covariate rounded at random, then a letter from the row of its symbol."""
    channel = block.channel
    if isinstance(channel, BoxChannel):
        places = channel.positions
        channel = dense_channel(channel, whole.side_scores(0) if block.side else np.array([whole.radius]))
    else:
        assert isinstance(channel, Channel)
        places = len(channel.vertices) // 2
    symbol = (score > 0).astype(np.intp) * int(block.side)
    for i in range(block.count):
        value = z[:, i] if block.side else z[:, i] * score / whole.radius
        place = np.floor((value + 1) / 2 * (places - 1) + u[:, 1 + i]).astype(np.intp)
        symbol = symbol * places + np.minimum(place, places - 1)
    distribution = np.cumsum(channel.distribution, axis=1)
    letter = np.minimum((u[:, 3:4] > distribution[symbol]).sum(axis=1), distribution.shape[1] - 1)
    return np.asarray(channel.table[letter])


def mean_norm(variances: Floats) -> float:
    """E |N(0, diag(variances))|, from E sqrt(Q) = int (1 - E exp(-t Q)) t^-1.5 dt / (2 sqrt(pi)), t = s^2."""
    edge = 1 / math.sqrt(variances.sum())

    def inner(s: float) -> float:
        return 2 * float(1 - 1 / math.sqrt(float(np.prod(1 + 2 * variances * s * s)))) / (s * s)

    return float(quad(inner, 0, edge)[0] + quad(inner, edge, math.inf)[0]) / (2 * math.sqrt(math.pi))


# (tau, p, epsilon, q, s): the mean error printed in Tables 4 and 5 at n = 3e8
PRINTED = {
    (0.5, 2, 0.5, 2, 1): 1.63e-3, (0.75, 2, 0.5, 2, 1): 3.08e-3, (0.5, 2, 1, 2, 1): 8.30e-4,
    (0.75, 2, 1, 2, 2): 1.59e-3, (0.5, 2, 2, 2, 1): 5.25e-4, (0.75, 2, 2, 4, 1): 7.26e-4,
    (0.5, 2, 4, 4, 3): 2.57e-4, (0.75, 2, 4, 3, 3): 2.83e-4, (0.5, 2, 8, 8, 3): 1.50e-4,
    (0.75, 2, 8, 8, 3): 1.82e-4, (0.5, 2, 16, 8, 3): 1.41e-4, (0.75, 2, 16, 16, 3): 1.67e-4,
    (0.5, 1, 16, 8, 2): 1.03e-4, (0.5, 5, 16, 4, 6): 2.45e-4, (0.5, 8, 16, 4, 9): 3.15e-4,
    (0.75, 1, 16, 16, 2): 1.16e-4, (0.75, 5, 16, 8, 6): 2.60e-4, (0.75, 8, 16, 4, 9): 3.69e-4,
    (0.5, 1, math.inf, 0, 0): 1.01e-4, (0.5, 2, math.inf, 0, 0): 1.39e-4, (0.5, 5, math.inf, 0, 0): 2.25e-4,
    (0.5, 8, math.inf, 0, 0): 2.82e-4, (0.75, 1, math.inf, 0, 0): 1.16e-4, (0.75, 2, math.inf, 0, 0): 1.67e-4,
    (0.75, 5, math.inf, 0, 0): 2.53e-4, (0.75, 8, math.inf, 0, 0): 3.29e-4,
}  # fmt: skip


@pytest.mark.parametrize("cell", PRINTED, ids=str)
def test_the_papers_final_errors_within_five_percent(cell: tuple[float, int, float, int, int]) -> None:
    tau, p, epsilon, q, s = cell
    channel = open_channel(tau, p) if q == 0 else cq(tau, p, epsilon, q, s)
    density = tau * (1 - tau) / 0.5  # logistic errors of scale 1/2, at their tau-quantile
    variances = np.diagonal(covariance(channel, covariates(p))) / density**2
    assert mean_norm(variances) / math.sqrt(3e8) == pytest.approx(PRINTED[cell], rel=0.05)


def test_the_mean_norm_of_a_plane_is_known() -> None:
    assert mean_norm(np.ones(2)) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-9)
