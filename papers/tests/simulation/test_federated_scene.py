import os

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.federated.replicate import Plan, federated, single
from sottovoce_papers.simulation.federated.rounds import rounds_given, rounds_within, steps
from sottovoce_papers.simulation.federated.scene import FAMILIES, SCENARIOS, Scene
from sottovoce_papers.simulation.federated.staged import staged

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="too long uncompiled")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("tau", [0.3, "low", "high", 0.8])
def test_the_truth_is_where_the_sites_reach_the_level(family: str, scenario: str, tau: float | str) -> None:
    scene = Scene(family, scenario, tau, "hetero")
    assert np.isclose(scene.sites.probabilities(scene.truth).mean(), scene.level)
    assert np.isclose(scene.truths(scene.locations[:, None])[0], scene.truth)


def test_the_printed_oracle_lengths_fix_levels_and_rates() -> None:
    # Table S.8: evenly spread rates and levels give the printed lengths, in hundredths
    for tau, rate, length in (
        (0.5, 0.25, 6.215),
        (0.5, "hetero", 3.452),
        ("low", 0.9, 1.753),
        ("high", "hetero", 3.686),
    ):
        assert round(200 * 1.959964 * Scene("normal", "Homo", tau, rate).oracle(10_000), 3) == pytest.approx(
            length, abs=2e-3
        )


def test_sites_that_do_not_talk_are_biased_as_printed() -> None:
    # the errors of DC at rate .9 with 50,000 records, which hardly move any more
    for scenario, tau, printed in (("Hete L", 0.3, 0.129), ("Hete L", 0.8, 0.193), ("Homo", "high", 0.0132)):
        assert abs(Scene("normal", scenario, tau, 0.9).divide_and_conquer_bias) == pytest.approx(printed, abs=0.005)


def test_a_data_set_belongs_to_family_scenario_and_horizon_alone() -> None:
    scene = Scene("normal", "Hete L", 0.3, 0.25)
    data = scene.data_set(50)
    assert (data == Scene("normal", "Hete L", 0.8, "hetero").data_set(50)).all()
    assert not (data == scene.data_set(50, seed=2)).any()
    assert (data[:40, 0] == scene.data_set(40)[:, 0]).all()
    assert not (data[:40] == scene.data_set(40)).all()
    assert abs(data.mean(axis=0) - scene.locations).max() < 6 / np.sqrt(50)
    assert np.abs(Scene("normal", "Hete D", 0.5, 0.9).data_set(400)[:, 3:6]).max() < 1


@compiled
def test_the_data_set_gives_the_printed_interval_lengths() -> None:
    # Table S.8, rate .9: the order of the records alone decides between 1.9 and 2.5 hundredths
    rounds = np.ones(10_000, dtype=np.int64)
    for tau, printed in ((0.5, 1.909), ("low", 2.093), ("high", 2.232)):
        scene = Scene("normal", "Homo", tau, 0.9)
        theirs, fresh = (
            200 * federated(scene, Plan(rounds, steps(rounds, 18.0), data=data), 256, 1).halves.mean()
            for data in (scene.data_set(10_000), None)
        )
        assert theirs == pytest.approx(printed, rel=0.05)
        assert fresh > 1.08 * printed


def test_rounds_add_up() -> None:
    assert rounds_within("Log", 10_000).sum() == 10_000
    assert rounds_within("C5", 50_000)[[2499, 2500]].tolist() == [1, 5]
    assert rounds_given("C5", 5000)[[249, 250]].tolist() == [1, 5]
    assert len(rounds_given("Log", 5000)) == 5000


def test_redrawn_locations_have_truths_of_their_own() -> None:
    scene, rounds = Scene("cauchy", "Hete L", 0.5, 0.9), np.ones(20, dtype=np.int64)
    plan = Plan(rounds, steps(rounds, 2.0), redrawn=True)
    assert len(set(single(scene, plan, 4, 1).truths)) == 4
    assert set(single(scene, Plan(rounds, steps(rounds, 2.0)), 4, 1).truths) == {scene.truth}


def test_the_default_is_counted_run_by_run() -> None:
    found = staged(Scene("normal", "Homo", 0.5, 0.9), 1000, 3, seed=2)
    assert len(found.points) == len(found.certified) == 3
    assert not found.certified.any()
    assert (found.lows < found.points).all()


def test_unknown_scenes_are_refused() -> None:
    with pytest.raises(BadInput, match="no scene"):
        Scene("gamma", "Homo", 0.5, 0.9)
