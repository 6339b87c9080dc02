"""Memory of a collector while ten million reports go in, in one round and in many, and of the way of many groups."""

import tempfile
import time
from pathlib import Path

from benchmarks.collector_crash import MILLION, STUDY, fill
from benchmarks.collector_process import Process

REPORTS = 10 * MILLION
CASES = (("one open round", 2 * REPORTS, 3600.0), ("rounds that close", 11 * REPORTS // 10, 0.0))


def memory(people: int, grace: float, reports: int) -> tuple[list[float], float, int]:
    """Return the memory at the start and after each million in MB, the seconds that all took, and how many rounds."""
    with tempfile.TemporaryDirectory() as folder:
        process = Process(Path(folder), [STUDY.format(people=people, grace=grace)])
        try:
            process.start()
            found = [process.rss]

            def watch(sent: int) -> None:
                if sent >= len(found) * MILLION:
                    found.append(process.rss)

            begun = time.perf_counter()
            fill(process, reports, watch=watch)
            took = time.perf_counter() - begun
            rounds = process.get(f"/v1/studies/{process.studies()['load'].hex()}/estimate?group=a")["rounds"]
        finally:
            process.end()
    return found, took, rounds


def run(reports: int = REPORTS) -> None:
    """Print memory at each million."""
    for what, people, grace in CASES:
        found, took, rounds = memory(people, grace, reports)
        shown = " ".join(f"{each:.0f}" for each in found)
        print(f"\n{what} ({rounds} closed), {reports:,} reports in uploads of 10,000, {took:.0f} s; MB: {shown}")
