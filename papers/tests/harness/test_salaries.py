"""Salaries by region in both papers: on records made up here, and on the survey's where it is at hand."""

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice
from sottovoce_papers.harness import catalogue, study
from sottovoce_papers.harness.cell import Value
from sottovoce_papers.harness.item import Block
from sottovoce_papers.recipes.federated import salaries as federated
from sottovoce_papers.recipes.integration import salaries as integration
from sottovoce_papers.simulation.integration.gov_census import equal_quantile, merged, read_regions
from sottovoce_papers.simulation.integration.record_chains import Asking, alone, chain_averages
from sottovoce_papers.simulation.integration.salary_table import NAMES

DATA = Path(os.environ.get("SOTTOVOCE_DATA", ""))
compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")
surveyed = pytest.mark.skipif(
    not (DATA / "gov_census" / "gov_census.parquet").is_file() or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0",
    reason="SOTTOVOCE_DATA names no folder with gov_census/gov_census.parquet, or nothing is compiled",
)


def made_up(n: int = 3_000) -> dict[str, Floats]:
    """Return regions of which no two have the same salaries."""
    draw = dice(4).generator()
    return {
        name: np.exp(draw.normal(10.6 + k / 10, 0.6, n + 100 * k)) for k, name in enumerate((*NAMES, "a", "b", "c"))
    }


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> dict[str, Floats]:
    """Put made-up regions in the survey's place."""
    found = made_up()
    for recipe in (federated, integration):
        monkeypatch.setattr(recipe, "read_regions", lambda data: found)
    return found


def test_the_smallest_regions_become_one() -> None:
    regions = made_up()
    names = sorted(regions, key=lambda name: len(regions[name]))
    together = merged(regions)
    assert set(together) == {*names[3:], "Others"}
    assert sum(map(len, together.values())) == sum(map(len, regions.values()))


def test_every_region_counts_the_same_in_the_quantile() -> None:
    many, few = np.arange(1_000.0), np.array([5_000.0, 6_000.0])
    assert equal_quantile({"many": many, "few": few}, 0.5) == 999.0
    assert equal_quantile({"many": many, "few": few}, 0.75) == 5_000.0


def test_no_file_no_numbers(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="SOTTOVOCE_DATA"):
        read_regions(tmp_path)
    with pytest.raises(BadInput, match="SOTTOVOCE_DATA"):
        read_regions(None)


def test_chains_over_records_find_the_quantile_and_forget_a_near_start() -> None:
    records = np.log(made_up(20_000)["a"])
    truth, asking = float(np.quantile(records, 0.25)), Asking(0.25, 0.9, start=10.5)
    averages = chain_averages(records, 5, asking, dice(1).generator())
    estimate, half = alone(records, asking, dice(2).generator())
    assert averages.shape == (5,)
    # about ten standard errors of an average over a fifth of the records
    assert abs(averages.mean() - truth) < 0.1
    assert abs(estimate - truth) < 0.1
    assert 0.001 < half < 0.3
    always = chain_averages(np.full(100, 2.0), 1, Asking(0.5, 1.0, start=0.0, power=0.0), dice(1).generator())
    # every letter says "below" until 2 is reached by steps of a half, and then in turns
    assert always[0] == pytest.approx((0.5 + 1 + 1.5 + 2 + 1.5 * 48 + 2 * 48) / 100)


@compiled
def test_chains_from_zero_end_low_and_the_default_does_not(regions: dict[str, Floats]) -> None:
    truth = float(np.quantile(regions[NAMES[0]], 0.5))
    setting: dict[str, Value] = {"tau": 0.5, "rate": "0.7"}
    found = {
        reading: {
            row.where["method"]: row.measures for row in integration.run({**setting, "reading": reading}, 3, 1, None)
        }
        for reading in ("thousands", "dollars", "near")
    }
    estimates = [found[reading]["ADP(1)"]["estimate"].value for reading in ("dollars", "thousands", "near")]
    assert estimates == sorted(estimates)
    assert estimates[0] < 0.7 * truth
    assert found["thousands"] != found["near"]
    [row] = integration.run({**setting, "method": "default"}, 2, 1, None)
    assert abs(row.measures["estimate"].value - truth) < 0.2 * truth


@compiled
def test_the_federated_table_has_its_parts(regions: dict[str, Floats], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federated, "RECORDS", 10_000)
    everybody = np.concatenate(list(regions.values()))
    [empirical] = federated.run({"tau": 0.5, "method": "Empirical"}, 0, 1, None)
    assert empirical.measures["estimate"].value == np.quantile(everybody, 0.5, method="inverted_cdf")
    setting: dict[str, Value] = {"tau": 0.5, "rate": "hetero", "method": "C1", "reading": "thousands"}
    [walked] = federated.run(setting, 2, 1, None)
    assert [walked] == federated.run(setting, 2, 1, None)
    [dollars] = federated.run({**setting, "reading": "dollars"}, 2, 1, None)
    assert dollars.measures["estimate"].value < walked.measures["estimate"].value
    [ours] = federated.run({"tau": 0.5, "rate": "0.9", "method": "default"}, 2, 1, None)
    assert ours.measures["error"].value < 0.05 * equal_quantile(merged(regions), 0.5)


@surveyed
def test_estimates_of_both_tables_come_out_of_thousands_of_dollars(tmp_path: Path) -> None:
    folder = catalogue.papers_folder()
    for paper, name, there in (("data-integration", "table-1", 6), ("federated-quantile", "table-3", 10)):
        [item] = catalogue.items(folder, paper, name)
        cells = [cell for cell in item.cells if cell.get("method") != "default"]
        few: list[Block] = [{**cell, "tau": 0.5, "reading": "thousands"} for cell in cells]
        asked = msgspec.structs.replace(item, cells=few)
        [outcome] = study.reproduce([asked], tmp_path, DATA, replications=4)
        judged = [number for number in outcome.numbers if number.quantity == "estimate" and number.found]
        assert len(judged) == there
        assert all(number.agrees for number in judged)
