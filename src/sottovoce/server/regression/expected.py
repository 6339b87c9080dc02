"""What a regression would ask, and how wide the intervals of its coefficients will be, from public numbers alone.

The predicted standard errors are those of the design at its public second moments, for the density that was guessed.
Without a guess they are told in levels: how far the level moves when a covariate goes from its middle to its end and
its coefficient is off by one half of its interval.
"""

import math

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.description import finite
from sottovoce.server.explanation import LEVELS, VALUES, ExpectedWidth, Explanation
from sottovoce.server.regression.plan import RegressionPlan

BARELY = 0.25  # levels to each side: intervals that reach farther tell little
LONGER = 1.15  # intervals over those of the limit, by the search and the first steps (docs/decisions/0055)


def half_widths(plan: RegressionPlan, people: int) -> Floats:
    """Return half the expected width of every scaled coefficient, (levels, p + 1), in levels."""
    return np.asarray(LONGER * two_sided(plan.level) * plan.design.alternative.errors / math.sqrt(people))


def expected_widths(plan: RegressionPlan, people: int) -> list[ExpectedWidth]:
    """Return how wide the interval of every coefficient will be, raw where a density was guessed."""
    halves, density = half_widths(plan, people), plan.settings.density
    raw = plan.bounds.to_raw
    found = []
    for at, tau in enumerate(plan.settings.taus):
        level = f", tau {tau:g}" if len(plan.settings.taus) > 1 else ""
        told = 2 * halves[at]
        if density is not None:
            told = np.sqrt(np.square(raw) @ np.square(told / density[at]))
        for name, width in zip(("intercept", *plan.bounds.names), told, strict=True):
            found.append(ExpectedWidth(f"{name}{level}", float(width), LEVELS if density is None else VALUES))
    return found


def barely(plan: RegressionPlan, people: int) -> tuple[str, ...]:
    """Say where so many people tell little of some coefficient, before anybody is asked."""
    worst = float(half_widths(plan, people).max())
    if not worst > BARELY:
        return ()
    needed = math.ceil(people * (worst / BARELY) ** 2)
    unit = 10 ** max(len(str(needed)) - 2, 0)
    return (
        f"the regression is barely supported: the interval of some coefficient will reach about {worst:.2g} levels to "
        f"each side; about {math.ceil(needed / unit) * unit:,} people would leave this zone",
    )


def explain_regression(plan: RegressionPlan, people: int) -> Explanation:
    """Say what a regression would do."""
    design, settings, density = plan.design, plan.settings, plan.settings.density
    letters, epsilon = max(channel.letters for channel in design.channels), plan.epsilon
    guess = 1.0 if density is None else float(density.min())
    scale = 1 / (math.sqrt(people) * guess)
    first = "the first people tell location and scale; " if settings.searches else ""
    asked = [
        ("Question", f"how the {', '.join(f'{tau:g}' for tau in settings.taus)} quantile depends on {plan.p} columns"),
        ("Answers", f"one of {letters} letters each, {people:,} people, each once; {first}channel {design.name}"),
    ]
    shift = f"a report shifts the odds between any two rows by at most a factor {math.exp(min(epsilon, 700)):.3g}"
    private = f"Each person answers once, with one randomised letter; {shift} (epsilon {epsilon:.3g})."
    known = f"a density of {guess:g} at the quantile, the public guess" if density is not None else ""
    return Explanation(
        f"Plan, nothing asked: quantile regression, {plan.level:.4g} intervals",
        asked,
        private if math.isfinite(epsilon) else "No privacy: exact scores would be sent.",
        expected_widths(plan, people),
        f"{known or 'no density is guessed, so levels are told'}; covariates with the public second moments",
        barely(plan, people),
        [*design.explain(people, guess).splitlines(), "Features are scaled to [-1, 1] by their bounds."],
        {
            "channel": design.name,
            "why": design.why,
            "split": design.split,
            "tau": list(design.taus),
            "epsilon": finite(design.epsilon),
            "people": people,
            "letters": letters,
            "density": guess,
            "alternatives": [
                {
                    "channel": each.name,
                    "errors": (each.errors * scale).tolist(),
                    "people": each.trace / design.alternative.trace,
                }
                for each in sorted(design.alternatives, key=lambda each: each.trace)
            ],
        },
    )
