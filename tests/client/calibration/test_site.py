"""A calibration site sends one message in its life, within its budget, and never shows a score."""

import copy
import math
import pickle  # noqa: TID251

import numpy as np
import pytest

from sottovoce.client.calibration.site import CalibrationSite
from sottovoce.client.record import Records
from sottovoce.errors import BadInput
from sottovoce.protocol.calibration import CellQuery, CellReport, OrderQuery, OrderReport
from sottovoce.sim.randomness import dice

SECRET = 0.123456789
EDGES = tuple(np.linspace(0.1, 1.0, 10).tolist())


def scores() -> Records:
    return Records(np.array([SECRET, *np.linspace(0.2, 0.9, 99).tolist()]))


def query(epsilon: float = 1.0, order: int = 90) -> CellQuery:
    return CellQuery("sparse-vector", order, epsilon, EDGES)


def test_order_statistics_are_sent_as_they_are_and_infinite_beyond_the_last() -> None:
    site = CalibrationSite(scores(), math.inf)
    assert site.answer(OrderQuery((1, 100, 101))) == OrderReport((SECRET, 0.9, math.inf))


def test_a_private_site_never_sends_scores_and_is_not_spent_by_the_attempt() -> None:
    site = CalibrationSite(scores(), 1.0, dice(1))
    with pytest.raises(BadInput, match="budget of 1; ask it for a cell"):
        site.answer(OrderQuery((90,)))
    assert isinstance(site.answer(query()), CellReport)


def test_a_query_beyond_the_budget_is_refused_before_anything_is_spent() -> None:
    site = CalibrationSite(scores(), 0.5, dice(1))
    with pytest.raises(BadInput, match="more than this site's budget"):
        site.answer(query(1.0))
    assert isinstance(site.answer(query(0.5)), CellReport)


def test_a_retry_gets_the_same_message_and_another_query_is_refused() -> None:
    site = CalibrationSite(scores(), 0.5, dice(3))
    first = site.answer(query(0.5))
    assert all(site.answer(query(0.5)) == first for _ in range(50))
    with pytest.raises(BadInput, match="sent its one message"):
        site.answer(query(0.5, order=91))


def test_fresh_sites_draw_fresh_cells() -> None:
    cells = {CalibrationSite(scores(), 0.2).answer(query(0.2)).cell for _ in range(200)}  # type: ignore[union-attr]
    assert len(cells) > 1  # one cell two hundred times would have a chance below 1e-6 at this budget


def test_the_message_is_drawn_from_the_dice_alone() -> None:
    one, two = (CalibrationSite(scores(), 0.5, dice(7)).answer(query(0.5)) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("form", [repr, str])
def test_no_text_shows_a_score(form: type) -> None:
    assert "0.123" not in form(CalibrationSite(scores(), 1.0))
    assert "100 scores" in form(CalibrationSite(scores(), 1.0))


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_site_is_neither_pickled_nor_copied(copying: object) -> None:
    with pytest.raises(TypeError, match="do not leave"):
        copying(CalibrationSite(scores(), 1.0))  # type: ignore[operator]


def test_an_unknown_mechanism_is_refused_unspent() -> None:
    site = CalibrationSite(scores(), 1.0, dice(1))
    with pytest.raises(BadInput, match="there is no mechanism 'laplace'"):
        site.answer(CellQuery("laplace", 90, 1.0, EDGES))
    assert isinstance(site.answer(query()), CellReport)
