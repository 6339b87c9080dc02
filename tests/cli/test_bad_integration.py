"""`sottovoce integrate`: whatever is wrong costs one sentence and nobody a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.core.random_source import SystemEntropy

USUAL = {"--value": "delay", "--target": "north", "--tau": "0.5", "--epsilon": "3"}


def sentence(done: Any) -> str:
    """Return the one sentence on stderr, having checked that it is one and that nothing else was said."""
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.fixture(autouse=True)
def no_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    def throw(*_: object) -> None:
        raise AssertionError("a die was thrown before all input was checked")

    monkeypatch.setattr(SystemEntropy, "words", throw)


def integrate(folder: Path, *options: str, files: tuple[str, ...] = ("north.parquet", "south.parquet")) -> Any:
    usual = [word for name, value in USUAL.items() if name not in options for word in (name, value)]
    return CliRunner().invoke(app, ["integrate", *(str(folder / name) for name in files), *usual, *options])


def test_the_guard_would_notice_a_die(files: Path) -> None:
    assert isinstance(integrate(files).exception, AssertionError)


BAD_OPTIONS = {
    ("--target", "west"): "the target 'west' is not one of the sites 'north', 'south'",
    ("--target", "west", "--sources", "north"): "the target 'west' is not one of the sites",
    ("--sources", "west"): "--sources names 'west', which is not one of the sites 'north', 'south'",
    ("--sources", "south,south"): "--sources names 'south' twice",
    ("--sources", "north"): "the target 'north' is among --sources too",
    ("--sources", "south,"): "--sources",
    ("--value", "lateness"): "has no column 'lateness'",
    ("--value", "word"): "'word'",
    ("--site", "clinic"): "clinic",
    ("--tau", "1.5"): "between 0 and 1",
    ("--tau", "half"): "--tau is 'half', which is not a number; give one level",
    ("--tau", "north=0.5,south=0.4"): "give one level",
    ("--epsilon", "0"): "must be positive",
    ("--epsilon", "some"): "--epsilon is 'some'",
    ("--epsilon", "north=1"): "says nothing of site 'south'",
    ("--epsilon", "north=1,south=1,west=1"): "names 'west', which is not a site",
    ("--epsilon", "north=0.01,south=3"): "the target 'north' has too few records: ",
    ("--epsilon", "inf", "--tau", "0.99999"): "an interval for its 0.99999 quantile needs 368,887 records",
    ("--method", "guess"): "method 'guess' is unknown; choose one of 'valid'",
    ("--method", "known-bound"): "needs --bound",
    ("--bound", "3"): "--bound belongs to method 'known-bound', not to 'valid'",
    ("--method", "known-bound", "--bound", "-1"): "bound is -1.0; give the largest difference you allow, 0 or more",
    ("--method", "known-bound", "--bound", "nan"): "bound must be a number, not nan",
    ("--method", "known-bound", "--bound", "small"): "bound must be a number, not 'small'",
    ("--method", "known-bound", "--bound", "5min"): "bound must be a number, not '5min'",
    ("--method", "known-bound", "--bound", "west=3"): "names 'west', which is no source",
    ("--method", "known-bound", "--bound", "north=3,south=3"): "names 'north', which is no source",
    ("--method", "known-bound", "--bound", "south=1,south=2"): "--bound names source 'south' twice",
    ("--method", "known-bound", "--bound", "south=1,2"): "--bound has a part '2' that is not source=bound",
    ("--method", "known-bound", "--bound", "south="): "'south='",
    ("--method", "known-bound", "--bound", "@absent.csv"): "absent.csv",
    ("--level", "0.93"): "0.93",
    ("--level", "1"): "strictly between 0 and 1",
    ("--variance", "theorem"): "--variance, --quantile and --caution belong to the paper's methods",
    ("--variance", "guess"): "variance 'guess' is unknown",
    ("--quantile", "u"): "quantile 'u' is unknown",
    ("--method", "conservative-paper", "--caution", "-1"): "caution must be a number of errors",
    ("--sites", "rows"): "sites 'rows' is unknown; choose one of 'staged', 'chains'",
    ("--sites", "chains"): "leave --sites out",
    ("--method", "adaptive", "--chains", "1"): "chains must be a whole number from 2 to",
    ("--method", "adaptive", "--chains", "5000"): "the target 'north' has too few records: 5000 chains need",
    ("--bounds", "5"): "--bounds is '5'",
    ("--bounds", "5,1"): "low < high",
    ("--scale", "-1"): "scale",
    ("--resolution", "-1"): "resolution",
    ("--summaries", "absent.json"): "--summaries is absent.json, which cannot be read",
    ("--plot", "absent-folder/run.png"): "absent-folder",
    ("--plot", "run.jpeg"): "run.jpeg",
}


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_a_bad_option_costs_nobody_a_report(files: Path, options: tuple[str, ...]) -> None:
    assert BAD_OPTIONS[options] in sentence(integrate(files, *options))


BAD_SUMMARIES: dict[str, tuple[str | bytes, str]] = {
    "no JSON": ('{"west": {"estimate": 5', "is not JSON (line 1)"),
    "not UTF-8": (b"\xff\xfe\x00", "is not text in UTF-8"),
    "nested": ("[" * 100_000, "is nested too deeply"),
    "a list": ('[{"estimate": 5, "se": 1}]', "does not say what each site published"),
    "nobody": ("{}", "does not say what each site published"),
    "a number": ('{"west": 5}', "does not say what 'west' published"),
    "records": ('{"west": [1, 2, 3]}', "does not say what 'west' published"),
    "twice": ('{"west": {"estimate": 5, "se": 1}, "west": {"estimate": 6, "se": 1}}', "names 'west' twice"),
    "no estimate": ('{"west": {"se": 1}}', "has no 'estimate'"),
    "no error": ('{"west": {"estimate": 17}}', 'neither se nor interval; give one, or "trusted": false'),
    "error zero": ('{"west": {"estimate": 17, "se": 0}}', "'west' in "),
    "error below zero": ('{"west": {"estimate": 17, "se": -1}}', "must be positive"),
    "no number": ('{"west": {"estimate": "much", "se": 1}}', "the estimate of 'west' in "),
    "NaN": ('{"west": {"estimate": NaN, "se": 1}}', "not nan"),
    "elsewhere": (
        '{"west": {"estimate": 17, "interval": [18, 20]}}',
        "18 to 20, does not contain its estimate 17",
    ),
    "turned round": ('{"west": {"estimate": 17, "interval": [18, 16]}}', "give the smaller end first"),
    "a word": ('{"west": {"estimate": 17, "interval": ["low", "high"]}}', "the interval of 'west' in "),
    "too much": ('{"west": {"estimate": 17, "interval": [16, 18], "se": 1}}', "both se and interval"),
    "unknown": ('{"west": {"estimate": 17, "sd": 1}}', "'sd', which a summary does not know"),
    "clash": ('{"south": {"estimate": 17, "se": 1}}', "site 'south' has both records and a summary"),
}


@pytest.mark.parametrize("name", BAD_SUMMARIES)
def test_a_bad_summary_costs_nobody_a_report(files: Path, tmp_path: Path, name: str) -> None:
    text, said = BAD_SUMMARIES[name]
    path = tmp_path / "told.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert said in sentence(integrate(files, "--summaries", str(path)))


def test_text_is_no_number_where_no_records_say_what_it_means(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    path.write_text(json.dumps({"west": {"estimate": "2013-05-01", "se": 1}}))
    done = CliRunner().invoke(app, ["integrate", "--target", "west", "--tau", "0.5", "--summaries", str(path)])
    assert "must be a number, not '2013-05-01'" in sentence(done)


DOUBTFUL = {
    ("--method", "conservative"): "source 'west' has no standard error to be trusted",
    ("--method", "adaptive"): "has no standard error to be trusted",
    ("--target", "west"): "the target 'west' has no standard error to be trusted",
    ("--sensitivity", "--sources", "west"): "--sensitivity needs a source with a standard error",
}


@pytest.mark.parametrize("options", DOUBTFUL, ids=" ".join)
def test_a_summary_without_an_error_cannot_do_everything(files: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "told.json"
    path.write_text(json.dumps({"west": {"estimate": 17, "trusted": False}}))
    assert DOUBTFUL[options] in sentence(integrate(files, "--summaries", str(path), *options))


def test_decay_asks_for_the_number_of_records(files: Path, tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    path.write_text(json.dumps({"west": {"estimate": 17, "se": 1}}))
    said = sentence(integrate(files, "--summaries", str(path), "--method", "decay"))
    assert "needs the number of records of 'west'; give \"n\" in its summary" in said


@pytest.mark.parametrize("absent", ["--value", "--epsilon"])
def test_files_need_a_column_and_a_budget(files: Path, absent: str) -> None:
    words = [word for name, value in USUAL.items() if name != absent for word in (name, value)]
    said = sentence(CliRunner().invoke(app, ["integrate", str(files / "north.parquet"), *words]))
    assert f"{absent} is missing" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "neither FILES nor --summaries"),
        (("--value", "delay", "--summaries"), "--value is about records"),
        (("--site", "clinic", "--summaries"), "--site is about records"),
        (("--person", "whose", "--summaries"), "--person is about records"),
        (("--sensitivity", "--summaries"), "--sensitivity needs a source"),
    ],
    ids=["nothing", "column", "site", "person", "curve"],
)
def test_without_files_options_about_records_are_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    path = tmp_path / "told.json"
    path.write_text(json.dumps({"west": {"estimate": 17, "se": 1}}))
    told = [str(path)] if options else []
    done = CliRunner().invoke(app, ["integrate", "--target", "west", "--tau", "0.5", *options, *told])
    assert said in sentence(done)


BAD_FILES = {
    "empty.csv": ("", "is an empty file"),
    "text.csv": ("delay\n1\nfour\n", "holds text in row 2"),
    "missing.csv": ('delay\n1\n""\n3\n', "--drop-missing"),
    "dates.csv": ("delay\n2013-05-01\n2013-05-02\n2013-05-03\n", "dates"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_costs_nobody_a_report(files: Path, tmp_path: Path, name: str) -> None:
    text, said = BAD_FILES[name]
    (tmp_path / name).write_text(text)
    usual = [word for pair in USUAL.items() for word in pair]
    done = CliRunner().invoke(app, ["integrate", str(files / "north.parquet"), str(tmp_path / name), *usual])
    assert said in sentence(done)


def test_a_source_with_too_few_records_is_left_out_before_anything_is_asked(files: Path, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("delay\n" + "".join(f"{i}\n" for i in range(40)))
    usual = [word for pair in USUAL.items() for word in pair]
    words = ["integrate", str(files / "north.parquet"), str(tmp_path / "few.csv"), *usual]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, AssertionError)  # of the guard: the plan was complete, and this said before
    assert "sottovoce: source 'few' is left out, not asked: the 0.5 quantile needs about " in done.stderr
    assert "there are 40" in done.stderr
