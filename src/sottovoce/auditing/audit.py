"""`sv.audit`: is it really epsilon? From integers exactly, and from what clients send as a lower bound."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sottovoce.auditing import sources
from sottovoce.auditing.bits import bit_site
from sottovoce.auditing.blackbox import SubjectAudit, audit_client
from sottovoce.auditing.certificate import StudyCosts
from sottovoce.auditing.outcome import Audit
from sottovoce.auditing.parts import Auditable, costs_of, parts_of
from sottovoce.auditing.people import people_of
from sottovoce.auditing.subject import AuditSubject
from sottovoce.auditing.suite import CLIENTS, clients_of
from sottovoce.core.calling import public
from sottovoce.core.checks import number
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.blocks import Open, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.selection.exponential import Exponential, PaperExponential
from sottovoce.protocol.selection.geometric import NoisyCount, Polya
from sottovoce.protocol.selection.sparse_vector import SparseVector
from sottovoce.server.load import load
from sottovoce.server.stored import StoredResult

SAMPLES, LEAST, MOST = 2_000, 100, 1_000_000
CONFIDENCE = 0.999
Watch = Callable[[str], None]
Clients = Callable[[], list[AuditSubject]]


@public
def audit(
    what: Any = 1.0,
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
    clients: str | Sequence[str] = "library",
    progress: Watch | None = None,
) -> Audit:
    """Audit a channel, a result, an estimator or an installation: the exact epsilon, and what clients really send.

    Parameters
    ----------
    what
        A budget such as 1.0, for every mechanism of this installation that can spend it; a channel or mechanism; a
        result, or the file of one; or a fitted `PrivateQuantileRegressor`.
    samples
        Reports of each of two neighbouring inputs that every client sends about data that the audit makes itself; 0
        computes from integers alone. No record of anybody is read.
    confidence
        An honest installation passes with at least this probability, over all clients and tests together.
    clients
        Which clients are audited at a budget: "library", "federation", "device" (the collector's, in Python and in
        JavaScript), a sequence of these, or "all".
    progress
        Is told the name of each client before it is audited.

    Returns
    -------
    The audit: ``honest``, ``epsilon``, ``bound``, ``faults``, ``clients``, `summary`, `to_dict`, `report`,
    `certificate` and `save_certificate`.

    Examples
    --------
    >>> import sottovoce as sv
    >>> found = sv.audit(1.0, samples=0)
    >>> found.honest, round(found.epsilon, 6)
    (True, 1.0)
    """
    study, makers = _looked_at(what, clients)
    return run_audit(study, makers, samples, confidence, progress)


def run_audit(
    study: StudyCosts, clients: Clients, samples: Any, confidence: Any, progress: Watch | None = None
) -> Audit:
    """Audit the clients of a study, all of them together at a confidence."""
    trials, level = _checked(samples, confidence)
    if not trials:
        return Audit(study, (), level, False)
    made = clients()
    found: list[SubjectAudit] = []
    for each in made:
        if progress is not None:
            progress(each.name)
        found.append(audit_client(each, trials, (1 - level) / len(made)))
    return Audit(study, tuple(found), level, True)


def audit_log(kind: str, log: str, name: str, samples: Any, confidence: Any, progress: Watch | None = None) -> Audit:
    """Audit a study from the log of its coordinator ("federation") or its collector ("device")."""
    study = sources.of_federation(log, name) if kind == "federation" else sources.of_collector(log, name)
    parts = [each.part for each in study.costs]
    return run_audit(study, lambda: clients_of(parts, kind), samples, confidence, progress)


def _checked(samples: Any, confidence: Any) -> tuple[int, float]:
    """Return how many trials there are and the confidence, or refuse."""
    trials = number(samples, "samples")
    if trials != int(trials) or not (trials == 0 or LEAST <= trials <= MOST):
        raise BadInput(
            f"samples is a whole number from {LEAST} to {MOST:,}, or 0 for integers alone; correct it.",
            parameter="samples",
        )
    level = number(confidence, "confidence")
    if not 0.5 <= level <= 1 - 1e-12:
        raise BadInput("confidence lies between 0.5 and 1; give one such as 0.999.", parameter="confidence")
    return int(trials), level


def _looked_at(what: Any, clients: str | Sequence[str]) -> tuple[StudyCosts, Clients]:
    """Return what is to be certified, and its clients."""
    if isinstance(what, str | Path):
        what = load(what)
    if isinstance(what, StoredResult):
        study = sources.of_result(what)
        if what.kind == "regression":
            return study, lambda: _people(getattr(what, "channels", ()), float(getattr(what, "epsilon", math.inf)))
        return study, lambda: clients_of([each.part for each in study.costs], "library")
    if isinstance(getattr(what, "result_", None), StoredResult) and hasattr(what, "design_"):
        channels, asked = what.design_.channels, float(what.epsilon)
        study = sources.of_regression(channels, asked, what.result_)
        return study, lambda: _people(channels, asked)
    if isinstance(getattr(what, "threshold_", None), StoredResult):
        return _looked_at(what.threshold_, clients)
    if isinstance(
        what,
        Open
        | Channel
        | BoxChannel
        | RegressionChannel
        | SparseVector
        | Exponential
        | PaperExponential
        | NoisyCount
        | Polya,
    ):
        return _channel(what)
    if isinstance(what, bool) or not isinstance(what, int | float):
        raise BadInput(
            "audit takes a budget such as 1.0, a channel, a result or its file, or a fitted regressor; give one."
        )
    return _installation(float(what), _named(clients))


def _named(clients: str | Sequence[str]) -> list[str]:
    """Return which clients are meant, or refuse."""
    given = list(CLIENTS) if clients == "all" else [clients] if isinstance(clients, str) else clients
    if not isinstance(given, list | tuple) or not given or any(each not in CLIENTS for each in given):
        raise BadInput(
            f"clients are {', '.join(map(repr, CLIENTS))} or 'all'; give one or several.", parameter="clients"
        )
    return list(dict.fromkeys(given))


def _installation(epsilon: float, clients: Iterable[str]) -> tuple[StudyCosts, Clients]:
    """Return the parts and the clients of this installation at a budget."""
    if not 0 < epsilon < math.inf:
        raise BadInput("there is nothing to audit without a finite, positive epsilon; give one such as 1.")
    made = [each for name in clients for each in CLIENTS[name](epsilon)]
    costs = [each.cost._replace(part=_of_client(each)) for each in made]
    return StudyCosts({"kind": "installation", "question": f"epsilon {epsilon:g}"}, costs), lambda: made


def _of_client(subject: AuditSubject) -> Any:
    from msgspec.structs import replace

    return replace(subject.cost.part, role=subject.name)


def _people(channels: Iterable[RegressionChannel | Open], asked: float) -> list[AuditSubject]:
    """Return the clients of the channels that people answer through."""
    return [each for made in channels if isinstance(made, RegressionChannel) for each in people_of(made, asked)]


def _channel(made: Auditable | Open) -> tuple[StudyCosts, Clients]:
    """Return the parts of a channel, and its clients where the library has any."""
    parts = parts_of(made)
    costs = list(costs_of(parts))
    study = StudyCosts({"kind": "channel", "question": parts[0].form}, costs)
    realised = max(each.epsilon for each in costs)
    if not math.isfinite(realised):
        return study, list
    if isinstance(made, RegressionChannel):
        return study, lambda: people_of(made, realised)
    if isinstance(made, Channel) and parts[0].form == "bit":
        return study, lambda: [bit_site(made, realised)]
    return study, lambda: clients_of([_asking(part, realised) for part in parts], "library")


def _asking(part: Any, epsilon: float) -> Any:
    from msgspec.structs import replace

    return replace(part, asked=epsilon)
