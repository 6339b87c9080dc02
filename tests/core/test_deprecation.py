"""Old names still work, are offered nowhere, and say once where they are used what to write instead and by when."""

import re
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.core.calling import public
from sottovoce.core.deprecation import say_former

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
CALL = re.compile(r'say_former\(\s*(f?"[^"]+"), (f?"[^"]+"), since="([^"]+)", gone="([^"]+)"\)')


@public
def asked(records: list[float]) -> float:
    say_former("asked", "sought", since="0.1.0", gone="0.3.0")
    return records[0]


def test_the_sentence_says_since_when_what_instead_and_when_it_goes() -> None:
    told = "asked is called sought since version 0.1.0 and goes in version 0.3.0; write sought."
    with pytest.warns(FutureWarning, match=f"^{re.escape(told)}$") as caught:
        assert asked([2.5]) == 2.5
    assert len(caught) == 1


def test_the_warning_names_the_callers_line_also_where_the_name_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "theirs.py"
    path.write_text("import sottovoce as sv\n\nassert sv.Refused is sv.Infeasible\nfrom sottovoce import Lost\n")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    found = re.findall(r"theirs\.py:(\d): FutureWarning: sv\.(\w+) is called sv\.(\w+) since", done.stderr)
    assert set(found) == {("3", "Refused", "Infeasible"), ("4", "Lost", "SearchFailed")}


def test_old_names_are_the_new_ones_and_are_offered_nowhere() -> None:
    with pytest.warns(FutureWarning, match="write sv.SearchFailed"):
        assert sv.Lost is sv.SearchFailed
    assert {"Refused", "Lost"}.isdisjoint({*sv.__all__, *dir(sv)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from sottovoce import *", {})


def test_old_names_of_results_give_what_the_new_ones_give() -> None:
    draw = sv.sim.dice(3).generator()
    sites = {"north": draw.gamma(2, 10, 9_000), "south": draw.gamma(2, 12, 9_000)}
    r = sv.federated_quantile(sites, 0.5, 4.0, randomness=sv.sim.dice(4))
    with pytest.warns(FutureWarning, match="^drivers is called variance_shares") as caught:
        assert r.drivers == r.variance_shares
    assert caught[0].filename == __file__
    t = sv.conformal_threshold(
        {"a": draw.gamma(2, 10, 200), "b": draw.gamma(2, 10, 200)}, 0.9, randomness=sv.sim.dice(5)
    )
    with pytest.warns(FutureWarning, match="^law is called distribution"):
        assert t.law == t.distribution


def test_every_old_name_stands_on_the_page_and_none_has_outlived_its_time() -> None:
    """Two minor versions are promised: `gone` says so, and from then on the name is deleted."""
    page = (ROOT / "docs" / "stability.md").read_text()
    calls = [found for path in SOURCE.rglob("*.py") for found in CALL.findall(path.read_text())]
    written = sum(path.read_text().count("say_former(") for path in SOURCE.rglob("*.py")) - 1  # its definition
    assert len(calls) == written > 0
    now = tuple(map(int, version("sottovoce").split(".")[:2]))
    for old, _, since, gone in calls:
        begins, ends = (tuple(map(int, each.split(".")[:2])) for each in (since, gone))
        assert begins[0] < ends[0] or ends[1] >= begins[1] + 2, old
        assert now < ends, f"{old} has had its time: delete it"
        for name in sv._FORMER if old.startswith("f") else [old.strip('"')]:
            assert f"`{name}`" in page
