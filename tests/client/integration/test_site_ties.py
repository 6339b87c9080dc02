"""The error of a site that is not private covers: continuous, tied and dithered records."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtri, stdtrit

from sottovoce.client.integration.site import PIECE, RankSummary, Z, dithered, rank_interval, rank_summary
from sottovoce.client.record import Records
from sottovoce.core.unit import Unit
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import FAMILIES

Floats = npt.NDArray[np.float64]
ALARM = 4.75  # standard deviations: one false alarm in a million, one-sided


SIX: dict[str, tuple[float, ...]] = {
    "normal": (),
    "cauchy": (),
    "lognormal": (1.0,),
    "gamma": (2.0,),
    "logistic": (),
    "exponential": (),
}


def covers(found: RankSummary, value: float) -> bool:
    return abs(found.estimate - value) <= float(stdtrit(found.df, 0.975)) * found.error + 1e-12


@pytest.mark.parametrize("family", SIX)
@pytest.mark.parametrize(("n", "tau"), [(40, 0.9), (100, 0.5), (400, 0.25)])
def test_both_intervals_cover_continuous_records(family: str, n: int, tau: float) -> None:
    _, _, quantile, draw = FAMILIES[family]
    truth, times = float(quantile(*SIX[family], tau)), 1000
    generator = dice(100 * n).generator()
    hits = np.zeros(2)
    for _ in range(times):
        records = Records(np.ascontiguousarray(draw(*SIX[family], generator, n)))
        low, high = rank_interval(records, tau, 0.95)
        hits += low <= truth <= high, covers(rank_summary(records, tau), truth)
    assert hits.min() >= 0.95 * times - ALARM * math.sqrt(times * 0.95 * 0.05)


TRUTH = float(ndtri(0.25))
DENSITY = math.exp(-(TRUTH**2) / 2) / math.sqrt(2 * math.pi)
STEP = 2 * Z * math.sqrt(0.25 * 0.75 / 400) / DENSITY  # as coarse as the interval of 400 normal records is long


def rounded(values: Floats, where: float) -> Floats:
    """Round to atoms: 0 is the quantile of rounded records, ``where`` steps above it that of the records before."""
    return np.round((values - TRUTH) / STEP + where) * STEP


@pytest.mark.parametrize("where", [-0.4, 0.1, 0.3, 0.45, 0.499])
def test_the_error_covers_ties(where: float) -> None:
    times, generator = 1000, dice(5).generator()
    hits = np.zeros(3)
    for _ in range(times):
        records = Records(rounded(generator.standard_normal(400), where))
        found = rank_summary(records, 0.25)
        low, high = rank_interval(records, 0.25, 0.95)
        plain = found._replace(error=(high - low) / (2 * Z))
        hits += covers(found, 0.0), covers(found, where * STEP), covers(plain, 0.0)
    enough = 0.95 * times - ALARM * math.sqrt(times * 0.95 * 0.05)
    assert hits[:2].min() >= enough
    if where > 0.4:  # the plain rule fails here, so the test has power
        assert hits[2] < enough


def test_a_dither_is_even_over_the_step_and_from_the_dice() -> None:
    values = np.arange(PIECE + 3.0)
    records = Records(values.copy(), Unit("duration", "s"))
    spread = dithered(records, 0.5, dice(7))
    words = dice(7)
    expected = [
        value + 0.5 * (int(word >> np.uint64(11)) / 2**53 - 0.5)
        for start in (0, PIECE)
        for value, word in zip(values[start : start + PIECE], words.words(min(PIECE, len(values) - start)), strict=True)
    ]
    assert spread.values().tolist() == expected
    assert np.array_equal(records.values(), values)
    assert spread.unit == records.unit
    ranked = np.sort((spread.values() - values) / 0.5 + 0.5)
    gap = float(np.max(np.abs(ranked - (np.arange(len(values)) + 0.5) / len(values))))
    assert gap < math.sqrt(math.log(2 / 1e-6) / 2 / len(values))  # Massart's bound, one false alarm in a million


def test_no_resolution_is_no_dither() -> None:
    records = Records(np.arange(5.0))
    assert dithered(records, 0.0, dice(1)) is records


def test_dithered_records_cover_where_the_density_jumps() -> None:
    times, n, tau, generator, random = 1000, 1000, 0.9, dice(8).generator(), dice(9)
    cdf, density, quantile, _ = FAMILIES["cauchy"]
    plain = float(quantile(tau))
    step = 3 * 2 * Z * math.sqrt(tau * (1 - tau) / n) / float(density(plain))  # as long as three intervals
    atom = plain + 0.4 * step
    before, after = float(cdf(atom - step / 2)), float(cdf(atom + step / 2))
    truth = atom + step * ((tau - before) / (after - before) - 0.5)
    hits = np.zeros(2)
    for _ in range(times):
        coarse = atom + step * np.round((generator.standard_cauchy(n) - atom) / step)
        spread = dithered(Records(coarse), step, random)
        found, (low, high) = rank_summary(spread, tau), rank_interval(spread, tau, 0.95)
        hits += covers(found, truth), covers(found._replace(error=(high - low) / (2 * Z)), truth)
    enough = 0.94 * times - ALARM * math.sqrt(times * 0.94 * 0.06)
    assert hits[0] >= enough
    assert hits[1] < enough  # half the interval over z does not cover here, so the test has power
