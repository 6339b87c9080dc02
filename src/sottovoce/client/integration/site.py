"""A site whose records may be read as they are: it answers one query, once, with its order statistics.

Nothing is randomised, so a record's epsilon is infinite; a site that sets itself a finite limit refuses such a study
before anything is read.
"""

import math

from sottovoce.client.door import SiteLimits
from sottovoce.client.integration.order_statistics import dithered, shared, summarise
from sottovoce.client.ledger import Ledger, Storage
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.messages import Message, Study
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport


class OpenSite:
    """A place that holds records and opens their order statistics.

    Parameters
    ----------
    records
        The records.
    study
        What the site takes part in; its epsilon is infinite.
    dice
        None for the operating system's entropy; thrown only where the study has a resolution.
    storage
        Where the ledger keeps its entry; in memory if None.
    limits
        What the site is ready to take part in.

    Examples
    --------
    >>> import numpy as np
    >>> site = OpenSite(Records(np.arange(101.0)), Study(0.5, math.inf))
    >>> said = site.reply(1, SummaryQuery(1, 0.5, 0.95))
    >>> said.estimate, said.low, said.high, said.tied
    (50.0, 40.0, 60.0, False)
    """

    __slots__ = ("_dice", "_ledger", "_limits", "_records", "_study")

    kinds: tuple[type[Message], ...] = (SummaryQuery,)
    private = False

    def __init__(
        self,
        records: Records,
        study: Study,
        dice: RandomSource | None = None,
        *,
        storage: Storage | None = None,
        limits: SiteLimits | None = None,
    ) -> None:
        self._limits = SiteLimits() if limits is None else limits
        self._limits.check_budget(study.epsilon)
        if not math.isinf(study.epsilon):
            raise BadInput("order statistics have no finite epsilon; open a private site for a study with a budget.")
        if not (0 < study.tau < 1 and 0 <= study.resolution < math.inf):
            raise BadInput("the study's tau lies between 0 and 1, its resolution is 0 or more; correct the study.")
        if records.size == 0:
            raise BadInput("the site holds no record; leave it out of the study.")
        self._records, self._study = records, study
        self._dice = SystemEntropy() if dice is None else dice
        self._ledger = Ledger(records.size, storage)

    def __repr__(self) -> str:
        return f"OpenSite({self._records.size:,} records, {self._ledger.spent:,} answered)"

    @property
    def size(self) -> int:
        """Return how many records the site holds."""
        return self._records.size

    @property
    def spent(self) -> int:
        """Return how many records have answered: none, or all."""
        return self._ledger.spent

    def reply(self, round: int, query: Message) -> SummaryReport:
        """Answer the one query, from all records at once; a retry gets the same."""
        if not isinstance(query, SummaryQuery) or query.round != round:
            raise BadInput(f"round {round} asks nothing that this site understands; correct the query.")
        self._limits.check_round(round)
        if query.tau != self._study.tau or not 0 < query.level < 1:
            raise BadInput("the query asks for another quantile than the study, or for no interval; correct it.")

        def draw(_: int) -> SummaryReport:
            records = dithered(self._records, self._study.resolution, self._dice)
            (estimate, std_error, df), ends = summarise(records, query.tau, query.level)
            return SummaryReport(round, records.size, estimate, std_error, df, *ends, shared(records, ends))

        return self._ledger.transaction(round, query, self._records.size, SummaryReport, draw)
