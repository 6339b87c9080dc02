"""Errors leave a public call alone: no frame of the package, no error behind them, no local variable."""

import sys
import traceback
import warnings
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from sottovoce.core import calling
from sottovoce.core.calling import Unexpected, public
from sottovoce.core.errors import BadInput

SECRET = 987654321.5


def refuse(records: list[float]) -> None:
    held = list(records)
    try:
        raise ValueError(f"could not convert {held[0]}")
    except ValueError:
        raise BadInput("row 1 holds text; correct it.") from None


def fail(records: list[float]) -> float:
    held = np.array(records)
    return {}[held[0]]


@public
def asked(records: list[float], how: Any) -> Any:
    return how(records)


def frames(trace: TracebackType | None) -> list[str]:
    return [each.name for each in traceback.extract_tb(trace)]


def everything(error: BaseException) -> str:
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    behind = [error.__cause__, error.__context__]
    ours = "".join(f"{each.name}{each.locals}" for each in told.stack if not each.name.startswith("test_"))
    return ours + str(error) + repr(error) + repr(behind)


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this file stand for the package."""
    monkeypatch.setattr(calling, "PACKAGE", __file__)


@pytest.mark.parametrize("how", [refuse, fail])
def test_no_frame_below_the_call_and_nothing_of_the_data(how: Any) -> None:
    with pytest.raises((BadInput, Unexpected)) as caught:
        asked([SECRET], how)
    assert frames(caught.value.__traceback__)[-1] == "called"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "987654321" not in everything(caught.value)


def test_an_unexpected_error_names_its_class_and_its_places() -> None:
    with pytest.raises(Unexpected, match=r"an unexpected KeyError at .*test_calling:\d+ ended the call") as caught:
        asked([SECRET], fail)
    assert len(caught.value.__notes__) == 1


def test_wrong_parameters_are_told_as_python_does() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'how'"):
        asked([SECRET])  # type: ignore[call-arg]


def test_an_interruption_stays_one() -> None:
    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked([SECRET], stop)


def test_the_callers_own_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        pass

    def stop(_: Any) -> None:
        raise Enough("my own words")

    monkeypatch.setattr(calling, "PACKAGE", "/somewhere/else")
    with pytest.raises(Enough, match="my own words"):
        asked([SECRET], stop)


def test_a_warning_names_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "PACKAGE", calling.__file__)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        calling.warn("few records")
    assert said[0].filename == __file__
    assert said[0].lineno < sys._getframe().f_lineno
