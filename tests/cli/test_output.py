"""What every command prints, apart from its own words."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from sottovoce.cli import output


def test_json_has_neither_nan_nor_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": float("nan"), "b": (np.float64("inf"), np.int64(3)), "c": {"d": -float("inf"), "e": True}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 3], "c": {"d": None, "e": True}}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_many_records_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Terminal()
    monkeypatch.setattr(sys, "stderr", seen)
    with output.progress_bar(10) as progress:
        assert progress is not None
        progress(10)
    assert "10/10" in seen.getvalue()
    with output.progress_bar(10, wanted=False) as progress:
        assert progress is None


def test_a_file_sees_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with output.progress_bar(10) as progress:
        assert progress is None


def test_a_reader_that_leaves_hears_no_complaint() -> None:
    command = f'"{sys.executable}" -m sottovoce quantile --help | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
