"""Whether a regression can tell anything: do so many people, at this budget, tell anything of every coefficient at all?

A report through a channel tells of coefficient j what ``I_j = tau (1 - tau) E x_j^2 / Omega_jj`` exact scores would
tell. Where all reports together tell less of some coefficient than a quarter of one exact score, the fit would be its
own start, so it is refused before anything is spent.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.inference.regression.higrad import Tree
from sottovoce.protocol.randomised_response import binary, rate_of
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.server.regression.design import Design
from sottovoce.server.regression.omega import omega_at
from sottovoce.server.regression.pilot import searchers
from sottovoce.server.regression.settings import RegressionSettings

SPARE = 2.0  # people for each that the search for location and scale is expected to ask (decision 0022)
SURE = 6.0  # standard deviations that a level's part of the people may fall short of its mean
LEAST = 0.25  # exact scores that all reports together must be worth, for every coefficient (decision 0022)


def information(design: Design) -> Floats:
    """Return what part of an exact score one person's report is worth, (levels, p + 1), intercept first.

    >>> from sottovoce.server.regression.design import parse
    >>> information(parse("open", 0.5, 2, math.inf)).tolist()
    [[1.0, 1.0, 1.0]]
    """
    found = []
    for channel in design.channels:
        exact = open_channel(channel.taus, channel.p)
        for level in range(len(channel.taus)):
            noise, alone = (np.diag(omega_at(each, design.known, level)) for each in (channel, exact))
            found.append(alone / noise)
    # of a split design, each level hears its part of the people only
    return np.array(found) / len(design.channels)


def needed(design: Design) -> int:
    """Return about how many people are enough."""
    return max(2, round_up(LEAST / float(information(design).min())))


def check(n: int, design: Design, settings: RegressionSettings) -> None:
    """Refuse a fit to fewer people than tell anything, in one sentence that says how many are needed."""
    if n < 2 or n * float(information(design).min()) < LEAST:
        there = "there is 1 sample" if n == 1 else f"there are {n:,}"
        p = design.known.p
        raise Infeasible(
            f"a regression on {p} {'covariate' if p == 1 else 'covariates'} needs about {needed(design):,} people at "
            f"epsilon {design.epsilon:g}, and {there}: add people, raise epsilon, or leave covariates out."
        )
    first = round_up(SPARE * searchers(rate_of(binary(design.epsilon)))) if settings.searches else 0
    if n < first:
        raise Infeasible(
            f"the first people tell location and scale, which takes about {first:,} at epsilon "
            f"{design.epsilon:g}, and there are {n:,}: add people, or give density and size, public guesses.",
            parameter=("density", "size"),
        )
    if settings.inference == "higrad":
        _check_tree(n, first, len(design.channels), Tree(settings.tree, n))  # a tree refuses fewer than its segments


def _check_tree(n: int, first: int, levels: int, tree: Tree) -> None:
    """Refuse a tree whose segments might stay empty after the search and the draw of levels."""
    # each level is left at least left / levels - SURE sqrt(left (levels - 1)) / levels people; solved for sqrt(left)
    half = SURE * math.sqrt(levels - 1) / 2
    least = first + (half + math.sqrt(half**2 + levels * tree.nodes)) ** 2
    if n < least - 1e-6:
        each = f", at each of {levels} levels," if levels > 1 else ""
        after = " after the search for location and scale" if first else ""
        raise Infeasible(
            f"a tree of {tree.nodes:,} segments needs{each} a person for each{after}, which takes about "
            f"{round_up(least):,} people, and there are {n:,}: add people, or give a tree with fewer branches."
        )


def check_batches(settings: RegressionSettings) -> None:
    """Refuse to ask in batches what has to know everybody beforehand."""
    if settings.inference == "higrad":
        raise BadInput("higrad needs all people at once, to deal them to its tree; use fit, or another inference.")


def round_up(number: float) -> int:
    """Round up to two digits, as a plan would be stated."""
    unit = 10.0 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return int(math.ceil(number / unit - 1e-9) * unit)
