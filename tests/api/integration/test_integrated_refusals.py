"""Whatever cannot be used is refused in one sentence that names the place, before any record answers."""

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sottovoce as sv
from sottovoce.client.quantile.site import Site
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.sim.randomness import dice

DRAWS = dice(43).generator()
OURS, NORTH = DRAWS.normal(10.0, 2.0, 8000), DRAWS.normal(10.0, 2.0, 9000)
FEW = DRAWS.normal(10.0, 2.0, 300)
TOLD = sv.SiteSummary(10.0, 0.5, n=100)
DAYS = np.datetime64("2020-01-01") + np.arange(8000)


class Untouched:
    """Dice that nobody may throw: whatever throws them has opened a site."""

    private = False

    def words(self, n: int) -> Any:
        raise AssertionError("a site was opened")

    def split(self, n: int) -> "list[Untouched]":
        return [self] * n


@pytest.fixture(autouse=True)
def nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("something was spent")

    for name in ("answer", "tally", "hand_over"):
        monkeypatch.setattr(Site, name, refuse)
    monkeypatch.setattr("os.urandom", refuse)


def test_the_checks_have_power() -> None:
    with pytest.raises(AssertionError, match="a site was opened"):
        ask()
    with pytest.raises(AssertionError, match="something was spent"):
        ask(randomness=None)


def ask(target: Any = OURS, sources: Any = None, tau: Any = 0.5, epsilon: Any = 2.0, **options: Any) -> object:
    chosen = {"north": NORTH} if sources is None else sources
    return sv.integrated_quantile(target, chosen, tau, epsilon, **{"randomness": Untouched(), **options})


def refused(match: str, kind: type[BadInput] = BadInput, **options: Any) -> None:
    with pytest.raises(kind) as caught:
        ask(**options)
    text = str(caught.value)
    assert re.search(match, text), text
    assert "\n" not in text
    assert not re.search(r"[.!?] [A-Z]", text), "one sentence"
    assert len(text) < 260


def spoilt(value: Any) -> list[Any]:
    return [*OURS[:7000].tolist(), value]


@pytest.mark.parametrize("value", [math.nan, None, "ten", math.inf, True, object(), [1.0]])
@pytest.mark.parametrize("place", ["target", "north"])
def test_values_that_are_no_records(value: Any, place: str) -> None:
    if place == "target":
        refused("[Ss]ite 'target'.*row 7,?001", target=spoilt(value))
    else:
        refused("[Ss]ite 'north'.*row 7,?001", sources={"north": spoilt(value)})


@pytest.mark.parametrize("column", [np.zeros((4000, 2)), OURS.astype(complex), 7, "ours ", pd.DataFrame({"x": OURS})])
def test_columns_that_are_no_column(column: Any) -> None:
    refused("'ours '|target", target=column)
    refused("north", sources={"north": column})


@pytest.mark.parametrize("values", [[], [1.0], np.zeros(0), OURS[:1]])
def test_no_records_or_one(values: Any) -> None:
    for epsilon in (2.0, math.inf):
        refused("site 'target' has (no records|only one record)", target=values, epsilon=epsilon)
        refused("site 'north' has (no records|only one record)", sources={"north": values}, epsilon=epsilon)


def test_too_few_records_and_how_many_are_needed() -> None:
    few = r"has too few records: the 0.5 quantile needs about [\d,]+ records .* and there are 300"
    refused("^the target " + few, Infeasible, target=FEW, epsilon=0.1)
    refused("^the target 'ours' " + few, Infeasible, target={"ours": FEW}, epsilon=0.1)
    refused("^the target " + few, Infeasible, target=FEW, method="ivw", sites="staged")
    open_target: dict[str, Any] = {"target": FEW[:35], "sources": {}, "tau": 0.9, "epsilon": math.inf}
    refused(
        "^the target has too few records: .* 0.9 quantile needs 36 records, and there are 35: .* nearer", **open_target
    )
    open_target |= {"target": FEW[:5], "tau": 0.5}
    refused("needs 6 records, and there are 5: add records.$", **open_target)
    refused(
        "the target has too few records: 90 chains need 9,000 records, and there are 8,000", method="ivw", chains=90
    )


def test_a_source_or_target_without_variance() -> None:
    flat = np.full(500, 3.0)
    refused("^source 'north' has no variance", sources={"north": flat}, epsilon={"target": 2.0, "north": math.inf})
    refused("^the target has no variance", target=flat, epsilon={"target": math.inf, "north": 2.0})
    refused("have one and the same value", target=flat, sources={"north": flat.copy()})


def test_the_target_among_its_sources() -> None:
    whole = OURS.astype(int)
    refused("the target 'ours' is among the sources too", target={"ours": OURS}, sources={"ours": NORTH})
    refused("the target '7' is among the sources too", target={7: OURS}, sources={7.0: NORTH})
    refused("a source is called 'target', as the target itself is", sources={"target": NORTH})
    refused("the target's records are among the sources, at 'north'", sources={"north": OURS})
    refused("the target's records are among the sources, at 'source 2'", sources=[NORTH, OURS])
    refused("the target's records are among the sources, at 'north'", target=whole, sources={"north": whole})
    refused("'target' and 'north' share records", sources={"north": OURS[4000:]})
    refused("'target' and 'north' share records", target=OURS[:5000], sources={"north": OURS[4000:]})
    frame = pd.DataFrame({"x": OURS, "site": "ours"})
    table = sv.read_frame(frame, value="x", site="site")
    refused("the target 'ours' is among the sources too", target=table, sources=table)


def test_sources_that_share_records_or_names() -> None:
    listed = NORTH.tolist()
    refused("the sources 'a' and 'b' share records", sources={"a": listed, "b": listed})
    refused("'a' and 'b' share records", sources={"a": NORTH, "b": NORTH[:5000]})
    refused("two sources have the same name", sources={1: NORTH, "1": TOLD})
    refused("blank name", sources={" ": TOLD})


@pytest.mark.parametrize("sources", [OURS, "north", 5, [1.0, 2.0], {"estimate": 1.0, "se": 1.0}, TOLD])
def test_sources_that_are_none(sources: Any) -> None:
    refused("^(sources|the target)", sources=sources)


def test_targets_that_are_none() -> None:
    refused("the target 'south' is not one of the sites 'north'", target="south")
    refused("must be one site, not a mapping of 2", target={"a": OURS, "b": NORTH})
    refused("must be one site, not a mapping of 0", target={})
    refused("the target.* has no standard error to be trusted", target={"estimate": 1.0, "trusted": False})
    both = pd.DataFrame({"x": [*OURS, *OURS], "site": ["a"] * 8000 + ["b"] * 8000})
    refused("must be one site, not 2", target=sv.read_frame(both, value="x", site="site"))


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"estimate": 5.0, "interval": (6.0, 7.0)}, "6 to 7, does not contain its estimate 5"),
        ({"estimate": 5.0, "interval": (7.0, 4.0)}, "smaller end first"),
        ({"estimate": 5.0, "se": 0.0}, "must be positive"),
        ({"estimate": 5.0, "se": -1.0}, "must be positive"),
        ({"estimate": 5.0, "se": math.nan}, "not nan"),
        ({"estimate": math.inf, "se": 1.0}, "must be finite"),
        ({"estimate": 5.0}, "neither se nor interval"),
        ({"estimate": 5.0, "sd": 1.0}, "'sd', which a summary does not know"),
        ({"estimate": 1e9, "se": 1e-9}, "vanishes beside its estimate"),
    ],
)
def test_summaries_that_do_not_fit_together(told: dict[str, Any], match: str) -> None:
    refused("^source 'told'.*" + match, sources={"told": told})
    refused("^the target.*" + match, target=told)
    refused("^the target 'ours'.*" + match, target={"ours": told})


@pytest.mark.parametrize("bound", [-1.0, -math.inf, math.nan, "wide", None, [1.0], True])
def test_bounds_that_are_none(bound: Any) -> None:
    refused("bound", method="known-bound", bound=bound)
    if bound is not None:
        refused("^bound of source 'north'", method="known-bound", bound={"north": bound})


def test_bounds_for_the_wrong_sites_or_methods() -> None:
    refused("bound names 'south', which is no source", method="known-bound", bound={"north": 1.0, "south": 1.0})
    refused("bound names 'target', which is no source", method="known-bound", bound={"north": 1.0, "target": 1.0})
    refused("bound says nothing of source 'north'", method="known-bound", bound={})
    refused("'known-bound' needs bound=", method="known-bound")
    refused("bound belongs to method 'known-bound', not to 'valid'", bound=1.0)
    refused("bound belongs to method 'known-bound', not to 'ivw'", method="ivw", bound={"north": 1.0})


@pytest.mark.parametrize("name", ["method", "variance", "quantile", "sites"])
@pytest.mark.parametrize("value", ["best", "", 5, ["valid"], np.array([1.0, 2.0])])
def test_names_that_are_unknown(name: str, value: Any) -> None:
    refused(f"^{name} (.* is unknown; choose one of|must be a word or a number, not)", **{name: value})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"level": 0.94}, "level is 0.94, .* table for 0.8, 0.9, 0.95, 0.99"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1"),
        ({"level": "high"}, "level must be a number"),
        ({"level": math.nan}, "level must be a number"),
        ({"tau": {"target": 0.5, "north": 0.4}}, "tau must be one level"),
        ({"tau": 1.0}, "tau must lie strictly"),
        ({"tau": None}, "tau must be a number"),
        ({"tau": "half"}, "tau must be a number"),
        ({"target": TOLD, "sources": {}, "tau": 7}, "tau must lie strictly"),
        ({"target": TOLD, "sources": {}, "tau": {"target": 0.5}}, "tau must be"),
        ({"epsilon": {"target": 1.0}}, "epsilon says nothing of site 'north'"),
        ({"epsilon": {"target": 1.0, "north": 1.0, "south": 1.0}}, "epsilon names 'south'"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -math.inf}, "epsilon"),
        ({"epsilon": {"target": 1.0, "north": -2.0}}, "epsilon of site 'north'"),
        ({"epsilon": {"target": 1.0, "north": "2"}}, "epsilon of site 'north' must be a number"),
        ({"epsilon": None}, "epsilon must be a number"),
        ({"sites": "chains"}, "chains belong to the paper's methods, not to 'valid'"),
        ({"variance": "theorem"}, "belong to the paper's methods"),
        ({"quantile": "t", "method": "conservative"}, "belong to the paper's methods"),
        ({"caution": 3.0}, "belong to the paper's methods"),
        ({"caution": np.array([1.0, 2.0])}, "caution must be a word or a number"),
        ({"caution": -1.0, "method": "conservative-paper"}, "caution must be"),
        ({"caution": math.inf, "method": "conservative-paper"}, "caution must be"),
        ({"chains": 1, "method": "ivw"}, "chains must be a whole number"),
        ({"chains": 2.5, "method": "ivw"}, "chains must be a whole number"),
        ({"chains": True, "method": "ivw"}, "chains must be a whole number"),
        ({"randomness": 7}, "randomness must be None or sim.dice"),
        ({"randomness": DRAWS}, "randomness must be None or sim.dice"),
        ({"progress": 7}, "progress must be a function"),
        ({"missing": "ignore"}, "missing"),
        ({"bounds": (3, 1)}, "bounds must be"),
        ({"scale": -1}, "scale must be"),
        ({"resolution": -1}, "resolution must be"),
        ({"method": "decay", "sources": {"told": sv.SiteSummary(1.0, 1.0)}}, "number of records of 'told'"),
        ({"method": "ivw", "sources": {"told": {"estimate": 1.0, "trusted": False}}}, "source 'told' has no standard"),
        ({"sources": {"north": DAYS}}, "'north'|different|date"),
    ],
)
def test_settings(options: dict[str, Any], match: str) -> None:
    refused(match, **options)


def test_tables_of_different_things() -> None:
    days = sv.read_frame(pd.DataFrame({"x": DAYS, "site": "north"}), value="x", site="site")
    refused("dates with a time and site 'target' holds numbers", sources=days)
