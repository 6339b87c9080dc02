"""What a collector is told of a regression: the table [regression] of a study's file.

    [regression]
    response = "wait"             # a finite number on each device
    tau = 0.5                     # or several, [0.5, 0.9]
    epsilon = 2.0

    [regression.features]         # public bounds; what lies beyond them is moved to them, on the device
    age = [18, 90]
    distance = [0, 30]

Beside them may stand ``two_valued = ["member"]``, features that take their two bounds alone, and a table of moments
that a census knows, each a mean or [mean, standard deviation]. Where density and size are not given, the first people
are asked for location and scale of the response.
"""

import math
from typing import Any

from sottovoce.core.bounds import read_bounds
from sottovoce.core.checks import confidence, nearest, number
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted
from sottovoce.protocol.device_regression import LETTERS, MOST_COLUMNS, DeviceBlock, DeviceChannel, RegressionTerms
from sottovoce.protocol.randomised_response import binary, flips_of
from sottovoce.protocol.regression.blocks import Block, RegressionChannel, tables_of
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.regression.decode import alphabets
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.feasibility import check
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.settings import DEFAULTS, read_settings

_NEEDED = ("response", "tau", "epsilon", "features")
_KNOWN = {*_NEEDED, "level", "density", "size", "start", "second_moments", "limit", "channel", "two_valued", "moments"}
LONGEST = 60  # characters of a column's name


def plan_regression(given: Any, people: int, where: str) -> RegressionPlan:
    """Check all that is said of a regression, before anybody is asked."""
    if not isinstance(given, dict):
        raise BadInput(f"[regression] of {where} must be a table; write response, tau, epsilon and features below it.")
    for key in given:
        if key not in _KNOWN:
            raise BadInput(
                f"[regression] of {where} does not know {quoted(key)}{nearest(key, sorted(_KNOWN))}; correct it."
            )
    if missing := [each for each in _NEEDED if each not in given]:
        raise BadInput(f"[regression] of {where} has no {missing[0]}; give it.")
    terms = dict(given)
    response, features, level = terms.pop("response"), terms.pop("features"), confidence(terms.pop("level", 0.95))
    if not (isinstance(features, dict) and 1 <= len(features) <= MOST_COLUMNS):
        raise BadInput(f"features of {where} must be a table of up to {MOST_COLUMNS} names with [low, high]; give it.")
    if not all(isinstance(name, str) and name.isprintable() and len(name) <= LONGEST for name in (response, *features)):
        raise BadInput(f"response and features of {where} have names of up to {LONGEST} characters; correct them.")
    if response in features:
        raise BadInput(f"response of {where} is one of its features; name each once.")
    if not number(terms["epsilon"], "epsilon") < math.inf:
        raise BadInput("people's devices answer in private: epsilon must be finite; give a number such as 1.")
    settings = read_settings({**DEFAULTS, **terms, "clip": True})
    bounds = read_bounds(features, tuple(features))
    design = design_of(settings, bounds)
    if math.isinf(design.epsilon):
        raise BadInput("people's devices answer in private; give another channel than 'open'.")
    if max(int(alphabets(channel).max()) for channel in design.channels) > LETTERS:
        raise BadInput(f"a report has room for {LETTERS:,} letters and this channel has more; choose another channel.")
    check(people, design, settings)
    return RegressionPlan(settings, design, bounds, settings.starts(bounds.to_scaled), level, response)


def regression_terms(plan: RegressionPlan) -> RegressionTerms:
    """Return what the card says of a regression."""
    return RegressionTerms(
        response=plan.response,
        columns=plan.bounds.names,
        low=tuple(plan.bounds.low.tolist()),
        high=tuple(plan.bounds.high.tolist()),
        channels=tuple(device_channel(channel) for channel in plan.design.channels),
        two_valued=tuple(plan.bounds.names.index(name) for name in plan.settings.two_valued),
    )


def pilot_flips(plan: RegressionPlan) -> int:
    """Return the flip weight of the bit that the first people answer with."""
    return flips_of(binary(plan.design.epsilon))


def device_channel(channel: RegressionChannel) -> DeviceChannel:
    """Return a channel as its card has it."""
    upto, bit = tables_of(channel).upto, channel.bit
    blocks = tuple(_block(block) for block in channel.blocks)
    return DeviceChannel(channel.taus, tuple(upto.tolist()), blocks, (str(bit.low), str(bit.extra), str(bit.spare)))


def _block(block: Block) -> DeviceBlock:
    """Return a block as its card has it."""
    through = block.channel
    if isinstance(through, BoxChannel):
        weights = ((str(through.low), str(through.extra), str(through.spare)),)
        return DeviceBlock(weights, (through.kinds, through.slopes, through.cells, through.width), block.slopes)
    rows: Any = getattr(through, "weights", ())  # a matrix; exact scores are refused before
    return DeviceBlock(tuple(tuple(map(str, row)) for row in rows), None, block.slopes)
