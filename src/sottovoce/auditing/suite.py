"""Which clients are audited at a budget, or for a study's own channels."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sottovoce.auditing.bits import bit_site
from sottovoce.auditing.devices import row_device, value_device
from sottovoce.auditing.parts import ChannelPart, made_of
from sottovoce.auditing.people import people_of
from sottovoce.auditing.scores import counting, selecting, summing
from sottovoce.auditing.subject import AuditSubject
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.randomised_response import binary
from sottovoce.protocol.regression.blocks import Block, RegressionChannel
from sottovoce.protocol.regression.box import cq
from sottovoce.protocol.regression.lp import lp_pair
from sottovoce.protocol.selection import SELECTIONS

WEIGHT = 0.5  # of the side in the pair of a linear program that is audited


def library_clients(epsilon: float) -> list[AuditSubject]:
    """Return the clients of the library at a budget: every mechanism that can spend it."""
    makers: list[Callable[[], list[AuditSubject]]] = [
        lambda: [bit_site(binary(epsilon), epsilon)],
        lambda: people_of(cq(0.5, 1, epsilon, q=2, s=2), epsilon, name="library, box"),
        lambda: people_of(_pair(epsilon), epsilon, name="library, linear program")[:1],
        *(lambda name=name: [selecting(name, epsilon)] for name in SELECTIONS),
        lambda: [counting(epsilon)],
        lambda: [summing(epsilon)],
    ]
    return list(_made(makers))


def device_clients(epsilon: float) -> list[AuditSubject]:
    """Return the collector's devices at a budget, in Python and in JavaScript."""
    from sottovoce.auditing.javascript import row_script, value_script

    bit, rows = binary(epsilon), cq(0.5, 1, epsilon, q=2, s=2)
    return [
        value_device(bit, epsilon),
        row_device(rows, epsilon),
        value_script(bit, epsilon),
        row_script(rows, epsilon),
    ]


def federation_clients(epsilon: float) -> list[AuditSubject]:
    """Return the resident site of a federation at a budget."""
    from sottovoce.auditing.federated import resident_site

    return [resident_site(binary(epsilon), epsilon)]


CLIENTS: dict[str, Callable[[float], list[AuditSubject]]] = {
    "library": library_clients,
    "federation": federation_clients,
    "device": device_clients,
}


def clients_of(parts: Sequence[ChannelPart], where: str) -> list[AuditSubject]:
    """Return the clients that answer through a study's own channels: of each form that of the largest budget."""
    dearest: dict[str, ChannelPart] = {}
    for part in parts:
        if part.asked is not None and part.asked > (dearest[part.form].asked if part.form in dearest else 0):  # type: ignore[operator]
            dearest[part.form] = part
    found: list[AuditSubject] = []
    for form, part in dearest.items():
        assert part.asked is not None
        if form == "bit":
            channel = made_of(part)
            assert isinstance(channel, Channel)
            found += _bits(channel, part.asked, where)
        elif form in SELECTIONS:
            found.append(selecting(form, part.asked))
        elif form == "count":
            found.append(counting(part.asked))
        elif form == "sum":
            found.append(summing(part.asked))
    return found


def _bits(channel: Channel, asked: float, where: str) -> list[AuditSubject]:
    """Return the clients of one bit, where a study runs."""
    if where == "device":
        from sottovoce.auditing.javascript import value_script

        return [value_device(channel, asked), value_script(channel, asked)]
    if where == "federation":
        from sottovoce.auditing.federated import resident_site

        return [bit_site(channel, asked), resident_site(channel, asked)]
    return [bit_site(channel, asked)]


def _pair(epsilon: float) -> RegressionChannel:
    """Return the pair of a linear program, about a side and one covariate."""
    block = Block(1.0, lp_pair(0.5, epsilon, WEIGHT), (1,), np.ones((1, 2)))
    return RegressionChannel("pair", (0.5,), 1, (block,), budget=epsilon)


def _made(makers: Sequence[Callable[[], list[AuditSubject]]]) -> Iterator[AuditSubject]:
    """Yield what can be made at a budget: not every mechanism can spend any."""
    refused: BadInput | None = None
    found = 0
    for make in makers:
        try:
            for each in make():
                found += 1
                yield each
        except BadInput as error:
            refused = refused or error
    if not found and refused is not None:
        raise refused
