"""A federation in one process, for tests: resident sites with ledgers on disk, and posts that lose and double."""

import queue
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.arrays import Floats
from sottovoce.core.random_source import RandomSource
from sottovoce.federation.coordinator.exchange import Happened, Post
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.site.policy import SitePolicy, policy_of
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.federation.study import StudyTerms, study_of
from sottovoce.sim import dice

G = dice(16).generator()
WAITS: dict[str, Floats] = {
    "north": G.gamma(2.0, 10.0, 4_000),
    "south": G.gamma(2.0, 12.0, 6_000),
    "west": G.gamma(2.0, 9.0, 2_000),
}


def terms(method: str, asked: Mapping[str, Any], sites: Any = tuple(WAITS), **rounds: Any) -> StudyTerms:
    rules = {"wait": 30.0, **rounds}
    return study_of({"name": "waits", "sites": list(sites), method: dict(asked), "rounds": rules})


def policy(name: str, **limits: Any) -> SitePolicy:
    allowed = {"epsilon": 9.0, "total": 50.0, "open": True, **limits}
    return policy_of({"name": name, "source": "waits", "records": {"value": "wait"}, "limits": allowed})


class Network:
    """Resident sites in this process, each with a ledger in a folder; a site can be stopped and started again."""

    def __init__(self, folder: Path, own: Mapping[str, RandomSource], waits: Any = WAITS, **limits: Any) -> None:
        self.folder, self.own, self.waits, self.limits = folder, own, waits, limits
        self.sites: dict[str, Resident] = {}
        for name in own:
            self.start(name)

    def start(self, name: str) -> None:
        held = Records(np.ascontiguousarray(self.waits[name]))
        ledger = SiteLedger(self.folder / f"{name}.ledger")
        holding = Holding(held, rows_digest(held), None, "wait")
        self.sites[name] = Resident(policy(name, **self.limits), holding, ledger, dice=self.own[name])

    def stop(self, name: str) -> None:
        self.sites.pop(name).ledger.shut()

    def shut(self) -> None:
        for name in list(self.sites):
            self.stop(name)


class DirectPost:
    """Hands every order to its site at once."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.came: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()

    def send(self, site: str, order: bytes) -> None:
        if site in self.network.sites:
            self.came.put((site, self.network.sites[site].handle(order)))

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        return None if self.came.empty() else self.came.get()

    def handed(self, site: str) -> bool:
        return True


def conduct(
    study: StudyTerms, post: Post, log: Path, coin: bytes = b"c" * 16, watch: Callable[[Happened], None] | None = None
) -> Any:
    kept = StudyLog(log, study.name)
    try:
        return Rounds(study, kept, post, watch, random=lambda: coin).conduct()
    finally:
        kept.close()
