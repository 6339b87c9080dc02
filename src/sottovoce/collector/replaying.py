"""Folds a collector's log anew, from its reports alone, and compares with what was kept of each round.

Reports are taken in the order of the log, and a round is closed where the log says that it was closed; what it came to
must be the text that was kept, letter for letter. Where letters were scrubbed, what was kept stands for them.
"""

import math
from collections import deque
from contextlib import closing
from typing import Any

from sottovoce.collector.fold import TAKEN, ClosedRound, Fold
from sottovoce.collector.store import CollectorStore, KeptRound
from sottovoce.collector.study import CollectedStudy
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import identity, read_card

CHANGED = "the log holds other sums than its reports give; it was changed after it was written."


def check_replay(study: CollectedStudy, *logs: CollectorStore) -> dict[str, Any]:
    """Fold the whole log of a study, or the logs of all processes, and compare; refuse a difference."""
    kept = logs[0].known(study.name)
    if kept is None:
        raise BadInput("the log holds no study of this name; give the log that the collector wrote.")
    nonce = read_card(kept.card).nonce
    folds = [study.fold(kept.coin + bytes([g & 255, g >> 8]), 0.0, nonce) for g in range(len(study.groups))]
    done = [_replayed(study.name, log, folds) for log in logs]
    return {
        "study": study.name,
        "identity": identity(kept.card).hex(),
        "reports": sum(fold.reports for fold in folds),
        "replayed": sum(reports for reports, _ in done),
        "rounds_taken_as_kept": sum(rounds for _, rounds in done),
        "groups": [{"group": name, **fold.estimate()} for name, fold in zip(study.groups, folds, strict=True)],
    }


def _replayed(study: str, log: CollectorStore, folds: list[Fold]) -> tuple[int, int]:
    """Fold one log as it stands now; return how many reports were taken, and how many rounds were taken as kept."""
    with log.snapshot():
        return _folded(study, log, folds)


def _folded(study: str, log: CollectorStore, folds: list[Fold]) -> tuple[int, int]:
    """Fold one log that stands still."""
    pending: list[deque[KeptRound]] = [deque() for _ in folds]
    for each in log.rounds(study):
        pending[each.group].append(each)
    parts, scrubbed = max(log.parts, 1), log.scrubbed_to(study)
    gone = [scrubbed.get(group % parts, 0) for group in range(len(folds))]
    taken, reports = 0, 0
    with closing(log.rows(study)) as kept:
        for seq, rows in kept:
            taken += _close(folds, pending, seq, gone)
            reports += len(rows)
            for id, round, group, point, letter in rows.tolist():
                if group >= len(folds) or folds[group].take(bytes(id), round, point, letter, math.inf) != TAKEN:
                    raise BadInput(CHANGED)
    return reports, taken + _close(folds, pending, math.inf, gone)


def _close(folds: list[Fold], pending: list[deque[KeptRound]], before: float, gone: list[int]) -> int:
    """Close what was closed before a row of reports; return how many rounds were taken as kept, for want of letters."""
    taken = 0
    for fold, rounds, scrubbed in zip(folds, pending, gone, strict=True):
        while rounds and rounds[0].seq < before:
            each = rounds.popleft()
            if each.begun < scrubbed:
                fold.follow(ClosedRound(each.round, each.sums), math.inf)
                taken += 1
            elif fold.close(math.inf) != ClosedRound(each.round, each.sums):
                raise BadInput(CHANGED)
    return taken
