"""The state of a study as the fold of its log: rounds that were asked, what was said, and who has left before which.

A replay that would ask something else than was asked is refused. Who leaves for good does so before a round, and what
is asked from there on depends on it, so that a departure stands in the log at its place.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.studies import PlannedRounds
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Message
from sottovoce.server.method import Absent, Method, Queries


class Standing(NamedTuple):
    """Where a study stands: what is asked of whom, and the state of its method."""

    plan: PlannedRounds
    state: Any


def replay(plan: PlannedRounds, log: StudyLog, study: bytes, least: int | None) -> Standing:
    """Fold a log, as far as it goes; nobody is asked."""
    departures, state = log.departures(), plan.method.init()
    while (queries := plan.method.query(state)) is not None:
        method, names, round = plan.method, plan.names, queries.round
        questions = questions_of(study, names, queries)
        if not questions:
            state = method.step(state, [None] * len(names))
            continue
        check_asked(round, questions, log.asked(round))
        for name, body in log.told(round).items():
            if name in questions:
                state = method.step(state, only(names, name, opened(method, study, round, body)))
        for name, spent in log.absent(round).items():
            if name in questions:
                state = method.step(state, only(names, name, Absent(round, spent)))
        still = method.query(state)
        if still is None or still.round != round:
            continue
        if round not in departures:
            break
        plan, state = without(Standing(plan, state), departures.pop(round), least)
    if departures:
        raise BadInput("the log says that a site has left before a round that this study has not come to; use its own.")
    return Standing(plan, state)


def without(standing: Standing, gone: Sequence[str], least: int | None) -> Standing:
    """Return how a study goes on over the sites that stay, or refuse what cannot."""
    plan = standing.plan
    leave = getattr(plan.method, "without", None)
    if leave is None:
        raise BadInput(
            f"a study by this method ({plan.card.method}) needs all of its sites; give it up with --give-up, and begin "
            "a new one without those that are gone."
        )
    method = leave(standing.state, gone, quorum=max(1, min(least or 1, len(plan.names) - len(set(gone)))))
    plans = getattr(method, "plans", None) or (method.plan,)
    warnings = tuple(dict.fromkeys(text for each in plans for text in each.warnings))
    return Standing(plan._replace(method=method, names=plans[0].names, warnings=warnings), method.init())


def questions_of(study: bytes, names: Sequence[str], queries: Queries) -> dict[str, bytes]:
    """Return what each site is asked in a round, in its envelope."""
    return {
        name: wire.seal(study, queries.round, message)
        for name, message in zip(names, queries.messages, strict=True)
        if message is not None
    }


def check_asked(round: int, questions: Mapping[str, bytes], known: Mapping[str, bytes]) -> None:
    """Refuse to ask something else than was asked."""
    if any(name in known and known[name] != question for name, question in questions.items()):
        raise BadInput(
            f"round {round} asks something else than the log says was asked; go on with the version that asked it."
        )


def opened(method: Method[Any, Any], study: bytes, round: int, envelope: bytes) -> Message:
    """Open an envelope of this round, with a reply that the method understands."""
    return wire.unseal(envelope, study, method.replies, round).message


def only(names: Sequence[str], name: str, message: Message) -> list[Message | None]:
    """Return one site's reply among the others that have not come."""
    return [message if each == name else None for each in names]
