"""The gate of a regression: what a report is worth in exact scores, and who is turned away."""

import math
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.feasibility import LEAST, check, check_batches, information, needed
from sottovoce.server.regression.settings import RegressionSettings, read_settings


def settings(**options: Any) -> RegressionSettings:
    given = {"density": 1.0, "size": 1.0, **options}
    return read_settings(PrivateQuantileRegressor(**given).get_params(deep=False))


def test_without_slopes_the_worth_is_the_squared_rate_of_a_bit() -> None:
    # a bit of rate r decodes to variance (1 - r^2 (1 - 4 tau (1 - tau))) / (4 r^2); at the median 1 / (4 r^2)
    told = information(parse("cq", 0.5, 0, 1.0))
    assert told.shape == (1, 1)
    assert told[0, 0] == pytest.approx(rate_of(binary(1.0)) ** 2, rel=1e-6)


def test_worth_grows_with_the_budget_up_to_one() -> None:
    worths = [float(information(parse("cq", 0.75, 3, epsilon)).min()) for epsilon in (0.5, 1.0, 4.0, 8.0)]
    assert worths == sorted(worths)
    assert 0 < worths[0] < worths[-1] <= 1
    assert np.allclose(information(parse("auto", (0.25, 0.5), 3, math.inf)), 1.0)


def test_a_split_design_halves_what_each_level_hears() -> None:
    alone, split = parse("cq:2,1", 0.25, 2, 1.0), parse("cq:2,1", (0.25, 0.75), 2, 1.0)
    assert split.split
    assert np.allclose(information(split), np.repeat(information(alone) / 2, 2, axis=0))


def test_the_gate_opens_at_a_quarter_of_an_exact_score() -> None:
    design = parse("auto", 0.5, 4, 0.3)
    just = math.ceil(LEAST / float(information(design).min()))
    check(just, design, settings())
    with pytest.raises(sv.Infeasible, match=f"needs about {needed(design):,} people at epsilon 0.3, and there are"):
        check(just - 1, design, settings())
    assert just <= needed(design) <= 1.1 * just


def test_one_person_is_never_enough() -> None:
    with pytest.raises(sv.Infeasible, match="there is 1 sample"):
        check(1, parse("open", 0.5, 2, math.inf), settings())
    check(2, parse("open", 0.5, 2, math.inf), settings())


def test_a_search_for_guesses_needs_its_own_people() -> None:
    design = parse("auto", 0.5, 1, 1.0)
    check(500, design, settings())
    for unknown in ({"density": None}, {"size": None}, {"density": None, "size": None}):
        with pytest.raises(sv.Infeasible, match=r"location and scale, which takes about 3,\d00 at epsilon 1"):
            check(500, design, settings(**unknown))
        check(10_000, design, settings(**unknown))


def test_a_tree_has_people_left_after_the_search_and_the_draw_of_levels() -> None:
    alone, split = parse("cq:2,1", 0.5, 1, 4.0), parse("cq:2,1", (0.25, 0.75), 1, 4.0)
    higrad: dict[str, Any] = {"inference": "higrad", "tree": (2, 2)}  # seven segments
    check(7, alone, settings(**higrad))
    with pytest.raises(sv.BadInput, match="7 segments needs at least 7 people"):
        check(6, alone, settings(**higrad))
    # n / 2 - 6 sqrt(n) / 2 >= 7 from n = (3 + sqrt(9 + 14))^2 = 60.8 on
    check(61, split, settings(**higrad))
    with pytest.raises(sv.Infeasible, match="at each of 2 levels, a person for each, which takes about 61 people"):
        check(60, split, settings(**higrad))
    first = next(n for n in range(2, 10_000) if not _refused(n, alone, settings(size=None)))
    check(first + 7, alone, settings(size=None, **higrad))
    with pytest.raises(sv.Infeasible, match=f"after the search .* and there are {first + 6:,}: add people"):
        check(first + 6, alone, settings(size=None, **higrad))


def _refused(n: int, design: Any, given: RegressionSettings) -> bool:
    try:
        check(n, design, given)
    except sv.Infeasible:
        return True
    return False


def test_batches_are_for_methods_that_need_not_know_everybody() -> None:
    for inference in ("dithered", "groups", "self-normalised"):
        check_batches(settings(inference=inference))
    with pytest.raises(sv.BadInput, match="all people at once"):
        check_batches(settings(inference="higrad"))
