"""What a study of groups returns: every group's quantile, intervals that hold together, who differs, one picture."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.checks import confidence
from sottovoce.core.digits import span
from sottovoce.core.errors import BadInput
from sottovoce.inference.common.between import Between
from sottovoce.inference.common.several import each_of
from sottovoce.server.description import Description, Interval
from sottovoce.server.picture import check_path, save
from sottovoce.server.quantile.groups import compared, summary
from sottovoce.server.quantile.groups.ends import GroupEnds
from sottovoce.server.quantile.groups.plan import LeftOutGroup, check_group
from sottovoce.server.quantile.groups.plot import draw
from sottovoce.server.quantile.groups.shrunk import ShrunkGroup, helped, shrunk, spread_of
from sottovoce.server.quantile.result import KeptQuantile, QuantileResult
from sottovoce.server.stored import StoredResult


class KeptGroups(NamedTuple):
    """Results of groups as plain values."""

    names: tuple[str, ...]
    results: tuple[KeptQuantile, ...]
    level: float
    simultaneous: bool
    shrinkage: str
    by: str
    left_out: tuple[LeftOutGroup, ...]
    said: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class GroupQuantilesResult(StoredResult):
    """A quantile for every group; print it, or `summary()`, for a table."""

    kind = "group-quantiles"

    names: tuple[str, ...]
    results: tuple[QuantileResult, ...] = field(repr=False)
    level: float
    simultaneous: bool
    shrinkage: str  # how groups help each other: "each", "average", or not at all
    by: str  # what groups are told apart by
    left_out: tuple[LeftOutGroup, ...]  # groups that were not asked
    said: tuple[str, ...]  # what was said before anybody was asked

    @property
    def tau(self) -> float:
        """Return the level of the quantiles."""
        return self.results[0].tau

    @property
    def groups(self) -> Mapping[str, QuantileResult]:
        """Return the result of every group, with intervals at any level and tests of its own."""
        return dict(zip(self.names, self.results, strict=True))

    @property
    def estimates(self) -> Mapping[str, float]:
        """Return every group's own estimate."""
        return {name: result.estimate for name, result in self.groups.items()}

    @property
    def shrunk_estimates(self) -> Mapping[str, float]:
        """Return the estimates moved towards the others, where shrinkage is asked for and possible."""
        return {name: row.estimate for name, row in zip(self.names, self._rows(self.level), strict=True)}

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Return the intervals that were asked for: simultaneous or not, shrunk or not."""
        return self.intervals_at(self.level)

    def intervals_at(self, level: float) -> Mapping[str, Interval]:
        """Return them at another level, at no further cost."""
        return {name: Interval(row.low, row.high) for name, row in zip(self.names, self._rows(level), strict=True)}

    @property
    def individual(self) -> Mapping[str, Interval]:
        """Return each group's own interval: it holds with the level by itself, whatever the others are."""
        return {name: self._ends.rounded(at, self.level) for at, name in enumerate(self.names)}

    @property
    def joint(self) -> Mapping[str, Interval]:
        """Return intervals that hold all together with the level, from each group's own answers alone."""
        each = each_of(self.level, len(self.results))
        return {name: self._ends.rounded(at, each) for at, name in enumerate(self.names)}

    @cached_property
    def table(self) -> Mapping[str, tuple[Any, ...]]:
        """Return the columns of the table, a row a group; `pandas.DataFrame` and others take them as they are."""
        individual, joint = self.individual, self.joint
        rows = [
            (
                name,
                sum(result.plan.roster.sizes),
                result.estimate,
                row.estimate,
                row.low,
                row.high,
                *individual[name],
                *joint[name],
                max(result.epsilon.values()),
                result.method,
                result.guarantee,
            )
            for (name, result), row in zip(self.groups.items(), self._rows(self.level), strict=True)
        ]
        return dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))

    @cached_property
    def equal(self) -> compared.Equality:
        """Return the test that all groups have the same quantile."""
        return compared.equal(self._ends)

    @cached_property
    def spread(self) -> Between | None:
        """Return mean and variance of the groups' true quantiles; None where too few groups can tell."""
        return spread_of(self._ends)

    def compare(self, to: str | None = None, level: float | None = None) -> compared.GroupComparison:
        """Compare every group with the mean of the others, or with one group.

        Parameters
        ----------
        to
            None, for the mean of the other groups' quantiles, weighed by their records; or the name of a group.
            "others" is the mean, too, unless a group has that name.
        level
            The level at which all intervals hold together; that of the result if not given.
        """
        wanted = check_group(to, self.names, self.results[0].plan.roster.unit)
        level = self.level if level is None else confidence(level)
        return compared.compare(self.names, self._ends, wanted, level, self.format_width)

    @property
    def private(self) -> bool:
        """Tell whether the run protects its records."""
        return all(result.private for result in self.results)

    @property
    def epsilon(self) -> Mapping[str, float]:
        """Return the realised epsilon of every site, computed from its channel."""
        return {site: paid for result in self.results for site, paid in result.epsilon.items()}

    @property
    def reports(self) -> int:
        """Return how many records have answered."""
        return sum(result.reports for result in self.results)

    @property
    def rounds(self) -> int:
        """Return how many rounds the study took."""
        return max(result.rounds for result in self.results)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what was noticed in the records themselves: for whoever holds them, so never part of `to_dict`."""
        return tuple(dict.fromkeys(hint for result in self.results for hint in result.hints))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what was said before, and what the answers showed."""
        return summary.warnings(self)

    @property
    def guarantee(self) -> str:
        """Return what the intervals promise, in words."""
        return summary.guarantee(self)

    def format(self, value: float) -> str:
        """Return a value in the unit of the records, with the digits that a usual interval deserves."""
        plan = self.results[0].plan
        return plan.roster.unit.format(value, self._width, plan.resolution)

    def format_width(self, value: float) -> str:
        """Return a difference of two values, with the same digits."""
        plan = self.results[0].plan
        return plan.roster.unit.format_width(value, self._width, plan.resolution)

    @property
    def headline(self) -> str:
        """Return the results in one line."""
        return summary.headline(self)

    def describe(self) -> Description:
        """Return every group with its interval, who differs, and the promise."""
        return self.with_cost(summary.describe(self))

    def plot(self, path: str | Path) -> Path:
        """Draw all groups with their intervals, in the order of their estimates."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        return draw(self)

    def to_state(self) -> KeptGroups:
        """Return the plain state the results are made from."""
        kept = tuple(result.to_state() for result in self.results)
        return KeptGroups(
            self.names, kept, self.level, self.simultaneous, self.shrinkage, self.by, self.left_out, self.said
        )

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the results again."""
        state = codec.from_plain(plain, KeptGroups)
        if not state.names or len(state.names) != len(state.results):
            raise BadInput("this is not a whole stored result of groups; store it again.")
        return cls(state.names, tuple(map(QuantileResult.from_kept, state.results)), *state[2:])

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _ends(self) -> GroupEnds:
        """Return what computes every interval once."""
        return GroupEnds(self.results)

    @cached_property
    def moved(self) -> tuple[ShrunkGroup | None, ...]:
        """Return the groups moved towards the others, None where a group cannot be; at the level asked for."""
        return self._moved(self.level)

    @property
    def helped(self) -> str:
        """Return how the groups do help each other: "each" where they are too few for "average", "" if not at all."""
        return helped(self._ends, self.shrinkage)

    def _moved(self, level: float) -> tuple[ShrunkGroup | None, ...]:
        """Shrink at a level; of intervals that all hold together each is at Bonferroni's, for they share answers."""
        if not self.shrinkage:
            return (None,) * len(self.results)
        each = each_of(level, len(self.results), independent=False) if self.simultaneous else level
        return shrunk(self._ends, self.shrinkage, each)

    def _rows(self, level: float) -> list[ShrunkGroup]:
        """Return estimate and interval of every group as they were asked for."""
        level = confidence(level)
        each = each_of(level, len(self.results), independent=not self.shrinkage) if self.simultaneous else level
        moved = self.moved if level == self.level else self._moved(level)
        return [
            ShrunkGroup(self.results[at].estimate, *self._ends.rounded(at, each), 1.0) if row is None else row
            for at, row in enumerate(moved)
        ]

    @cached_property
    def _width(self) -> float:
        """Return the width that decides how many digits are shown: the median of those that are known."""
        censored = self.results[0].plan.roster.unit.censored
        ends = [(row.low, row.estimate, row.high) for row in self._rows(self.level)]
        if censored is not None:
            ends = [
                (censored.within(low), censored.within(middle), censored.within(high)) for low, middle, high in ends
            ]
        widths = sorted(span(*each) for each in ends if each[2] - each[0] < float("inf"))
        known = [width for width in widths if width > 0]
        return known[len(known) // 2] if known else float("nan")


COLUMNS = (
    *("group", "records", "estimate", "shrunk", "low", "high"),
    *("low_individual", "high_individual", "low_joint", "high_joint"),
    *("epsilon", "method", "guarantee"),
)


def with_costs(
    found: GroupQuantilesResult, private: bool, in_all: dict[str, float] | None, hints: tuple[str, ...]
) -> GroupQuantilesResult:
    """Return results that know what their records have cost, whether they are protected, and what their holder saw."""
    results = tuple(
        replace(
            result,
            plan=replace(result.plan, hints=hints),
            private=private and result.private,
            in_all=None
            if in_all is None
            else {site: in_all[site] for site in dict.fromkeys(result.plan.roster.places)},
        )
        for result in found.results
    )
    return replace(found, results=results, in_all=in_all)
