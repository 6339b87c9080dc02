"""What is public by type is used before any answer: whole numbers, truth values and ordered categories are dithered."""

import json
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sottovoce as sv
from sottovoce.api.quantile.planning import prepare
from sottovoce.client.reading.table import read_sites
from sottovoce.core.codec import to_plain
from sottovoce.core.unit import TRUTH
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.sim.randomness import dice

SCORES = dice(5).generator().binomial(10, 0.62, 20_000)  # the median is 6, of mass .24
NAMES = ("never", "rarely", "often", "always")
CODES = np.repeat(np.arange(4), (2_000, 7_000, 9_000, 2_000))  # the median is "often"
MOMENTS = np.arange(20_000).astype("M8[h]")

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


def planned(sites: Any, **public: Any) -> QuantilePlan:
    return prepare(sites, 0.5, 2.0, **public).plan


@pytest.mark.parametrize(
    ("column", "step", "source"),
    [
        (SCORES, 1.0, "whole numbers by type"),
        (SCORES.astype(np.uint8), 1.0, "whole numbers by type"),
        (np.ma.masked_array(SCORES, False), 1.0, "whole numbers by type"),
        (SCORES.tolist(), 1.0, "whole numbers by type"),
        (list(SCORES), 1.0, "whole numbers by type"),
        (np.array([*SCORES.tolist(), pd.NA], dtype=object), 1.0, "whole numbers by type"),
        (range(20_000), 1.0, "whole numbers by type"),
        (pd.Series([*SCORES, None], dtype="Int64"), 1.0, "whole numbers by type"),
        (pl.Series([*SCORES.tolist(), None]), 1.0, "whole numbers by type"),
        (pa.array(SCORES), 1.0, "whole numbers by type"),
        (pa.array([Decimal(int(score)) for score in SCORES], pa.decimal128(9, 0)), 1.0, "whole numbers by type"),
        (SCORES.astype("m8[D]"), 86400.0, "whole days by type"),
        (SCORES.astype("m8[m]"), 60.0, "whole minutes by type"),
        (MOMENTS, 3600.0, "whole hours by type"),
        (MOMENTS.astype("M8[s]"), 1.0, "whole seconds by type"),
        (MOMENTS.astype("M8[D]"), 1.0, "whole days by type"),
        (CODES > 1, 1.0, "ordered categories"),
        # whole values of a type that could hold others say nothing: no record is looked at
        (SCORES.astype(float), 0.0, ""),
        ([1.0, *SCORES.tolist()], 0.0, ""),
        (pd.Series([*SCORES, None]), 0.0, ""),
        ([*map(Decimal, SCORES.tolist())], 0.0, ""),
        (pa.array([Decimal(int(score)) for score in SCORES], pa.decimal128(9, 2)), 0.0, ""),
        (MOMENTS.astype("M8[ms]"), 0.0, ""),
        (MOMENTS.astype("M8[ns]"), 0.0, ""),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float | str) else str(value),
)
def test_the_type_alone_says_the_resolution(column: Any, step: float, source: str) -> None:
    plan = planned([column], missing="drop")
    assert (plan.resolution, plan.step_source) == (step, source)


def test_one_site_of_fractions_leaves_none_by_type() -> None:
    for sites in ([SCORES, SCORES + 0.5], [SCORES + 0.5, SCORES]):
        assert planned(sites).resolution == 0
    assert planned([SCORES, SCORES[5:].astype(np.int16)]).resolution == 1
    assert planned([MOMENTS, MOMENTS[5:].astype("M8[s]")]).resolution == 1
    assert planned([MOMENTS, MOMENTS[5:].astype("M8[us]")]).resolution == 0


def test_what_is_given_wins() -> None:
    for none in (0, 0.0, False):
        plan = planned([SCORES], resolution=none, kind="scores")
        assert (plan.resolution, plan.step_source, plan.kind) == (0.0, "", "scores")
    assert planned([SCORES], resolution=0.5, kind="counts").resolution == 0.5
    assert planned([SCORES], resolution=5).step_source == ""


@pytest.mark.parametrize(
    ("kind", "step", "least"), [("counts", 1.0, 0.0), ("scores", 1.0, -math.inf), ("amounts", 0.0, -math.inf)]
)
@pytest.mark.parametrize("values", [SCORES, SCORES.astype(float)], ids=["whole", "float"])
def test_a_declared_kind_says_the_rest(kind: str, step: float, least: float, values: Any) -> None:
    plan = planned([values], kind=kind)
    assert (plan.kind, plan.resolution, plan.limits) == (kind, step, (least, math.inf))
    assert plan.hints == ()  # what is said needs no hint
    assert plan.step_source == (f"{kind} are whole numbers" if step else "")
    frame = pd.DataFrame({"x": values, "where": "north"})
    table = sv.read_frame(frame, value="x", site="where", kind=kind)
    assert (table.kind, planned(table).kind, planned(table, kind="amounts").kind) == (kind, kind, "amounts")


def test_a_kind_is_declared_of_files_too(tmp_path: Path) -> None:
    path = tmp_path / "north.csv"
    path.write_text("score\n" + "\n".join(map(str, SCORES[:3_000])))
    assert planned(sv.read_files(path, value="score")).step_source == "whole numbers by type"
    assert planned(sv.read_files(path, value="score", kind="counts")).limits[0] == 0
    with pytest.raises(sv.BadInput, match="choose one of 'counts'"):
        sv.read_files(path, value="score", kind="prices")


def test_ends_are_rounded_inwards_and_stay_within_what_is_public() -> None:
    counts, scores = planned([SCORES], kind="counts"), planned([SCORES])
    assert [counts.rounded(value, -1) for value in (-math.inf, -3.2, 0.5, 2.49, 2.5)] == [0, 0, 1, 2, 3]
    assert [scores.rounded(value, 1) for value in (math.inf, -3.2, 0.5, 2.51, 9.5)] == [math.inf, -3, 0, 3, 9]
    truth = planned([CODES > 1])
    assert (truth.rounded(1.7, 1), truth.rounded(-0.8), truth.bounds) == (1, 0, (-0.5, 1.5))
    assert planned([SCORES], bounds=(0, 10)).bounds == (-0.5, 10.5)
    assert planned([SCORES + 0.5], bounds=(0, 10)).bounds == (0, 10)


ORDERED = {
    "pandas": pd.Series(pd.Categorical.from_codes(CODES, NAMES, ordered=True)),
    "polars": pl.Series([NAMES[code] for code in CODES], dtype=pl.Enum(NAMES)),
    "arrow": pa.DictionaryArray.from_arrays(pa.array(CODES), pa.array(NAMES), ordered=True),
}


@compiled
@pytest.mark.parametrize("source", ORDERED)
def test_ordered_categories_are_answered_by_name(source: str) -> None:
    made = sv.federated_quantile([ORDERED[source]], 0.5, 2.0, randomness=dice(1))
    assert (made.estimate, tuple(made.interval)) == (2.0, (2.0, 2.0))
    assert made.test("often").pvalue == 1.0
    assert made.test("always").pvalue == made.test(3).pvalue < 1e-6
    with pytest.raises(sv.BadInput, match="'seldom', which is not one of the declared categories"):
        made.test("seldom")
    plain = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert plain["text"] == {"estimate": "often", "low": "often", "high": "often"}
    assert (plain["unit"], plain["resolution"], plain["resolution_source"]) == ("category", 1.0, "ordered categories")
    assert "[often, often]" in made.summary()
    assert type(made).from_state(to_plain(made.to_state())).format(1.0) == "rarely"


def test_missing_categories_and_those_nobody_has() -> None:
    column = pd.Series(pd.Categorical(["b", None, "a", "d"], categories=["a", "b", "c", "d"], ordered=True))
    table = read_sites([column], missing="drop")
    assert table.records[0].values().tolist() == [1.0, 0.0, 3.0]
    assert table.unit.categories == ("a", "b", "c", "d")
    assert (
        planned([pd.Series(pd.Categorical.from_codes(CODES, [1, 2, 5, 9], ordered=True))]).roster.unit.categories == ()
    )


@pytest.mark.parametrize(
    ("sites", "sentence"),
    [
        (
            [ORDERED["pandas"], ORDERED["pandas"].cat.rename_categories({"never": "nie"})],
            "declare different categories",
        ),
        ([ORDERED["pandas"], CODES], "holds categories and site 'site 2' holds numbers"),
        ([ORDERED["pandas"].cat.as_unordered()], "holds text in row 1: .* or one of ordered categories"),
        (
            [
                pa.chunked_array(
                    [
                        pa.array(each).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string(), True))
                        for each in (["a", "b"], ["b", "a"])
                    ]
                )
            ],
            "has parts with different categories",
        ),
    ],
)
def test_categories_that_cannot_be_ordered_are_refused(sites: Any, sentence: str) -> None:
    with pytest.raises(sv.BadInput, match=sentence):
        planned(sites)


def test_where_differences_are_needed_categories_are_refused() -> None:
    with pytest.raises(sv.BadInput, match="between which there are no distances"):
        sv.integrated_quantile(ORDERED["pandas"], {"b": ORDERED["polars"]}, 0.5, 2.0)
    with pytest.raises(sv.BadInput, match="two groups declare different categories"):
        sv.quantile_difference([ORDERED["pandas"]], [CODES > 1], 0.5, 2.0)


@compiled
@pytest.mark.parametrize("maker", [np.array, list, pd.Series, pl.Series, pa.array], ids=lambda maker: maker.__name__)
def test_truth_values_are_zero_and_one(maker: Any) -> None:
    table = read_sites([maker([True, False, True])])
    assert (table.unit, table.records[0].values().tolist()) == (TRUTH, [1.0, 0.0, 1.0])
    made = sv.federated_quantile([maker(CODES > 0)], 0.5, 2.0, randomness=dice(1))
    assert (made.estimate, tuple(made.interval), made.format(made.estimate)) == (1.0, (1.0, 1.0), "True")
    assert made.test(True).pvalue == 1.0
    difference = sv.quantile_difference([maker(CODES > 0)], [maker(CODES > 1)], 0.5, 2.0, randomness=dice(1))
    assert "categories" in difference.summary()


@compiled
def test_the_result_says_where_the_resolution_is_from() -> None:
    made = sv.federated_quantile([SCORES], 0.5, 2.0, randomness=dice(1))
    flat = " ".join(made.summary().split())
    assert "Resolution: 1, whole numbers by type; the interval covers the rounded value" in flat
    plain = made.to_dict()
    assert (plain["resolution"], plain["resolution_source"], plain["kind"]) == (1.0, "whole numbers by type", None)
    told = sv.federated_quantile([SCORES], 0.5, 2.0, resolution=1, randomness=dice(1))
    assert tuple(told.interval) == tuple(made.interval)
    assert "Resolution: 1; the interval" in " ".join(told.summary().split())


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
@compiled
@pytest.mark.parametrize(
    ("draw", "tau", "truth"),
    [
        (lambda g: g.binomial(10, 0.62, 8_000), 0.5, 6.0),
        (lambda g: g.poisson(3.0, 8_000), 0.9, 5.0),
        (lambda g: g.random(8_000) < 0.3, 0.5, 0.0),
    ],
    ids=["scores", "counts", "truth"],
)
def test_ordinary_whole_numbers_are_covered_without_any_option(draw: Any, tau: float, truth: float) -> None:
    # 20 runs at .95: fewer than 16 covered has probability .003
    covered = 0
    for seed in range(20):
        x = draw(dice(700 + seed).generator())
        low, high = sv.federated_quantile([x[:5_000], x[5_000:]], tau, 2.0, randomness=dice(seed)).interval
        covered += low <= truth <= high
    assert covered >= 16
