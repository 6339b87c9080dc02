"""An open site: one query, once, with the order statistics; everything else is refused and nothing is spent."""

import copy
import math
from typing import Any

import numpy as np
import pytest

from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.integration.site import OpenSite, dithered, rank_interval, rank_summary
from sottovoce.client.ledger import Entry, MemoryStorage
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, Query, Study
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport
from sottovoce.protocol.wire import seal, unseal
from sottovoce.sim.randomness import dice

STUDY = b"0123456789abcdef"
VALUES = dice(1).generator().standard_normal(400)
ASKED = SummaryQuery(1, 0.5, 0.95)


def opened(resolution: float = 0.0, values: Any = VALUES, **options: Any) -> OpenSite:
    return OpenSite(Records(values), Study(0.5, math.inf, resolution), dice(3), **options)


@pytest.mark.parametrize("resolution", [0.0, 0.5])
def test_it_says_what_its_order_statistics_are(resolution: float) -> None:
    said = opened(resolution).reply(1, ASKED)
    records = dithered(Records(VALUES), resolution, dice(3))
    assert (said.estimate, said.std_error, said.df) == tuple(rank_summary(records, 0.5))
    assert (said.low, said.high) == rank_interval(records, 0.5, 0.95)
    assert (said.round, said.n, said.tied) == (1, 400, False)


def test_ties_at_an_end_are_told() -> None:
    assert opened(values=np.round(VALUES)).reply(1, ASKED).tied


def test_a_retry_gets_the_same_bytes_and_nothing_more_is_said() -> None:
    site = opened(0.5)
    door = Door(site, STUDY)
    first = door.answer(seal(STUDY, 1, ASKED))
    assert site.spent == site.size == 400
    assert door.answer(seal(STUDY, 1, ASKED)) == first
    assert isinstance(unseal(first, STUDY, [SummaryReport], 1).message, SummaryReport)
    with pytest.raises(BadInput, match="only 0 have not answered yet"):
        door.answer(seal(STUDY, 2, SummaryQuery(2, 0.5, 0.95)))
    with pytest.raises(BadInput, match="was already answered"):
        door.answer(seal(STUDY, 1, SummaryQuery(1, 0.5, 0.9)))
    assert repr(site) == "OpenSite(400 records, 400 answered)"


def test_its_epsilon_is_infinite_and_a_site_may_not_want_that() -> None:
    assert not opened().private
    with pytest.raises(BadInput, match="costs a record more than this site allows"):
        opened(limits=SiteLimits(epsilon=10.0))
    with pytest.raises(BadInput, match="no finite epsilon"):
        OpenSite(Records(VALUES), Study(0.5, 1.0))
    nan = math.nan
    for study in (Study(0.0, math.inf), Study(nan, math.inf), Study(0.5, math.inf, -1.0), Study(0.5, math.inf, nan)):
        with pytest.raises(BadInput, match="correct the study"):
            OpenSite(Records(VALUES), study)
    with pytest.raises(BadInput, match="holds no record"):
        opened(values=np.empty(0))


@pytest.mark.parametrize(
    ("round", "query", "said"),
    [
        (1, Query(1, (0.0,), (1,)), "asks nothing that this site understands"),
        (2, ASKED, "asks nothing that this site understands"),
        (1, SummaryQuery(1, 0.9, 0.95), "another quantile than the study"),
        (1, SummaryQuery(1, math.nan, 0.95), "another quantile than the study"),
        (1, SummaryQuery(1, 0.5, 1.0), "for no interval"),
        (1, SummaryQuery(1, 0.5, math.nan), "for no interval"),
        (9, SummaryQuery(9, 0.5, 0.95), "answers rounds 1 to 3"),
        (0, SummaryQuery(0, 0.5, 0.95), "answers rounds 1 to 3"),
    ],
)
def test_what_does_not_fit_is_refused_and_costs_nothing(round: int, query: Message, said: str) -> None:
    site = opened(limits=SiteLimits(rounds=3))
    with pytest.raises(BadInput, match=said):
        site.reply(round, query)
    assert site.spent == 0
    assert site.reply(1, ASKED).n == 400


def test_nothing_is_said_before_it_is_kept() -> None:
    class Full(MemoryStorage):
        def keep(self, entry: Entry) -> None:
            raise OSError("no space")

    site = opened(storage=Full())
    with pytest.raises(OSError, match="no space"):
        site.reply(1, ASKED)
    assert site.spent == 0


def test_it_cannot_be_copied() -> None:
    with pytest.raises(TypeError):
        copy.deepcopy(opened())
