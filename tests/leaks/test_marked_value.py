"""A marked value, put in every wrong place of every public call, is never told: in words, warnings, logs, or frames."""

import datetime as dt
import decimal
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import sottovoce as sv
from sottovoce.sim import dice

MARK = 987654321.5
SIGNS = ("987654321", "98765432", "9.8765", "2001-04-19", "2001, 4, 19")  # the mark as text, rounded, as a date
PACKAGE = str(Path(sv.__file__).parent)
G = dice(15).generator()
N = 900
NORTH, SOUTH = G.gamma(2, 10, N), G.gamma(2, 12, N)
GROUPS = {"north": NORTH, "south": SOUTH}
ROWS = G.uniform(-1, 1, (N, 2))
FARES = ROWS @ [1.0, 2.0] + G.normal(size=N)
GUESSES: dict[str, Any] = {"density": 0.3, "size": 3.0}


def marked(values: Any) -> Any:
    found = np.array(values, dtype=float)
    found[7] = MARK
    return found


WRONG: dict[str, Callable[[], Any]] = {
    "column": lambda: marked(NORTH),
    "list": lambda: marked(NORTH[:60]).tolist(),
    "tuple": lambda: tuple(marked(NORTH[:60]).tolist()),
    "two columns": lambda: np.stack([marked(NORTH), SOUTH]),
    "text among numbers": lambda: [*NORTH[:60].tolist(), f"x{MARK}"],
    "all text": lambda: [f"{MARK}", f"x{MARK}", "y"] * 30,
    "infinite beside it": lambda: [MARK, float("inf"), *NORTH[:60].tolist()],
    "missing beside it": lambda: [MARK, None, *NORTH[:60].tolist()],
    "nested": lambda: [[MARK, 1.0], [2.0]] * 30,
    "mapping": lambda: {"north": marked(NORTH), "west": f"{MARK}"},
    "mapping of text": lambda: {"north": [f"{MARK}"] * 50, "south": SOUTH},
    "set": lambda: {MARK, 2.0},
    "bytes": lambda: f"{MARK}".encode() * 9,
    "object": lambda: np.array([MARK, "x", None, 3.0] * 20, dtype=object),
    "masked": lambda: np.ma.masked_invalid([MARK, np.nan, 2.0] * 30),
    "complex": lambda: np.array([MARK + 1j] * 60),
    "decimals": lambda: [decimal.Decimal(str(MARK)), decimal.Decimal("NaN"), decimal.Decimal(2)] * 30,
    "dates": lambda: [dt.date(2001, 4, 19), 5.0, dt.date(2002, 1, 1)] * 30,
    "series": lambda: pd.Series(marked(NORTH), name="wait").where(lambda column: column > 20),
    "frame": lambda: pd.DataFrame({"wait": marked(NORTH), "where": [f"{MARK}"] * N}),
    "polars": lambda: pl.DataFrame({"wait": marked(NORTH), "where": [f"{MARK}"] * N}),
    "arrow": lambda: pa.array([f"{MARK}", None, "x"] * 30),
    "large integers": lambda: pa.array([987654321987654321, None, 3] * 30),
    "generator": lambda: (value for value in marked(NORTH).tolist()),
    "pair": lambda: (marked(ROWS), marked(FARES)),
    "pairs": lambda: {"north": (marked(ROWS), [f"{MARK}"] * N)},
}

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "federated_quantile": (
        sv.federated_quantile,
        {"sites": GROUPS, "tau": 0.5, "epsilon": 2.0, "weights": {"north": 1.0, "south": 2.0}},
    ),
    "federated_quantiles": (sv.federated_quantiles, {"sites": GROUPS, "taus": [0.4, 0.6], "epsilon": 2.0}),
    "group_quantiles": (
        sv.group_quantiles,
        {
            "sites": {"north": np.tile(NORTH, 3), "south": np.tile(SOUTH, 3)},
            "tau": 0.5,
            "epsilon": 4.0,
            "groups": {"north": ["a", "b", "b"] * N, "south": "b"},
            "weights": {"north": np.linspace(1, 2, 3 * N), "south": 1.5},
        },
    ),
    "quantile_difference": (
        sv.quantile_difference,
        {"first": {"north": NORTH}, "second": {"south": SOUTH}, "tau": 0.5, "epsilon": 2.0},
    ),
    "expected_shortfall": (
        sv.expected_shortfall,
        {"sites": GROUPS, "tau": 0.8, "epsilon": 4.0, "bounds": (0, 200)},
    ),
    "integrated_quantile": (
        sv.integrated_quantile,
        {"target": "north", "sources": GROUPS, "tau": 0.5, "epsilon": 4.0},
    ),
    "conformal_threshold": (
        sv.conformal_threshold,
        {"scores": GROUPS, "alpha": 0.1, "epsilon": 2.0, "maximum": 200.0},
    ),
    "conformal_thresholds": (
        sv.conformal_thresholds,
        {"scores": GROUPS, "alpha": 0.1, "by": "site", "epsilon": 2.0, "maximum": 200.0},
    ),
    "coverage_report": (sv.coverage_report, {"threshold": 40.0, "scores": GROUPS, "alpha": 0.1, "epsilon": 2.0}),
    "read_frame": (
        sv.read_frame,
        {"frame": pd.DataFrame({"wait": NORTH, "where": ["a", "b"] * (N // 2)}), "value": "wait", "site": "where"},
    ),
    "fit": (lambda **given: sv.PrivateQuantileRegressor(0.5, 2.0, **GUESSES).fit(**given), {"X": ROWS, "y": FARES}),
    "regressor": (
        lambda **given: sv.PrivateQuantileRegressor(**given).fit(ROWS, FARES),
        {"tau": 0.5, "epsilon": 2.0, **GUESSES},
    ),
    "conformalize": (
        lambda **given: (
            sv.FederatedConformalRegressor(LinearRegression()).fit(ROWS[:99], FARES[:99]).conformalize(**given)
        ),
        {"sites": ROWS, "y": FARES, "site": ["a", "b"] * (N // 2)},
    ),
    "classifier": (
        lambda **given: (
            sv.FederatedConformalClassifier(LogisticRegression()).fit(ROWS, FARES > 0).conformalize(**given)
        ),
        {"sites": ROWS, "y": FARES > 0, "site": ["a", "b"] * (N // 2)},
    ),
}
MORE = {  # parameters beside those that a call must have
    "federated_quantile": (
        "level", "method", "shares", "schedule", "participation", "graph", "norm", "bounds", "scale", "resolution",
        "kind", "until", "after", "randomness", "missing", "censored", "progress",
    ),
    "federated_quantiles": ("level", "method", "split", "shares", "bounds", "scale", "resolution", "kind", "missing"),
    "group_quantiles": (
        "level", "simultaneous", "shrinkage", "method", "shares", "bounds", "scale", "resolution", "kind", "randomness",
        "missing", "censored", "progress",
    ),
    "quantile_difference": ("level", "shares", "bounds", "resolution"),
    "expected_shortfall": ("level", "tail", "method", "split", "shares", "scale", "resolution", "kind", "missing"),
    "integrated_quantile": (
        "method", "level", "bound", "variance", "quantile", "caution", "chains", "bounds", "scale", "resolution",
    ),
    "conformal_threshold": (
        "minimum", "bins", "grid", "mechanism", "guarantee", "delta", "rule", "statistics", "exact",
    ),
    "conformal_thresholds": ("small", "simultaneous", "grid", "mechanism", "delta"),
    "coverage_report": ("weights", "level", "missing"),
    "read_frame": ("person", "missing", "kind", "censored", "flag"),
    "fit": ("progress",),
    "regressor": ("bounds", "channel", "inference", "start", "second_moments", "limit", "groups", "tree", "clip"),
    "conformalize": ("by",),
    "classifier": ("by",),
}  # fmt: skip

PLACES = [
    pytest.param(call, parameter, id=f"{call}-{parameter}")
    for call, (_, given) in CALLS.items()
    for parameter in (*given, *MORE[call])
]


def told(error: BaseException) -> Iterator[str]:
    """Yield everything that somebody may come to see of an error: words, notes, and the package's own frames."""
    seen: BaseException | None = error
    while seen is not None:
        yield f"{type(seen).__name__}: {seen} {getattr(seen, '__notes__', '')} {seen.args!r}"
        for frame, line in traceback.walk_tb(seen.__traceback__):
            if frame.f_code.co_filename.startswith(PACKAGE):
                yield f"{frame.f_code.co_filename}:{line} {frame.f_locals!r}"
        seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize(("call", "parameter"), PLACES)
def test_a_marked_value_is_never_told(call: str, parameter: str, caplog: pytest.LogCaptureFixture) -> None:
    function, given = CALLS[call]
    refused, unexpected = 0, []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for kind, wrong in WRONG.items():
            try:
                function(**{**given, parameter: wrong()})
            except Exception as error:
                refused += 1
                for text in told(error):
                    assert not any(sign in text for sign in SIGNS), (kind, text[:600])
                unexpected += [(kind, str(error))] if type(error).__name__ == "Unexpected" else []
    assert refused
    assert not unexpected
    for text in [str(warning.message) for warning in said] + caplog.messages:
        assert not any(sign in text for sign in SIGNS), text


@pytest.mark.parametrize("name", ["wait", "site"])
def test_a_marked_value_in_a_file_is_never_told(name: str, tmp_path: Path) -> None:
    header = {"wait": ["wait", "site"], "site": ["site", "wait"]}[name]
    for place, cells in enumerate(
        ([f"{MARK},a", f"x{MARK},b"], [f"{MARK}", "1,2"], [f"{MARK},a,3"], [f'"{MARK}'], [f"{MARK};a"], [f"<{MARK},a"])
    ):
        for head in (",".join(header) + "\n", ""):
            path = tmp_path / f"{place}{len(head)}.csv"
            path.write_text(head + "\n".join(cells * 20))
            given: list[dict[str, Any]] = [{"value": "wait", "site": "site"}, {"value": "site", "site": "wait"}]
            for columns in (*given, {"value": "no"}):
                with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, it must not tell
                    sv.federated_quantile(sv.read_files(str(path), **columns), 0.5, 1.0)
                for text in told(caught.value):
                    assert not any(sign in text for sign in SIGNS), text[:600]
