"""Quantiles of values beyond limits: the answer is a number within them or the symbol, and no number is invented."""

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.filterwarnings("ignore:.*barely supported:UserWarning")  # at outer levels

N = 6_000
LEAD = np.round(dice(11).generator().lognormal(2.1, 1.0, N), 2)  # 31 % below 5, a median of 8.2, 90 % at 29
BELOW = [f"<{5}" if value < 5 else value for value in LEAD.tolist()]
ABOVE = [f">{20}" if value > 20 else value for value in LEAD.tolist()]


def asked(cells: list[Any], tau: float, censored: Any, seed: int = 3, **known: Any) -> QuantileResult:
    sites = {"north": cells[::2], "south": cells[1::2]}
    return sv.federated_quantile(sites, tau, 3.0, censored=censored, randomness=dice(seed), **known)


def strict(payload: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(payload, allow_nan=False))
    return found


@pytest.fixture(scope="module")
def low() -> QuantileResult:
    return asked(BELOW, 0.15, "<5")


@pytest.mark.parametrize(("cells", "limits"), [(BELOW, "<5"), (ABOVE, ">20")])
def test_a_quantile_within_the_limits_is_a_number(cells: list[Any], limits: str) -> None:
    found = asked(cells, 0.5, limits)
    assert found.method == "certified"
    assert found.interval.low < np.quantile(LEAD, 0.5) < found.interval.high
    assert found.value == found.estimate
    assert all(map(math.isfinite, found.interval))
    assert "Limits:" in str(found)
    assert "Limit:" not in str(found)


def test_a_quantile_below_the_limit_is_the_symbol(low: QuantileResult) -> None:
    assert low.value == "<5"
    assert low.estimate == -math.inf
    assert low.interval.low == -math.inf
    assert math.nextafter(low.interval.high, 6) == 5.0  # a value below 5, whichever
    assert "0.95 interval: [<5, <5]" in str(low)
    assert "the quantile is <5: it lies below the limit of measurement" in " ".join(str(low).split())
    assert "<0.15 quantile: <5 [<5, <5] (95%)" in repr(low)


def test_a_quantile_above_the_limit_is_the_symbol() -> None:
    found = asked(ABOVE, 0.95, ">=20")
    assert (found.value, found.estimate) == (">=20", math.inf)
    assert found.interval == (20.0, math.inf)
    assert "[>=20, >=20]" in str(found)
    assert strict(found.to_dict())["interval"] == {"low": 20.0, "high": None, "level": 0.95}


def test_an_end_of_an_interval_may_be_the_symbol_alone() -> None:
    found = asked(BELOW, 0.33, "<5")
    assert found.interval.low == -math.inf
    assert 5.0 <= found.interval.high < 7.0
    assert "the quantile may be <5, below the limit of measurement" in " ".join(str(found).split())
    assert strict(found.to_dict())["text"]["low"] == "<5"


def test_a_dictionary_holds_no_number_that_nobody_measured(low: QuantileResult) -> None:
    told = strict(low.to_dict())
    assert told["estimate"] is None
    assert told["interval"] == {"low": None, "high": 5.0, "level": 0.95}
    assert told["text"] == {"estimate": "<5", "low": "<5", "high": "<5"}
    assert told["censored"] == "<5"
    assert strict(asked(LEAD.tolist(), 0.5, None).to_dict())["censored"] is None


def test_no_point_of_a_trajectory_lies_beyond_a_limit(low: QuantileResult) -> None:
    for found in (low, asked(ABOVE, 0.9, ">20"), asked(BELOW, 0.3, "<5")):
        limits = found.plan.roster.unit.censored
        assert limits is not None
        for column in ("average", "low", "high"):
            values = found.trajectory[column]
            there = values[np.isfinite(values)]
            assert ((there >= limits.low * 0.999999) & (there <= limits.high * 1.000001)).all()


def test_results_are_kept_with_their_limits(low: QuantileResult, tmp_path: Path) -> None:
    low.save(tmp_path / "low.json")
    again = sv.load(tmp_path / "low.json")
    assert str(again) == str(low)
    assert again.value == "<5"
    assert again.interval == low.interval
    assert again.to_dict() == low.to_dict()


@pytest.mark.parametrize(("cells", "tau", "limits"), [(BELOW, 0.15, "<5"), (BELOW, 0.32, "<5"), (ABOVE, 0.95, ">20")])
def test_pictures_and_pages_are_drawn(cells: list[Any], tau: float, limits: str, tmp_path: Path) -> None:
    found = asked(cells, tau, limits)
    found.plot(tmp_path / "run.svg")
    axes = found.draw().axes[0]
    assert all(map(math.isfinite, axes.get_ylim()))
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert limits.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "Limits of measurement" in page
    assert not re.search(r"\binf(inity)?\b", re.sub(r"base64,[^\"]*", "", page), re.IGNORECASE)


@pytest.mark.parametrize("value", [3, -1e9, 4.999])
def test_a_value_beyond_the_limit_is_not_tested(low: QuantileResult, value: float) -> None:
    with pytest.raises(BadInput, match="test a value within the limits"):
        low.test(value)
    assert low.test(6.0).pvalue < 0.05
    assert low.test(6.0, "greater").pvalue > 0.5


def test_several_limits_in_one_column_and_other_limits_at_other_sites() -> None:
    north = ["<5" if value < 5 else value for value in LEAD[::2].tolist()]
    south = [f"<{10}" if value < 10 else value for value in LEAD[1::2].tolist()]
    sites = {"north": north, "south": south}
    found = sv.federated_quantile(sites, 0.5, 3.0, censored=["<5", "<10"], randomness=dice(5))
    assert found.value == "<10"  # a 7 in the north is not known to be above a <10 in the south
    high = sv.federated_quantile(sites, 0.75, 3.0, censored="<5,<10", randomness=dice(5))
    assert high.interval.low < np.quantile(LEAD, 0.75) < high.interval.high
    with pytest.raises(BadInput, match="a value below a limit that censored= does not name in row"):
        sv.federated_quantile(sites, 0.5, 3.0, censored="<5")


def test_limits_inside_the_values_make_symbols_of_what_was_measured() -> None:
    found = asked(LEAD.tolist(), 0.5, "<10")
    assert found.value == "<10"
    assert asked(LEAD.tolist(), 0.5, ">6").value == ">6"


def test_both_limits_and_nothing_between_them() -> None:
    cells = ["<5", ">200", ">200", ">200"] * 1_000
    assert asked(cells, 0.6, "<5,>200").value == ">200"
    assert asked(cells, 0.1, "<5,>200").value == "<5"
    with pytest.raises(BadInput, match="all 4,000 records are <5: within the limits there is no quantile"):
        asked(["<5"] * 4_000, 0.5, "<5")


def test_whole_numbers_stay_whole() -> None:
    counts = dice(2).generator().negative_binomial(2, 0.2, N)
    cells = ["<5" if value < 5 else int(value) for value in counts]
    found = asked(cells, 0.7, "<5")
    assert found.plan.resolution == 1.0
    assert found.value == int(found.value)
    assert found.interval.low <= np.quantile(counts, 0.7) <= found.interval.high
    assert asked(cells, 0.2, "<5").value == "<5"
    with pytest.raises(BadInput, match="too coarse for the limits <5"):
        asked(cells, 0.7, "<5", resolution=10)


@pytest.mark.parametrize("known", [{"bounds": (6, 40)}, {"bounds": (0, 500)}, {"scale": 10.0}, {"kind": "amounts"}])
def test_what_is_known_besides_goes_with_limits(known: dict[str, Any]) -> None:
    found = asked(BELOW, 0.5, "<5", **known)
    assert found.interval.low < np.quantile(LEAD, 0.5) < found.interval.high


def test_several_levels_at_once() -> None:
    found = sv.federated_quantiles({"north": BELOW}, [0.1, 0.5], 3.0, censored="<5", randomness=dice(1))
    assert found.estimates[0] == -math.inf
    assert 5 < found.estimates[1] < 12
    told = strict(found.to_dict())
    assert [each["estimate"] is None for each in told["joint"]] == [True, False]
    assert "<5" in str(found)


def test_the_limits_are_public_terms(low: QuantileResult) -> None:
    assert low.plan.card().terms["censored"] == "<5"
    assert "censored" not in asked(LEAD.tolist(), 0.5, None).plan.card().terms


def test_a_plan_says_the_limits_before_anybody_is_asked() -> None:
    found = sv.explain(sv.federated_quantile, {"north": BELOW}, 0.5, 3.0, censored="<5")
    assert "values below 5 are known as <5 only, so intervals are certified" in " ".join(str(found).split())


def sequence(cells: list[Any], tau: float = 0.5, censored: Any = "<5", **more: Any) -> QuantileResult:
    sites = {"north": cells}
    return sv.federated_quantile(sites, tau, 3.0, method="sequence", censored=censored, randomness=dice(8), **more)


def test_a_sequence_stops_where_no_more_can_be_known() -> None:
    found = sequence(BELOW, 0.1, until=0.001)
    assert found.value == "<5"
    assert found.reports < N / 2
    with pytest.raises(BadInput, match="nothing needs to be asked"):
        sequence(BELOW[:4_000], 0.1, until=0.001, after=found)


@pytest.mark.parametrize("other", ["<6", "<=5", "<5,>200", None])
def test_a_sequence_goes_on_with_the_same_limits_alone(other: str | None) -> None:
    first = sequence(BELOW[::2])
    rest = LEAD[1::2].tolist() if other is None else BELOW[1::2]
    again = sequence(BELOW[1::2], after=first)
    assert again.interval.high - again.interval.low < first.interval.high - first.interval.low
    with pytest.raises(BadInput, match="keep to one"):
        sequence(rest, censored=other or None, after=first)
    with pytest.raises(BadInput, match="keep to one"):
        sequence(BELOW[1::2], after=sequence(LEAD[::2].tolist(), censored=None))


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(BadInput) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_questions_that_need_a_number_for_every_record_are_refused_before_anybody_is_asked() -> None:
    frame = pd.DataFrame({"lead": BELOW, "where": ["a", "b"] * (N // 2)})
    told: list[int] = []

    def read() -> Any:
        return sv.read_frame(frame, value="lead", site="where", censored="<5")

    calls: dict[str, Callable[[], Any]] = {
        "method 'regression'": lambda: sv.federated_quantile(
            read(), 0.5, 3.0, method="regression", progress=told.append
        ),
        "method 'self-normalised'": lambda: sv.federated_quantile(read(), 0.5, 3.0, method="self-normalised"),
        "a difference": lambda: sv.quantile_difference(read(), {"c": LEAD}, 0.5, 3.0),
        "a shortfall": lambda: sv.expected_shortfall(read(), 0.8, 3.0, bounds=(0, 200)),
        "a score": lambda: sv.conformal_threshold(read(), 0.1),
    }
    calls |= {
        "a score ": lambda: sv.conformal_thresholds(read(), 0.1, epsilon=1.0, maximum=99.0),
        "a score  ": lambda: sv.coverage_report(9.0, read(), alpha=0.1),
    }
    for what, call in calls.items():
        assert refused(call).startswith(
            f"{what.rstrip()} needs a number for every record, and values below 5 are known as <5 only"
        ), what
    assert told == []
    raw = {"a": BELOW}
    for call in (
        lambda: sv.federated_quantile(raw, 0.5, 3.0),
        lambda: sv.expected_shortfall(raw, 0.8, 3.0, bounds=(0, 99)),
    ):
        assert "a quantile takes such values with censored=" in refused(call)


def test_a_table_that_is_read_keeps_the_limits_it_was_read_with() -> None:
    frame = pd.DataFrame({"lead": BELOW, "where": ["a", "b"] * (N // 2)})
    table = sv.read_frame(frame, value="lead", site="where", censored="<5")
    assert sv.federated_quantile(table, 0.1, 3.0, censored="<5", randomness=dice(1)).value == "<5"
    assert "give censored= where they are read" in refused(
        lambda: sv.federated_quantile(table, 0.1, 3.0, censored="<6")
    )


def test_rows_are_known_again_whatever_limits_they_are_read_with() -> None:
    column = dice(6).generator().lognormal(2.1, 1.0, N)
    costs = []
    for limits in (None, "<5", "<10"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that they have answered before
            found = sv.federated_quantile({"north": column}, 0.5, 2.0, censored=limits)
        assert found.epsilon_in_all is not None
        costs.append(found.epsilon_in_all["north"])
    assert costs == [2.0, 4.0, 6.0]
