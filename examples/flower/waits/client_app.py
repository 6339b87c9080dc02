"""A node: deployed, it carries bytes to the site's own program; in a simulation, it is the site."""

from pathlib import Path
from typing import Any

from sottovoce.federation.flower.client import client_app

SITES = {"north": 10.0, "south": 12.0}  # the simulated sites, and half of their mean waits


def simulated(partition: int, partitions: int) -> Any:  # noqa: ARG001
    """Return the site of a partition: here 20,000 made-up waits; put your own split of a data set in their place."""
    from sottovoce import sim
    from sottovoce.federation.flower.simulated import SimulatedSite
    from sottovoce.federation.site.policy import read_policy

    if partition >= len(SITES):
        return None
    name = list(SITES)[partition]
    waits = sim.dice(partition).generator().gamma(2.0, SITES[name], 20_000)
    return SimulatedSite(read_policy(Path(__file__).parent / "policies" / f"{name}.toml"), waits)


app = client_app(simulated)
