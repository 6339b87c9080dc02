"""`sottovoce plan`: the first try of a newcomer works, and what is wrong costs one sentence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app

TRIES: dict[str, str] = {
    "quantile": "--epsilon 1 --width 2 --sd 15",
    "quantile of sites": "--epsilon north=1,south=2 --people north=4000,south=9000 --bounds 0,120 --tau 0.75",
    "quantile of groups": "--each --epsilon 1 --people men=20000 --people women=30000 --iqr 10",
    "quantile at several levels": "--tau 0.25,0.5,0.75 --epsilon 2 --people 200000 --sites north,south",
    "difference": "--epsilon 1 --people men=20000,women=30000 --sd 15",
    "regression": "--features age=18:90,hours=0:60 --epsilon 2 --people 300000 --sd 10",
    "integration": "--target ours --people ours=20000,north=80000 --epsilon 1 --sd 15",
    "conformal": "--people 2000 --sites 10 --epsilon 1",
}


def planned(words: str) -> Any:
    return CliRunner().invoke(app, ["plan", *words.split()])


@pytest.mark.parametrize("name", TRIES)
def test_the_first_try_works(name: str) -> None:
    words = f"{name.split()[0]} {TRIES[name]}"
    done = planned(words)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert "<- found" in done.stdout
    found = json.loads(planned(f"{words} --json").stdout)
    assert found["question"] == name.split()[0]
    assert found["widths"][0]["value"] > 0


def test_the_command_says_what_the_function_says(tmp_path: Path) -> None:
    path = tmp_path / "plan.png"
    done = planned(f"quantile --tau 0.9 --epsilon 1 --people 20000 --sd 15 --json --plot {path}")
    found = sv.plan(tau=0.9, epsilon=1, people=20_000, sd=15)
    assert json.loads(done.stdout) == found.to_dict() | {"plot": str(path)}
    assert path.stat().st_size > 10_000


BAD: dict[str, str] = {
    "quantile --people 500": "give two of --epsilon, --people and --width",
    "quantile --epsilon 1 --people 10000 --width 1 --sd 15": "people at epsilon 1, or epsilon",
    "quantile --epsilon 1 --people 10000 --sd 15 --iqr 2": "are two guesses of one thing",
    "quantile --epsilon 1 --people 10000 --sd wide": "--sd is 'wide', which is not a number",
    "quantile --epsilon 1 --people 10000 --shape normal": "shape needs a number",
    "quantile --epsilon 1 --people many": "--people is 'many', which is not a number",
    "quantile --epsilon 1 --people 10000 --method stagd": "did you mean 'staged'?",
    "quantile --epsilon 1 --people 10000 --plot plan.txt": "ends in .png",
    "regression --features age --epsilon 1 --people 90000": "--features takes NAME=LOW:HIGH",
    "regression --features age=18 --epsilon 1 --people 90000": "is not NAME=LOW:HIGH",
    "integration --target west --people north=9000 --epsilon 1": "target 'west' is none of the sites",
    "conformal --people 2000 --sites 10 --epsilon 1 --mechanism lokal": "did you mean 'local'?",
}


@pytest.mark.parametrize(("words", "sentence"), BAD.items(), ids=list(BAD))
def test_bad_input_is_one_sentence(words: str, sentence: str) -> None:
    done = planned(words)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_plan_loads_no_compiler_no_picture_and_no_site() -> None:
    code = (
        "import sys; sys.argv = 'sottovoce plan quantile --epsilon 1 --width 2 --sd 15'.split()\n"
        "from sottovoce.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numba', 'matplotlib', 'pyarrow', 'sottovoce.client', 'sottovoce.api') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
