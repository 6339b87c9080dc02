"""Sites without a record: the answers that a normal distribution gives, without any noise, to each kind of query."""

import math
from statistics import NormalDist

from sottovoce.core.roster import Roster
from sottovoce.core.unit import NUMBER
from sottovoce.protocol.messages import Message, Query, Reports, Tally, WalkQuery
from sottovoce.protocol.randomised_response import rate_of
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport
from sottovoce.server.integration.plan import IntegrationPlan, PlannedSite, check_settings, plan_integration
from sottovoce.server.integration.site_summary import SiteSummary
from sottovoce.server.method import Queries, Replies

LAW = NormalDist(20.0, 3.0)
SIZES = {"ours": 1_500, "north": 1_800, "open": 400}
BUDGETS = {"ours": 5.0, "north": 6.0, "open": math.inf}
TOLD = {"told": SiteSummary(20.1, 0.3, n=100)}


def planned(method: str = "valid", chains: int = 4, level: float = 0.95, **options: object) -> IntegrationPlan:
    settings = check_settings(method, level, 0.5, "printed", "z", 1.96, None, chains)
    roster = Roster(tuple(SIZES), tuple(SIZES.values()), NUMBER)
    return plan_integration(settings, [*SIZES, *TOLD], roster, TOLD, 0.5, BUDGETS, **options)  # type: ignore[arg-type]


class Answers:
    """Answers queries by the distribution; letters come by turns in their proportion."""

    def __init__(self, site: PlannedSite) -> None:
        assert site.study is not None
        self._rate, self._size = rate_of(site.study.channels[0]), site.size or 0
        self._carried = 0.5

    def above(self, point: float) -> float:
        """Return how often a letter is one."""
        return (1 - self._rate) / 2 + self._rate * (1 - LAW.cdf(point))

    def reply(self, query: Message) -> Message:
        """Answer one query."""
        if isinstance(query, SummaryQuery):
            half = 2.0 * LAW.stdev / math.sqrt(self._size)
            return SummaryReport(1, self._size, LAW.mean, half / 2, 19.0, LAW.mean - half, LAW.mean + half, False)
        assert isinstance(query, Query)
        if isinstance(query, WalkQuery):
            self._carried += self.above(query.points[0])
            letter = int(self._carried >= 1)
            self._carried -= letter
            return Reports(query.round, bytes([letter]))
        ones = (round(n * self.above(point)) for point, n in zip(query.points, query.counts, strict=True))
        return Tally(query.round, tuple(ones))


class Crowd:
    """Answers for all sites of a plan."""

    def __init__(self, plan: IntegrationPlan) -> None:
        self._sites = [None if site.study is None else Answers(site) for site in plan.asked]

    def __call__(self, queries: Queries) -> Replies:
        return [
            None if message is None or site is None else site.reply(message)
            for site, message in zip(self._sites, queries.messages, strict=True)
        ]
