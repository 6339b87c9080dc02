"""The parallel chains of one site: a private search for start and unit, then a compiled walk for each chain."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sottovoce.client.door import Door
from sottovoce.client.quantile.site import Site
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.self_normalised.memory import average
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.source import Faces, Feed, Source
from sottovoce.local.runner import run_to_end
from sottovoce.server.integration.chains import ChainStudy, chain, measure
from sottovoce.server.quantile.conversation import Conversation
from sottovoce.server.quantile.recursion.initialisation import find_initialisation
from sottovoce.server.quantile.recursion.study import WalkStudy

PILOTS = 0.15  # of the records, at most: in a tail, pilots as precise as those of other walks would eat all of them


class Chained(NamedTuple):
    """What the chains found, after how many rounds (each asks one record of every chain), from how many reports."""

    measured: SiteEstimate
    rounds: int
    reports: int


class Deal:
    """The records dealt to one chain: the next ones of a source, and no more."""

    __slots__ = ("_feed", "left")

    def __init__(self, feed: Feed, n: int) -> None:
        self._feed = feed
        self.left = n

    def fetch(self, values: Floats, faces: Faces) -> int:
        """Fill both with what comes next; return how many records that was."""
        n = min(len(values), self.left)
        fetched = self._feed.fetch(values[:n], faces[:n])
        self.left -= fetched
        return fetched


def run_chains(
    site: Site,
    study: ChainStudy,
    *,
    bounds: tuple[float, float] | None = None,
    scale: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Chained:
    """Search where the study leaves start or unit open, then run the chains over the records that are left.

    Parameters
    ----------
    site
        Who answers, each record at most once; all records are spent first, also the few that the number of chains does
        not divide and that are not asked.
    study
        What is estimated and how.
    bounds
        A public pair that contains the quantile; shortens the search.
    scale
        A rough public spread of the records; shortens the search.
    progress
        Called with the number of records that have just answered.

    Returns
    -------
    Estimate, error and degrees of freedom, with the numbers of rounds and of reports.

    Examples
    --------
    >>> from sottovoce.protocol.randomised_response import binary
    >>> from sottovoce.client.record import Records
    >>> from sottovoce.protocol.messages import Study
    >>> site = Site(Records(np.linspace(40.0, 60.0, 20_005)), Study(0.5, 4.0))
    >>> found = run_chains(site, ChainStudy(0.5, site.channel))
    >>> low, high = found.measured.interval(0.999999)
    >>> low < 50 < high, found.measured.df, site.spent - found.reports < 10
    (True, 9, True)
    """
    if study.channel.weights != site.channel.weights:
        raise BadInput("the study's channel is not the site's; plan the study with site.channel.")
    study.length(site.size - site.spent)  # refused before anything is spent
    start, unit, searched = study.start, study.unit, 0
    if start is None or unit is None:
        search = find_initialisation(study.crowd(site.size), study.tau, bounds, scale, PILOTS)
        conversation = Conversation(lambda: search)
        log = run_to_end(conversation, [Door(site, b"")], progress)
        initialisation, searched = conversation.outcome(log), log.rounds
        start = initialisation.point if start is None else start
        unit = initialisation.unit if unit is None else unit
        if not (math.isfinite(start) and 0 < unit < math.inf):
            raise SearchFailed(
                f"the search for the {study.tau:g} quantile found no start; give public bounds= or scale=."
            )
    before = site.spent
    one = chain(study, start, unit, _length(study, site.size - before))
    averages = walk_chains(one, study.chains, Source(*site.hand_over(searched + 1)), progress)
    length = len(one.elapsed)
    return Chained(measure(averages), searched + length, before + study.chains * length)


def walk_chains(one: WalkStudy, chains: int, source: Source, progress: Callable[[int], None] | None = None) -> Floats:
    """Walk one chain after the other over a source, all from the same start; return their averages."""
    averages, length = np.empty(chains), int(one.sizes[0])
    for m in range(chains):
        averages[m] = average(fused.run(one, [Deal(source, length)]).memory)
        if progress is not None:
            progress(length)
    return averages


def _length(study: ChainStudy, left: int) -> int:
    """Return how many records each chain asks after the search."""
    try:
        return study.length(left)
    except BadInput as error:
        raise SearchFailed(f"the search left too few records: {error}") from None
