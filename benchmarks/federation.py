"""A federation on one machine over mutual TLS: seconds a study and a round, for 3 and for 100 sites."""

import statistics
import tempfile
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.record import Records
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.federation.certificates import write_certificates
from sottovoce.federation.coordinator.http import HttpPost
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.site.policy import policy_of
from sottovoce.federation.site.poll import SiteLine, connect, poll
from sottovoce.federation.site.resident import Holding, Resident
from sottovoce.federation.study import Certificates, study_of
from sottovoce.sim import dice

PARTS = ("authority.pem", "certificate.pem", "key.pem")


def timed(sites: int, records: int, folder: Path) -> tuple[float, list[float]]:
    """Return how long a study took, and each of its rounds."""
    names = [f"site{k}" for k in range(sites)]
    write_certificates(folder / "certificates", names, ["127.0.0.1"])
    held = dice(1).generator().gamma(2.0, 10.0, (sites, records))
    study = study_of({"name": "waits", "sites": names, "quantile": {"tau": 0.5, "epsilon": 1.0}})
    log, stop = StudyLog(folder / "log", "waits"), threading.Event()
    own = Certificates(*(folder / "certificates" / "coordinator" / part for part in PARTS))
    with HttpPost(names, "127.0.0.1", 0, own) as post:
        threads = []
        for name, column in zip(names, held, strict=True):
            limits = {"epsilon": 1.0, "total": 2.0}
            policy = policy_of({"name": name, "source": "w", "records": {"value": "wait"}, "limits": limits})
            column_ = Records(column.copy())
            resident = Resident(policy, Holding(column_, rows_digest(column_)), SiteLedger(folder / f"{name}.ledger"))
            files = [folder / "certificates" / name / part for part in PARTS]
            client = connect(SiteLine(f"https://127.0.0.1:{post.port}", name, *files))
            threads.append(threading.Thread(target=poll, args=(client, resident, stop), kwargs={"once": True}))
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        Rounds(study, log, post).conduct()
        took = time.perf_counter() - begun
        stop.set()
        for thread in threads:
            thread.join()
    ends: dict[int, float] = defaultdict(float)
    for round, at in log._run("SELECT round, at FROM told").fetchall():
        ends[round] = max(ends[round], at)
    log.close()
    order = [ends[round] for round in sorted(ends)]
    return took, [after - before for before, after in pairwise(order)]


def run() -> None:
    """Print a line for each number of sites."""
    print("sites   records a site   seconds a study   rounds   ms a round (median, largest)")
    for sites, records in ((3, 20_000), (100, 2_000)):
        with tempfile.TemporaryDirectory() as folder:
            took, rounds = timed(sites, records, Path(folder))
        middle, most = statistics.median(rounds), max(rounds)
        print(f"{sites:>5} {records:>16,} {took:>17.1f} {len(rounds) + 1:>8} {middle * 1e3:>12.0f} {most * 1e3:>8.0f}")


if __name__ == "__main__":
    run()
