"""The plan of a shortfall: which tail, which part of the records asks for the quantile, how far noise will reach."""

import math
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.core.checks import confidence, is_one_of, number, unknown
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.roster import Roster
from sottovoce.core.unit import uncensored
from sottovoce.inference.common.normal import two_sided
from sottovoce.protocol.card import Card
from sottovoce.server.explanation import VALUES, ExpectedWidth, Explanation
from sottovoce.server.quantile.certified.lottery import planned
from sottovoce.server.quantile.expected import ROUNDS, expected_width, explain_quantile
from sottovoce.server.quantile.feasibility import CERTIFIED, advice
from sottovoce.server.quantile.left_out import part_of, without
from sottovoce.server.quantile.levels_plan import METHODS, own_shares
from sottovoce.server.quantile.plan import QuantilePlan, plan_quantile
from sottovoce.server.quantile.shortfall.protocol import firsts_of

TAILS = ("upper", "lower")
ENOUGH = 0.08  # noise over tail that the quantile's part of the records is given, if it can be had
LEAST, MOST = 0.25, 0.6  # parts of the records for the quantile
FEWEST = 40  # records of a site for the smaller of the two parts
FEWEST_BEYOND = 400  # records for the tail: two at each of the fewest points, and a tenth of them first
FAR = 0.25  # of the way from the quantile to the far bound: noise from which on one is warned
TYPICAL = 0.1  # of the tail's mass: what lies beyond the points, on average, for the noise to expect


@dataclass(frozen=True, eq=False)
class ShortfallPlan:
    """A checked study of a shortfall; ``quantile`` is the plan of its value at risk."""

    quantile: QuantilePlan
    upper: bool
    part: float
    level: float
    certified: bool

    @property
    def mass(self) -> float:
        """Return the mass of the tail."""
        return 1 - self.quantile.tau if self.upper else self.quantile.tau

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the public bounds of the records."""
        low, high = self.quantile.bounds or (-math.inf, math.inf)
        half = self.quantile.resolution / 2
        return low + half, high - half

    @property
    def method(self) -> str:
        """Return how the quantile is asked."""
        return "certified" if self.certified else "staged"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before any record answers."""
        noise = self.noise
        far = (
            f"the upper bound of the shortfall will lie about {min(noise, 1.0):.0%} of the way from the quantile to "
            f"the far bound beyond it; more records, a larger epsilon or a nearer bound would shorten that",
        )
        return (*self.quantile.warnings, *(far if noise > FAR else ()))

    @property
    def beyond(self) -> int:
        """Return how many records will answer about the tail, drawn by lot from what the quantile leaves."""
        crowd = self.quantile.crowd
        lots = crowd.shares / crowd.rates
        return planned(lots / lots.sum(), crowd.sizes - firsts_of(crowd, self.part))

    @property
    def noise(self) -> float:
        """Return how far the farther end of the interval will lie from the truth, over quantile to far bound."""
        crowd, records = self.quantile.crowd, self.beyond
        rate = 1 / float((crowd.shares / crowd.rates).sum())
        chance = (1 - rate) / 2 + rate * TYPICAL * self.mass
        return two_sided(self.level) * math.sqrt(chance * (1 - chance) / records) / rate / self.mass

    def card(self, nonce: bytes = b"") -> Card:
        """Return the study card: the quantile's, with what is asked beyond it."""
        card = self.quantile.card(f"shortfall-{self.method}", nonce=nonce)
        terms = {**card.terms, "tail": TAILS[not self.upper], "part": self.part, "level": self.level}
        return replace(card, terms=terms)

    def explain(self, seeded: bool = False) -> Explanation:
        """Say what would be asked, what is protected, and how wide the intervals will be."""
        plan, (low, high) = self.quantile, self.bounds
        most = min(2 * self.noise, 1.0) * (high - low)
        widths = [
            expected_width(plan, self.method, self.level, self.part, of="value at risk"),
            ExpectedWidth("expected shortfall, at most", most, VALUES),
        ]
        side = "above" if self.upper else "below"
        what = (
            f"the {plan.tau:.6g} quantile of the {plan.roster.unit.plural}, and the mean of those {side} it, "
            f"{self.part:.0%} of the records for the quantile"
        )
        found = explain_quantile(
            plan, self.method, self.level, widths, rounds=ROUNDS[self.method] + " and two more", what=what,
            warnings=self.warnings, seeded=seeded,
        )  # fmt: skip
        rest = "; the shortfall's interval is the shorter, the nearer the quantile is to the far bound"
        values = {**found.values, "tail": TAILS[not self.upper], "split": self.part, "bounds": [low, high]}
        return replace(found, assumption=found.assumption + rest, values=values)


def plan_shortfall(
    roster: Roster,
    tau: Any,
    epsilon: Any,
    *,
    bounds: Any,
    level: float = 0.95,
    tail: str = "upper",
    method: str = "certified",
    split: float | None = None,
    **known: Any,
) -> ShortfallPlan:
    """Check all input of a study of a shortfall over the public facts of its sites."""
    confidence(level)
    if not is_one_of(tail, TAILS):
        raise unknown("tail", tail, TAILS)
    if not is_one_of(method, METHODS):
        raise unknown("for a shortfall method", method, METHODS)
    if bounds is None:
        raise BadInput(
            "a shortfall needs bounds=(low, high), public limits beyond which no value counts for more: "
            "what lies far out moves a mean without limit."
        )
    uncensored(roster.unit, "a shortfall")
    if roster.unit.kind == "category":
        raise BadInput("categories have no mean, so they have no shortfall; ask federated_quantile for their quantile.")
    tau = number(tau, "tau")
    public = {**known, "bounds": bounds, "limits": CERTIFIED, "confidence": level, "certified": method == "certified"}
    whole = plan_quantile(roster, tau, epsilon, **public)
    part = _split(split, whole)
    own = {**public, "shares": own_shares(whole), "fewest": math.ceil(FEWEST / min(part, 1 - part))}
    plan = plan_quantile(whole.roster, tau, whole.stated, thinned=part, **own)
    if min(plan.crowd.sizes) < own["fewest"]:
        raise BadInput(
            f"a site has {min(plan.crowd.sizes)} records, too few to be split for a shortfall; "
            f"give each at least {own['fewest']}, or leave it out."
        )
    if whole.left_out:
        said = without(whole.left_out, len(plan.names), part_of(roster, whole.left_out))
        gone = (*whole.left_out, *plan.left_out)
        plan = replace(plan, left_out=gone, warnings=(said, *plan.warnings))
    found = ShortfallPlan(plan, tail == "upper", part, level, method == "certified" or plan.atoms)
    if found.beyond < FEWEST_BEYOND:
        raise Infeasible(
            f"{found.beyond} records are left to ask beyond the quantile, too few for a shortfall; have at least "
            f"{FEWEST_BEYOND}: add records, or lower split."
        )
    return found


def _split(split: Any, whole: QuantilePlan) -> float:
    """Return the part of the records that answers for the quantile: what it needs, within limits, if not given."""
    ratio, records = whole.support.ratio, int(whole.crowd.sizes.sum())
    part = min(max((ratio / ENOUGH) ** 2, LEAST), MOST) if split is None else number(split, "split")
    if not 0 < part < 1:
        raise BadInput(
            f"split must lie strictly between 0 and 1, not {split!r}; give the part of the records for the quantile."
        )
    most = CERTIFIED.at(whole.tau).refuse * math.sqrt(part)
    if ratio > most:
        needed = whole.support.records_for(records, most)
        raise Infeasible(
            f"the {whole.tau:g} quantile, asked of {part:.0%} of the records, needs about {needed:,} records in all at "
            f"these budgets and shares, and there are {records:,}: {advice(whole.tau)}."
        )
    return part
