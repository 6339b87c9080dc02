"""A study from its first question to its result: rounds that survive whatever happens to either side.

A reply is checked by the method that asked for it before it is kept, and kept before anything goes on. Whoever has not
answered is asked again, with the same bytes, until the deadline. However a study ends, its sites are told, so that
those which were asked nothing get back what they have reserved.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from typing import Any, NamedTuple

from sottovoce.core import codec
from sottovoce.core.errors import BadInput, Infeasible, SearchFailed
from sottovoce.core.roster import Roster
from sottovoce.federation import words
from sottovoce.federation.coordinator import exchange
from sottovoce.federation.coordinator.exchange import Exchange, Happened, Post, SiteRefused, Watch, listed
from sottovoce.federation.coordinator.log import LoggedStudy, StudyLog
from sottovoce.federation.coordinator.opening import StudyPaused, invite, look, roster_of
from sottovoce.federation.coordinator.replay import (
    Standing,
    check_asked,
    only,
    opened,
    questions_of,
    replay,
    without,
)
from sottovoce.federation.coordinator.studies import PlannedRounds, planned
from sottovoce.federation.study import StudyTerms
from sottovoce.protocol import card as cards
from sottovoce.server.method import Absent, Queries

NONE = bytes(16)  # stands for a study that has no card yet
GIVEN_UP = "given up"


class Ended(NamedTuple):
    """How a study was ended by hand: whether it was given up or is done, and which sites have not heard it yet."""

    given_up: bool
    not_heard: list[str]


class Rounds:
    """Conducts one study over a post, with a log."""

    def __init__(
        self,
        terms: StudyTerms,
        log: StudyLog,
        post: Post,
        watch: Watch | None = None,
        random: Callable[[], bytes] | None = None,
    ) -> None:
        self.terms, self.log, self.post = terms, log, post
        self._line = Exchange(log, post, watch)
        self._watch = self._line.watch
        self._random = _fresh if random is None else random
        self.plan: PlannedRounds | None = None

    def conduct(self, gone: Sequence[str] = ()) -> Any:
        """Ask until there is a result, from wherever the log stands; tell every site that the study is over.

        ``gone`` are sites that will not come back: the study goes on over the others, here and whenever it is started
        again.
        """
        if gone:
            check_leaving(self.log.study())
        begun = self.log.begin(codec.to_bytes(self.terms), self._random(), self._random())
        if begun.state == GIVEN_UP:
            raise BadInput(
                "this study was given up; --give-up tells it to sites that have not heard it, and a new study needs "
                "another name."
            )
        plan, seeded = self._planned(begun)
        study = cards.identity(plan.card)
        with self._ends(study, SearchFailed):
            standing = replay(plan, self.log, study, self.terms.rounds.least)
        if gone:
            standing = self._parted(standing, tuple(dict.fromkeys(gone)))
        self.plan = standing.plan
        left = self.log.departures()
        for round, names in sorted(left.items()):
            for name in names:
                self._watch(Happened("departed", name, round))
        self._line.part_with(study, [name for names in left.values() for name in names])
        for warning in standing.plan.warnings:
            self._watch(Happened("warning", words=warning))
        if standing.plan.method.query(standing.state) is not None:  # else all is said
            self._open(standing.plan, study, begun.state)
        with self._ends(study, SearchFailed, Infeasible):
            state = self._asked(standing, study)
        with self._ends(study, SearchFailed, BadInput):
            found = standing.plan.method.outcome(state)
        result = _without_privacy(found) if seeded else found
        self.log.finish("done", json.dumps(result.to_dict(), allow_nan=False))
        self._over(study, "done")
        return result

    def give_up(self) -> Ended:
        """End a study for good, whether it is paused or has failed, and tell all sites; one that is done stays so."""
        known = check_giving_up(self.log.study(), self.terms)
        done = known.result is not None
        if not done:
            self.log.finish(GIVEN_UP, None)
        study = NONE if known.card is None else cards.identity(cards.from_bytes(known.card))
        wait = self.terms.rounds.deadline
        return Ended(not done, self._line.over(study, "done" if done else GIVEN_UP, self.terms.sites, wait))

    def _planned(self, begun: LoggedStudy) -> tuple[PlannedRounds, bool]:
        """Plan the study over its sites, as the log has them; return whether their noise is seeded, too."""
        with self._tells(NONE) if begun.card is None else nullcontext():
            roster = (
                roster_of(self._line, self.terms) if begun.roster is None else codec.from_bytes(begun.roster, Roster)
            )
            plan = planned(self.terms, roster, begun.coin, begun.nonce)
        card = cards.to_bytes(plan.card)
        if begun.card is None:
            self.log.settle(codec.to_bytes(roster), card)
        elif begun.card != card:
            raise BadInput("this program makes another card of these terms than the log holds; use the same version.")
        return plan, roster.seeded

    def _parted(self, standing: Standing, gone: tuple[str, ...]) -> Standing:
        """Go on without some sites, for good: once that is checked, it is kept."""
        queries = standing.plan.method.query(standing.state)
        rest = without(standing, gone, self.terms.rounds.least)
        assert queries is not None  # nobody can leave a study that is over
        self.log.depart(queries.round, gone)
        return rest

    def _open(self, plan: PlannedRounds, study: bytes, state: str) -> None:
        """Open the study at all sites that take part, or at none: who refuses ends it before anything was asked."""
        card, wait = cards.to_bytes(plan.card), self.terms.rounds.wait
        if state == "open":
            with self._tells(study):
                look(self._line, plan.names, card, study, wait)
            self.log.invite()
        try:
            invite(self._line, plan.names, card, study, wait)
        except SiteRefused as error:
            if not self.log.counts("told"):
                with self._ends(study, SiteRefused):
                    raise
            raise StudyPaused(
                f"{str(error).rstrip('.')}; others have answered already: start the study again when it does, go on "
                "with --without, or end it with --give-up."
            ) from None

    def _asked(self, standing: Standing, study: bytes) -> Any:
        """Ask what is not in the log; return the last state."""
        plan, state = standing
        while (queries := plan.method.query(state)) is not None:
            state = self._round(plan, study, state, queries)
        return state

    def _round(self, plan: PlannedRounds, study: bytes, state: Any, queries: Queries) -> Any:
        """Ask one round until it is answered."""
        round, names, method = queries.round, plan.names, plan.method
        questions = questions_of(study, names, queries)
        if not questions:
            return method.step(state, [None] * len(names))
        known = self.log.asked(round)
        check_asked(round, questions, known)
        new = {name: question for name, question in questions.items() if name not in known}
        if new:
            self.log.ask(round, new)
        waiting = {name: words.encode(words.Question(study, question)) for name, question in questions.items()}
        held = [state]

        def fits(site: str, reply: words.Reply) -> bool:
            if isinstance(reply, words.Refused) and reply.study == study:
                raise BadInput(f"refuses: {reply.why}")
            if not isinstance(reply, words.Answered) or reply.study != study:
                return False
            self._line.newer_head(site, reply.counter, reply.head)
            message = opened(method, study, round, reply.envelope)
            after = method.step(held[0], only(names, site, message))  # refuses what no site can have said
            self.log.tell(round, site, reply.envelope, reply.counter, reply.head)
            held[0] = after
            self._watch(Happened("told", site, round))
            return True

        rules, begun = self.terms.rounds, time.monotonic()
        least = len(names) if rules.least is None else min(rules.least, len(names))  # sites that must not be missing
        most = len(names) - least - (len(self.log.absent(round)) if known else 0)  # that may be, beside those given up
        left = self._line.ask(waiting, fits, round, rules.deadline if most > 0 else rules.wait)
        while len(left) > max(most, 0) and time.monotonic() - begun < rules.wait:
            again = {name: waiting[name] for name in left}
            left = self._line.ask(again, fits, round, min(exchange.AGAIN, rules.wait))
        if left:
            held[0] = self._closed_without(left, most, plan, held[0], round, known)
        so_far = getattr(method, "so_far", None)
        interval = None if so_far is None else so_far(held[0])
        self._watch(Happened("round", round=round, records=queries.records, interval=interval))
        return held[0]

    def _closed_without(
        self,
        left: Sequence[str],
        most: int,
        plan: PlannedRounds,
        state: Any,
        round: int,
        known: Mapping[str, bytes],
    ) -> Any:
        """Close a round without sites whose deadline is over, at ``most`` so many of them; else the study pauses.

        What a site was handed it may have spent, whatever became of its reply, so that these records count as spent;
        so do those of questions that an earlier coordinator logged, of which nobody knows whether they were handed.
        """
        paused = StudyPaused(
            f"{listed(left)} did not answer round {round}; nothing is lost, and the study goes on when it is started "
            "again."
        )
        if len(left) > most:
            raise paused
        for name in left:
            spent = name in known or self.post.handed(name)
            try:
                after = plan.method.step(state, only(plan.names, name, Absent(round, spent)))
            except BadInput:  # this method needs every site
                raise paused from None
            self.log.miss(round, name, spent)
            state = after
            self._watch(Happened("absent", name, round))
        return state

    def _over(self, study: bytes, how: str) -> None:
        """Tell all sites that have not left that the study is over."""
        gone = {name for names in self.log.departures().values() for name in names}
        sites = [site for site in self.terms.sites if site not in gone]
        self._line.over(study, how, sites, self.terms.rounds.deadline)

    @contextmanager
    def _tells(self, study: bytes) -> Iterator[None]:
        """Tell the sites where a study cannot begin; it may be started again, for nothing was reserved."""
        try:
            yield
        except StudyPaused:
            raise
        except BadInput as error:
            self._over(study, str(error))
            raise

    @contextmanager
    def _ends(self, study: bytes, *errors: type[Exception]) -> Iterator[None]:
        """End the study for good where it fails, and tell the sites."""
        try:
            yield
        except errors as error:
            self.log.finish("failed", None)
            self._over(study, str(error))
            raise


def check_leaving(known: LoggedStudy | None) -> None:
    """Refuse to go on without a site where a study has not begun, or is over."""
    if known is None or known.state == "open":
        raise BadInput("the study has not begun, so that no site can leave it; take the site out of the study card.")
    if known.state in ("done", "failed"):
        raise BadInput("the study is over, so that no site can leave it any more; begin a new study.")


def check_giving_up(known: LoggedStudy | None, terms: StudyTerms) -> LoggedStudy:
    """Refuse to give up what was never begun."""
    if known is None:
        raise BadInput("this log holds no such study, so that there is nothing to give up; look at --log.")
    if known.terms != codec.to_bytes(terms):
        raise BadInput("this log holds a study of the same name with other terms; give its own study card.")
    return known


def _without_privacy(result: Any) -> Any:
    """Say of a result that seeded noise protected nobody."""
    if hasattr(result, "results"):
        return replace(result, results=tuple(map(_without_privacy, result.results)))
    if hasattr(result, "first"):
        return replace(result, first=_without_privacy(result.first), second=_without_privacy(result.second))
    return replace(result, private=False) if any(each.name == "private" for each in fields(result)) else result


def _fresh() -> bytes:
    """Return sixteen bytes of the system's entropy."""
    from sottovoce.core.random_source import SystemEntropy

    return SystemEntropy().words(2).tobytes()
