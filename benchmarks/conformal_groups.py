"""One threshold for all against one for each site, where sites differ: whom each covers, and how long sets are."""

import warnings
from typing import Any

import numpy as np
from scipy.special import ndtri

import sottovoce as sv
from benchmarks.conformal_tables import seed_of, show
from sottovoce.core.arrays import Floats
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.score_distributions import score_distribution

SITES, SPREAD = 20, 0.5
SIZES = (50, 100, 200, 500)
BUDGETS = (None, 4.0, 2.0, 1.0)
LAWS = ("half-normal", "log-normal", "exponential")


def run(replications: int = 200) -> None:
    cells = [(size, epsilon) for size in SIZES for epsilon in BUDGETS]
    rows = [(*named(size, epsilon), *_compared(size, epsilon, replications)) for size, epsilon in cells]
    title = f"{SITES} sites whose scales differ (sd of their logarithm {SPREAD:g}), {replications} calibrations: mean "
    title += "coverage, that of the worst site (mean length over each site's own quantile)"
    show(title, ("sites", "epsilon", "one for all", "one a site", "common, at new sites"), rows)
    _conditional(replications)
    _groups(replications)


def named(size: int, epsilon: float | None) -> tuple[str, str]:
    """Return how a row is called."""
    return f"{SITES} x {size}", "none" if epsilon is None else f"{epsilon:g}"


def _calibrated(ask: Any, scores: dict[str, Floats], seed: int, epsilon: float | None, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        private = {} if epsilon is None else {"epsilon": epsilon, "maximum": 30.0}
        return ask(scores, 0.1, **private, **settings, randomness=dice(seed))


def _compared(size: int, epsilon: float | None, replications: int) -> list[str]:
    """Return what one threshold, one a site, and the common one cover and how long they are."""
    law, generator = score_distribution("half-normal"), dice(seed_of(size, epsilon)).generator()
    scale = np.exp(SPREAD * ndtri((np.arange(SITES) + 0.5) / SITES))
    quantile = float(law.quantile(0.9))
    found: dict[str, list[Floats]] = {"one": [], "each": [], "common": []}
    lengths: dict[str, list[float]] = {"one": [], "each": [], "common": []}
    for turn in range(replications):
        scores = {f"s{i}": abs(generator.normal(size=size)) * scale[i] for i in range(SITES)}
        fresh = np.exp(SPREAD * generator.normal(size=SITES))
        one = _calibrated(sv.conformal_threshold, scores, turn, epsilon).value
        each = _calibrated(sv.conformal_thresholds, scores, turn, epsilon)
        values = np.array([each.values[name] for name in scores])
        common = each.common.value if each.common else np.inf
        for name, value, at in (("one", one, scale), ("each", values, scale), ("common", common, fresh)):
            held = np.minimum(np.broadcast_to(value, SITES), 60.0)
            found[name].append(np.asarray(law.cdf(held / at)))
            lengths[name].append(float(np.mean(held / at / quantile)))
    told = []
    for name in found:
        by_site = np.mean(found[name], axis=0)
        worst = by_site.min() if name != "common" else float(np.quantile(np.array(found[name]), 0.05))
        told.append(f"{by_site.mean():.3f}, {worst:.3f} ({np.mean(lengths[name]):.2f})")
    return told


def _conditional(replications: int) -> None:
    """Print how often all sites hold at once, where that was asked for, and where it was not."""
    rows, law = [], score_distribution("half-normal")
    sure = {"guarantee": "training-conditional"}
    asked: tuple[dict[str, Any], ...] = ({}, sure, {**sure, "simultaneous": True})
    for size, epsilon in ((100, None), (500, None), (200, 2.0), (500, 2.0)):
        generator, held = dice(seed_of("joint", size, epsilon)).generator(), []
        for turn in range(replications):
            scores = {f"s{i}": abs(generator.normal(size=size)) for i in range(SITES)}
            found = [
                _calibrated(sv.conformal_thresholds, scores, turn, epsilon, **settings).values for settings in asked
            ]
            held.append([all(float(law.cdf(min(value, 60.0))) >= 0.9 for value in each.values()) for each in found])
        rows.append((*named(size, epsilon), *(f"{part:.3f}" for part in np.mean(held, axis=0))))
    headers = ("sites", "epsilon", "marginal", "each for one calibration", "simultaneous")
    show("All sites cover .9 at once, part of the calibrations", headers, rows)


def _groups(replications: int) -> None:
    """Print coverage within public groups of scores at each site."""
    rows, laws = [], [score_distribution(name) for name in LAWS]
    for epsilon in (None, 2.0, 1.0):
        generator, found = dice(seed_of("groups", epsilon)).generator(), []
        for turn in range(replications):
            scores, labels = {}, {}
            for i in range(10):
                kinds, levels = generator.integers(0, 3, 150), generator.random(150)
                scores[f"s{i}"] = np.choose(kinds, [np.asarray(law.quantile(levels)) for law in laws]).astype(float)
                labels[f"s{i}"] = [LAWS[kind] for kind in kinds]
            one = _calibrated(sv.conformal_threshold, scores, turn, epsilon).value
            each = _calibrated(sv.conformal_thresholds, scores, turn, epsilon, by=labels).values
            own = [float(law.cdf(min(each[name], 60.0))) for name, law in zip(LAWS, laws, strict=True)]
            found.append([*(float(law.cdf(one)) for law in laws), *own])
        rows.append(
            ("none" if epsilon is None else f"{epsilon:g}", *(f"{each:.3f}" for each in np.mean(found, axis=0)))
        )
    headers = ("epsilon", *(f"one: {name}" for name in LAWS), *(f"by group: {name}" for name in LAWS))
    show("Ten sites of 150 scores of three public groups: mean coverage in each", headers, rows)


if __name__ == "__main__":
    run()
