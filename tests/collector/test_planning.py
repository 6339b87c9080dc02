"""What a study would come to: refused as it would be when it begins, and as a file that reads back the same."""

import tomllib
from typing import Any

import pytest

from sottovoce.collector.planning import planned, study_toml
from sottovoce.core.errors import BadInput

TERMS: dict[str, Any] = {"tau": 0.5, "epsilon": 1.0}


def plan(people: int, **terms: Any) -> Any:
    return planned({"name": "x", "people": people, "quantile": {**TERMS, **terms}})


def test_a_plan_is_longer_the_more_it_promises() -> None:
    widths = [plan(20_000, method=method, bounds=[0, 100])["expected"][0]["width"] for method in ("staged", "sequence")]
    assert widths[0] < widths[1]
    assert plan(80_000, bounds=[0, 100])["expected"][0]["width"] < widths[1]
    assert plan(20_000)["expected"][0]["width"] is None


def test_far_out_in_a_tail_no_width_in_values_is_told() -> None:
    (found,) = plan(800_000, tau=0.99, method="certified", bounds=[0, 100], scale=10.0)["expected"]
    assert (found["width"], found["high"] < 1) == (None, True)


def test_several_levels_and_coefficients_have_a_width_each() -> None:
    found = plan(60_000, tau=[0.5, 0.9], method="staged", bounds=[0, 100])["expected"]
    assert [each["of"] for each in found] == ["0.5", "0.9"]
    assert found[0]["width"] > plan(60_000, method="staged", bounds=[0, 100])["expected"][0]["width"]
    asked = {"response": "wait", "tau": 0.5, "epsilon": 2.0, "features": {"age": [18, 90]}}
    fitted = planned({"name": "x", "people": 20_000, "regression": asked})
    assert [each["of"] for each in fitted["expected"]] == ["intercept", "age"]
    assert fitted["expected"][0]["width"] is None


def test_a_spread_tells_more_than_bounds() -> None:
    found = plan(20_000, scale=10.0, bounds=[0, 1000])["expected"][0]
    assert found["width"] < 10
    assert "standard deviation 10" in found["assuming"]


def test_a_warning_and_the_plan_say_the_same() -> None:
    found = plan(4_000, bounds=[0, 100])
    (warning,) = found["warnings"]
    low, high = (f"the {round(100 * found['expected'][0][end]):g} % quantile" for end in ("low", "high"))
    assert f"from about {low} to {high}" in warning


@pytest.mark.parametrize(
    "given", [None, [], {}, {"name": "x", "people": 50, "quantile": {"tau": 0.99, "epsilon": 1.0}}, {"name": "x"}]
)
def test_what_cannot_begin_is_refused(given: Any) -> None:
    with pytest.raises(BadInput):
        planned(given)


@pytest.mark.parametrize(
    "given",
    [
        {
            "name": 'a "b" \\ ü',
            "people": 10,
            "groups": ["x, y", "\x7f\t"],
            "quantile": {"tau": 0.5, "bounds": [0, 1e300]},
        },
        {"name": "x", "regression": {"tau": 0.5, "features": {"a b": [0, 1], "c": [0, 30]}}, "rounds": {"grace": 1}},
        {"name": "", "rounds": {"grace": 1e-7, "deadline": 3600}, "question": "?"},
    ],
)
def test_the_file_reads_back_the_same(given: dict[str, Any]) -> None:
    assert tomllib.loads(study_toml(given)) == given
