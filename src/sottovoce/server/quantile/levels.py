"""Several levels at once: a public split of the records, one query a round for all, joint coverage, no crossing."""

import math
import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from sottovoce.core import codec
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import confidence, number, quantile_level
from sottovoce.core.errors import BadInput
from sottovoce.server.axis import axis_name, value_axis
from sottovoce.server.description import (
    Description,
    Interval,
    Outside,
    labelled,
    of_column,
    percent,
    protection,
)
from sottovoce.server.picture import Drawn, check_path, forest, save
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile, all_periods, late_answers
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.departed import asked_so_far, plan_rest
from sottovoce.server.quantile.feasibility import PAIRS, STAGES, support
from sottovoce.server.quantile.method import default_protocol, staged_study, staged_warnings
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.quorum import quorum_of
from sottovoce.server.quantile.result import KeptQuantile, QuantileResult
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import find
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import Local
from sottovoce.server.quantile.summary import limits_row, outside
from sottovoce.server.stored import StoredResult

MOST_SHOWN = 5  # levels in one line
MOST_LEVELS = 99  # every percent; each level has a study of its own
FEWEST = 20  # records of a site for each level
Outcome = TypeVar("Outcome")


class KeptLevels(NamedTuple):
    """Several results as plain values."""

    results: tuple[KeptQuantile, ...]
    level: float
    split: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class QuantilesResult(StoredResult):
    """Several quantiles with intervals that hold jointly."""

    kind = "quantiles"

    results: tuple[QuantileResult, ...]
    level: float
    split: tuple[float, ...]

    @property
    def taus(self) -> tuple[float, ...]:
        """Return the levels, ascending."""
        return tuple(result.tau for result in self.results)

    @property
    def estimates(self) -> tuple[float, ...]:
        """Return the estimates, sorted so that they do not cross."""
        return tuple(sorted(result.estimate for result in self.results))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """Return intervals that cover all quantiles at once; sorting their ends never lowers the coverage."""
        each = 1 - (1 - self.level) / len(self.results)
        ends = [result.interval_at(each) for result in self.results]
        lows, highs = sorted(end.low for end in ends), sorted(end.high for end in ends)
        return tuple(Interval(low, high) for low, high in zip(lows, highs, strict=True))

    @property
    def private(self) -> bool:
        """Tell whether the run protects its records."""
        return self.results[0].private

    def interval_at(self, level: float) -> tuple[Interval, ...]:
        """Return intervals that cover all quantiles at once with any confidence, at no further cost."""
        return replace(self, level=confidence(level)).intervals

    def format(self, value: float) -> str:
        """Return a value in the unit of the records, with the digits that the shortest interval deserves."""
        plan = self.results[0].plan
        return plan.roster.unit.format(value, self._width, plan.resolution)

    @cached_property
    def _width(self) -> float:
        """Return the width that decides how many digits are shown: that of the shortest interval that has one."""
        widths = [high - low for low, high in self.intervals]
        return min((width for width in widths if 0 < width < math.inf), default=math.nan)

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the estimates as what they stand for: timedelta64, datetime64 (in UTC), categories, or numbers."""
        return tuple(map(self.results[0].plan.roster.unit.value, self.estimates))

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the records themselves: for whoever holds them, so never part of `to_dict`."""
        return self.results[0].hints

    @property
    def headline(self) -> str:
        """Return the results in one line."""
        first, shown = self.results[0], list(zip(self.taus, self.estimates, self.intervals, strict=True))
        parts = [
            f"{tau:.6g}: {self.format(estimate)} [{self.format(low)}, {self.format(high)}]"
            for tau, estimate, (low, high) in shown[:MOST_SHOWN]
        ]
        if len(shown) > MOST_SHOWN:
            parts.append(f"and {len(shown) - MOST_SHOWN} more")
        paid = protection(first.epsilon.values(), self.private)
        column = of_column(first.plan.roster.column)
        return f"quantiles{column} {', '.join(parts)} ({percent(self.level)} jointly), {paid}"

    def describe(self) -> Description:
        """Return the levels with their joint intervals, then the promise."""
        first = self.results[0]
        cells: list[tuple[str, ...]] = [("tau", "estimate", "low", "high", "of the records")]
        joint = []
        for tau, estimate, (low, high), part in zip(self.taus, self.estimates, self.intervals, self.split, strict=True):
            cells.append((f"{tau:.6g}", *map(self.format, (estimate, low, high)), f"{part:.1%}"))
            plain = map(self.results[0].plan.plain, (estimate, low, high))
            joint.append({"tau": tau, **dict(zip(("estimate", "low", "high"), plain, strict=True)), "split": part})
        wide = [max(len(row[i]) for row in cells) for i in range(5)]
        table = ["   ".join(f"{cell:>{width}}" for cell, width in zip(row, wide, strict=True)) for row in cells]
        rows = [
            ("Coverage", f"{self.level:.4g} jointly; every record answered for one level only"),
            ("Private", "yes" if self.private else "no (simulation, or no budget at some site)"),
            *limits_row(first.plan.roster.unit),
            *self.cost,
        ]
        notes = labelled("Warning", dict.fromkeys(text for result in self.results for text in result.warnings))
        notes.append(("Promise", first.promise))
        values = {
            "level": self.level,
            "joint": joint,
            "private": self.private,
            "results": [dict(result.describe().values) for result in self.results],
        }
        title = f"Private quantiles{of_column(first.plan.roster.column)}"
        return Description(title, rows, table, notes, values, cells, self._outside())

    def _outside(self) -> Outside:
        """Return what somebody outside the study asks."""
        about = outside(self.results[0])
        said = "; ".join(
            f"{tau:.6g}: {self.format(estimate)}, between {self.format(low)} and {self.format(high)}"
            for tau, estimate, (low, high) in zip(self.taus, self.estimates, self.intervals, strict=True)
        )
        asked = about.question.partition("? ")[2]
        taus = ", ".join(f"{tau:.6g}" for tau in self.taus)
        question = (
            f"What are the quantiles{of_column(self.results[0].plan.roster.column)} at the levels {taus}? {asked}"
        )
        answer = f"{said} (all of them at once with {percent(self.level)} confidence)."
        settings = [pair for pair in about.settings if pair[0] != "Level of the quantile"]
        settings.append(("Levels of the quantiles", taus))
        return about._replace(question=question, answer=answer, settings=tuple(settings))

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw every quantile with its joint interval."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        roster = self.results[0].plan.roster
        rows = [
            Drawn(f"{tau:.4g}", estimate, low, high)
            for tau, estimate, (low, high) in zip(self.taus, self.estimates, self.intervals, strict=True)
        ]
        title = f"Quantiles{of_column(roster.column)}, {percent(self.level)} jointly"
        figure = forest(title, rows, self.format)
        axes = figure.axes[0]
        value_axis(axes.xaxis, roster.unit)
        axes.set_xlabel(axis_name(roster.column, roster.unit))
        axes.set_ylabel("level")
        return figure

    def to_state(self) -> KeptLevels:
        """Return the plain state the results are made from."""
        return KeptLevels(tuple(result.to_state() for result in self.results), self.level, self.split)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the results again."""
        state = codec.from_plain(plain, KeptLevels)
        return cls(tuple(map(QuantileResult.from_kept, state.results)), state.level, state.split)


class StagedQuantiles:
    """Several quantiles by stages; the state is the log of questions and answers.

    A round closes without absent sites once ``quorum`` have answered: a number of sites, or a part of the shares.
    """

    replies, state = Conversation.replies, Log

    def __init__(
        self,
        plans: Sequence[QuantilePlan],
        parts: Sequence[float],
        level: float = 0.95,
        coin: bytes = b"",
        certified: bool = False,
        quorum: float = 1,
    ) -> None:
        self._plans, self._parts, self._level, self._coin = plans, tuple(parts), level, coin
        self._method = "certified" if certified else "staged"
        each = 1 - (1 - level) / len(plans)  # what joint coverage asks of each level
        self._talk: Conversation[list[Local | Fitted | Certificate]] = Conversation(
            lambda: _levels_protocol(plans, parts, each, coin, certified),
            quorum_of(plans[0].crowd.shares, quorum),
            plans[0].rounds_before,
        )
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step
        self.arrive = self._talk.arrive

    @property
    def plans(self) -> tuple[QuantilePlan, ...]:
        """Return the plan of each level."""
        return tuple(self._plans)

    def without(self, log: Log, gone: Sequence[str], quorum: float = 1) -> Self:
        """Return the study that goes on, from its own beginning, over the sites that stay; refuse what cannot."""
        round, asked = asked_so_far(self._talk, log)
        certified, coin = self._method == "certified", self._coin + round.to_bytes(4, "big")
        rest = [
            plan_rest(plan, asked, round, gone, certified=certified, confidence=self._level, thinned=part)
            for plan, part in zip(self._plans, self._parts, strict=True)
        ]
        check_sizes(rest[0], self._parts)
        return type(self)(rest, self._parts, self._level, coin, certified, quorum)

    def outcome(self, log: Log) -> QuantilesResult:
        """Return the results."""
        results = tuple(
            QuantileResult(
                plan=replace(plan, warnings=()),
                solution=staged_solution(local),
                level=self._level,
                method="certified" if isinstance(local, Certificate) else self._method,
                rounds=log.rounds,
                reports=local.milestones[-1].reports + getattr(local, "reports_before", 0),
                private=all(map(math.isfinite, plan.budgets)),
                warnings=plan.warnings + staged_warnings(local, self._method) + log.warnings,
            )
            for plan, local in zip(self._plans, self._talk.outcome(log), strict=True)
        )
        return QuantilesResult(results, self._level, self._parts)


def _levels_protocol(
    plans: Sequence[QuantilePlan], parts: Sequence[float], level: float, coin: bytes, certified: bool
) -> Generator[Ask, Ints, list[Local | Fitted | Certificate]]:
    """Search once for all levels, then run one conversation a level on its own part of the records."""
    whole = plans[0].crowd
    talker, found, left = QueryAllocator(whole), None, whole.sizes
    if not certified and support(whole, 0.5).ratio < STAGES.refuse:  # else each searches by itself
        found = yield from find(talker, plans[0].bounds, plans[0].scale)
        left = np.maximum(whole.sizes - talker.asked, 0)  # more may have answered than were planned for
    edges = np.floor(np.outer(np.concatenate(([0.0], np.cumsum(parts))).clip(max=1.0), left) + 0.5).astype(np.int64)
    talks = []
    for index, (plan, sizes) in enumerate(zip(plans, np.diff(edges, axis=0), strict=True)):
        study = staged_study(plan, level, coin + index.to_bytes(2, "big"))
        crowd = SiteProfile(whole.shares, whole.rates, np.maximum(sizes, 1))
        study = replace(study, crowd=crowd)
        talks.append(default_protocol(study, certified, found))
    return (yield from together(talks))


def together(
    talks: Sequence[Generator[Ask, Ints, Outcome]], members: Sequence[Ints] | None = None, sites: int = 0
) -> Generator[Ask, Ints, list[Outcome]]:
    """Join conversations into one whose outcome is the list of theirs.

    All of them are with all sites, or each with its ``members`` among so many. What comes late is told to whose
    question it answers; who has ended by then, or began after it, does not hear it.
    """
    own: list[Any] = [slice(None)] * len(talks) if members is None else list(members)
    outcomes: dict[int, Outcome] = {}
    before: dict[int, slice] = {}  # where each had its points in the question before
    asks = {i: next(talk) for i, talk in enumerate(talks)}
    while asks:
        points = np.concatenate([ask.points for ask in asks.values()])
        counts = np.concatenate([_placed(ask.counts, own[i], sites) for i, ask in asks.items()], axis=1)
        phased = any(ask.periods is not None for ask in asks.values())
        periods = np.concatenate([all_periods(ask.points, ask.periods) for ask in asks.values()]) if phased else None
        ones = yield Ask(points, counts, periods)
        late = late_answers(ones, len(points))
        edges = np.cumsum([0, *(len(ask.points) for ask in asks.values())]).tolist()
        places = {i: slice(start, stop) for i, (start, stop) in zip(asks, pairwise(edges), strict=True)}
        for i, place in places.items():
            told = ones[..., own[i], place]
            if late is not None and i in before and late[..., own[i], before[i]].any():
                told = np.concatenate((told, late[..., own[i], before[i]]), axis=2)
            try:
                asks[i] = talks[i].send(told)
            except StopIteration as end:
                outcomes[i] = end.value
                del asks[i]
        before = places
    return [outcomes[i] for i in range(len(talks))]


def _placed(counts: Ints, own: Any, sites: int) -> Ints:
    """Return the counts of some sites among all of them."""
    if not sites:
        return counts
    every = np.zeros((sites, counts.shape[1]), dtype=np.int64, order="F")
    every[own] = counts
    return every


def fewest_records(parts: Sequence[float]) -> int:
    """Return how many records a site needs to be split."""
    return math.ceil(FEWEST / min(parts) - 1e-9)


def check_sizes(plan: QuantilePlan, parts: Sequence[float]) -> None:
    """Refuse sites that are all too small to be split."""
    needed = fewest_records(parts)
    for name, size in zip(plan.names, plan.crowd.sizes.tolist(), strict=True):
        if size < needed:
            raise BadInput(
                f"site {name!r} has {size} records, too few to answer for {len(parts)} levels split like this; "
                f"give it at least {needed}, or leave it out."
            )


def check_levels(taus: Sequence[float]) -> list[float]:
    """Return the levels in ascending order, or refuse."""
    if isinstance(taus, str | bytes) or not hasattr(taus, "__len__") or getattr(taus, "ndim", 1) != 1:
        raise BadInput(f"taus must be a sequence of levels, not {taus!r}; give for example [0.25, 0.5, 0.75].")
    levels = [quantile_level(tau, "tau") for tau in taus]
    if len(levels) > MOST_LEVELS:
        raise BadInput(f"taus has {len(levels):,} levels, and {MOST_LEVELS} are the most; ask fewer.")
    if not levels or len(set(levels)) != len(levels):
        raise BadInput(f"taus must be different levels strictly between 0 and 1, not {list(taus)!r}; correct them.")
    if levels != sorted(levels):
        raise BadInput(f"taus must ascend, not {levels!r}; sort them.")
    return levels


def split_of(split: Sequence[float] | None, levels: list[float], crowd: SiteProfile) -> list[float]:
    """Return which part of the records answers for each level.

    Without a given split every level gets what it needs not to be refused, and an equal part of the rest: with ample
    records that is nearly an equal part of all. Where needs are more than there is, half of the records go by need.
    """
    if split is not None:
        if isinstance(split, str | bytes) or not hasattr(split, "__len__") or getattr(split, "ndim", 1) != 1:
            raise BadInput(f"split must be a sequence of parts, not {split!r}; give one for each level.")
        parts = [number(part, "split") for part in split]
        if len(parts) != len(levels) or min(parts) <= 0 or abs(sum(parts) - 1) > 1e-9:
            raise BadInput(
                f"split must be {len(levels)} positive parts that sum to 1, not {list(split)!r}; correct it."
            )
        return parts
    needs = [(support(crowd, tau).ratio / PAIRS.at(tau).refuse) ** 2 for tau in levels]
    met = 1.0 if sum(needs) <= 1 else 0.5 / sum(needs)
    rest = (1 - met * sum(needs)) / len(levels)
    return [met * need + rest for need in needs]
