"""Hostile words and files for the commands of a federation: a study card, a policy, an option or a ledger."""

# ruff: noqa: E501

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .hostile import FLAGS, Case

CARD = {
    "name": 'name = "waits"',
    "sites": 'sites = ["north", "south"]',
    "quantile": "[quantile]\ntau = 0.5\nepsilon = 1.0",
    "rounds": "[rounds]\nwait = 1",
}
POLICY = {
    "name": 'name = "north"',
    "source": 'source = "waits"',
    "records": '[records]\nvalue = "value"',
    "limits": "[limits]\nepsilon = 1.0\ntotal = 3.0",
}
WRONG_CARD = {
    "name": ('name = ""', "name = 5", 'name = "\\u001b[31m"', f'name = "{"a" * 9_999}"', 'name = "a\\nb"', "name = [", ""),
    "sites": ("sites = []", 'sites = "north"', 'sites = ["north", "north"]', "sites = [1, 2]", 'sites = ["", "a"]', "",
              'sites = ["north", "\\u202ex"]', "sites = " + "[" * 9_000, 'sites = ["../x", "a"]'),
    "quantile": ("", "[quantile]", "[quantille]\ntau = 0.5", "[quantile]\ntau = 0.5\nepsilon = 1\nrobust = true",
                 "[quantile]\ntau = 0.5\nepsilon = 1\n[conformal]\nalpha = 0.1", "quantile = 5"),
    "rounds": ("[rounds]\nwait = -1", "[rounds]\nwait = nan", "[rounds]\nleast = 0", "[rounds]\nleast = 9", "rounds = []",
               "[rounds]\ndeadline = 'x'", "[rounds]\nlonger = 1", "[rounds]\nleast = 1.5", "[rounds]\nwait = true"),
}  # fmt: skip
WRONG_POLICY = {
    "name": ('name = ""', "name = []", 'name = "\\u001b[31m"', ""),
    "source": ("source = 5", 'source = ""', ""),
    "records": ("", "[records]", '[records]\nvalue = "nothing"', "[records]\nvalue = 5", '[records]\nvalue = "where"',
                '[records]\nvalue = "value"\nmissing = "guess"', '[records]\nvalue = "value"\nperson = "nobody"',
                '[records]\nvalue = "value"\ncolumn = "x"', '[records]\nvalue = "value"\nfeatures = "first"',
                '[records]\nvalue = "value"\nfeatures = ["where"]', '[records]\nvalue = "value"\nspool = 5'),
    "limits": ("", "[limits]", "[limits]\nepsilon = 1", "[limits]\nepsilon = -1\ntotal = 1", "[limits]\nepsilon = nan\ntotal = 1",
               "[limits]\nepsilon = 1\ntotal = 'x'", "[limits]\nepsilon = 1\ntotal = 3\nmethods = ['guess']", "limits = 5",
               "[limits]\nepsilon = 1\ntotal = 3\nrounds = -1", "[limits]\nepsilon = 1\ntotal = 3\nmore = 1",
               "[limits]\nepsilon = 1\ntotal = 3\nopen = 'yes'"),
}  # fmt: skip
NO_NAMES = ("", "../x", "a/b", "=1", "\x1b[31m", "\u202e5", "\x07", "@", "a" * 20_000, "[[", "{}", "%s", "${HOME}", ".")
FINE = ("control.csv", "few.csv", "equal.csv")  # to a site, which reads one column of them
SERVE, SITE = ["--insecure", "--quiet", "--port", "0"], ["--insecure", "--quiet", "--once"]
WRONG_SERVE = {
    "--port": ("-1", "99999", "five", "", "1e9"),
    "--host": ("999.1.1.1", "0.0.0.0", "no host"),
    "--certificates": ("none", "data.csv", ""),
    "--log": ("/nowhere/at/all.log", ".", "data.csv", "postgresql://nobody@127.0.0.1:1/none"),
    "--out": ("/nowhere/at/all.json", ".", "out.exe"),
    "--plot": ("plot.exe", "/nowhere/at/all.png"),
    "--report": ("report.exe", "/nowhere/at/all.html"),
    "--without": ("north", "nobody", "", "\x1b[31m"),
    "--status": ("five", "-1", "99999"),
    "--events": ("xml", ""),
}
WRONG_SITE = {
    "--coordinator": ("", "ftp://x", "http://", "nowhere", "https://127.0.0.1:9", "http://10.0.0.1:9", "\x1b[31m"),
    "--certificates": ("none", "data.csv", ""),
    "--ledger": ("/nowhere/at/all.ledger", ".", "data.csv"),
    "--socket": ("/nowhere/at/all.sock", "data.csv", "s" * 300),
    "--status": ("five", "-1", "99999"),
    "--events": ("xml", ""),
}


def federation_cases(count: int, seed: int, folder: Path, bad_files: Sequence[str]) -> Iterator[Case]:
    """Yield hostile commands of a federation, and write the cards and policies they need."""
    draw = np.random.default_rng(seed)  # noqa: TID251
    (folder / "study.toml").write_text("\n".join(CARD.values()))
    (folder / "policy.toml").write_text("\n".join(POLICY.values()))
    files = [name for name in bad_files if name not in ("[", "*.nothing", *FINE)]

    def one(of: Sequence[Any]) -> Any:
        return of[int(draw.integers(len(of)))]

    def written(good: dict[str, str], wrong: dict[str, Any], number: int) -> str:
        part = one(list(wrong))
        name = f"wrong{number}.toml"
        (folder / name).write_text("\n".join({**good, part: one(wrong[part])}.values()))
        return name

    def site(policy: str, data: str = "data.csv", *more: str) -> tuple[str, ...]:
        where = () if "--socket" in more or "--coordinator" in more else ("--coordinator", "http://127.0.0.1:9")
        return ("site", data, "--policy", policy, *where, *SITE, *more)

    for number in range(count):
        what = one(("card", "card", "serve", "policy", "policy", "site", "file", "ledger", "certificates", "flag"))
        if what == "card":
            yield Case(("serve", written(CARD, WRONG_CARD, number), *SERVE), what)
        elif what == "serve":
            name = one([*WRONG_SERVE, "--give-up"])
            yield Case(
                ("serve", "study.toml", *SERVE, name, *([] if name == "--give-up" else [one(WRONG_SERVE[name])])), name
            )
        elif what == "policy":
            yield Case(site(written(POLICY, WRONG_POLICY, number)), what)
        elif what == "site":
            name = one(list(WRONG_SITE))
            yield Case(site("policy.toml", "data.csv", name, one(WRONG_SITE[name])), name)
        elif what == "file":
            yield Case(one((("serve", one(files), *SERVE), site(one(files)), site("policy.toml", one(files)))), what)
        elif what == "ledger":
            yield Case(("ledger", one(("show", "verify", "export", "burn")), one(files)), what)
        elif what == "certificates":
            names = one((("north", "north"), ("coordinator",), *((each,) for each in NO_NAMES)))
            given = one(
                (("certs", *names), ("data.csv", "north"), (".", "north"), ("certs", "a", "--host", "\u00e9 x"))
            )
            yield Case(("certificates", *given), what)
        else:
            yield Case(
                one((("serve", "study.toml", *SERVE, one(FLAGS)), site("policy.toml", "data.csv", one(FLAGS)))), what
            )
