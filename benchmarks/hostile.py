"""A thousand hostile commands and two hundred of a federation, each in a process of its own: codes, seconds, memory."""

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.hostile import MARK, Case, cases, write_files
from tests.fuzz.hostile_federation import federation_cases

SECONDS, MEGABYTES = 10.0, 1_000


def refused(case: Case, folder: Path) -> tuple[int, str, float, float]:
    """Return exit code, what was said, seconds and megabytes of one command."""
    out = folder / "said.txt"
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        with out.open("wb") as said:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os.execv(sys.executable, [sys.executable, "-m", "sottovoce", *case.words])
    _, status, used = os.wait4(pid, 0)
    taken = time.perf_counter() - begun
    return os.waitstatus_to_exitcode(status), out.read_text(errors="replace"), taken, used.ru_maxrss / 1024


def faults(code: int, text: str, seconds: float, megabytes: float) -> list[str]:
    """Say what is wrong with a refusal."""
    found = []
    if code != 2:
        found.append(f"exit code {code}")
    if len(text.strip().splitlines()) != 1:
        found.append(f"{len(text.strip().splitlines())} lines")
    if "Traceback" in text or "unexpected" in text:
        found.append("traceback")
    if MARK in text:
        found.append("a value of the data")
    if seconds > SECONDS:
        found.append(f"{seconds:.0f} s")
    if megabytes > MEGABYTES:
        found.append(f"{megabytes:.0f} MB")
    return found


def run(count: int = 1_000, seed: int = 15) -> None:
    """Print what so many commands, and a fifth as many of a federation, did wrong."""
    tally: Counter[str] = Counter()
    slowest = largest = 0.0
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        bad = write_files(folder)
        for case in (*cases(count, seed, bad), *federation_cases(count // 5, seed, folder, bad)):
            code, text, seconds, megabytes = refused(case, folder)
            slowest, largest = max(slowest, seconds), max(largest, megabytes)
            wrong = faults(code, text, seconds, megabytes)
            tally["good" if not wrong else "bad"] += 1
            if wrong:
                shown = " ".join(word if len(word) < 60 else f"{word[:40]}…({len(word)})" for word in case.words)
                print(f"{', '.join(wrong)} [{case.wrong}]: {shown!r}\n    {text.strip()[:300]!r}", flush=True)
    print(f"{dict(tally)}; slowest {slowest:.1f} s, largest {largest:.0f} MB")


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
