"""A cell of the simulations of Cai, Hu and Wu: one method in one scene, with fresh records or one data set for all.

Setting: ``family``, ``scenario``, ``tau``, ``rate``, ``method`` (C1, C5, Log, "DP-SGD (C1)", DC or Single), ``reading``
and the horizon, ``records`` a site or ``rounds``. The reading "authors" is one data set, "fresh" new records in every
replication, and "both" says that the authors drew new ones too. If not the usual: ``constant``, ``power`` and
``offset`` of the step, ``warmup``, ``answering`` (sites a round), ``topology`` (ring), ``locations`` (redrawn in every
replication), ``levels`` (common, where sites that exchange nothing would have their own) and ``data_seed``.
"""

from dataclasses import replace
from pathlib import Path

from sottovoce.core.arrays import Ints
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, mean, share
from sottovoce_papers.simulation.federated.abreast import ALONE, RING, STAR
from sottovoce_papers.simulation.federated.replicate import Ends, Plan, divided, federated, noisy, single
from sottovoce_papers.simulation.federated.rounds import rounds_given, rounds_within, steps
from sottovoce_papers.simulation.federated.scene import SEED, SITES, Scene, read

VERSION = 1
NANOSECONDS = {"DP-SGD (C1)": 9.0}


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:  # noqa: ARG001 - a recipe's arguments
    """Replicate one method."""
    scene = scene_of(setting)
    measures = measured(ends_of(setting, scene, replications, seed))
    return [Row({"reading": reading}, measures) for reading in readings_of(setting)]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    usual = 1.5 if setting["reading"] == "authors" else 3.5
    updates = int(rounds_of(setting).sum()) * (1 if setting["method"] == "Single" else SITES) * replications
    return updates * NANOSECONDS.get(str(setting["method"]), usual) * 1e-9 + 0.05


def readings_of(setting: Setting) -> list[str]:
    """Return the readings that a cell stands for."""
    return ["authors", "fresh"] if setting["reading"] == "both" else [str(setting["reading"])]


def scene_of(setting: Setting) -> Scene:
    """Return the sites that a setting describes."""
    return Scene(str(setting["family"]), str(setting["scenario"]), *read(setting["tau"], setting["rate"]))


def rounds_of(setting: Setting) -> Ints:
    """Return the iterations of each round; what is not C5 or Log merges after every one."""
    method = str(setting["method"]) if setting["method"] in ("C5", "Log") else "C1"
    if "rounds" in setting:
        return rounds_given(method, int(setting["rounds"]))
    records = int(setting["records"]) * (SITES if setting["method"] == "Single" else 1)
    return rounds_within(method, records, float(setting.get("warmup", 0.05)))


def plan_of(setting: Setting, scene: Scene) -> Plan:
    """Return how a setting walks its scene."""
    rounds, method = rounds_of(setting), setting["method"]
    power, offset = float(setting.get("power", 0.51)), float(setting.get("offset", 100.0))
    rate = 1.0 if method == "Single" else float(scene.rates.mean())
    constant = float(setting.get("constant", 2.0 if method in ("DC", "Single") else 20.0))
    one_set = setting["reading"] == "authors"
    topology = ALONE if method in ("DC", "Single") else RING if setting.get("topology") == "ring" else STAR
    return Plan(
        rounds,
        steps(rounds, constant * rate, power, offset),
        topology,
        int(setting.get("answering", SITES)),
        scene.data_set(int(rounds.sum()), int(setting.get("data_seed", SEED))) if one_set else None,
        setting.get("locations") == "redrawn",
    )


def ends_of(setting: Setting, scene: Scene, replications: int, seed: int) -> Ends:
    """Run a setting's method."""
    if setting.get("levels") == "common":
        scene = replace(scene, tau=scene.level)
    methods = {"DC": divided, "Single": single, "DP-SGD (C1)": noisy}
    return methods.get(str(setting["method"]), federated)(scene, plan_of(setting, scene), replications, seed)


def measured(ends: Ends) -> dict[str, Measure]:
    """Measure coverage, mean absolute error and mean length."""
    errors = ends.errors
    return {"coverage": share(errors <= ends.halves), "mae": mean(errors), "length": mean(2 * ends.halves)}
