"""A threshold for each site, or for each public group of scores, and one in common for whoever has none of its own.

Mondrian conformal prediction (Vovk, Lindsay, Nouretdinov and Gammerman 2003, "Mondrian confidence machine"): scores are
parted by a public label, and each part calibrates for itself. So each threshold covers a new score of its own group
with the probability that was asked for, however the groups differ.
"""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from sottovoce.core import codec
from sottovoce.core.checks import first_few, label_text, nearest
from sottovoce.core.digits import number_text
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted
from sottovoce.server.conformal.base import NOT_PROTECTED, Threshold
from sottovoce.server.conformal.pooled_result import PooledState, PooledThreshold
from sottovoce.server.conformal.result import ConformalThreshold, VotedState
from sottovoce.server.conformal.settings import ConformalSettings
from sottovoce.server.conformal.thresholds_told import (
    COMMON,
    INFINITE,
    RESTS,
    TOGETHER,
    describe,
    draw_thresholds,
    small_warning,
)
from sottovoce.server.description import Description, of_column, protection
from sottovoce.server.picture import check_path, save
from sottovoce.server.stored import StoredResult

if TYPE_CHECKING:
    from sottovoce.server.conformal.report import CoverageReport


class KeptThreshold(NamedTuple):
    """One threshold as plain values, of whichever kind it is."""

    voted: VotedState | None
    pooled: PooledState | None


class KeptThresholds(NamedTuple):
    """What stored thresholds are made from again, a group each."""

    settings: ConformalSettings
    simultaneous: bool
    groups: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    rest: str
    own: tuple[KeptThreshold | None, ...]
    common: KeptThreshold | None
    together: KeptThreshold | None
    column: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ConformalThresholds(StoredResult):
    """A threshold for each group, by its name; print it, or `summary()`, for a table.

    ``members`` are the sites of each group and ``sizes`` its scores; ``own`` has the threshold of each group that has
    one; the others share what ``rest`` says.
    """

    kind: ClassVar[str] = "thresholds"
    settings: ConformalSettings = field(repr=False)
    simultaneous: bool = field(repr=False)
    members: Mapping[str, tuple[str, ...]] = field(repr=False)
    sizes: Mapping[str, int] = field(repr=False)
    own: Mapping[str, Threshold] = field(repr=False)
    rest: str = field(repr=False)
    common: ConformalThreshold | None = field(repr=False)
    together: Threshold | None = field(repr=False)
    column: str = field(default="", repr=False)
    # for whoever holds the scores, and kept out of everything that is passed on
    hints: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __getitem__(self, group: Any) -> Threshold:
        """Return the threshold of a group: its own, or what it shares."""
        name = self._name(group)
        shared = self.own.get(name) or {COMMON: self.common, TOGETHER: self.together}.get(self.rest)
        if shared is None:
            raise BadInput(
                f"group {name!r} has too few scores for a threshold, and shares none; its value is infinite."
            )
        return shared

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, group: object) -> bool:
        return label_text(group) in self.members

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of the groups."""
        return tuple(self.members)

    @property
    def small(self) -> tuple[str, ...]:
        """Return the groups with too few scores for a threshold of their own."""
        return tuple(group for group in self.members if group not in self.own)

    @property
    def values(self) -> Mapping[str, float]:
        """Return the threshold of each group; infinite where it has none."""
        return {group: self.value_of(group) for group in self.members}

    def value_of(self, group: Any) -> float:
        """Return the threshold of a group as a number."""
        name = self._name(group)
        return math.inf if name not in self.own and self.rest == INFINITE else self[name].value

    def value_at(self, site: Any) -> float:
        """Return the threshold of a site as a number; of a site that took no part, the common one."""
        name = label_text(site)
        found = [group for group, sites in self.members.items() if name in sites]
        if len(found) == 1:
            return self.value_of(found[0])
        if found:
            raise BadInput(f"site {quoted(name)} has scores of several groups; name the group.")
        if self.common is None:
            known = list(dict.fromkeys(each for sites in self.members.values() for each in sites))
            raise BadInput(
                f"site {quoted(name)}{nearest(name, known)} took no part, and these thresholds have no common one; "
                f"name one of {first_few(known)}."
            )
        return self.common.value

    def _name(self, group: Any) -> str:
        """Return the name of a group, or say that there is none of that name."""
        name = label_text(group)
        if name not in self.members:
            known = self.groups
            raise BadInput(f"there is no group {quoted(name)}{nearest(name, known)}; name one of {first_few(known)}.")
        return name

    @property
    def alpha(self) -> float:
        """Return the part of a group's new scores that may lie above its threshold."""
        return self.settings.alpha

    @property
    def guarantee(self) -> str:
        """Return what is promised of each group: "marginal" or "training-conditional"."""
        return self.settings.guarantee

    @property
    def asked(self) -> tuple[Threshold, ...]:
        """Return the thresholds for which sites were asked."""
        return (*self.own.values(), *(() if self.together is None else (self.together,)))

    @property
    def epsilon(self) -> Mapping[str, float] | None:
        """Return what a record pays at each site that was asked, the most of its groups; None without privacy."""
        if all(each.epsilon is None for each in self.asked):
            return None
        found: dict[str, float] = {}
        for each in self.asked:
            for site, spent in (each.epsilon or dict.fromkeys(each.names, math.inf)).items():
                found[site] = max(spent, found.get(site, 0.0))
        return found

    @property
    def private(self) -> bool:
        """Tell whether every score is protected, and the dice nobody's."""
        return all(each.private for each in self.asked)

    @property
    def seeded(self) -> bool:
        """Tell whether any noise came from dice that anybody can throw again."""
        return any(each.seeded for each in self.asked)

    @property
    def estimand(self) -> str:
        """Return in words what is promised."""
        level = f"{1 - self.alpha:.6g}"
        if not self.settings.conditional:
            return (
                f"each threshold covers a new score of its group with probability at least {level}, on average over "
                "calibrations"
            )
        sure = f"{1 - self.settings.delta:.6g} of calibrations"
        together = f"all of them at once in {sure}" if self.simultaneous else f"each in {sure}"
        return f"each threshold covers a new score of its group with probability {level} or more, {together}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before the thresholds are used."""
        found = [*small_warning(self.members, self.sizes, self.small, self.rest)]
        for group, each in self.own.items():
            found += [f"{group}: {text}" for text in each.warnings]
        if self.together is not None:
            found += [f"small groups together: {text}" for text in self.together.warnings]
        return tuple(found)

    @property
    def privacy_statement(self) -> str:
        """Return what is protected, and what is not."""
        epsilon = self.epsilon
        if epsilon is None:
            return "No privacy: sites sent scores as they are."
        unit = "person" if any(each.per_person for each in self.asked) else "record"
        worst = max((each for each in epsilon.values() if math.isfinite(each)), default=math.inf)
        text = (
            f"Each score was used once, in one message of its site for its group: another score of one {unit} shifts "
            f"the odds of any message by at most a factor {math.exp(worst):.3g} (epsilon {worst:.3g}, computed from "
            "integers). Which group a score belongs to is public. "
        )
        exposed = [name for name, each in epsilon.items() if math.isinf(each)]
        if exposed:
            text += f"Not so at {', '.join(exposed)}, which sent what was asked as it is. "
        if self.seeded:
            text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
        return text + NOT_PROTECTED

    @property
    def headline(self) -> str:
        """Return the thresholds in one line."""
        known = [value for value in self.values.values() if math.isfinite(value)]
        ends = f"{number_text(min(known))} to {number_text(max(known))}" if known else "all infinite"
        epsilon = self.epsilon
        paid = "no privacy: sites sent scores" if epsilon is None else protection(epsilon.values(), self.private)
        return f"thresholds{of_column(self.column)} of {len(self)} groups: {ends}, {paid}"

    def coverage_by_site(self, scores: Any, **settings: Any) -> "CoverageReport":
        """Return the coverage of each site's threshold at that site, worst first; see `sv.coverage_report`."""
        if Threshold.reporter is None:
            raise BadInput("coverage needs scores, which are not here; call sv.coverage_report(thresholds, scores).")
        return Threshold.reporter(self, scores, **settings)

    def describe(self) -> Description:
        """Return what the thresholds say of themselves."""
        return describe(self)

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the thresholds of all groups, the lowest first."""
        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        return draw_thresholds(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave at home what is for whoever holds the scores."""
        return {**vars(self), "hints": ()}

    def to_state(self) -> KeptThresholds:
        """Return the plain state the thresholds are made from."""
        return KeptThresholds(
            self.settings,
            self.simultaneous,
            self.groups,
            tuple(self.members.values()),
            tuple(self.sizes[group] for group in self.members),
            self.rest,
            tuple(_kept(self.own.get(group)) for group in self.members),
            _kept(self.common),
            _kept(self.together),
            self.column,
        )

    @classmethod
    def from_state(cls, plain: Any) -> Self:
        """Make the thresholds again from what JSON kept of their state."""
        state = codec.from_plain(plain, KeptThresholds)
        own = {group: _made(kept) for group, kept in zip(state.groups, state.own, strict=False)}
        common, together = _made(state.common), _made(state.together)
        lengths = {len(state.groups), len(own), len(state.members), len(state.sizes), len(state.own)}
        shared = {COMMON: common, TOGETHER: together, INFINITE: math.inf}.get(state.rest)
        whole = len(lengths) == 1 and state.rest in RESTS and (shared is not None or None not in own.values())
        if not whole or not own or not (common is None or isinstance(common, ConformalThreshold)):
            raise BadInput("these are not whole stored thresholds; store them again.")
        return cls(
            settings=state.settings,
            simultaneous=state.simultaneous,
            members=dict(zip(state.groups, state.members, strict=True)),
            sizes=dict(zip(state.groups, state.sizes, strict=True)),
            own={group: each for group, each in own.items() if each is not None},
            rest=state.rest,
            common=common,
            together=together,
            column=state.column,
        )


def _kept(threshold: Threshold | None) -> KeptThreshold | None:
    """Return a threshold as plain values."""
    if isinstance(threshold, ConformalThreshold):
        return KeptThreshold(threshold.to_state(), None)
    return KeptThreshold(None, threshold.to_state()) if isinstance(threshold, PooledThreshold) else None


def _made(kept: KeptThreshold | None) -> Threshold | None:
    """Make a threshold again."""
    if kept is None:
        return None
    if kept.voted is not None:
        return ConformalThreshold.from_state(codec.to_plain(kept.voted))
    return PooledThreshold.from_state(codec.to_plain(kept.pooled))
