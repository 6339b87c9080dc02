"""Audits one client by what it sends: four tests, of which three share what may go wrong by chance.

1. *Epsilon*: no event on the bytes is likelier by more than exp(epsilon) under one of two neighbouring inputs.
2. *Freshness*: noise that is thrown anew does not repeat itself.
3. *Law*: what is told has the distribution that the integers state.
4. *Once*: a question that is asked again gets the same bytes, and one too many is refused. No chance is in this.

An honest client is flagged with probability ``1 - confidence`` at most, over all pairs of inputs and all tests.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sottovoce.auditing.bound import Transcript, law_p_value, lower_bound, repeats_p_value
from sottovoce.auditing.subject import REFUSED, AuditSubject, NotHere

TESTS = 3


class SubjectAudit(NamedTuple):
    """What the audit of one client found: its exact epsilon, the bound, and why it is flagged, if it is.

    ``skipped`` is why it was not audited, where it was not.
    """

    name: str
    asked: float | None
    epsilon: float
    bound: float
    event: str
    trials: int
    flags: tuple[str, ...]
    skipped: str = ""

    @property
    def honest(self) -> bool:
        """Tell whether nothing was found against the client."""
        return not self.flags


def audit_client(subject: AuditSubject, trials: int, alpha: float) -> SubjectAudit:
    """Audit a client with so many trials of each input; an honest one is flagged with probability ``alpha`` at most."""
    exact, flags = subject.cost.epsilon, list[str]()
    asked = subject.cost.part.asked
    if not subject.cost.kept:
        flags.append(f"its integers cost epsilon {exact:.6g}, more than the {asked:.6g} that was asked")
    each, best, event = alpha / (TESTS * len(subject.pairs)), 0.0, ""
    try:
        for number, pair in enumerate(subject.pairs):
            said = [subject.sample(number, side, trials) for side in (0, 1)]
            found = lower_bound(said[0], said[1], each, subject.read)
            if found.epsilon >= best:
                best = found.epsilon
                event = f"{found.event}: {found.often} and {found.seldom} times in {found.trials}"
            if found.epsilon > exact:
                flags.append(
                    f"what it sends about {pair.words} costs epsilon {found.epsilon:.4g} at least, and its integers "
                    f"say {exact:.4g} ({found.event})"
                )
            flags += _twice(said[0] + said[1], pair.words)
            told = [[subject.read(each) for each in side] for side in said]
            flags += _strange(told, pair.words, pair.laws, subject.collision, each)
    except NotHere as error:
        return SubjectAudit(subject.name, asked, exact, 0.0, "", 0, tuple(flags), str(error))
    return SubjectAudit(subject.name, asked, exact, best, event, trials, tuple(flags))


def _twice(said: list[Transcript], words: str) -> list[str]:
    """Return whether anybody answered a question twice: the second message of a trial repeats the first one's question.

    Where a trial has three messages or more, the last one is to refuse.
    """
    found = []
    if any(len(each) > 1 and each[0] != each[1] for each in said):
        found.append(f"asked again about {words}, it sends other bytes than before")
    if any(len(each) > 2 and not each[-1].startswith(REFUSED) for each in said):
        found.append(f"records have answered once more about {words}")
    return found


def _strange(
    told: list[list[int]], words: str, laws: Sequence[Sequence[float]] | None, collision: float, alpha: float
) -> list[str]:
    """Return what is wrong with what was told: noise that repeats itself, or another distribution than was stated."""
    found = []
    runs: list[list[Transcript]] = [[(str(letter).encode(),) for letter in side] for side in told]
    if min(repeats_p_value(side, collision) for side in runs) * 2 < alpha:
        found.append(f"its noise about {words} repeats itself")
    if laws is not None and min(map(law_p_value, told, laws)) * 2 < alpha:
        found.append(f"what it tells about {words} has another distribution than its integers state")
    return found
