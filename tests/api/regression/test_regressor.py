"""The estimator as people use it: raw units, batches, several levels, data frames, and no record that stays."""

import importlib
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sottovoce as sv
from sottovoce.api.regression.regressor import PrivateQuantileRegressor

pickle: Any = importlib.import_module("pickle")
N = 3000
GUESSES: dict[str, Any] = {"bounds": [(0, 10), (-4, 0)], "start": 20.0, "density": 0.12, "size": 20.0}
KINDS: dict[str, dict[str, Any]] = {
    "dithered": {"epsilon": 4.0},
    "self-normalised": {"epsilon": 4.0, "inference": "self-normalised"},
    "groups": {"epsilon": 4.0, "inference": "groups", "groups": 4},
    "split": {"epsilon": 0.9, "tau": [0.25, 0.75], "channel": "cq:2,1"},
    "shared": {"epsilon": 6.0, "tau": [0.3, 0.5, 0.7]},
}


def people(n: int = N, seed: int = 1) -> tuple[Any, Any]:
    source = sv.sim.dice(seed).generator()
    features = np.column_stack([source.uniform(0, 10, n), source.uniform(-4, 0, n)])
    return features, 5.0 + 2.0 * features[:, 0] - 3.0 * features[:, 1] + source.logistic(0.0, 2.0, n)


def regressor(**options: Any) -> PrivateQuantileRegressor:
    return PrivateQuantileRegressor(**{**GUESSES, "randomness": sv.sim.dice(7), **options})


@pytest.fixture(scope="module")
def precise() -> PrivateQuantileRegressor:
    return regressor(tau=0.5, epsilon=8.0).fit(*people(16_000))


def test_coefficients_are_raw_and_intervals_hold_them(precise: PrivateQuantileRegressor) -> None:
    # the errors are about .1, .02 and .05; a false alarm of 1e-6 is five of them
    truth = np.array([5.0, 2.0, -3.0])
    found = np.array([precise.intercept_, *precise.coef_])
    assert np.all(np.abs(found - truth) < [1.0, 0.15, 0.4])
    wide = precise.confidence_interval(1 - 1e-6)
    assert wide.shape == (3, 2)
    assert np.all((wide[:, 0] < truth) & (truth < wide[:, 1]))
    assert np.all(np.ptp(wide, axis=1) < [4.0, 0.6, 1.6])


def test_contrasts_ellipsoid_and_tests_agree_with_the_intervals(precise: PrivateQuantileRegressor) -> None:
    axis = [0.0, 1.0, 0.0]
    low, high = precise.confidence_interval(0.9, contrast=axis)
    assert np.allclose(precise.confidence_interval(0.9)[1], [low, high])
    assert precise.test(axis, low).pvalue == pytest.approx(0.1, rel=1e-6)
    assert precise.test(axis, high).pvalue == pytest.approx(0.1, rel=1e-6)
    assert precise.test(axis, 0.0).pvalue < 1e-6
    region = precise.ellipsoid(0.9)
    assert region.centre.shape == (3,)
    assert region.contains([5.0, 2.0, -3.0])
    shadow = region.interval(axis)
    assert shadow[0] < low < high < shadow[1]


def test_the_fitted_value_is_the_linear_one(precise: PrivateQuantileRegressor) -> None:
    rows = np.array([[3.0, -1.0], [25.0, 4.0]])
    assert np.allclose(precise.predict(rows), precise.intercept_ + rows @ precise.coef_)
    assert precise.predict(rows).shape == (2,)
    assert 0.3 < precise.score(*people(500, seed=2)) < 1


def test_what_a_fit_says_of_itself(precise: PrivateQuantileRegressor) -> None:
    assert precise.n_reports_ == 16_000
    assert precise.n_features_in_ == 2
    assert not hasattr(precise, "feature_names_in_")
    assert precise.epsilon_ == pytest.approx(8.0, abs=1e-7)
    assert precise.taus_ == (0.5,)
    assert precise.clipped_ == 0
    assert "people" in precise.design_.explain()
    assert not precise.private_
    assert regressor(epsilon=8.0, randomness=None).fit(*people(200)).private_
    assert not regressor(epsilon=np.inf, randomness=None).fit(*people(200)).private_


@pytest.mark.parametrize("kind", KINDS)
def test_batches_give_the_numbers_of_one_fit(kind: str) -> None:
    features, response = people()
    whole = regressor(shuffle=False, **KINDS[kind]).fit(features, response)
    parts = regressor(shuffle=False, **KINDS[kind])
    for part in (slice(0, 1), slice(1, 700), slice(700, 701), slice(701, N)):
        parts.partial_fit(features[part], response[part])
    assert np.array_equal(whole.coef_, parts.coef_)
    assert np.array_equal(whole.intercept_, parts.intercept_)
    assert whole.n_reports_ == parts.n_reports_ == N
    moved = whole.intercept_ - regressor(shuffle=False, **KINDS[kind]).fit(features[:-1], response[:-1]).intercept_
    assert np.any(moved != 0), "the last person must be heard"


def test_a_fit_goes_on_and_a_fit_starts_anew() -> None:
    features, response = people()
    model = regressor(epsilon=4.0, shuffle=False).fit(features[:1000], response[:1000])
    first = model.coef_.copy()
    model.partial_fit(features[1000:], response[1000:])
    assert model.n_reports_ == N
    assert np.array_equal(model.coef_, regressor(epsilon=4.0, shuffle=False).fit(features, response).coef_)
    model.fit(features[:1000], response[:1000])
    assert model.n_reports_ == 1000
    assert np.array_equal(model.coef_, first)


def test_seeded_dice_are_copied_and_shuffled_orders_differ() -> None:
    features, response = people()
    dice = sv.sim.dice(3)
    model = regressor(epsilon=4.0, randomness=dice)
    first, second = model.fit(features, response).coef_, model.fit(features, response).coef_
    assert np.array_equal(first, second)
    assert dice.words(1) == sv.sim.dice(3).words(1)
    order = np.arange(N)[::-1]
    assert not np.array_equal(first, regressor(epsilon=4.0, randomness=sv.sim.dice(3), shuffle=False).fit(
        features, response).coef_)  # fmt: skip
    assert not np.array_equal(first, model.fit(features[order], response[order]).coef_)


def test_nobodys_order_matters_when_people_are_shuffled() -> None:
    # sorted by response, an unshuffled run ends far off; a shuffled one does not notice
    features, response = people(6000)
    order = np.argsort(response)
    found = regressor(epsilon=8.0).fit(features[order], response[order])
    astray = regressor(epsilon=8.0, shuffle=False).fit(features[order], response[order])
    right, wrong = (float(np.abs(model.coef_ - [2.0, -3.0]).max()) for model in (found, astray))
    assert right < 0.3 < wrong


@pytest.mark.parametrize("kind", ["split", "shared"])
def test_several_levels(kind: str) -> None:
    features, response = people(6000)
    model = regressor(**KINDS[kind]).fit(features, response)
    levels = len(model.taus_)
    assert model.design_.split == (kind == "split")
    assert model.coef_.shape == (levels, 2)
    assert model.intercept_.shape == (levels,)
    fitted = model.predict(features[:50])
    assert fitted.shape == (50, levels)
    assert np.all(np.diff(fitted, axis=1) >= 0)
    assert model.n_reports_ == 6000


def test_the_levels_ascend_and_one_in_a_list_keeps_its_axis() -> None:
    features, response = people()
    model = regressor(tau=[0.75, 0.25], epsilon=8.0, density=[0.1, 0.12]).fit(features, response)
    assert model.taus_ == (0.25, 0.75)
    assert regressor(tau=[0.5], epsilon=8.0).fit(features, response).coef_.shape == (1, 2)


def test_intervals_of_several_levels_stand_along_a_first_axis() -> None:
    features, response = people(16_000)
    model = regressor(tau=[0.4, 0.6], epsilon=8.0).fit(features, response)
    both = model.confidence_interval()
    assert both.shape == (2, 3, 2)
    assert np.array_equal(model.confidence_interval(tau=0.6), both[1])
    assert np.array_equal(model.confidence_interval(contrast=[0, 1, 0]), both[:, 1])
    assert model.ellipsoid(tau=0.4).centre.shape == (3,)
    for ask in (lambda: model.ellipsoid(), lambda: model.test([1, 0, 0]), lambda: model.confidence_interval(tau=0.5)):
        with pytest.raises(sv.BadInput, match=r"give tau as one of 0\.4, 0\.6"):
            ask()


def test_data_frames_keep_their_names() -> None:
    features, response = people(400)
    trips = {"distance": features[:, 0], "level": features[:, 1]}
    bounds = {"level": (-4, 0), "distance": (0, 10)}
    model = regressor(epsilon=8.0, bounds=bounds).fit(trips, response)
    assert list(model.feature_names_in_) == ["distance", "level"]
    assert np.array_equal(model.coef_, regressor(epsilon=8.0).fit(features, response).coef_)
    with pytest.raises(sv.BadInput, match="same order"):
        model.predict({"level": features[:, 1], "distance": features[:, 0]})
    model.set_params(bounds=GUESSES["bounds"]).fit(features, response)
    assert not hasattr(model, "feature_names_in_")


def test_rows_beyond_the_bounds_are_clipped_on_request_and_counted() -> None:
    features, response = people(400)
    features[:3, 0] = 11.0
    model = regressor(epsilon=8.0, clip=True).fit(features, response)
    assert model.clipped_ == 3
    assert "3 of 400 rows were moved" in model.result_.hints[0]
    back = pickle.loads(pickle.dumps(model))
    assert not hasattr(back, "clipped_")
    assert not back._stream.clipped
    assert not back.result_.hints
    assert model.partial_fit(features[:5], response[:5]).clipped_ == 6


def test_a_start_in_raw_units_is_where_nobody_has_spoken() -> None:
    # a tiny guessed size holds every coefficient at its start
    start = [5.0, 2.0, -3.0]
    model = regressor(epsilon=8.0, start=start, size=1e-6).fit(*people(300))
    assert np.allclose([model.intercept_, *model.coef_], start, atol=1e-3)
    several = regressor(epsilon=8.0, tau=[0.7, 0.3], start=[[6.0, 2.0, -3.0], [4.0, 2.0, -3.0]], size=1e-6)
    assert np.allclose(several.fit(*people(300)).intercept_, [4.0, 6.0], atol=1e-3)


def test_a_fitted_model_travels_and_holds_no_record() -> None:
    features, response = people(300)
    features[17, 0], response[17] = 7.123456789, 61.987654321
    model = regressor(epsilon=8.0, shuffle=False).fit(features, response)
    sent = pickle.dumps(model)
    for secret in (features[17, 0], response[17], features[17, 0] / 5.0 - 1.0):
        assert np.float64(secret).tobytes() not in sent
    back = pickle.loads(sent)
    assert np.array_equal(back.predict(features), model.predict(features))
    again, on = back.partial_fit(features, response), model.partial_fit(features, response)
    assert np.array_equal(again.coef_, on.coef_)
    fresh = clone(model)
    assert fresh.get_params()["size"] == 20.0
    with pytest.raises(NotFittedError):
        fresh.predict(features)
    assert "61.98" not in repr(model)


def test_progress_is_told_of_every_person() -> None:
    told: list[int] = []
    regressor(epsilon=8.0).fit(*people(500), progress=told.append)
    assert sum(told) == 500
