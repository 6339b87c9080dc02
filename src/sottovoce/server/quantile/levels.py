"""Several levels at once: a public split of the records, one query a round for all, joint coverage, no crossing."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from sottovoce.core import codec
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import number, quantile_level
from sottovoce.core.errors import BadInput
from sottovoce.server.description import Description, Interval, finite
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile, all_periods
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.conversation import Conversation, Log
from sottovoce.server.quantile.feasibility import PAIRS, STAGES, support
from sottovoce.server.quantile.method import default_protocol, staged_study, staged_warnings
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.result import KeptQuantile, QuantileResult
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import find
from sottovoce.server.quantile.solutions import staged_solution
from sottovoce.server.quantile.staged import Local
from sottovoce.server.stored import StoredResult

MOST_LEVELS = 99  # every percent; each level has a study of its own
FEWEST = 20  # records of a site for each level
Outcome = TypeVar("Outcome")


class KeptLevels(NamedTuple):
    """Several results as plain values."""

    results: tuple[KeptQuantile, ...]
    level: float
    split: tuple[float, ...]


@dataclass(frozen=True, eq=False)
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

    @property
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

    def summary(self) -> str:
        """Return a table of the levels, then the promise."""
        return "\n".join(self.describe().table)

    def describe(self) -> Description:
        """Return the levels with their joint intervals, then the promise."""
        first, title = self.results[0], "Private quantiles"
        lines = [
            f"{title} with {self.level:.4g} joint coverage; every record answered for one level only.",
            f"{'tau':>8} {'estimate':>16} {'low':>16} {'high':>16} {'of the records':>15}",
        ]
        joint = []
        for tau, estimate, (low, high), part in zip(self.taus, self.estimates, self.intervals, self.split, strict=True):
            cells = " ".join(f"{first.format(value):>16}" for value in (estimate, low, high))
            lines.append(f"{tau:>8.4g} {cells} {part:>15.1%}")
            joint.append({"tau": tau, "estimate": estimate, "low": finite(low), "high": finite(high), "split": part})
        lines += [f"Warning: {warning}" for result in self.results for warning in result.warnings]
        lines += [f"Hint: {hint}" for hint in first.hints]
        values = {
            "level": self.level,
            "joint": joint,
            "private": self.private,
            "results": [dict(result.describe().values) for result in self.results],
        }
        return Description(title, [], [*lines, first.promise], values=values)

    def to_state(self) -> KeptLevels:
        """Return the plain state the results are made from."""
        return KeptLevels(tuple(result.to_state() for result in self.results), self.level, self.split)

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the results again."""
        state = codec.from_plain(plain, KeptLevels)
        return cls(tuple(map(QuantileResult.from_kept, state.results)), state.level, state.split)


class StagedQuantiles:
    """Several quantiles by stages; the state is the log of questions and answers."""

    replies, state = Conversation.replies, Log

    def __init__(
        self,
        plans: Sequence[QuantilePlan],
        parts: Sequence[float],
        level: float = 0.95,
        coin: bytes = b"",
        certified: bool = False,
    ) -> None:
        self._plans, self._parts, self._level = plans, tuple(parts), level
        self._method = "certified" if certified else "staged"
        each = 1 - (1 - level) / len(plans)  # what joint coverage asks of each level
        self._talk: Conversation[list[Local | Fitted | Certificate]] = Conversation(
            lambda: _levels_protocol(plans, parts, each, coin, certified)
        )
        self.init, self.query, self.step = self._talk.init, self._talk.query, self._talk.step

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
                warnings=plan.warnings + staged_warnings(local, self._method),
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
        left = whole.sizes - talker.asked
    edges = np.floor(np.outer(np.concatenate(([0.0], np.cumsum(parts))).clip(max=1.0), left) + 0.5).astype(np.int64)
    talks = []
    for index, (plan, sizes) in enumerate(zip(plans, np.diff(edges, axis=0), strict=True)):
        study = staged_study(plan, level, coin + index.to_bytes(2, "big"))
        study = replace(study, crowd=SiteProfile(whole.shares, whole.rates, sizes))
        talks.append(default_protocol(study, certified, found))
    return (yield from together(talks))


def together(talks: Sequence[Generator[Ask, Ints, Outcome]]) -> Generator[Ask, Ints, list[Outcome]]:
    """Join conversations into one whose outcome is the list of theirs."""
    outcomes: dict[int, Outcome] = {}
    asks = {i: next(talk) for i, talk in enumerate(talks)}
    while asks:
        points = np.concatenate([ask.points for ask in asks.values()])
        counts = np.concatenate([ask.counts for ask in asks.values()], axis=1)
        phased = any(ask.periods is not None for ask in asks.values())
        periods = np.concatenate([all_periods(ask.points, ask.periods) for ask in asks.values()]) if phased else None
        ones = yield Ask(points, counts, periods)
        start = 0
        for i, ask in list(asks.items()):
            stop = start + len(ask.points)
            try:
                asks[i] = talks[i].send(ones[:, start:stop])
            except StopIteration as end:
                outcomes[i] = end.value
                del asks[i]
            start = stop
    return [outcomes[i] for i in range(len(talks))]


def check_sizes(plan: QuantilePlan, parts: Sequence[float]) -> None:
    """Refuse a site that is too small to be split."""
    needed = math.ceil(FEWEST / min(parts) - 1e-9)
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
