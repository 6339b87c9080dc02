"""Order statistics, several at once, and infinite where there are not so many scores."""

import numpy as np
import pytest

from sottovoce.client.conformal.site import order_values
from sottovoce.client.record import Records
from sottovoce.sim.randomness import dice


def test_they_are_those_of_the_sorted_scores() -> None:
    scores = dice(4).generator().normal(size=200).round(1)
    found = order_values(Records(scores), [180, 1, 200, 1, 37, 201, 999])
    ordered = np.sort(scores)
    np.testing.assert_array_equal(found, [*ordered[[179, 0, 199, 0, 36]], np.inf, np.inf])


def test_scores_stay_in_their_order() -> None:
    scores = np.array([3.0, 1.0, 2.0])
    order_values(Records(scores), [1, 2])
    assert scores.tolist() == [3.0, 1.0, 2.0]


def test_a_site_without_scores_sends_infinity() -> None:
    assert order_values(Records(np.empty(0)), [1, 5]) == (np.inf, np.inf)
    assert order_values(Records(np.ones(3)), []) == ()


def test_ranks_begin_at_one() -> None:
    with pytest.raises(ValueError, match="begin at 1, not at 0"):
        order_values(Records(np.ones(3)), [2, 0])
