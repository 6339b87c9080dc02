"""The commands have no seed, so their tests load the system's dice: what passes once passes always."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.client.answered import MEMORY
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy

N = 12_000
USUAL = {"--value": "delay", "--tau": "0.5", "--epsilon": "3"}
SIZES = {"east": 40, "north": 60, "south": 40}
Scores = dict[str, list[float]]


@pytest.fixture(autouse=True)
def loaded_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the system's words from a seed."""
    seeded = sv.sim.dice(7)

    def words(_: SystemEntropy, n: int) -> Words:
        return seeded.words(n)

    monkeypatch.setattr(SystemEntropy, "words", words)


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command begin as it does in a process of its own, which has asked nobody."""
    invoke = CliRunner.invoke

    def invoked(*args: Any, **kwargs: Any) -> Any:
        MEMORY.clear()
        return invoke(*args, **kwargs)

    monkeypatch.setattr(CliRunner, "invoke", invoked)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the records of two sites, one file each and both in one."""
    folder, tables = tmp_path_factory.mktemp("records"), []
    for seed, name in enumerate(("north", "south")):
        delays = sv.sim.dice(seed).generator().gamma(2.0, 10.0, size=N)
        table = pa.table({"delay": delays, "word": ["x"] * N, "whose": list(range(N))})
        pq.write_table(table, folder / f"{name}.parquet")
        tables.append(table.append_column("clinic", pa.array([name] * N)))
    pq.write_table(pa.concat_tables(tables), folder / "both.parquet")
    return folder


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Ask for the quantile of files in a folder, with the usual options where none are given."""

    def asked(folder: Path, *options: str, files: tuple[str, ...] = ("north.parquet", "south.parquet")) -> Any:
        usual = [word for name, value in USUAL.items() if name not in options for word in (name, value)]
        return CliRunner().invoke(app, ["quantile", *(str(folder / name) for name in files), *usual, *options])

    return asked


@pytest.fixture(scope="session")
def scores() -> tuple[Scores, Scores]:
    """Draw the scores of three sites, and fresh ones."""

    def drawn(seed: int) -> Scores:
        source = sv.sim.dice(seed).generator()
        return {name: abs(source.normal(size=size)).tolist() for name, size in SIZES.items()}

    return drawn(1), drawn(2)


@pytest.fixture(scope="session")
def score_files(scores: tuple[Scores, Scores], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the scores of three sites and fresh ones, one file each and all in one; a person has two rows."""
    folder = tmp_path_factory.mktemp("scores")
    for place, drawn in zip(("made", "fresh"), scores, strict=True):
        (folder / place).mkdir()
        for name, some in drawn.items():
            pq.write_table(pa.table({"residual": some, "word": ["x"] * len(some)}), folder / place / f"{name}.parquet")
        rows = [(score, name, i // 2) for name, some in drawn.items() for i, score in enumerate(some)]
        columns = dict(zip(("residual", "clinic", "whose"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), folder / f"{place}.parquet")
    return folder


@pytest.fixture
def conformal() -> Callable[..., Any]:
    """Ask for a threshold of files in a folder, three sites in three files where none are named."""

    def asked(folder: Path, *words: str, files: tuple[str, ...] = ("made/*.parquet",)) -> Any:
        column = () if "--score" in words else ("--score", "residual")
        return CliRunner().invoke(app, ["conformal", *(str(folder / name) for name in files), *column, *words])

    return asked
