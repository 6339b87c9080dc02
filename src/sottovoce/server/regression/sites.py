"""A regression over sites as a method: a pilot over all of them, then a loop at each, and one message a site.

A site is sent where the recursion begins, asks its people one after the other, and answers with their letters, from
which the same steps are repeated here. The sums of all sites make one fit: its root is the mean of the sites' own
roots, each weighed by its people, with a slope and a noise that all of them tell together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.checks import first_few
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.protocol.messages import LoopQuery, Message, Reports, Tally
from sottovoce.protocol.regression.carried import most_people, run_to_bytes, unpacked, whose
from sottovoce.protocol.regression.dithered.state import follow, gain, init
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.protocol.regression.questions import KEY, public_words
from sottovoce.server.method import Queries, Replies
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.search import Found
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce.server.regression.dithered.method import DitheredRounds
from sottovoce.server.regression.feasibility import round_up
from sottovoce.server.regression.method import RegressionMethod, RegressionState
from sottovoce.server.regression.pilot import QUARTILE, Guess, guess_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.result import RegressionResult

ALONE = 200  # times the people whom the guess is worth: a loop that ends sooner has not settled (decision 0066)


def people_alone(plan: RegressionPlan) -> int:
    """Return about how many people a loop needs by itself; sites with fewer would pull the mean to the start."""
    settings = plan.settings
    guesses = [guess_of(Found(0.0, QUARTILE, ()), settings.taus, plan.p)]  # in units of the response's own spread
    guesses += [] if settings.searches else [plan.guess(None)]
    worth = [
        float(np.mean(gain(study.density[level] * study.moments, study.omega[level], study.size)[2]))
        for guess in guesses
        for study in plan.studies(guess)
        if isinstance(study, DitheredStudy)
        for level in range(study.levels)
    ]
    return round_up(ALONE * max(worth) * len(plan.design.channels))


def large_enough(
    plan: RegressionPlan, names: Sequence[str], sizes: Sequence[int]
) -> tuple[tuple[bool, ...], tuple[str, ...]]:
    """Return which sites have people enough for a loop of their own, and a sentence on those that are left out.

    A site that is the only one takes part however small it is: a fit to it knows what it does not know.
    """
    least = people_alone(plan) if len(sizes) > 1 else 0
    stay = tuple(size >= least for size in sizes)
    needs = f"a loop of its own takes about {least:,} people at epsilon {plan.design.epsilon:g}"
    if not any(stay):
        raise Infeasible(f"{needs}, and no site has them: raise epsilon, or leave covariates out.")
    small = [name for name, stays in zip(names, stay, strict=True) if not stays]
    if not small:
        return stay, ()
    who = f"site {small[0]!r} has" if len(small) == 1 else f"each of {len(small):,} sites ({first_few(small)}) has"
    return stay, (f"{who} too few people and is left out, not asked: {needs}; the answer is over the sites left",)


@dataclass(eq=False)
class SitesRegression(RegressionMethod):
    """A plan, the people of each site, and the public key of their questions.

    In its state ``dithered`` has the recursions of the first site's channels, then those of the second's, and so on.
    """

    replies: ClassVar[tuple[type[Message], ...]] = (Reports, Tally)

    def __post_init__(self) -> None:
        if not self.people or min(self.people) < 1 or len(self.key) != KEY:
            raise BadInput(f"a regression needs people at every site, and a public key of {KEY} bytes; give both.")
        if self.plan.settings.inference != "dithered":
            raise BadInput("over sites a regression is 'dithered'; leave inference out.")
        self._known: tuple[Guess, list[DitheredStudy]] | None = None

    def query(self, state: RegressionState) -> Queries | None:
        """Return the pilot's next query, or what the loops of the sites begin with; None once all have ended."""
        if state.guess is None:
            return self._pilot(state)
        asked = [self._asked_now(state, site) for site in range(len(self.people))]
        if not any(asked):
            return None
        messages = [
            LoopQuery(state.round + 1, own[0], own[1], self._runs(state, site)) if own else None
            for site, own in enumerate(asked)
        ]
        return Queries(state.round + 1, messages, sum(own[1] for own in asked if own))

    def step(self, state: RegressionState, replies: Replies) -> RegressionState:
        """Return the state after some replies, or refuse them; the round closes when all have come."""
        if state.guess is None:
            return super().step(state, replies)
        asked, round = [self._asked_now(state, site) for site in range(len(self.people))], state.round + 1
        if not any(asked) or len(replies) != len(asked):
            raise BadInput(f"round {round} is over, or awaits another number of replies; send what was asked.")
        if any(reply is not None and not own for reply, own in zip(replies, asked, strict=True)):
            raise BadInput(f"somebody answered round {round} who was not asked; send what was asked for.")
        runs, done = list(state.dithered), list(state.turned or state.searched)
        answered = list(state.open or (False,) * len(asked))
        for site, (own, reply) in enumerate(zip(asked, replies, strict=True)):
            if own and reply is not None:
                places = self._places(site)
                runs[places] = self._followed(state, site, own, reply, runs[places])
                done[site] += own[1]
                answered[site] = True
        if not any(reply is not None for reply in replies):
            return state
        missing = any(own and reply is None for own, reply in zip(asked, replies, strict=True))
        after = state._replace(dithered=tuple(runs), turned=tuple(done))
        return after._replace(open=tuple(answered)) if missing else after._replace(round=round, open=())

    def outcome(self, state: RegressionState) -> RegressionResult:
        """Return the result: coefficients, intervals, summary."""
        if state.guess is None:
            return super().outcome(state)
        studies, sites = self._studies(state), len(self.people)
        fits = [
            DitheredFit.of(study, *(own.run for own in state.dithered[number :: len(studies)]))
            for number, study in enumerate(studies)
        ]
        return self.plan.result(fits, sum(state.turned or state.searched), self.private, sites=sites)

    def _asked_now(self, state: RegressionState, site: int) -> tuple[int, int] | None:
        """Return the first of a site's people who are asked in this round, and how many; None if none are."""
        first = (state.turned or state.searched)[site]
        if first == self.people[site] or (state.open and state.open[site]):
            return None
        return first, min(self.people[site] - first, most_people(self._alphabet))

    def _runs(self, state: RegressionState, site: int) -> tuple[bytes, ...]:
        """Return where the recursions of a site stand."""
        own = zip(self._studies(state), state.dithered[self._places(site)], strict=True)
        return tuple(run_to_bytes(study, each.run) for study, each in own)

    def _followed(
        self,
        state: RegressionState,
        site: int,
        asked: tuple[int, int],
        reply: Message,
        runs: list[DitheredRounds],
    ) -> list[DitheredRounds]:
        """Repeat what a site has done, from the letters of its people; refuse what no site can have said."""
        (first, count), round = asked, state.round + 1
        if not isinstance(reply, Reports) or reply.round != round:
            raise BadInput(f"round {round} asked for a loop; answer with the letters of its people.")
        letters = unpacked(reply.letters, self._alphabet)
        if len(letters) != count:
            raise BadInput(f"round {round} asked {count:,} people; answer with one letter for each.")
        words = public_words(self.key, sum(self.people[:site]) + first, count)
        drawn = whose(words, len(runs))
        return [
            DitheredRounds(round, follow(study, own.run, words[drawn == number], letters[drawn == number]))
            for number, (study, own) in enumerate(zip(self._studies(state), runs, strict=True))
        ]

    def _places(self, site: int) -> slice:
        """Return where the recursions of a site stand among all."""
        channels = len(self.plan.design.channels)
        return slice(site * channels, (site + 1) * channels)

    @property
    def _alphabet(self) -> int:
        """Return how many letters the largest alphabet has."""
        return max(channel.letters for channel in self.plan.design.channels)

    def _shares(self, asked: Ask) -> Ints:
        """Return how many people of each site answer at each of the pilot's points: as large as the sites are."""
        counts, ends = asked.counts[0], np.cumsum([0, *self.people])
        shift = np.arange(len(counts)) * 7919 % ends[-1]
        return np.asarray(np.diff((counts * ends[:, None] + shift) // ends[-1], axis=0), dtype=np.int64)

    def _begun(self, state: RegressionState, guess: Guess) -> RegressionState:
        """Return the state in which all loops are about to begin."""
        after = state._replace(guess=guess)
        begun = tuple(DitheredRounds(0, init(study)) for study in self._studies(after))
        return after._replace(dithered=begun * len(self.people))

    def _studies(self, state: RegressionState) -> list[DitheredStudy]:
        """Return what the people of each channel take part in, which the pilot's outcome decides; made once."""
        if state.guess is None:
            raise BadInput("the pilot is not over; go on with it.")
        if self._known is None or self._known[0] is not state.guess:
            studies = [study for study in self.plan.studies(state.guess) if isinstance(study, DitheredStudy)]
            self._known = state.guess, studies
        if len(state.dithered) not in (0, len(self._known[1]) * len(self.people)):
            raise BadInput("the state belongs to another regression; restore it with the plan that it was made by.")
        return self._known[1]
