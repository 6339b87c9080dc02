"""What a result shows: the digits of its interval, the name of its column, its unit, and what is missing or cut."""

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.server.axis import tick_text
from sottovoce.server.conformal.report import CoverageReport
from sottovoce.server.picture import Drawn, forest, plain
from sottovoce.server.quantile.difference import Difference
from sottovoce.server.quantile.result import QuantileResult
from sottovoce.server.regression.plot import _panel
from sottovoce.server.regression.summary import CoefficientRow
from sottovoce.sim.randomness import dice

N = 12_000
WAITS = dice(31).generator().gamma(2.0, 1000.0, N)


def frame(values: Any, column: str = "wait") -> Any:
    return sv.read_frame(pd.DataFrame({column: values, "clinic": "<i>a</i>"}), value=column, site="clinic")


@pytest.fixture(scope="module")
def durations() -> QuantileResult:
    table = frame(pd.to_timedelta(np.round(WAITS), unit="s"), "time in $ & <b>")
    return sv.federated_quantile(table, 0.5, 3.0, randomness=dice(1))


def moved(result: QuantileResult, place: float, half: float) -> QuantileResult:
    """Return a result with another estimate and interval."""

    class Solution:
        point = place

        def interval(self, level: float) -> tuple[float, float]:
            return place - half, place + half

        def trajectory(self, level: float) -> list[tuple[float, ...]]:
            return [(1, 100, place, -math.inf, math.inf), (2, 200, place, place - 99 * half, place + 99 * half)]

    return dataclasses.replace(result, solution=Solution())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def numbers() -> QuantileResult:
    return sv.federated_quantile(frame(WAITS, "cost"), 0.5, 3.0, randomness=dice(1))


@pytest.mark.parametrize(
    ("place", "half", "shown"),
    [
        (5.0, 1e-6, "5.0000000 [4.9999990, 5.0000010]"),
        (1.2e8, 1.0, "120,000,000.0 [119,999,999.0, 120,000,001.0]"),
        (52.34567, 0.21, "52.35 [52.14, 52.56]"),
    ],
)
def test_the_interval_shows_whatever_its_width(numbers: QuantileResult, place: float, half: float, shown: str) -> None:
    pytest.importorskip("matplotlib")
    result = moved(numbers, place, half)
    low, high = shown.partition(" ")[2].strip("[]").split(", ")
    assert repr(result) == f"<0.5 quantile of cost: {shown} (95%), epsilon 3, not private>"
    assert f"[{low}, {high}]" in result.summary()
    assert shown in result._repr_html_()
    assert result.draw().axes[0].get_title(loc="left") == f"The 0.5 quantile of cost: {shown}"
    assert result.describe().values["text"] == {"estimate": shown.partition(" ")[0], "low": low, "high": high}


def words(result: Any, folder: Path) -> str:
    pytest.importorskip("matplotlib")
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        return str(result.plot(folder / "picture.svg").read_text(encoding="utf-8"))


def test_a_resolution_gives_short_decimals() -> None:
    values = np.round(dice(2).generator().normal(79.8, 2.0, N), 1)
    result = sv.federated_quantile([values], 0.5, 3.0, resolution=0.1, randomness=dice(3))
    for value in (result.estimate, *result.interval):
        assert repr(value) == f"{value:.1f}"
    assert re.fullmatch(r"\d\d\.\d", result.format(result.estimate))
    assert result.plan.rounded(79.80000001) == 79.8


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_many_sites_keep_the_level_that_was_asked_for() -> None:
    sites = {f"s{i}": column for i, column in enumerate(np.array_split(WAITS, 7))}
    assert sv.federated_quantile(sites, 0.9, 8.0, randomness=dice(1)).to_dict()["tau"] == 0.9


def test_columns_and_durations_are_named_everywhere(durations: QuantileResult, tmp_path: Path) -> None:
    assert "of time in $ & <b>: " in repr(durations)
    assert " min " in repr(durations)
    assert "the value of time in $ &" in durations.estimand
    assert not {"<b>", "<i>"} & set(re.findall("<.*?>", durations._repr_html_()))
    text = words(durations, tmp_path)
    assert "time in $ &amp; &lt;b&gt; (duration)" in text
    assert ">value<" not in text
    page = durations.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not {"<b>", "<i>"} & set(re.findall("<.*?>", page))
    assert "time in $ &amp; &lt;b&gt;" in page
    again = sv.load(durations.save(tmp_path / "kept.json"))
    assert repr(again) == repr(durations)


def test_times_come_back_as_times(durations: QuantileResult) -> None:
    assert durations.value == np.timedelta64(round(1e6 * durations.estimate), "us")
    low, high = durations.value_interval
    assert low < durations.value < high
    assert isinstance(low, np.timedelta64)
    other = moved(durations, 5000.0, 60.0)
    gap = Difference(durations, other, 0.95)
    assert gap.value == np.timedelta64(round(1e6 * gap.estimate), "us")
    assert gap.test("-1h") == gap.test(-3600.0) == gap.test(np.timedelta64(-1, "h"))
    with pytest.raises(sv.BadInput, match="the difference to test"):
        gap.test("soon")


def test_a_difference_of_numbers_takes_no_duration(numbers: QuantileResult) -> None:
    gap = Difference(numbers, moved(numbers, 5000.0, 60.0), 0.95)
    for wrong in ("1h", math.nan, None, math.inf, True, [1.0]):
        with pytest.raises(sv.BadInput, match="the difference to test"):
            gap.test(wrong)


def test_cut_and_missing_intervals_are_marked(numbers: QuantileResult, tmp_path: Path) -> None:
    text = words(moved(numbers, 50.0, 1.0), tmp_path)
    assert "goes on beyond the frame" in text
    assert "estimate, no interval yet" in text
    text = words(moved(numbers, 50.0, math.inf), tmp_path)
    assert "no interval" in text
    assert "interval, all reports" not in text


def test_a_coefficient_without_an_interval_is_hollow_and_a_long_one_has_an_arrow() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    rows = [CoefficientRow(1.0, 0.1, (0.9, 1.1), None), CoefficientRow(1.2, None, None, "few", determined=False)]
    rows += [CoefficientRow(1.1, 0.1, (1.0, 1.2), None), CoefficientRow(1.0, 9.0, (-50.0, 60.0), None)]
    _panel(axes, (0.2, 0.4, 0.6, 0.8), rows)
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [str(line.get_markerfacecolor()) == "white" for line in points] == [False, True, False, False]
    assert sorted(str(line.get_marker()) for line in axes.lines if str(line.get_marker()) in "v^") == ["^", "v"]


def test_a_forest_says_where_there_is_no_interval() -> None:
    pytest.importorskip("matplotlib")
    rows = [Drawn("a", 1.0, -math.inf, math.inf), Drawn("$b$", 2.0, 1.5, math.inf)]
    axes = forest("of $x$", rows, str).axes[0]
    said = [text.get_text() for text in axes.texts]
    assert "no interval" in said[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", r"\$b\$"]
    assert axes.get_title(loc="left") == plain("of $x$")
    assert ">" in [line.get_marker() for line in axes.lines]


def test_ticks_have_as_many_places_as_tell_them_apart() -> None:
    assert [tick_text(value, [0.0, 2.5, 5.0]) for value in (0.0, 2.5)] == ["0.0", "2.5"]
    assert tick_text(5.000001, [5.0, 5.000001]) == "5.000001"
    assert tick_text(3e20, [1e20, 2e20, 3e20]) == "3e+20"


def told(**options: Any) -> Any:
    sites = {"ours": sv.SiteSummary(17.0, 0.3, n=900), "north": sv.SiteSummary(17.1, 0.2, n=900)}
    return sv.integrated_quantile("ours", sites, 0.5, None, **options)


def test_a_helped_quantile_has_intervals_at_other_levels() -> None:
    for method in ("valid", "conservative"):
        result = told(method=method)
        assert result.interval_at(0.95) == result.interval
        for level in (0.8, 0.9, 0.99):
            assert result.interval_at(level) == told(method=method, level=level).interval
    assert told(method="conservative").interval_at(0.7) == told(method="conservative", level=0.7).interval
    with pytest.raises(sv.BadInput, match=r"0\.8, 0\.9"):
        told().interval_at(0.7)


def test_a_private_target_keeps_its_own_interval_at_a_few_levels() -> None:
    sites = {"ours": WAITS[:6000].copy(), "north": WAITS[6000:].copy()}
    found = {
        level: sv.integrated_quantile("ours", sites, 0.5, 4.0, level=level, randomness=dice(9)) for level in (0.9, 0.95)
    }
    assert found[0.95].interval_at(0.9) == found[0.9].interval
    cautious = found[0.95].by_method("conservative")
    with pytest.raises(sv.BadInput, match=r"is known at 0\.5, 0\.8, 0\.9, 0\.95, 0\.99, 0\.999 alone"):
        cautious.interval_at(0.7)
    again = type(cautious).from_dict(cautious.to_dict())
    assert again.interval_at(0.99) == cautious.interval_at(0.99)
    open_one = sv.integrated_quantile("ours", sites, 0.5, math.inf, method="conservative", randomness=dice(9))
    with pytest.raises(sv.BadInput, match="at the level it was asked for alone"):
        open_one.interval_at(0.9)


@pytest.mark.parametrize("bounds", [[], {}, np.array(0.9), np.ma.masked, 0.9, "0.9", [None], [math.nan]])
def test_bounds_of_a_curve_are_a_list_of_numbers(bounds: Any) -> None:
    with pytest.raises(sv.BadInput, match="bound"):
        told().sensitivity(bounds)


@pytest.mark.parametrize("path", [None, 3, [1], b"kept.json"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for use in (told().save, told().report, told().plot, sv.load):
        with pytest.raises(sv.BadInput):
            use(path)


def test_a_summary_tells_itself_in_one_line() -> None:
    assert repr(sv.SiteSummary(17.0, 0.3, n=900)) == "<summary: 17.0 [16.4, 17.6] (95%), 900 records>"
    assert repr(sv.SiteSummary(17.0, trusted=False)) == "<summary: 17, without an error to be trusted>"
    assert "<table>" in sv.SiteSummary(17.0, 0.3)._repr_html_()


def test_a_private_threshold_shows_nothing_exact_of_scores(tmp_path: Path) -> None:
    scores = {name: dice(8).generator().exponential(1.0, 1000) + i for i, name in enumerate("abc")}
    found = sv.conformal_threshold(scores, 0.1, epsilon=2.0, maximum=2.0, randomness=dice(1))
    (hint,) = found.hints
    count = re.findall(r"([\d,]+) of 3,000 scores", hint)[0]
    shown = found.summary() + repr(found) + found._repr_html_() + str(found.to_dict())
    shown += found.report(tmp_path / "page.html").read_text(encoding="utf-8").partition("base64")[0]
    shown += found.save(tmp_path / "kept.json").read_text(encoding="utf-8")
    assert count not in shown
    assert "above the grid" not in shown


def test_scores_and_responses_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("residual\n" + "".join(f"{i / 100}\n" for i in range(500)))
    from sottovoce.api.conformal.threshold import read_scores

    table = read_scores(tmp_path / "a.csv", score="residual")
    found = sv.conformal_threshold(table, 0.1)
    assert repr(found).startswith("<threshold of residual: ")
    report = found.coverage_by_site({"a": np.arange(300) / 70})
    assert isinstance(report, CoverageReport)
    with pytest.raises(sv.BadInput, match=r"coverage_by_site\(scores\)"):
        found.report({"a": [1.0]})  # type: ignore[arg-type]
    source = dice(4).generator()
    model = sv.PrivateQuantileRegressor(0.5, 6.0, density=0.5, size=1.0, start=0.0, randomness=dice(1))
    model.fit(pd.DataFrame({"x": source.uniform(-1, 1, 2000)}), pd.Series(source.normal(size=2000), name="pay"))
    assert repr(model.result_).startswith("<0.5 quantile of pay by regression: x ")
    with pytest.raises(sv.BadInput, match="value must be finite"):
        model.test([0, 1], math.inf)
    assert "pay" in model.report(tmp_path / "page.html").read_text(encoding="utf-8")
