"""The study of the paper's recursion: its step is the paper's, and what cannot be run is refused."""

import math
from typing import Any

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.protocol.regression.box import box, cq
from sottovoce.server.regression.study import LiuHuStudy, paper_scale
from sottovoce_papers.simulation.regression.cell import BUDGETS, TABLE_2, Cell, printed


@pytest.mark.parametrize("normalised", [True, False])
def test_the_scale_is_the_papers_in_every_cell(normalised: bool) -> None:
    for tau, p in TABLE_2:
        for epsilon in BUDGETS:
            cell = printed(tau, p, epsilon, normalised)
            ours = paper_scale(cq(tau, p, epsilon, cell.q, cell.s), normalised=normalised)
            assert ours == pytest.approx(cell.scale, rel=1e-7)


@pytest.mark.parametrize(("tau", "p"), [(0.5, 0), (0.5, 2), (0.75, 8)])
def test_exact_scores_take_the_papers_step_without_privacy(tau: float, p: int) -> None:
    assert paper_scale(open_channel(tau, p)) == pytest.approx(Cell(tau, p, math.inf).scale)


def test_the_size_has_the_unit_of_the_response() -> None:
    channel = cq(0.75, 2, 1.0, q=2, s=1)
    assert paper_scale(channel, 60.0) == pytest.approx(60 * paper_scale(channel))
    with pytest.raises(BadInput, match="size is 0"):
        paper_scale(channel, 0)


def test_the_rule_for_other_channels_agrees_with_the_papers_where_both_apply() -> None:
    """Unequal gains take the general rule; almost equal ones must then give almost the paper's constant."""
    channel = cq(0.75, 2, 0.5, q=2, s=1)
    face, slopes = channel.blocks
    lean = 1e-9
    gains = slopes.gains * [[1.0, 1.0 + lean, 1.0 - lean]]
    object.__setattr__(slopes, "gains", gains)
    assert float(np.ptp(gains[gains > 0])) > 1e-12
    assert paper_scale(channel) == pytest.approx(Cell(0.75, 2, 0.5, 2, 1).scale, rel=1e-6)
    assert face.channel.epsilon <= 0.5


def test_more_budget_takes_larger_steps() -> None:
    scales = [paper_scale(box((0.75,), 3, epsilon, slopes=3, cells=8, width=3)) for epsilon in (1.0, 2.0, 4.0)]
    assert scales == sorted(scales)
    assert scales[-1] <= Cell(0.75, 3, math.inf).scale


def study(**changes: Any) -> LiuHuStudy:
    given: dict[str, Any] = {
        "channel": open_channel(0.5, 1),
        "omega": np.eye(2)[None],
        "start": np.zeros((1, 2)),
        "scale": 1.0,
    }
    return LiuHuStudy(**(given | changes))


def test_steps_are_those_of_the_paper() -> None:
    steps = study(scale=2.0).steps(np.array([1, 1000]))
    assert steps.tolist() == [2.0 / 301.0, 2.0 / (1000.0**0.65 + 300.0)]
    assert study().chains == 6
    assert study(groups=9).chains == 9


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start": np.zeros(2)}, "start needs shape"),
        ({"omega": np.eye(2)}, "start needs shape"),
        ({"start": np.full((1, 2), np.nan)}, "must be finite"),
        ({"scale": 0.0}, "scale, limit and noise"),
        ({"limit": -1.0}, "scale, limit and noise"),
        ({"power": 0.5}, "power is 0.5"),
        ({"inference": "dithered"}, "'dithered' is not known here"),
        ({"inference": "groups", "groups": 1}, "1 groups have no spread"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        study(**changes)
