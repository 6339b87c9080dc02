"""The summary holds everything a reader needs, within a page's width."""

import os
import pickle  # noqa: TID251 - results may be pickled

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.server.description import WIDTH
from sottovoce.server.quantile.method import TURNED
from sottovoce.sim.randomness import dice

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="whole studies take minutes when not compiled"
)


SOURCE = dice(11).generator()
SITES = {
    "north": SOURCE.normal(5.0, 1.0, 20_000),
    "a site whose name is much longer than the column": SOURCE.normal(5.0, 1.0, 9_000),
}


def test_everything_is_told() -> None:
    result = sv.federated_quantile(SITES, 0.6, dict(zip(SITES, (1.5, 2.5), strict=True)), level=0.9, randomness=dice(1))
    text = result.summary()
    assert str(result) == text
    flat = " ".join(text.split())
    assert result.estimand in flat
    assert result.promise in flat
    for part in (
        "tau = 0.6",
        f"Estimate: {result.format(result.estimate)}",
        f"0.9 interval: [{result.format(result.interval.low)}, {result.format(result.interval.high)}]",
        f"staged, {result.rounds} rounds, 29,000 reports",
        "Private: no",
        "driven most by",
    ):
        assert part in flat
    rows = [line for line in text.splitlines() if line.startswith(("north ", "a site whose"))]
    assert rows[0].split() == ["north", "20,000", f"{20 / 29:.4f}", "1.5", f"{result.variance_shares['north']:.1%}"]
    assert rows[1].split()[-4:-1] == ["9,000", f"{9 / 29:.4f}", "2.5"]
    assert "…" in rows[1]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_equal_shares_are_never_called_pooled() -> None:
    for shares, word in (("equal", "(equal)"), (dict(zip(SITES, (0.5, 0.5), strict=True)), "(custom)")):
        text = sv.federated_quantile(SITES, 0.5, 2.0, shares=shares, randomness=dice(1)).summary()
        assert "pooled" not in text
        assert word in text
    assert "(pooled)" in sv.federated_quantile(SITES, 0.5, 2.0, randomness=dice(1)).summary()


def test_what_was_left_out_and_how_is_told() -> None:
    frame = pd.DataFrame({"x": np.round(SITES["north"], 1), "site": "a", "who": np.arange(20_000) // 2})
    frame.loc[3, "x"] = np.nan
    table = sv.read_frame(frame, value="x", site="site", person="who", missing="drop", randomness=dice(3))
    flat = " ".join(sv.federated_quantile(table, 0.5, 3.0, resolution=0.1, randomness=dice(1)).summary().split())
    assert "Resolution: 0.1" in flat
    assert "Left out: 1 missing values" in flat
    assert "Person: one record each" in flat
    assert "9,999 further rows" in flat
    assert "Each person answered" in flat
    assert "of the persons of a lie" in flat


def test_warnings_are_shown() -> None:
    with pytest.warns(UserWarning, match="barely supported") as said:
        result = sv.federated_quantile([SITES["north"][:1_000]], 0.5, 3.0, randomness=dice(1))
    assert result.warnings == (str(said[0].message),)
    flat = " ".join(result.summary().split())
    assert f"Warning: {result.warnings[0]}" in flat
    assert "Hint:" not in flat


def test_hints_are_never_passed_on() -> None:
    result = sv.federated_quantile([np.round(SITES["north"], 1)], 0.5, 3.0, randomness=dice(1))
    (hint,) = result.hints
    assert "tied" in hint
    shown = result.summary() + repr(result) + result._repr_html_() + str(result.to_dict()) + str(pickle.dumps(result))
    assert "tied" not in shown
    assert pickle.loads(pickle.dumps(result)).hints == ()  # noqa: S301
    assert result.warnings == (TURNED[True],)  # seen in the answers, so it may be told
