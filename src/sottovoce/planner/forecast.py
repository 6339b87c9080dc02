"""A plan as a result: one line, a table, plain values and a picture; it holds public numbers alone."""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.core.errors import Infeasible
from sottovoce.planner.crowd import PlannedCrowd
from sottovoce.planner.question import Budgets, PlannedQuestion, PlannedWidth, Yardstick
from sottovoce.planner.search import Wish, budget_words
from sottovoce.server.description import WIDTH, Description, finite, labelled, percent

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the people: rows of the table, curves of the picture
BUDGETS = (0.5, 1.0, 2.0, 4.0)  # columns of the table, with the planned one
WIDE_RANGE = 1.15  # of the longest over the shortest width, from which the range is told
MOST_ROWS = 12  # of intervals and sites in a summary


class PlannedTable(NamedTuple):
    """Widths of the widest interval: a row for each number of people, a column for each budget."""

    people: tuple[int, ...]
    columns: tuple[str, ...]
    widths: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, repr=False, eq=False)
class StudyForecast:
    """What a study will come to; print it, or take ``width``, ``people``, ``epsilon``, ``widths`` and ``to_dict()``."""

    kind: str
    question: PlannedQuestion = field(repr=False)
    crowd: PlannedCrowd = field(repr=False)
    budgets: Budgets
    wish: Wish | None = field(repr=False)
    wanted: str

    def __post_init__(self) -> None:
        self.widths  # noqa: B018 - what is infeasible is refused here

    @cached_property
    def widths(self) -> list[PlannedWidth]:
        """Return how wide every interval will be, and how far other shapes move it."""
        return self.question.widths(self.crowd, self.budgets)

    @property
    def width(self) -> Any:
        """Return the planned width of the interval; of several, a mapping from each to its width."""
        return self.widths[0].value if len(self.widths) == 1 else {each.of: each.value for each in self.widths}

    @property
    def people(self) -> int:
        """Return how many people are asked in all."""
        return round(self.crowd.total)

    @property
    def people_by_site(self) -> Any:
        """Return the people of each site, below each group where there are several."""
        return self.crowd.plain()

    @property
    def epsilon(self) -> Any:
        """Return the budget of a report, or a mapping from site to budget."""
        return self.budgets

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before anybody is asked."""
        return tuple(self.question.warnings(self.crowd, self.budgets))

    @cached_property
    def yardsticks(self) -> tuple[Yardstick, ...]:
        """Return what the same people would tell under other models of trust."""
        return tuple(self.question.yardsticks(self.crowd, self.budgets))

    @cached_property
    def table(self) -> PlannedTable:
        """Return the widest width for a few numbers of people and budgets."""
        budgets = self._columns()
        people = tuple(dict.fromkeys(max(round(factor * self.people), self.crowd.sites) for factor in FACTORS))
        rows = tuple(tuple(self.widest(n, budget) for budget in budgets.values()) for n in people)
        return PlannedTable(people, tuple(budgets), rows)

    def widest(self, people: int, epsilon: Budgets) -> float:
        """Return the widest width for so many people at a budget; infinite where they are too few."""
        crowd = self.crowd if people == self.people else self.crowd.of(people)
        try:
            return max(each.value for each in self.question.wished(self.question.widths(crowd, epsilon)))
        except Infeasible:
            return math.inf

    @property
    def chief(self) -> int:
        """Return which interval table and picture are about: the widest of those that a wish is about."""
        own = self.question.wished(self.widths)
        return self.widths.index(max(own, key=lambda each: each.value))

    def _columns(self) -> dict[str, Budgets]:
        """Return the budgets of the table by their headings."""
        if isinstance(self.budgets, Mapping):
            scaled = {f"x {k:g}": {name: k * paid for name, paid in self.budgets.items()} for k in (0.5, 1, 2)}
            return dict(scaled.items())
        return {f"{budget:g}": budget for budget in sorted({*BUDGETS, self.budgets})}

    @property
    def headline(self) -> str:
        """Return the plan in one line."""
        wide = self.widths[self.chief]
        which = f" ({wide.of})" if len(self.widths) > 1 else ""
        at = "at " if math.isfinite(wide.value) else ""
        return (
            f"plan of {self.question.title}: {self.people:,} people {at}{budget_words(self.budgets)}, "
            f"{_about(wide.value, self.question.unit)}{which}"
        )

    def __repr__(self) -> str:
        return f"<{self.headline}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def summary(self) -> str:
        """Return a table that is read at a glance."""
        return self.describe().text()

    def describe(self) -> Description:
        """Return what the plan says of itself."""
        level = getattr(self.question, "level", None)
        rows = [("Question", self.question.title + (f", {percent(level)} interval" if level else ""))]
        found = {"people": "People", "epsilon": "Epsilon", "width": "Width"}.get(self.wanted, "")
        told = [
            ("People", f"{self.people:,}{self._sites()}"),
            ("Epsilon", budget_words(self.budgets).removeprefix("epsilon ")),
            *(("Width", self._told(each)) for each in self.widths[:MOST_ROWS]),
        ]
        if len(self.widths) > MOST_ROWS:
            told.append(("Width", f"and {len(self.widths) - MOST_ROWS:,} more intervals"))
        rows += [(label, f"{text}  <- found" if label == found else text) for label, text in told]
        if self.wish is not None:
            rows.append(("Wished", self.wish.words))
        rows.append(("Assuming", self.question.assumption))
        notes = [*labelled("Warning", self.warnings), *labelled("Trust", map(self._trust, self.yardsticks))]
        notes.append(("Asked", "nobody so far, and no record was looked at"))
        return Description(f"Plan: {self.kind}", rows, self._lines(), notes)

    def _sites(self) -> str:
        """Say how people are divided over sites and groups."""
        groups, sites = len(self.crowd.groups), self.crowd.sites
        over = f" at {sites:,} sites" if sites > groups else ""
        return over + (f" in {groups} groups" if groups > 1 else "")

    def _told(self, each: PlannedWidth) -> str:
        """Return a width in words, with its range where shapes matter."""
        text = f"{each.of}: " if each.of and len(self.widths) > 1 else ""
        text += _about(each.value, self.question.unit)
        if each.longest > WIDE_RANGE * each.shortest:
            upper = f"{each.longest:.3g}" if math.isfinite(each.longest) else "an open end"
            text += f"; by other shapes {each.shortest:.3g} to {upper}"
        if each.low is not None and each.high is not None:
            text += f"; from about the {each.low:.3f} to the {each.high:.3f} quantile"
        return text

    def _trust(self, yardstick: Yardstick) -> str:
        """Return a yardstick in words: of the chief interval, and over the planned one."""
        width, mine = yardstick.widths[self.chief], self.widths[self.chief].value
        ratio = f", this plan {mine / width:.3g} times that" if 0 < width < math.inf and mine < math.inf else ""
        return f"{yardstick.model}: {_about(width, self.question.unit)}{ratio}; {yardstick.how}"

    def _lines(self) -> list[str]:
        """Return the table of widths in text."""
        table = self.table
        heads = [f"epsilon {column}" for column in table.columns]
        cells = [[f"{width:.3g}" if math.isfinite(width) else "-" for width in widths] for widths in table.widths]
        space = max((WIDTH - 14) // len(heads), *(2 + len(cell) for row in (heads, *cells) for cell in row))
        first = max(1 + max(len(f"{people:,}") for people in table.people), min(14, WIDTH - space * len(heads)))
        lines = [f"{'people':>{first}}" + "".join(f"{head:>{space}}" for head in heads), "-" * WIDTH]
        for people, row in zip(table.people, cells, strict=True):
            lines.append(f"{people:>{first},}" + "".join(f"{cell:>{space}}" for cell in row))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        table = self.table
        budgets = self.budgets if isinstance(self.budgets, Mapping) else finite(self.budgets)
        return {
            "plan": True,
            "question": self.kind,
            "title": self.question.title,
            "found": self.wanted,
            "people": self.people,
            "people_by_site": self.people_by_site,
            "epsilon": budgets if budgets is None or isinstance(budgets, float) else dict(budgets),
            "unit": self.question.unit,
            "widths": [
                {**each._asdict(), **{name: finite(getattr(each, name)) for name in ("value", "shortest", "longest")}}
                for each in self.widths
            ],
            "wished": None if self.wish is None else self.wish.plain(),
            "assumption": self.question.assumption,
            "settings": self.question.settings(),
            "warnings": list(self.warnings),
            "yardsticks": [
                {"model": each.model, "widths": [finite(width) for width in each.widths], "how": each.how}
                for each in self.yardsticks
            ],
            "table": {
                "people": list(table.people),
                "epsilon": list(table.columns),
                "widths": [[finite(width) for width in row] for row in table.widths],
            },
        }

    def plot(self, path: str | Path) -> Path:
        """Draw the width against epsilon for several numbers of people, and the other models of trust, to a file."""
        from sottovoce.server.picture import check_path, save

        target = check_path(path)
        return save(self.draw(), target)

    def draw(self) -> Any:
        """Return the picture of `plot`, as a figure of matplotlib."""
        from sottovoce.planner.picture import FEW_POINTS, POINTS, ForecastPicture, bars_of, draw_forecast

        return draw_forecast(
            ForecastPicture(
                self.headline,
                self.question.unit,
                self.people,
                self.table.people,
                self.budgets,
                self.widths[self.chief].value,
                math.inf if self.wish is None else self.wish.all,
                bars_of(self.yardsticks, self.chief),
                FEW_POINTS if self.kind in ("conformal", "regression") else POINTS,
                self.widest,
            )
        )


def _about(width: float, unit: str) -> str:
    """Say how wide something is."""
    if math.isinf(width):
        return "an end open or far out"
    return f"about {width:.3g} wide" + (" in levels" if unit == "levels" else "")
