"""Flower's own apps over the same study: what is carried, what is refused, and the whole of it in its simulation."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.federation.network import terms

import sottovoce as sv
from sottovoce.api.quantile.planning import coin_of, plan_study
from sottovoce.core.errors import BadInput
from sottovoce.federation.flower.folder import folder_of
from sottovoce.sim import dice

pytest.importorskip("flwr")
from sottovoce.federation.flower.client import client_app
from sottovoce.federation.flower.server import check_carried, pins_of

SITES, SEED = 10, 7
PROGRAM = """
import json, sys
from pathlib import Path
from flwr.simulation import run_simulation
from sottovoce.federation.flower.client import client_app
from sottovoce.federation.flower.server import server_app
folder, coin = Path(sys.argv[1]), bytes.fromhex(sys.argv[2])

def site(partition, partitions):
    from sottovoce import sim
    from sottovoce.core.random_source import parts_of
    from sottovoce.federation.flower.simulated import SimulatedSite
    from sottovoce.federation.site.policy import policy_of
    limits = {"epsilon": 5.0, "total": 5.0}
    rules = policy_of({"name": f"s{partition}", "source": "waits", "records": {"value": "wait"}, "limits": limits})
    waits = sim.dice(partition).generator().gamma(2.0, 10.0, 2_000)
    return SimulatedSite(rules, waits, parts_of(sim.dice(7), partitions)[partition])

init = {"num_cpus": 2, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
run_simulation(
    server_app(folder / "study.toml", lambda: coin), client_app(site), 10,
    backend_config={"client_resources": {"num_cpus": 1}, "init_args": init},
)
"""


def test_walks_are_refused_in_one_sentence() -> None:
    check_carried(terms("quantile", {"tau": 0.5, "epsilon": 1.0}))
    for method in ("regression", "self-normalised"):
        with pytest.raises(BadInput, match="thousands of rounds") as refused:
            check_carried(terms("quantile", {"tau": 0.5, "epsilon": 1.0, "method": method}))
        assert str(refused.value).count(".") == 1


def test_nodes_are_given_to_each_site_or_to_none() -> None:
    assert pins_of(" ", ("a", "b")) is None
    assert pins_of("a=1, b=22", ("a", "b")) == {"a": 1, "b": 22}
    for wrong in ("a=1", "a=1,b=1", "a=1,b=x", "a=1,b=2,c=3", "a=1,b=2,b=3", "a"):
        with pytest.raises(BadInput, match="each site its own node"):
            pins_of(wrong, ("a", "b"))


def test_a_folder_is_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    one, two = (folder_of(SimpleNamespace(run_config={}, run_id=run)) for run in (1, 2))
    assert one != two
    assert one.stat().st_mode & 0o777 == 0o700
    named = SimpleNamespace(run_config={"folder": str(tmp_path / "kept")}, run_id=3)
    assert folder_of(named) == folder_of(named) == tmp_path / "kept"
    for wrong in ("kept", f"{__file__}/x"):
        with pytest.raises(BadInput, match="folder"):
            folder_of(SimpleNamespace(run_config={"folder": wrong}, run_id=3))


def test_a_node_without_a_site_says_so() -> None:
    from flwr.app import Context, RecordDict

    from sottovoce.federation.flower.letter import body_of, packed

    app = client_app()
    message: Any = SimpleNamespace(content=packed(b"order"), metadata=SimpleNamespace(message_type="query"))
    message.has_error = lambda: False
    assert body_of(message) == b"order"
    with pytest.raises(BadInput, match="no site stands behind this node"):
        app(message, Context(1, 2, {"partition-id": 0}, RecordDict(), {}))


@pytest.mark.slow
def test_a_simulation_of_ten_sites_changes_no_bit(tmp_path: Path) -> None:
    data = {f"s{k}": dice(k).generator().gamma(2.0, 10.0, 2_000) for k in range(SITES)}
    asked = "[quantile]\ntau = 0.5\nepsilon = 4.0\n"
    (tmp_path / "study.toml").write_text(f'name = "waits"\nsites = {json.dumps(list(data))}\n{asked}')
    (tmp_path / "program.py").write_text(PROGRAM)
    coin = coin_of(plan_study(data, 0.5, 4.0).plan, dice(SEED))
    told = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "HOME": str(tmp_path)}
    subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path, coin.hex()],
        env={**os.environ, **told, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=True,
        timeout=300,
    )
    [kept] = tmp_path.glob(".sottovoce/flower/*/result.json")
    found, expected = sv.load(kept), sv.federated_quantile(data, 0.5, 4.0, randomness=dice(SEED))
    assert (found.estimate, found.interval) == (expected.estimate, expected.interval)
    assert (found.rounds, found.private) == (expected.rounds, False)
    assert len(list(kept.parent.glob("s*.ledger"))) == SITES
