"""Strata by site, group and weight: rows and their names, and weights that are right on average whatever the record."""

import numpy as np
import pytest

from sottovoce.client.reading.labels import Labels
from sottovoce.client.reading.strata import EXACT, STEP, Division, check_weights, divide, rounded
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice

SITES = Labels(np.array([0, 0, 1, 1, 1]), ["a", "b"])
ALL = np.arange(5)


def test_rows_are_divided_by_site_and_group() -> None:
    found = divide(SITES, Division(Labels(np.array([1, 0, 1, 1, 0]), ["x", "y"]), by="kind"), ALL)
    assert found.names == ["a, x", "a, y", "b, x", "b, y"]
    assert found.codes.tolist() == [1, 0, 3, 3, 2]
    assert found.strata.sites == ("a", "a", "b", "b")
    assert found.strata.groups == ("x", "y", "x", "y")
    assert found.strata.weights == ()
    assert found.strata.by == "kind"


def test_rows_are_divided_by_weight_within_their_site() -> None:
    found = divide(SITES, Division(weights=np.array([2.0, 1.0, 2.0, 2.0, 2.0])), ALL)
    assert found.names == ["a, weight 1", "a, weight 2", "b, weight 2"]
    assert found.strata.weights == (1.0, 2.0, 2.0)
    assert found.strata.groups == ()
    assert found.codes.tolist() == [1, 0, 2, 2, 2]


def test_names_that_would_be_one_are_told_apart() -> None:
    sites = Labels(np.array([0, 1]), ["a", "a, b"])
    found = divide(sites, Division(Labels(np.array([0, 1]), ["b, c", "c"])), np.arange(2))
    assert len(set(found.names)) == 2


def test_few_weights_are_taken_as_they_are() -> None:
    weights = np.repeat(np.linspace(1, 3, EXACT), 5)
    values, codes = rounded(weights)
    assert np.array_equal(values[codes], weights)


def test_many_weights_are_right_on_average_in_every_part_of_the_records() -> None:
    weights = np.exp(0.8 * dice(1).generator().normal(size=50_000))
    values, codes = rounded(weights)
    assert len(values) < 60
    assert values[0] == weights.min()
    assert values[-1] == weights.max()
    off = values[codes] - weights
    assert np.all(np.abs(off) <= (STEP - 1) * weights)  # up to the next of the grid, no further
    for some in (slice(0, 10_000), slice(20_000, 30_000), weights > 2, weights < 0.5, np.arange(50_000) % 3 == 0):
        assert abs(off[some].mean()) < 2e-3 * weights[some].mean()


def test_a_weighted_distribution_is_right_even_where_weights_follow_the_records() -> None:
    # records sorted, weights a function of them: the worst for rounding that would depend on the place
    records = np.sort(dice(2).generator().normal(size=40_000))
    weights = np.exp(0.5 * records + 0.1)
    values, codes = rounded(weights)
    given, made = weights / weights.sum(), values[codes] / values[codes].sum()
    assert np.max(np.abs(np.cumsum(made) - np.cumsum(given))) < 2e-4


@pytest.mark.parametrize("period", [24, 89, 144, 377, 2584])
@pytest.mark.parametrize("classes", [13, 10_000], ids=["ties", "all different"])
def test_rows_that_come_back_with_a_period_share_no_error(period: int, classes: int) -> None:
    place = np.arange(period * 300) % period
    weights = (1 + np.floor(classes * 9 * dice(4).generator().random(period)) / classes)[place]
    values, codes = rounded(weights)
    off = np.bincount(place, weights=values[codes] / weights - 1) / 300
    assert np.max(np.abs(off)) < 0.03  # of 300 coins a row each: five errors


def test_the_effective_number_of_records_hardly_falls() -> None:
    weights = np.exp(dice(3).generator().normal(size=20_000))
    values, codes = rounded(weights)
    made = values[codes]
    before, after = weights.sum() ** 2 / (weights**2).sum(), made.sum() ** 2 / (made**2).sum()
    assert 0.98 * before < after < 1.005 * before


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf])
def test_weights_that_do_not_count_are_refused_unquoted(wrong: float) -> None:
    with pytest.raises(BadInput, match="row 2") as caught:
        check_weights(np.array([1.0, wrong, 2.0]), "the weights")
    assert str(wrong) not in str(caught.value)


def test_weights_far_apart_are_refused() -> None:
    check_weights(np.array([1.0, 1e8, np.nan]), "the weights")
    with pytest.raises(BadInput, match="differ by more"):
        check_weights(np.array([1.0, 1e10]), "the weights")
