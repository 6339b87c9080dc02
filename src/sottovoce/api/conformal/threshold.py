"""A conformal threshold from the scores of many sites, in memory or in files, in one round, private or not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.api.asking import spend
from sottovoce.client.conformal.draw import cell_counts
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.door import AnsweringSite, Door, SiteLimits
from sottovoce.client.reading.table import SCORES, SiteTable, read_sites
from sottovoce.client.record import Records, look_tied
from sottovoce.core.arrays import Floats
from sottovoce.core.calling import public, say_before
from sottovoce.core.checks import check_callers
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private, parts_of
from sottovoce.core.unit import uncensored
from sottovoce.local.runner import run
from sottovoce.protocol.card import Card, identity
from sottovoce.server.conformal.base import Threshold
from sottovoce.server.conformal.methods import check_edges, method_of, settle
from sottovoce.server.conformal.plan import Participants, SiteFacts, card_of
from sottovoce.server.conformal.settings import (
    COUNTED,
    MOST_STATISTICS,
    ConformalSettings,
    check_budgets,
    check_settings,
)

if TYPE_CHECKING:
    from sottovoce.server.conformal.coverage.predicted import Forecast
    from sottovoce.server.explanation import Explanation

Opens = Callable[..., AnsweringSite]  # a site, from its records, budget, dice and limits

TIED = "many scores are tied, so that exact coverage is at least, and not exactly, what is promised: leave exact out"
Paths = str | Path | Sequence[str | Path]


@public
def conformal_threshold(
    scores: Any,
    alpha: float = 0.1,
    *,
    epsilon: Any = None,
    maximum: float | None = None,
    minimum: float | None = None,
    bins: int | None = None,
    grid: Any = None,
    mechanism: str = "auto",
    guarantee: str = "marginal",
    delta: float = 0.1,
    rule: str = "closest",
    statistics: int = 1,
    exact: bool = False,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
) -> Threshold:
    """Find the threshold below which a new score falls with probability 1 - alpha, each site sending one message.

    Parameters
    ----------
    scores
        A mapping from site to its calibration scores (numpy, Arrow, pandas, polars, a list), a sequence of columns, or
        what `read_frame` or `read_files` returned. The larger a score, the worse the model's prediction was.
    alpha
        The part of new scores that may lie above the threshold.
    epsilon
        None: each site sends order statistics of its scores. Else the budget of a score for its site's one message, or
        a mapping from site to budget (``math.inf`` for a site that is not private).
    maximum, minimum
        With epsilon: the public range of the scores, chosen without a look at them; minimum is 0 unless given. Scores
        outside are counted where they are, so the promise holds anyway.
    bins
        With epsilon: the number of equal steps between minimum and maximum. Unless given, "auto" and "counts" take
        edges in equal ratios, as many as they can use; "local" takes 16 steps, "aggregate" 32, the others 100.
    grid
        With epsilon: the edges themselves, instead of maximum and bins; "counts" takes as many of them as it can use.
    mechanism
        With epsilon: "auto" (default), that of the next two whose coverage will stray least, by the number of sites,
        their sizes and epsilon. "sparse-vector": each site names one cell. "counts": each site sends one noisy count,
        of its scores at or below one edge; best where many sites are small. "exponential", or the "paper"'s; "local":
        every score answers one question through randomised response; "aggregate": noisy counts to a secure sum.
    guarantee
        "marginal": on average over calibrations. "training-conditional": for one calibration, but for a part ``delta``
        of them.
    delta
        The part of calibrations that may fall short of 1 - alpha (training-conditional).
    rule
        "closest" (default): the coverage that strays least from 1 - alpha. "paper": the smallest mean; with
        "training-conditional" the paper's theorem 3.3.
    statistics
        How many order statistics a site sends, 1 to 5; three come within a few percent of all scores in one place.
    exact
        Take one of two neighbouring ranks at random, so that the mean coverage is 1 - alpha exactly (scores without
        ties).
    randomness
        None for the operating system's entropy; `sim.dice` for simulation, which makes the result not private.
    missing
        "refuse" missing values, or "drop" and count them.

    Returns
    -------
    The threshold, its exact coverage and what it was made from.

    Examples
    --------
    >>> import sottovoce as sv
    >>> source = sv.sim.dice(1).generator()
    >>> scores = {f"hospital {i}": abs(source.normal(size=100)) for i in range(1, 11)}
    >>> t = sv.conformal_threshold(scores, alpha=0.1)
    >>> t.orders["hospital 1"], t.rank, round(t.coverage, 4), round(t.spread, 4)
    ((92,), 4, 0.9023, 0.012)
    >>> private = sv.conformal_threshold(scores, 0.1, epsilon=1.0, maximum=5.0, randomness=sv.sim.dice(2))
    >>> private.coverage >= 0.9, private.epsilon["hospital 1"] <= 1.0
    (True, True)
    """
    planned = plan_threshold(
        scores,
        alpha,
        epsilon=epsilon,
        maximum=maximum,
        minimum=minimum,
        bins=bins,
        grid=grid,
        mechanism=mechanism,
        guarantee=guarantee,
        delta=delta,
        rule=rule,
        statistics=statistics,
        exact=exact,
        randomness=randomness,
        missing=missing,
    )
    say_before(*planned.warnings)
    return run_threshold(planned)


@dataclass(frozen=True, eq=False)
class PlannedThreshold:
    """A threshold whose whole input is checked, and for which nothing is sent yet."""

    method: Any
    opens: Opens
    card: Card
    line: tuple[float, ...]
    facts: tuple[SiteFacts, ...]
    table: SiteTable = field(repr=False)
    dice: RandomSource
    counted: Mapping[str, Floats] | None = field(default=None, repr=False)  # the records behind the scores
    expected: "Forecast | None" = None  # what the mechanism was chosen by

    def counted_by(self, records: Mapping[str, Floats]) -> "PlannedThreshold":
        """Count the round by the records behind the scores."""
        return replace(self, counted=records)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before anything is sent; what the scores show is for their holder."""
        return (*self.table.roster.doubts, *self.hints, *self.promised.warnings)

    @property
    def budgets(self) -> dict[str, float]:
        """Return what the round costs a score of each site."""
        return {name: fact.epsilon for name, fact in zip(self.table.names, self.facts, strict=True)}

    @property
    def promised(self) -> Threshold:
        """Return the threshold as it will be, but for its value."""
        found: Threshold = self.method.promised()
        return found

    @property
    def hints(self) -> tuple[str, ...]:
        """Say where ties make more of a promise than can be kept."""
        tied = self.promised.settings.exact and any(look_tied(records.values()) for records in self.table.records)
        return (TIED,) if tied else ()

    def explain(self, seeded: bool = False) -> "Explanation":  # noqa: ARG002
        """Return what would be sent, what is protected, and how far the coverage will stray; nobody is asked."""
        from sottovoce.server.conformal.expected import explain_threshold

        return replace(explain_threshold(self.promised, self.promised.warnings, self.expected), hints=self.hints)


def plan_threshold(
    scores: Any,
    alpha: float = 0.1,
    *,
    epsilon: Any = None,
    maximum: float | None = None,
    minimum: float | None = None,
    bins: int | None = None,
    grid: Any = None,
    mechanism: str = "auto",
    guarantee: str = "marginal",
    delta: float = 0.1,
    rule: str = "closest",
    statistics: int = 1,
    exact: bool = False,
    randomness: RandomSource | None = None,
    missing: str = "refuse",
) -> PlannedThreshold:
    """Check all input of `conformal_threshold` without asking any site."""
    private = epsilon is not None
    settings = check_settings(alpha, guarantee, delta, rule, statistics, exact, mechanism, private)
    check_callers(randomness, None)
    edges = check_edges(minimum, maximum, bins, grid, private)
    table = (
        scores.undivided("a threshold")
        if isinstance(scores, SiteTable)
        else read_sites(scores, missing=missing, needs=SCORES)
    )
    if table.unit.kind != "number":
        raise BadInput(f"scores must be numbers, not {table.unit.plural}; give the scores of the model.")
    uncensored(table.unit, "a score")
    budgets = check_budgets(epsilon, table.names)
    dice = SystemEntropy() if randomness is None else randomness
    facts = tuple(SiteFacts(records.size, budget) for records, budget in zip(table.records, budgets, strict=True))
    seeded = not is_private(dice) or table.seeded
    who = Participants(table.names, facts, sum(table.dropped.values()), table.per_person, seeded, table.column)
    settings, line, expected = settle(settings, edges, facts)
    card = card_of(who, settings, line)
    method = method_of(who, settings, line, card, int(dice.words(1)[0]) if settings.exact else None)
    return PlannedThreshold(method, _opens(who, settings, card), card, line, facts, table, dice, expected=expected)


def run_threshold(planned: PlannedThreshold) -> Threshold:
    """Run a planned round: from here on sites answer."""
    own = parts_of(planned.dice, len(planned.facts))
    in_all = spend(planned.table, [fact.epsilon for fact in planned.facts], planned.dice, planned.counted)
    return replace(ask_sites(planned, own), in_all=in_all)


def ask_sites(planned: PlannedThreshold, own: Sequence[RandomSource]) -> Threshold:
    """Ask the sites of a planned round, whose cost is counted, each with dice of its own."""
    line, facts, table = planned.line, planned.facts, planned.table
    limits, study = SiteLimits(points=max(MOST_STATISTICS, len(line)), rounds=1), identity(planned.card)
    doors = [
        Door(planned.opens(records, fact.epsilon, each, limits=limits), study, limits)
        for records, fact, each in zip(table.records, facts, own, strict=True)
    ]
    found: Threshold = run(planned.method, doors)
    return replace(found, hints=_hints(table, np.array(line))) if line else found


def _opens(who: Participants, settings: ConformalSettings, card: Card) -> Opens:
    """Return how a site of the study is opened."""
    if settings.mechanism == COUNTED:
        return CoverageSite
    if not settings.pooled:
        return CalibrationSite
    from sottovoce.client.conformal.shares import SharingSite, agreed_sites, questioned_site

    if settings.mechanism == "local":
        return questioned_site
    sites = agreed_sites(card, who.names[0], most=len(who.names))  # all sites are here, and have agreed

    def shared(records: Records, budget: float, own: RandomSource, *, limits: SiteLimits) -> SharingSite:
        return SharingSite(records, sites, budget, own, limits=limits)

    return shared


def _hints(table: SiteTable, edges: Floats) -> tuple[str, ...]:
    """Tell whoever holds the scores, and nobody else, where the public grid does not cover them."""
    above = [int(cell_counts(records, edges[-1:])[1]) for records in table.records]
    if not any(above):
        return ()
    where = sum(count > 0 for count in above)
    return (
        f"not to be passed on: {sum(above):,} of {sum(records.size for records in table.records):,} scores at "
        f"{where:,} site{'' if where == 1 else 's'} lie above the grid, which ends at {float(edges[-1]):g}: the "
        "promise holds, but the set grows, to infinity if they are many; next time choose a larger maximum",
    )


@public
def read_scores(
    paths: Paths,
    *,
    score: str,
    site: str | None = None,
    person: str | None = None,
    group: str | None = None,
    missing: str = "refuse",
    apart_from: Paths = (),
    randomness: RandomSource | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
) -> SiteTable:
    r"""Read the scores of many sites from Parquet, CSV or Arrow files: one a site, or any with a site column.

    Without a column ``site`` each file is a site, named by the file; with ``person`` one row each is drawn; ``group``
    is a column of public groups, for ``by="group"`` of `conformal_thresholds`.
    ``apart_from`` are the files that made the threshold: scores that are to judge it must come from others.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "north.csv").write_text("residual\n0.5\n")
    ...     read_scores(f"{folder}/*.csv", score="residual").records
    (Records(1 record, values hidden),)
    """
    from sottovoce.client.reading.files import expand, file_identity, read_files  # scores of arrays need none

    made = set(map(file_identity, expand(apart_from))) if apart_from else set()
    for path in expand(paths):
        if file_identity(path) in made:
            raise BadInput(
                f"{path} is to judge the threshold that it makes; give fresh scores, or none to judge it by its own."
            )
    dice = SystemEntropy() if randomness is None else randomness
    columns: dict[str, Any] = {
        "value": score,
        "site": site,
        "person": person,
        "group": group,
        "delimiter": delimiter,
        "decimal": decimal,
    }
    table = read_files(paths, **columns, missing=missing, dice=dice.words, needs=SCORES)
    if table.unit.kind != "number":
        raise BadInput(f"column {score!r} holds {table.unit.plural}, and scores must be numbers; name another column.")
    return replace(table, seeded=person is not None and not is_private(dice), column=score)
