"""Data integration as a method: every site is asked by its own kind, and what they know is combined at the end.

A private site is a staged study of one site, or runs the paper's chains; an open site is asked once for its order
statistics; a published summary is not asked at all. The state is the states of these parts. Sites are asked side by
side, those without a budget first: what they say can still end the study before any budget is spent. A source whose
search fails is left out, and what it spent is spent; if the target's fails, so does the study.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.protocol.messages import Message
from sottovoce.protocol.summaries import SummaryQuery, SummaryReport
from sottovoce.server.integration.chains import Chained, ChainMethod, ChainStudy
from sottovoce.server.integration.combine import LEVELS, KnownSite, LostSite, measured_of
from sottovoce.server.integration.plan import IntegrationPlan, PlannedSite, some
from sottovoce.server.integration.result import IntegratedResult
from sottovoce.server.integration.site_summary import LARGEST, SMALLEST, SiteSummary
from sottovoce.server.method import Method, Queries, Replies
from sottovoce.server.quantile.method import StagedQuantile
from sottovoce.server.quantile.result import QuantileResult

TIED = (
    "the target's records are tied at the ends of its own interval, which is exact, and would miss a value that it "
    "covers if sources moved it: give resolution=, the step they are rounded to"
)

State = tuple[tuple[Any, ...], tuple[str, ...]]  # of the parts, and why the search of each failed, empty if it did not


class Unasked(NamedTuple):
    """The state of a site that is not asked."""


class PublishedSummary:
    """A summary that stands already."""

    replies: tuple[type[Message], ...] = ()
    state = Unasked

    def __init__(self, summary: SiteSummary) -> None:
        self._summary = summary

    def init(self) -> Unasked:
        """Return the only state there is."""
        return Unasked()

    def query(self, state: Unasked) -> None:
        """Ask nothing."""

    def step(self, state: Unasked, replies: Replies) -> Unasked:  # noqa: ARG002
        """Refuse any reply."""
        raise BadInput("a site that published a summary is not asked; it has nothing to send.")

    def outcome(self, state: Unasked) -> SiteSummary:  # noqa: ARG002
        """Return the summary."""
        return self._summary


class Told(NamedTuple):
    """What an open site has said."""

    report: SummaryReport | None = None


class OpenSummary:
    """One question to an open site; ``who`` it is, for an error."""

    replies: tuple[type[Message], ...] = (SummaryReport,)
    state = Told

    def __init__(self, tau: float, level: float, records: int, who: str) -> None:
        self._tau, self._level, self._records, self._who = tau, level, records, who

    def init(self) -> Told:
        """Return the state before anything was asked."""
        return Told()

    def query(self, state: Told) -> Queries | None:
        """Return the one question until it is answered."""
        return Queries(1, [SummaryQuery(1, self._tau, self._level)], self._records) if state.report is None else None

    def step(self, state: Told, replies: Replies) -> Told:
        """Return the state with the report in it; refuse numbers that no order statistics are."""
        if state.report is not None:
            raise BadInput(f"{self._who} has said what it had to say; nothing was asked.")
        if len(replies) != 1:
            raise BadInput("round 1 asked one site; give one reply.")
        said = replies[0]
        if said is None:
            return state
        if not isinstance(said, SummaryReport) or said.round != 1:
            raise BadInput(f"{self._who} sent no summary of round 1; send the order statistics that were asked for.")
        if said.n != self._records:
            raise BadInput(f"{self._who} counts its records differently than the plan; plan the study anew.")
        known = (said.std_error == 0 or said.std_error > SMALLEST) and 0 < said.df <= (said.n + 1) / 2
        if not (known and -LARGEST < said.low <= said.estimate <= said.high < LARGEST):
            raise BadInput(f"{self._who} sent numbers that are no order statistics; send its quantile and the ends.")
        if said.std_error == 0:
            raise BadInput(
                f"{self._who} has no variance: its records around the {self._tau:g} quantile are all equal; leave it "
                "out, or give resolution=, the step they are rounded to."
            )
        return Told(said)

    def outcome(self, state: Told) -> SummaryReport:
        """Return what the site said."""
        if state.report is None:
            raise BadInput("the open site has not answered yet; ask it first.")
        return state.report


class SitePart(NamedTuple):
    """A site's own method, and how what it came to is written down."""

    site: PlannedSite
    method: Method[Any, Any]
    known: Callable[[Any], KnownSite]


class IntegrationMethod:
    """Asks every site of a plan in its own way; the outcome is what they know together."""

    def __init__(self, plan: IntegrationPlan) -> None:
        self.plan = plan
        self.parts = tuple(_part(plan, site) for site in plan.asked)

    @property
    def replies(self) -> tuple[type[Message], ...]:
        """Return the kinds of reply that it understands."""
        return tuple(dict.fromkeys(kind for part in self.parts for kind in part.method.replies))

    @property
    def state(self) -> type[State]:
        """Return the type of its state: those of the parts, in the order of the sites."""
        states = tuple(part.method.state for part in self.parts)
        return tuple[tuple[states], tuple[str, ...]]  # type: ignore[valid-type]

    @property
    def order(self) -> list[int]:
        """Return the sites in the order in which they spend: those without a budget first, then the target."""
        return sorted(range(len(self.parts)), key=lambda k: self.parts[k].site.kind == "private")

    def init(self) -> State:
        """Return the state before anything was asked."""
        return tuple(part.method.init() for part in self.parts), ("",) * len(self.parts)

    def query(self, state: State) -> Queries | None:
        """Return what is asked next of all sites that are at the earliest round; private ones wait for the others."""
        asked = [self.ask(state, k) for k in range(len(self.parts))]
        waiting = [k for k, queries in enumerate(asked) if queries is not None]
        turn = [k for k in waiting if self.parts[k].site.kind != "private"] or waiting
        if not turn:
            return None
        round = min(queries.round for k in turn if (queries := asked[k]) is not None)
        now = [queries if k in turn and queries and queries.round == round else None for k, queries in enumerate(asked)]
        messages = [None if queries is None else queries.messages[0] for queries in now]
        return Queries(round, messages, sum(queries.records for queries in now if queries is not None))

    def step(self, state: State, replies: Replies) -> State:
        """Return the state after some replies; a site that did not answer is asked again before the others go on."""
        asked = self.query(state)
        if asked is None:
            raise BadInput("the study is over; nothing was asked.")
        if len(replies) != len(self.parts):
            raise BadInput(f"round {asked.round} goes to {len(self.parts)} sites; give one reply for each of them.")
        for k, (message, reply) in enumerate(zip(asked.messages, replies, strict=True)):
            own = self.ask(state, k)
            if reply is not None and message is None:
                raise BadInput(f"site {k} was not asked in round {asked.round}; it has nothing to send.")
            idle = own is not None and own.round == asked.round and own.messages[0] is None
            if reply is not None or idle:
                state = self.tell(state, k, reply)
        return state

    def ask(self, state: State, k: int) -> Queries | None:
        """Return what one site is asked next; None if it is done, or its search failed."""
        return None if state[1][k] else self.parts[k].method.query(state[0][k])

    def tell(self, state: State, k: int, reply: Message | None) -> State:
        """Return the state after one site's reply."""
        try:
            own = self.parts[k].method.step(state[0][k], [reply])
            _check_found(self.parts[k], own)
            return self.put(state, k, own)
        except SearchFailed as error:
            if k == 0:
                raise
            parts, failed = state
            return parts, (*failed[:k], str(error), *failed[k + 1 :])

    def put(self, state: State, k: int, part: Any) -> State:
        """Return the state with another one of one site."""
        parts, failed = state
        return (*parts[:k], part, *parts[k + 1 :]), failed

    def outcome(self, state: State) -> IntegratedResult:
        """Return what the sites know together."""
        known, lost, warnings = [], [], []
        for k, (part, own, failed) in enumerate(zip(self.parts, *state, strict=True)):
            if not failed:
                known.append(part.known(part.method.outcome(own)))
                continue
            assert part.site.study is not None
            spent = _search(own).reports
            spent += queries.records if (queries := self.parts[k].method.query(own)) is not None else 0
            budget = part.site.study.channels[0].epsilon
            lost.append(LostSite(part.site.name, budget, spent, not self.plan.simulated))
            warnings.append(f"source {part.site.name!r} is left out: {failed.rstrip('.')}")
        plan = self.plan
        return IntegratedResult(
            settings=plan.settings,
            known=tuple(known),
            lost=tuple(lost),
            idle=(*plan.idle, *(name for name, _ in plan.small)),
            unit=plan.unit,
            step=plan.step,
            resolution=plan.resolution,
            private=all([site.private for site in known] + [site.private for site in lost]) and not plan.seeded,
            seeded=plan.seeded or plan.simulated,
            per_person=plan.per_person,
            measured_warnings=(*plan.before, *_warnings(known), *some(warnings)),
            column=plan.column,
        )


def _check_found(part: SitePart, own: Any) -> None:
    """Refuse a site that could only be certified: such an interval has no normal error to be combined by."""
    method, study = part.method, part.site.study
    if study is None or not isinstance(method, StagedQuantile) or part.site.certified or method.query(own) is not None:
        return
    if method.outcome(own).method == "certified":
        raise SearchFailed(
            f"the search for the {study.tau:g} quantile asked {own.reports / study.roster.sizes[0]:.0%} of the records "
            "without finding it; give public bounds= around it, or a resolution= if the records are rounded."
        )


def _search(state: Any) -> Any:
    """Return the log of a private site's state."""
    return getattr(state, "search", state)


def _part(plan: IntegrationPlan, site: PlannedSite) -> SitePart:
    """Return how one site is asked, and how its answer is written down."""
    name, level, chains = site.name, plan.settings.level, plan.settings.chains
    if site.summary is not None:
        return SitePart(site, PublishedSummary(site.summary), lambda summary: _published(name, summary, level))
    assert site.study is not None
    study, size, is_target = site.study, site.study.roster.sizes[0], site is plan.target
    if site.kind == "open":
        who = "the target" if is_target else f"source {name!r}"
        method = OpenSummary(study.tau, level, size, who)
        return SitePart(site, method, lambda report: _opened(name, report, study.warnings, is_target))
    private = not (plan.seeded or plan.simulated)
    if chains is not None:
        channel = study.channels[0]
        walks = ChainStudy(study.tau, channel, chains.number, chains.constant, chains.power)

        def chained(found: Chained) -> KnownSite:
            ends = found.measured.interval(level)
            return KnownSite(
                name, "private", found.measured, *ends, channel.epsilon, size, found.reports, found.rounds, private
            )

        return SitePart(site, ChainMethod(walks, size, study.bounds, study.scale), chained)

    def staged(result: QuantileResult) -> KnownSite:
        ends = result.solution.interval(level)
        further = tuple((each, *result.solution.interval(each)) for each in LEVELS) if is_target else ()
        return KnownSite(
            name,
            "private",
            SiteEstimate(result.solution.point, math.inf) if site.certified else measured_of(result.solution),
            *ends,
            result.epsilon[name],
            size,
            result.reports,
            result.rounds,
            private,
            warnings=result.warnings,
            ends=further,
        )

    return SitePart(site, StagedQuantile(study, level, certified=site.certified, watch=False), staged)


def _published(name: str, summary: SiteSummary, level: float) -> KnownSite:
    """Write down what a summary says."""
    measured = summary.measured()
    ends = measured.interval(level) if summary.trusted else (-math.inf, math.inf)
    return KnownSite(name, "summary", measured, *ends, None, summary.n, trusted=summary.trusted)


def _opened(name: str, said: SummaryReport, warnings: tuple[str, ...], is_target: bool) -> KnownSite:
    """Write down what an open site said."""
    known = KnownSite(
        name,
        "open",
        SiteEstimate(said.estimate, said.std_error, said.df),
        said.low,
        said.high,
        math.inf,
        said.n,
        said.n,
        1,
        private=False,
        tied=said.tied,
        warnings=warnings,
    )
    return replace(known, warnings=(*warnings, TIED)) if is_target and said.tied else known


def _warnings(known: Sequence[KnownSite]) -> list[str]:
    """Return what the sites warn of: all of the target, a few of the sources."""
    target, *sources = known
    own = [f"site {target.name!r}: {text}" if sources else text for text in target.warnings]
    return own + some([f"site {site.name!r}: {text}" for site in sources for text in site.warnings])
