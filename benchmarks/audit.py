"""How often audits flag honest clients, how often they catch broken ones, and how many reports that takes."""

import time

from benchmarks.broken_twins import TWINS
from sottovoce.auditing.blackbox import audit_client
from sottovoce.auditing.subject import AuditSubject
from sottovoce.auditing.suite import CLIENTS

CONFIDENCE = 0.999
BUDGET = 1.0
REPORTS = (100, 200, 400, 800, 1600)
HONEST_REPORTS, HONEST_BUDGETS = 100, (0.5, 1.0, 3.0)
REPEATS = 20
SECONDS = 280.0  # of one part, so that a machine can be shared


def run(audits: int = 1000) -> None:
    """Print both tables."""
    honest(audits)
    power()


def honest(audits: int, only: str = "") -> None:
    """Print how many of so many audits flag each honest client, at a budget in turn."""
    print(f"Honest clients: {audits:,} audits each of {HONEST_REPORTS} reports an input, confidence {CONFIDENCE:g}")
    for name in _names(only):
        began, done, flagged, highest = time.perf_counter(), 0, 0, -BUDGET * max(HONEST_BUDGETS)
        while done < audits and time.perf_counter() - began < SECONDS:
            subject = _subject(name, HONEST_BUDGETS[done % len(HONEST_BUDGETS)])
            found = audit_client(subject, HONEST_REPORTS, 1 - CONFIDENCE)
            if found.skipped:
                print(f"  {name:<45} {found.skipped}")
                break
            done, flagged = done + 1, flagged + (not found.honest)
            highest = max(highest, found.bound - found.epsilon)
        else:
            print(
                f"  {name:<45} {flagged} of {done:,} flagged; nearest bound {highest:+.2f} from the exact", flush=True
            )


def power(only: str = "", repeats: int = REPEATS) -> None:
    """Print for each broken twin how often it is caught, by how many reports of each input."""
    print(
        f"Broken twins at epsilon {BUDGET:g}: caught of {repeats} audits by reports an input, confidence {CONFIDENCE:g}"
    )
    print(f"  {'':<45}" + "".join(f"{each:>7,}" for each in REPORTS))
    for name, make in TWINS.items():
        if only not in name:
            continue
        caught: list[str] = []
        for reports in REPORTS:
            found = [audit_client(make(BUDGET), reports, 1 - CONFIDENCE) for _ in range(repeats)]
            caught.append("-" if any(each.skipped for each in found) else str(sum(not each.honest for each in found)))
            if caught[-1] == str(repeats):  # more reports show more
                break
        print(f"  {name:<45}" + "".join(f"{each:>7}" for each in caught), flush=True)


def _names(only: str) -> list[str]:
    made = [each for make in CLIENTS.values() for each in make(BUDGET)]
    return [each.name for each in made if only in each.name]


def _subject(name: str, epsilon: float) -> AuditSubject:
    return next(each for make in CLIENTS.values() for each in make(epsilon) if each.name == name)
