"""Errors of online quantile regression by their closed forms, and the tables of ratios, slopes and horizons."""

import math

import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness.cell import Row, Value
from sottovoce_papers.harness.measure import Measure, exact, mean
from sottovoce_papers.recipes.regression import chance, channels, closed_form, merged, ratios, trajectory
from sottovoce_papers.simulation.regression import face_exponential, perturbed
from sottovoce_papers.simulation.regression.asymptotic import length
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.geometry import diameter

FINAL = 300_000_000


def closed(tau: float, p: int, epsilon: float | str) -> list[Row]:
    setting = {"tau": tau, "p": p, "epsilon": epsilon, "n": FINAL}
    return [Row({**setting, **row.where}, row.measures) for row in closed_form.run(setting, 0, 1, None)]


def test_mean_lengths_are_those_of_chi_and_of_a_shifted_normal() -> None:
    for d in (1, 3, 9):
        chi = math.sqrt(2) * math.gamma((d + 1) / 2) / math.gamma(d / 2)
        found = length(np.full(d, 4.0))
        assert found.mean == pytest.approx(2 * chi, rel=1e-9)
        assert found.spread == pytest.approx(2 * math.sqrt(d - chi**2), rel=1e-6)
    assert length(np.array([1e-8, 0.0]), np.array([0.0, 3.0])).mean == pytest.approx(3 + 1e-8 / 6, rel=1e-9)
    folded = math.sqrt(2 / math.pi) * math.exp(-0.5) + math.erf(math.sqrt(0.5))
    assert length(np.array([1.0]), np.array([1.0])).mean == pytest.approx(folded, rel=1e-9)


def test_mean_lengths_by_drawing() -> None:
    """Five standard errors: a false alarm in a million."""
    variances, shift = np.array([0.3, 2.0, 5.0]), np.array([1.0, -0.2, 0.5])
    drawn = shift + np.sqrt(variances) * dice(3).generator().standard_normal((40_000, 3))
    found = mean(np.linalg.norm(drawn, axis=1))
    assert abs(length(variances, shift).mean - found.value) < 5 * found.error


@pytest.mark.parametrize("centre", [-0.9, -0.25, 0.0, 0.6, 1.4])
def test_truncated_moments_are_integrals(centre: float) -> None:
    v = (np.arange(200_000) + 0.5) / 100_000 * 0.75 - 0.75
    heights = np.exp(-1.7 * np.abs(v - centre))
    mass, first, second = perturbed.truncated(np.array([centre]), 0.75, 1.7)
    assert mass[0] == pytest.approx(heights.mean() * 1.5, rel=1e-8)
    assert first[0] == pytest.approx((heights * v).mean() / heights.mean(), rel=1e-7, abs=1e-9)
    assert second[0] == pytest.approx((heights * v**2).mean() / heights.mean(), rel=1e-7)


@pytest.mark.parametrize("cell", [(0.5, 2, 2.0), (0.75, 2, 8.0), (0.75, 5, 16.0)], ids=str)
def test_the_root_is_that_of_the_release_itself(cell: tuple[float, int, float]) -> None:
    """Means and squares of reports drawn by the release, six standard errors at 3 x 4 numbers: once in 1e6 runs."""
    tau, p, epsilon = cell
    found = perturbed.root(*cell)
    assert found.shift == pytest.approx(face_exponential.intercept_shift(*cell), abs=2e-5)
    assert not found.stopped
    share = 1 / (1 + math.exp(-math.log(tau / (1 - tau)) - 2 * found.shift))
    draw = dice(4).generator()
    x = np.column_stack([np.ones(3000), draw.uniform(-1, 1, (3000, p))])
    below = draw.random(3000) < share
    scores = x * np.where(below, 1 - tau, -tau)[:, None]
    rate = epsilon / (2 * diameter(tau, p))
    pairs = zip(scores, draw.random((3000, p + 1)), strict=True)
    reports = np.array([face_exponential.encode(score, tau, rate, True, u) for score, u in pairs])
    # E Z x' (1{below} - share) is the slope of the field over the density; E Z = 0 at the root.
    towards = reports * x * ((below - share) / (share * (1 - share)))[:, None]
    density = 2 * share * (1 - share)
    noise = np.mean(reports**2, axis=0)
    expected = np.sqrt(noise / found.variances) / density
    error = towards.std(axis=0) / math.sqrt(3000)
    assert np.all(np.abs(towards.mean(axis=0) - expected) < 6 * error + 0.03 * expected)
    assert np.all(np.abs(reports.mean(axis=0)) < 6 * reports.std(axis=0) / math.sqrt(3000))


def test_at_the_boundary_slopes_keep_their_walk() -> None:
    steps = np.arange(1, 2_000_001) ** 0.65 + 300
    beyond = 2_000_000 ** (-0.3) / 0.3  # of sum i^-1.3, a little more than the rest is
    assert float((steps**-2).sum()) < perturbed.wander() < float((steps**-2).sum()) + beyond
    found = perturbed.root(0.75, 2, 2.0)
    assert found.stopped
    assert found.shift == pytest.approx(10 - 1 / math.sqrt(14))
    assert perturbed.error(0.75, 2, 2.0, FINAL, 0.0).mean == pytest.approx(math.hypot(found.shift, math.sqrt(13 / 14)))


def test_closed_forms_give_the_printed_errors() -> None:
    """Four printed numbers within 3 of their own standard errors or 5 %: no randomness of ours."""
    rows = {(row.where["method"], row.where["tau"]): row for tau in (0.5, 0.75) for row in closed(tau, 2, 8.0)}
    for place, printed, replications in (
        (("CQ", 0.5), 1.50e-4, 500),
        (("Direct Laplace", 0.75), 3.41e-4, 200),
        (("Face-exponential", 0.5), 4.91e-4, 200),
        (("Face-exponential", 0.75), 2.05e-1, 200),
    ):
        value, spread = (rows[place].measures[name].value for name in ("error", "spread"))
        assert abs(value - printed) < max(3 * value * spread / math.sqrt(replications), 0.05 * printed)
    assert rows["default", 0.5].measures["error"].value < rows["CQ", 0.5].measures["error"].value


def test_the_best_grid_is_no_worse_than_the_printed_one() -> None:
    theirs, ours = channels.run({"tau": 0.75, "p": 1, "epsilon": 0.5}, 0, 1, None)
    assert (theirs.measures["q"].value, theirs.measures["s"].value) == (2, 2)
    assert theirs.measures["trace"].value == pytest.approx(1.81, abs=0.01)
    assert ours.measures["gain"].value == pytest.approx(
        ours.measures["trace"].value / theirs.measures["trace"].value, rel=1e-12
    )
    assert ours.measures["trace"].value < 0.7


def synthetic(epsilons: tuple[float, ...]) -> list[Row]:
    sizes = {"CQ": 1.0, "Direct Laplace": 2.0, "Face-exponential": 3.0, "default": 0.5}
    return [
        Row(
            {"tau": 0.5, "p": 1, "epsilon": e, "method": method, "reading": "closed form"},
            {"error": exact(size * e if method != "CQ" else size), "spread": exact(0.5)},
        )
        for e in epsilons
        for method, size in sizes.items()
    ]


def test_ratios_are_summed_up() -> None:
    rows = synthetic((0.5, 1.0, 4.0))
    first = ratios.by_design(rows)[0]
    assert first.where == {"tau": 0.5, "p": 1, "method": "Direct Laplace", "reading": "closed form"}
    assert [first.measures[name].value for name in ("median", "min", "max")] == [2.0, 1.0, 8.0]
    assert [row.measures["median"].value for row in ratios.by_budget(rows)[:2]] == [1.0, 1.5]
    whole = ratios.overall(rows)[1]
    assert whole.where["largest at"] == "(0.5, 1, 4.0)"
    assert whole.measures["largest"].value == 12.0
    assert whole.measures["mcse"].value == pytest.approx(3.0 * 0.5 * math.sqrt(1 / 200 + 1 / 500))


def test_the_prints_own_errors_are_those_of_its_replications() -> None:
    rows = synthetic((1.0,))
    place = frozenset({("tau", "0.5"), ("p", "1"), ("method", "Direct Laplace"), ("reading", "closed form")})
    found = chance.spreads(rows, ratios.by_design, draws=2000)[place, "median"]
    assert found == pytest.approx(2.0 * 0.5 * math.sqrt(1 / 200 + 1 / 500), rel=0.1)  # 1.6 % each: 6 of them
    one = chance.slope_spread(np.ones(2), 500, draws=4000)
    assert chance.slope_spread(np.ones(2), 2000, draws=4000) == pytest.approx(one / 2)


def run_rows(errors: Floats, horizons: list[int]) -> list[Row]:
    where: dict[str, Value] = {"tau": 0.5, "p": 2, "epsilon": 2.0, "method": "CQ", "reading": "normalised step"}
    return [
        Row({**where, "n": n}, {"error": mean(errors[:, at])}, {"errors": errors[:, at].tolist()})
        for at, n in enumerate(horizons)
    ]


def test_simulated_and_computed_errors_are_merged() -> None:
    simulated = [1_000_000, 3_000_000, 10_000_000]
    draw = dice(5).generator()
    errors = (1 + 0.1 * draw.standard_normal((50, 3))) * np.sqrt(FINAL / np.array(simulated)) * 5e-4
    rows = [*closed(0.5, 2, 2.0), *run_rows(errors, simulated)]
    whole = [
        row for row in merged.horizons(rows) if row.where["reading"] == "simulated" and row.where["method"] == "CQ"
    ]
    hows = {int(row.where["n"]): row.where["how"] for row in whole}
    assert hows[10_000_000] == "simulated"
    assert hows[30_000_000] == hows[FINAL] == "closed form"
    line = next(
        row for row in merged.decay(rows) if row.where["method"] == "CQ" and row.where["reading"] == "simulated"
    )
    assert line.measures["n_eff"].value == pytest.approx(5.80e7, abs=5e4)
    assert line.measures["1e6"].value == pytest.approx(errors[:, 0].mean())
    assert line.measures["3e8"].n == 0
    points = [*errors.mean(axis=0), *(line.measures["3e8"].value * np.sqrt(FINAL / np.array([3e7, 1e8, 3e8])))]
    expected = np.polyfit(np.log([*simulated, 3e7, 1e8, 3e8]), np.log(points), 1)[0]
    assert line.measures["slope"].value == pytest.approx(expected)
    assert line.measures["slope"].error == pytest.approx(0.0027, rel=0.4)  # .1 / sqrt(50) x the weights' length


def test_a_bias_is_not_scaled_away() -> None:
    where: dict[str, Value] = {"p": 2, "epsilon": 8.0, "n": 1_000_000, "reading": "simulated"}
    rows = [
        Row({**where, "tau": tau, "method": method}, {"error": Measure(0.3, 0.1, 5)})
        for tau, method in ((0.75, "Face-exponential"), (0.5, "Face-exponential"), (0.75, "Direct Laplace"))
    ]
    small = 0.3 * math.sqrt(1 / 300)
    assert [row.measures["error"].value for row in merged.final(rows)] == pytest.approx([0.3, small, small])


def test_a_trajectory_is_that_of_its_seed() -> None:
    setting: dict[str, Value] = {"tau": 0.75, "p": 1, "epsilon": 1.0, "until": 3000, "step": "printed"}
    one, two, other = (trajectory.run(setting, 2, seed, None) for seed in (1, 1, 2))
    assert one == two != other
    assert [row.where["n"] for row in one] == [1000, 3000]
    assert Cell(0.75, 1, 1.0, 2, 2).scale < Cell(0.75, 1, 1.0, 2, 2, normalised=False).scale
