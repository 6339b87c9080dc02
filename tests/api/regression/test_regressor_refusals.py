"""Bad input: one clear sentence, a ValueError, and not a single die thrown."""

import math
from itertools import count
from typing import Any, NoReturn

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.protocol.regression.box import cq

GUESSES: dict[str, Any] = {"bounds": (0, 10), "density": 0.12, "size": 20.0}


class NoDice:
    """Dice that nobody may throw."""

    private = False

    def words(self, n: int) -> NoReturn:
        raise AssertionError("a die was thrown")

    def split(self, n: int) -> NoReturn:
        raise AssertionError("the dice were handed out")


GROUPS = count()


def people(n: int = 400) -> tuple[Any, Any]:
    """Return other people at every call, with nearly the same numbers."""
    features = np.column_stack([np.linspace(0, 10, n), np.linspace(0, 10, n) ** 2 / 10])
    return features, np.linspace(-5, 5, n) ** 3 + 1e-9 * next(GROUPS)


def with_value(value: Any, column: int = 0) -> tuple[Any, Any]:
    features, response = people()
    features[7, column] = value
    return features, response


def with_response(value: Any) -> tuple[Any, Any]:
    features, response = people()
    response[7] = value
    return features, response


CONSTANT = (np.column_stack([people()[0][:, 0], np.full(400, 3.0)]), people()[1])
COLLINEAR = (np.column_stack([people()[0][:, 0], 10 - people()[0][:, 0]]), people()[1])
OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "tau above one": ({"tau": 1.5}, "quantile levels lie between 0 and 1, each once, not 1.5"),
    "tau twice": ({"tau": [0.5, 0.5]}, "each once"),
    "no tau": ({"tau": []}, "quantile levels"),
    "tau in words": ({"tau": "median"}, "tau must be a number"),
    "tau nan": ({"tau": math.nan}, "tau must be a number, not nan"),
    "no budget": ({"epsilon": 0.0}, "epsilon must be above 0"),
    "epsilon in words": ({"epsilon": "one"}, "epsilon must be a number"),
    "epsilon too large": ({"epsilon": 1000.0}, "epsilon must lie above 0 and at most at 24"),
    "inference": ({"inference": "bootstrap"}, "inference 'bootstrap' is unknown"),
    "schedule": ({"schedule": "fast"}, "schedule 'fast' is unknown"),
    "schedule of another": ({"schedule": "paper"}, "'paper' does not go with inference 'dithered'"),
    "information elsewhere": ({"schedule": "information", "inference": "groups"}, "which steps by 'paper'"),
    "channel": ({"channel": "morse"}, "there is no channel 'morse'"),
    "channel of a kind": ({"channel": 7}, "channel must be a name such as 'auto', or a channel, not a int"),
    "open": ({"channel": "open"}, "not private, yet epsilon"),
    "channel for other covariates": ({"channel": cq(0.5, 3, 1.0, 2, 1)}, "for 3 covariates and X has 2"),
    "channel for another level": ({"channel": cq(0.4, 2, 1.0, 2, 1)}, "is for tau"),
    "channel beyond the budget": ({"channel": cq(0.5, 2, 2.0, 2, 1)}, "above the budget epsilon=1"),
    "density": ({"density": -1.0}, "density must be a number above 0"),
    "density of other levels": ({"density": [0.1, 0.2]}, "one for each level"),
    "size": ({"size": 0.0}, "size must be above 0"),
    "size beyond numbers": ({"size": 1e300}, "size must lie between 1e-15 and 1e+15, not 1e+300"),
    "density beyond numbers": ({"density": 1e-300}, "density must lie between 1e-15 and 1e+15, not 1e-300"),
    "start infinite": ({"start": math.inf}, "start must be a finite number"),
    "start": ({"start": [1.0, 2.0]}, "start has the shape (2,) and there are 3 coefficients"),
    "start in words": ({"start": "far"}, "start must be a number"),
    "limit": ({"limit": -1.0}, "limit must be above 0"),
    "second moments": ({"second_moments": 2.0}, "second moment"),
    "groups": ({"groups": 1}, "groups must be a whole number, at least 2"),
    "tree": ({"tree": 4}, "tree must be the branches"),
    "tree of one": ({"tree": (1, 1), "inference": "higrad"}, "at least two leaves"),
    "shuffle": ({"shuffle": "yes"}, "shuffle must be True or False"),
    "clip": ({"clip": 1}, "clip must be True or False"),
    "bounds": ({"bounds": (3, 1)}, "give low < high"),
    "randomness": ({"randomness": 7}, "randomness must be None or sim.dice(seed)"),
}
DATA: dict[str, tuple[tuple[Any, Any], str]] = {
    "outside": (with_value(10.5), "outside its bounds (0, 10) in row 8"),
    "missing": (with_value(math.nan, 1), "contains NaN in row 8"),
    "infinite": (with_value(math.inf), "contains infinity in row 8"),
    "no response": (with_response(math.nan), "contains NaN in row 8"),
    "constant": (CONSTANT, "is constant within its bounds"),
    "collinear": (COLLINEAR, "are collinear"),
    "lengths": ((people()[0], people()[1][:-1]), "inconsistent numbers of samples"),
    "flat": ((people()[0][:, 0], people()[1]), "Expected 2D array"),
    "one person": ((people()[0][:1], people()[1][:1]), "there is 1 sample"),
}


def refused(options: dict[str, Any], data: tuple[Any, Any], words: str) -> None:
    model = PrivateQuantileRegressor(**{**GUESSES, "randomness": NoDice(), **options})
    with pytest.raises(sv.BadInput) as caught:
        model.fit(*data)
    sentence = str(caught.value)
    assert words in sentence
    assert "\n" not in sentence
    assert isinstance(caught.value, ValueError)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("case", OPTIONS)
def test_a_wrong_option_is_refused_before_anything_is_spent(case: str) -> None:
    refused(OPTIONS[case][0], people(), OPTIONS[case][1])


@pytest.mark.parametrize("case", DATA)
def test_unusable_data_are_refused_before_anything_is_spent(case: str) -> None:
    refused({}, *DATA[case])


def test_the_dice_have_power() -> None:
    with pytest.raises(AssertionError, match="dice"):
        PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=NoDice()).fit(*people())


def test_too_few_people_are_told_how_many_it_takes() -> None:
    refused({"epsilon": 0.01}, people(), "needs about")


def test_a_refused_batch_leaves_the_fit_as_it_was() -> None:
    features, response = people()
    model = PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=sv.sim.dice(1)).partial_fit(features, response)
    before = model.coef_.copy()
    for bad in (with_value(11.0), with_response(math.nan), (features[:, :1], response)):
        with pytest.raises(sv.BadInput):
            model.partial_fit(*bad)
    assert model.n_reports_ == 400
    assert np.array_equal(model.coef_, before)


class Interrupter:
    """Progress that interrupts at its first call, once."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error: type[BaseException] | None = error

    def __call__(self, people: int) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("options", [{}, {"tau": [0.25, 0.75], "channel": "cq:2,1"}, {"size": None}])
def test_an_interrupted_batch_asks_nobody_twice(error: type[BaseException], options: dict[str, Any]) -> None:
    data = people(9000)
    fresh = {**GUESSES, "epsilon": 8.0, "randomness": sv.sim.dice(1), **options}
    for first in ("partial_fit", "fit"):
        model = PrivateQuantileRegressor(**fresh)
        with pytest.raises(error):
            getattr(model, first)(*data, progress=Interrupter(error))
        assert 0 < model._stream.people < 9000
        answered = model._stream.people
        for _ in range(2):
            with pytest.raises(sv.BadInput, match="interrupted and some of its people may have answered"):
                model.partial_fit(*data)
        assert model._stream.people == answered
        assert not hasattr(model, "coef_")
        assert model.fit(*data).n_reports_ == 9000


def test_an_interruption_after_a_good_batch_keeps_its_answers() -> None:
    model = PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=sv.sim.dice(1)).partial_fit(*people())
    before = model.predict(people()[0])
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*people(), progress=Interrupter(KeyboardInterrupt))
    with pytest.raises(sv.BadInput, match="begin anew with people who have not"):
        model.partial_fit(*people())
    assert np.array_equal(model.predict(people()[0]), before)


def test_an_estimate_that_is_interrupted_asks_nobody_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=sv.sim.dice(1))

    def interrupted(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sottovoce.api.regression.stream.RegressionRuns.result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*people())
    with pytest.raises(sv.BadInput, match="begin anew"):
        model.partial_fit(*people())


CHANGES: dict[str, Any] = {
    "tau": 0.4, "epsilon": 7.0, "channel": "cq:2,1", "bounds": (0, 11), "inference": "groups", "clip": True,
    "density": 0.13, "size": None, "start": 3.0, "second_moments": 0.3, "limit": 9.0, "groups": 4, "tree": (2, 2),
    "shuffle": False, "moments": {"x0": 5.0}, "randomness": sv.sim.dice(1),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_parameter_changed_between_batches_is_refused(name: str) -> None:
    model = PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=sv.sim.dice(1)).partial_fit(*people())
    old = model.get_params()[name]
    model.set_params(**{name: CHANGES[name]})
    with pytest.raises(sv.BadInput, match=f"^{name} was changed since the first partial_fit; call fit to begin anew"):
        model.partial_fit(*people())
    assert model.n_reports_ == 400
    assert model.set_params(**{name: old}).partial_fit(*people()).n_reports_ == 800
    assert model.set_params(**{name: CHANGES[name]}).fit(*people(9000)).n_reports_ == 9000


def test_the_same_parameters_in_other_words_are_no_change() -> None:
    model = PrivateQuantileRegressor(**GUESSES, epsilon=8.0, randomness=sv.sim.dice(1)).partial_fit(*people())
    model.set_params(bounds=[(0, 10), (0.0, 10.0)], tree=[4, 4], epsilon=np.float64(8), schedule="information")
    assert model.partial_fit(*people()).n_reports_ == 800


def test_a_tree_needs_everybody_at_once() -> None:
    model = PrivateQuantileRegressor(**GUESSES, epsilon=8.0, inference="higrad", randomness=sv.sim.dice(1))
    with pytest.raises(sv.BadInput, match="all people at once"):
        model.partial_fit(*people())
    with pytest.raises(sv.BadInput, match="all people at once"):
        model.fit(*people()).partial_fit(*people())
    assert model.n_reports_ == 400
    with pytest.raises(sv.BadInput, match="21 segments needs at least 21 people"):
        model.fit(*people(15))


def test_an_interval_that_cannot_be_given_says_how_many_people_it_takes() -> None:
    model = PrivateQuantileRegressor(**GUESSES, epsilon=0.4, randomness=sv.sim.dice(1)).fit(*people())
    with pytest.raises(sv.Infeasible, match=r"needs about [\d,]+"):
        model.ellipsoid()
    with pytest.warns(UserWarning, match=r"^no interval for 'intercept', 'x0', 'x1': .*needs about [\d,]+"):
        assert np.isinf(model.confidence_interval()).all()
    assert model.test([0, 1, 0]).pvalue == 1.0
    with pytest.raises(sv.BadInput, match="strictly between 0 and 1"):
        model.confidence_interval(95)
    with pytest.raises(sv.BadInput, match="contrast must hold 3"):
        model.confidence_interval(contrast=[1, 2])


def test_more_covariates_than_the_default_takes_are_refused_before_anybody_is_asked() -> None:
    wide = np.linspace(-1, 1, 301)[None, :] * np.ones((9, 1))
    with pytest.raises(sv.BadInput, match="a regression has at most 300 covariates, and 301 are given"):
        PrivateQuantileRegressor(epsilon=2.0, bounds=(-1, 1)).fit(wide, np.arange(9.0))
