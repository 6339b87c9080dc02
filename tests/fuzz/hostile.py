"""Hostile words and files for the command line, drawn from a seed: each must be refused in one sentence.

Every value of the data begins with `MARK`, so that whatever quotes one is found out. A case is a whole command that
would run, with one thing wrong: a word of an option, a file, an option twice, an option that does not exist.
"""

# ruff: noqa: E501

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

MARK = "98765"
ROWS = 3_000
NASTY = (
    "", " ", "nan", "-inf", "1e999", "-1", "0x1p3", "9" * 5_000, "1e-400", "five", "NaN,NaN", "0.5;0.9", "½", "=1", "\x1b[31m",
    "\u202e5", "\x00".replace("\x00", "\x07"), "@/nowhere/at/all.csv", "@", "a" * 20_000, "[[[[[[", "{}", "--", "1,,2", "true",
    "0.5 0.9", "'; DROP TABLE", "%s%s%n", "${HOME}", "../../etc/passwd", "😀", "-0.0.0", "1_0_", "1,5,", ",",
)  # fmt: skip
NUMBERS = ("-1", "nan", "1e999", "-inf", "five", "", "9" * 5_000, "0.5.5", "--5", "1e", "0x", "½", "1 2", "\x1b[2J")
# options by command: what is wrong for each
WRONG: dict[str, dict[str, Sequence[str]]] = {
    "quantile": {
        "--tau": (*NUMBERS, "0", "1", "1.5", "5e-324", "north=.5", "0.5,0.5", "0.5,2", "north=.5,west=.5", "@", "1e-300"),
        "--epsilon": (*NUMBERS, "0", "1e-300", "north=1", "north=1,south=x", "@none.csv", "north=1,north=2,south=1", "1e400"),
        "--level": (*NUMBERS, "0", "1", "95", "2"),
        "--value": ("nothing", "", "VALUE", "a" * 20_000, "\x1b[31m", "where"),
        "--site": ("nothing", "", "b" * 3_000, "\u202e"),
        "--shares": ("some", "north=.5", "north=.5,south=.6", "north=nan,south=1", "@none.json", "-1"),
        "--method": ("stagd", "", "x" * 9_999, "regression;ls"),
        "--kind": ("prices", "", "numbers"),
        "--bounds": ("5,1", "1", "nan,2", "0,5e-324", "a,b", "1,2,3", "inf,inf", ",,,"),
        "--scale": ("-1", "nan", "0", "five", "1e-400", "inf"),
        "--resolution": ("-1", "nan", "1e-310", "inf", "five", "1e308"),
        "--schedule": ("every:5", "every:100000000000000000000", "log:log", "1,1,-2", "every:0"),
        "--participation": ("0", "-1", "nan", "1e-320", "2", "x"),
        "--graph": ("ring", "star", ""),
        "--norm": ("l3", "sup "),
        "--until": ("-1", "nan", "0", "5"),
        "--test": ("nan", "five", "", "1h", "inf inf"),
        "--alternative": ("bigger", "", "two_sided"),
        "--person": ("nothing", "", "value"),
        "--delimiter": ("word", "ab", "", "\n"),
        "--decimal": ("x", "", ".."),
        "--plot": ("/nowhere/at/all.png", "plot.exe", "", "/proc/plot.png", "."),
        "--report": ("/nowhere/at/all.html", "report.exe", "", "."),
    },
    "integrate": {
        "--target": ("nothing", "", "NORTH ", "x" * 9_999),
        "--tau": (*NUMBERS, "0", "1", "0.5,0.9"),
        "--epsilon": (*NUMBERS, "0", "north=1", "@none.toml"),
        "--value": ("nothing", ""),
        "--site": ("nothing", ""),
        "--sources": ("west", "south,south", "", ","),
        "--summaries": ("none.json", "deep.json", "digits.json", "data.csv", ""),
        "--method": ("vald", "", "known-bound"),
        "--level": ("0.5", "nan", "1", "95", "x"),
        "--bound": ("5", "-1", "nan", "x"),
        "--variance": ("print", ""),
        "--quantile": ("q", ""),
        "--caution": ("-1", "nan", "x"),
        "--sites": ("stage", ""),
        "--chains": ("1", "-1", "x", "1e9", "99999999999"),
        "--bounds": ("5,1", "x", "nan,nan"),
        "--scale": ("-1", "x"),
        "--resolution": ("-1", "1e-310", "x"),
        "--plot": ("/nowhere/at/all.png", "plot.exe"),
        "--report": ("/nowhere/at/all.html", "x.pdf"),
    },
    "regress": {
        "--response": ("nothing", "", "where", "a" * 9_999),
        "--features": ("nothing", "", "value,value", "where", "first,first", ",,"),
        "--tau": (*NUMBERS, "0", "1", "0.5,0.5", "5e-324"),
        "--epsilon": (*NUMBERS, "0", "1e-300"),
        "--bounds": ("first=5:1", "first=nan:1", "other=0:1", "0:0", "x", "first=0:1e-320"),
        "--channel": ("lq", "cq:0,0", "cq:99,99", "", "cq:x"),
        "--inference": ("dither", ""),
        "--level": ("0", "1", "95", "x"),
        "--density": ("-1", "nan", "0", "x", "1,2"),
        "--size": ("-1", "nan", "0", "x", "inf"),
        "--start": ("nan", "x", "1,2,3,4,5,6"),
        "--plot": ("/nowhere/at/all.png", "plot.exe"),
        "--report": ("/nowhere/at/all.html", "x"),
        "--delimiter": ("word", ""),
    },
    "conformal": {
        "--score": ("nothing", "", "where"),
        "--site": ("nothing", ""),
        "--alpha": (*NUMBERS, "0", "1", "1.5"),
        "--epsilon": (*NUMBERS, "0", "north=1"),
        "--maximum": ("nan", "x", "-1", "inf", "0"),
        "--minimum": ("nan", "x", "1e12", "inf"),
        "--bins": ("0", "-1", "x", "1.5", "99999999999", "9" * 5_000),
        "--grid": ("5,1", "x", "nan,1", "@none.csv", "@deep.json", "1,1"),
        "--mechanism": ("sparse", "", "laplace"),
        "--guarantee": ("none", ""),
        "--delta": ("0.2", "nan", "x", "0"),
        "--rule": ("close", ""),
        "--statistics": ("2", "0", "x", "99"),
        "--weights": ("north=.5,south=.5", "x"),
        "--test": ("none.csv", "data.csv"),
        "--coverage-epsilon": ("1", "-1", "x"),
        "--plot": ("/nowhere/at/all.png", "plot.exe"),
        "--report": ("/nowhere/at/all.html", "x"),
        "--person": ("nothing", "value"),
    },
}  # fmt: skip
FLAGS = ("--what", "--Tau", "-t", "--value=", "--seed", "--epsilon-", "--no-privacy", "---", "--json=yes", "--help=")


class Case(NamedTuple):
    """The words after `sottovoce`, and what is wrong with them."""

    words: tuple[str, ...]
    wrong: str


def values(rows: int = ROWS) -> list[str]:
    """Return numbers that all begin with the mark."""
    return [f"{MARK}{place * 7919 % 100_003:06d}.{place % 97:02d}" for place in range(rows)]


def write_files(folder: Path, bomb: int = 30_000_000) -> list[str]:
    """Write the good file, `data.csv`, and the bad ones, one of which unpacks to many rows; return the names of the bad."""
    good = values()
    rows = [f"{v},{'north' if k % 2 else 'south'},{k % 7 / 7:.3f},{k}" for k, v in enumerate(good)]
    (folder / "data.csv").write_text("value,where,first,who\n" + "\n".join(rows))
    table = pa.table({"value": [float(v) for v in good], "where": ["north", "south"] * (ROWS // 2)})
    feather, parquet = folder / "whole.feather", folder / "whole.parquet"
    pyarrow.feather.write_feather(table, feather)
    pq.write_table(table, parquet)
    bad: dict[str, bytes] = {
        "empty.csv": b"",
        "header.csv": b"value,where,first,who\n",
        "headless.csv": "\n".join(rows).encode(),
        "ragged.csv": ("value,where,first,who\n" + "\n".join(rows[:50]) + f"\n{MARK}1,north\n" + "\n".join(rows)).encode(),
        "text.csv": f"value,where,first,who\n{MARK}1,north,0.5,1\nx{MARK}2,south,0.5,2\n".encode(),
        "missing.csv": ("value,where,first,who\n" + "\n".join(rows[:99]) + "\n,north,0.5,1\n").encode(),
        "infinite.csv": ("value,where,first,who\n" + "\n".join(rows[:99]) + "\ninf,north,0.5,1\n").encode(),
        "censored.csv": ("value,where,first,who\n" + "\n".join(rows[:99]) + f"\n<{MARK}5,north,0.5,1\n").encode(),
        "nul.csv": b"\x00" * 5_000,
        "binary.csv": bytes(range(256)) * 40,
        "line.csv": b"9" * 3_000_000,
        "utf16.csv": "value;where\n1;2".encode("utf-16")[:9],
        "quoted.csv": b'value,where,first,who\n"' + MARK.encode() * 900,
        "few.csv": f"value,where,first,who\n{MARK}1,north,0.5,1\n".encode(),
        "equal.csv": ("value,where,first,who\n" + f"{MARK}1,north,0.5,1\n" * 500).encode(),
        "twice.csv": ("value,value,first,who\n" + "\n".join(rows[:99])).encode(),
        "control.csv": ("value,where,first,who\n" + "\n".join(f"{v},no\x1b[31mrth,0.5,1" for v in good[:500])).encode(),
        "cut.parquet": parquet.read_bytes()[:900],
        "cut.feather": feather.read_bytes()[:400],
        "named.parquet": b"value,where\n1,2\n",
        "named.gz": b"value,where\n1,2\n",
        "not.csv.gz": b"value,where\n1,2\n",
        "bomb.csv.gz": gzip.compress(b"value,where,first,who\n" + b"1,north,0.5,1\n" * bomb, 1),
        "cut.csv.gz": gzip.compress("\n".join(rows).encode())[:200],
        "deep.json": b"[" * 100_000,
        "digits.json": b'{"north": {"estimate": ' + b"9" * 9_000 + b', "se": 1}}',
        "deep.toml": b"a = " + b"[" * 20_000,
        "sites.csv": f"north,{MARK}\nsouth,x\n".encode(),
        "unknown.xlsx": b"PK\x03\x04",
        "noending": b"value\n1\n",
    }  # fmt: skip
    for name, content in bad.items():
        (folder / name).write_bytes(content)
    (folder / "folder.csv").mkdir(exist_ok=True)
    fifo = folder / "fifo.csv"
    if not fifo.exists():
        os.mkfifo(fifo)
    others = [
        "folder.csv",
        "fifo.csv",
        "none.csv",
        "*.nothing",
        "x" * 3_000,
        "/dev/zero",
        "/proc/self/mem",
        "~nobody/x.csv",
        "[",
    ]
    return [*(name for name in bad if not name.endswith((".json", ".toml"))), *others]


REQUIRED = {"quantile": 0, "integrate": 0, "regress": 2, "conformal": 0}  # where a required option stands in its base
BASE: dict[str, list[str]] = {
    "quantile": ["--value", "value", "--site", "where", "--tau", "0.5", "--epsilon", "2"],
    "integrate": ["--target", "north", "--value", "value", "--site", "where", "--tau", "0.5", "--epsilon", "2"],
    "regress": ["--response", "value", "--features", "first", "--tau", "0.5", "--epsilon", "2", "--bounds", "0:1"],
    "conformal": ["--score", "value", "--site", "where", "--epsilon", "2", "--maximum", "100000000000"],
}


def cases(count: int, seed: int, bad_files: Sequence[str]) -> Iterator[Case]:
    """Yield hostile commands, the same ones for the same seed."""
    draw = np.random.default_rng(seed)  # noqa: TID251

    def one(of: Sequence[Any]) -> Any:
        return of[int(draw.integers(len(of)))]

    makers: list[Callable[[str], Case]] = [
        lambda command: _option(command, *(lambda name: (name, one(WRONG[command][name])))(one(list(WRONG[command])))),
        lambda command: Case((command, one(bad_files), *BASE[command]), "file"),
        lambda command: Case((command, "data.csv", *BASE[command], one(FLAGS)), "flag"),
        lambda command: Case((command, "data.csv", *_without(BASE[command], REQUIRED[command])), "lacks an option"),
        lambda command: _option(command, one(["--tau", "--epsilon", "--alpha", "--level"]), one(NASTY)),
        lambda command: Case((command + one(["s", "x", " ", "\x1b"]) * 2, "data.csv", *BASE[command]), "command"),
    ]
    weights = np.array([0.62, 0.2, 0.05, 0.04, 0.07, 0.02])
    made = 0
    while made < count:
        case = makers[int(draw.choice(len(makers), p=weights))](one(list(BASE)))
        allowed = case.words[:2] == ("conformal", "equal.csv")  # a model that is right everywhere
        if case.wrong != "nothing" and not allowed:
            made += 1
            yield case


def _option(command: str, name: str, word: str) -> Case:
    """Give one option a wrong word."""
    if name not in WRONG[command] or "\x00" in word:
        return Case((), "nothing")
    words = list(BASE[command])
    if name in words:
        words[words.index(name) + 1] = word
    else:
        words += [name, word]
    return Case((command, "data.csv", *words), f"{name}")


def _without(words: list[str], place: int) -> list[str]:
    """Leave out a required option with its word."""
    return words[:place] + words[place + 2 :]
