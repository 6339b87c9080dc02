"""What the commands say of files: in the words of their options, on one line, and before anybody is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.client.quantile.site import Site

Ask = Callable[..., Any]


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


COMMANDS = {
    "quantile": ("--value", "delay", "--tau", "0.5", "--epsilon", "1"),
    "integrate": ("--value", "delay", "--tau", "0.5", "--epsilon", "1", "--target", "d"),
    "conformal": ("--score", "delay"),
    "regress": ("--response", "delay", "--features", "age", "--tau", "0.5", "--epsilon", "1"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_that_decide_are_named_and_taken(command: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('delay,age\n"1,234",1\n12,2\n')
    said = refused(command, str(path), *COMMANDS[command])
    assert "with --decimal point or --decimal comma" in said
    path.write_text("delay:age\n1:1\n12:2\n")
    assert "say what parts columns with --delimiter" in refused(command, str(path), *COMMANDS[command])
    assert "delimiter is 'xyz'" in refused(command, str(path), *COMMANDS[command], "--delimiter", "xyz")
    path.write_text("delay:age\n1,234:n/a\nn/a:2\n")
    said = refused(command, str(path), *COMMANDS[command], "--delimiter", ":", "--decimal", "comma")
    assert "text such as a mark of a missing value in row" in said


def test_doubtful_names_are_said_on_a_line_before_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a record answered")

    for door in ("answer", "tally", "hand_over"):
        monkeypatch.setattr(Site, door, spend)
    delays = sv.sim.dice(1).generator().gamma(2.0, 10.0, 40_000)
    rows = (f"{delay},{('North', 'north ')[at % 2]}\n" for at, delay in enumerate(delays))
    (tmp_path / "d.csv").write_text("delay,site\n" + "".join(rows))
    common = (str(tmp_path / "d.csv"), "--value", "delay", "--site", "site", "--tau", "0.5", "--epsilon", "2")
    for words in (("quantile", *common), ("integrate", *common, "--target", "North")):
        done = CliRunner().invoke(app, list(words))
        assert isinstance(done.exception, AssertionError)
        assert done.stderr.count("sottovoce: sites 'North' and 'north ' may be one site") == 1
        assert "Warning" not in done.stderr
    assert "did you mean 'North'?" in refused("integrate", *common, "--target", "Norht")


@pytest.mark.parametrize("ending", ["json", "toml"])
@pytest.mark.parametrize("kind", ["deep", "digits"])
def test_files_of_options_that_are_nested_or_too_long(ending: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("delay\n1\n2\n")
    value = "[" * 50_000 if kind == "deep" else "9" * 5000
    path = tmp_path / f"sites.{ending}"
    path.write_text(f"d = {value}" if ending == "toml" else f'{{"d": {value}}}')
    words = ("quantile", str(tmp_path / "d.csv"), "--value", "delay", "--tau", "0.5", "--epsilon", f"@{path}")
    said = refused(*words)
    assert str(path) in said
    assert len(said) < 600
    assert len(refused("conformal", str(tmp_path / "d.csv"), "--score", "delay", "--grid", f"@{path}")) < 600
    if ending == "json":
        assert len(refused("integrate", "--target", "d", "--tau", "0.5", "--summaries", str(path))) < 600
    assert "whose ending is not known" in refused(*words[:-1], "@/dev/zero")
    (tmp_path / f"zero.{ending}").symlink_to("/dev/zero")
    assert "which is no file" in refused(*words[:-1], f"@{tmp_path}/zero.{ending}")
