"""Sites of a federation declare limits of measurement; a study takes one pair of limits, and quantiles alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.network import DirectPost, conduct, terms

from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.federation.coordinator.opening import StudyPaused
from sottovoce.federation.site.holding import read_holding
from sottovoce.federation.site.policy import policy_of
from sottovoce.federation.site.resident import Resident
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:.*barely supported:UserWarning")
LEAD = np.round(dice(11).generator().lognormal(2.1, 1.0, 6_000), 2)
PARTS = {"north": LEAD[::2], "south": LEAD[1::2]}


def policy(name: str, **records: Any) -> Any:
    limits = {"epsilon": 9.0, "total": 50.0, "open": True}
    return policy_of({"name": name, "source": "waits", "records": {"value": "wait", **records}, "limits": limits})


class Clinics:
    """Two sites that read files of their own, each by its policy."""

    def __init__(self, folder: Path, records: dict[str, dict[str, Any]]) -> None:
        self.folder, self.sites = folder, {}
        for (name, part), own in zip(PARTS.items(), parts_of(dice(4), 2), strict=True):
            low = 10 if "<10" in records[name].get("censored", "") else 5
            cells = [f"<{low}" if value < low else f"{value}" for value in part]
            if not records[name]:
                cells = [f"{value}" for value in part]
            (folder / f"{name}.csv").write_text("wait\n" + "\n".join(cells) + "\n")
            rules = policy(name, **records[name])
            held = read_holding([str(folder / f"{name}.csv")], rules)
            self.sites[name] = Resident(rules, held, SiteLedger(folder / f"{name}.ledger"), dice=own)

    def ask(self, kind: str, **asked: Any) -> Any:
        study = terms(kind, asked, sites=tuple(PARTS))
        try:
            return conduct(study, DirectPost(self), self.folder / "log")  # type: ignore[arg-type]
        finally:
            for site in self.sites.values():
                site.ledger.shut()


SAME = {"north": {"censored": "<5"}, "south": {"censored": "<5"}}


def test_a_quantile_of_sites_with_limits(tmp_path: Path) -> None:
    found = Clinics(tmp_path, SAME).ask("quantile", tau=0.5, epsilon=3.0)
    assert found.interval.low < np.median(LEAD) < found.interval.high
    assert found.method == "certified"


def test_a_quantile_below_the_limit(tmp_path: Path) -> None:
    found = Clinics(tmp_path, SAME).ask("quantile", tau=0.15, epsilon=3.0)
    assert found.value == "<5"
    assert found.to_dict()["estimate"] is None


@pytest.mark.parametrize("south", [{"censored": "<10"}, {}], ids=["other limits", "no limits"])
def test_sites_with_other_limits_agree_first(south: dict[str, Any], tmp_path: Path) -> None:
    clinics = Clinics(tmp_path, {"north": {"censored": "<5"}, "south": south})
    with pytest.raises((BadInput, StudyPaused), match=r"has limits .*agree on the widest everywhere"):
        clinics.ask("quantile", tau=0.5, epsilon=3.0)


def test_the_widest_limits_at_every_site(tmp_path: Path) -> None:
    widest = {"censored": "<5,<10"}
    found = Clinics(tmp_path, {"north": widest, "south": widest}).ask("quantile", tau=0.75, epsilon=3.0)
    assert found.interval.low < np.quantile(LEAD, 0.75) < found.interval.high
    assert found.to_dict()["censored"] == "<10"


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("difference", {"tau": 0.5, "epsilon": 3.0, "first": ["north"], "second": ["south"]}),
        ("conformal", {"alpha": 0.1}),
        ("coverage", {"threshold": 9.0, "alpha": 0.1}),
        ("quantile", {"tau": 0.5, "epsilon": 3.0, "method": "regression"}),
    ],
)
def test_questions_that_need_numbers_are_refused(kind: str, asked: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        Clinics(tmp_path, SAME).ask(kind, **asked)
    assert "needs a number for every record" in str(caught.value) or "method" in str(caught.value)


def test_a_policy_with_marks_persons_and_limits(tmp_path: Path) -> None:
    rows = [f"p{k % 50},{max(k % 9, 5)},{'<' if k % 9 < 5 else ''}" for k in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(["patient,wait,mark", *rows]) + "\n")
    rules = policy("north", censored="<5", flag="mark", person="patient")
    one, two = (read_holding([str(tmp_path / "a.csv")], rules) for _ in range(2))
    assert one.records.size == 50
    assert one.rows == two.rows
    assert set(one.records.values().tolist()) <= {0.0, 5.0, 6.0, 7.0, 8.0}


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ({"censored": "5"}, "no limit"),
        ({"censored": 5}, "must be text"),
        ({"censored": "<5", "features": ["age"]}, "leave censored out"),
        ({"censored": "<5", "spool": "folder"}, "leave censored out"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(records: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        policy("north", **records)
