"""How far single calibrations stray: exact laws of every rule, equal and unequal sites, checked by simulation."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtri

from benchmarks.conformal_tables import mean_of, seed_of, show, spread_of, within
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.server.conformal.coverage.choose import distribution_grid, survival
from sottovoce.server.conformal.coverage.equal import probability
from sottovoce_papers.simulation.conformal.baselines import split_distribution, split_order
from sottovoce_papers.simulation.conformal.repeat import Setting, repeat
from sottovoce_papers.simulation.families import inverted

SHAPES = ((10, 100), (10, 1000), (5, 200), (100, 10), (50, 20), (100, 100))
ALPHA, DELTA = 0.1, 0.1
LARGE = 100_000_000  # scores in all: beyond it fewer replications


def rules(sizes: tuple[int, ...]) -> Iterator[tuple[str, Setting]]:
    """Yield every rule for sites of some sizes; where a site has fewer scores, no more of them are asked for."""
    yield "paper", Setting(sizes, rule="paper")
    yield "closest", Setting(sizes)
    for statistics in (2, 3, 5):
        yield f"{statistics} statistics", Setting(sizes, statistics=statistics)


def lower(setting: Setting, part: float = 0.05) -> float:
    """Return the coverage that all but a part of the calibrations reach."""
    kinds, number, choice = setting.plan.kinds, setting.plan.number, setting.plan.choice
    levels = distribution_grid(kinds, choice).levels

    def missed(level: npt.ArrayLike) -> Floats:
        return 1 - survival(kinds, number, choice, np.atleast_1d(np.asarray(level, dtype=np.float64)))

    return float(inverted(missed, levels[:1], levels[-1:], [part])[0])


def unequal() -> dict[str, tuple[int, ...]]:
    """Return sites of unequal sizes as in the notes, the random ones at even quantiles of their law."""
    even = (np.arange(50) + 0.5) / 50
    many = (np.arange(1000) + 0.5) / 1000
    return {
        "15 of n=20, 5 of n=1000": (20,) * 15 + (1000,) * 5,
        "m=50, n 10..2000": _log_normal(even),
        "m=50, n 3..40": tuple(np.linspace(3, 40, 50).round().astype(int).tolist()),
        "m=1000, n 10..2000": _log_normal(many),
    }


def _log_normal(levels: Floats) -> tuple[int, ...]:
    return tuple(np.clip(np.exp(4 + ndtri(levels)), 10, 2000).round().astype(int).tolist())


def run(replications: int = 20_000) -> None:
    for shape in SHAPES:
        sites, scores = shape
        show(f"m={sites}, n={scores}: coverage over calibrations", HEADERS, _rows((scores,) * sites, replications))
    _conditional(replications)
    _exact(replications)
    for name, sizes in unequal().items():
        title = f"{name} ({sum(sizes):,} scores, {len(set(sizes)):,} sizes): coverage over calibrations"
        show(title, HEADERS, _rows(sizes, replications))


HEADERS = ("rule", "orders, rank", "mean", "sd", "5 % quantile", "simulated mean", "simulated sd", "simulated 5 %")


def _rows(sizes: tuple[int, ...], replications: int) -> Iterator[tuple[str, ...]]:
    count = max(min(replications, LARGE * 4 // sum(sizes)), 400)
    for name, setting in rules(sizes):
        try:
            choice = setting.plan.choice
        except Infeasible:
            yield name, *("none",) * 7
            continue
        found = repeat(setting, count, seed_of(name, sizes))
        asked = f"{choice.orders[0]}, {choice.rank}" if len(choice.orders) == 1 else f"by size, {choice.rank}"
        low = lower(setting)
        missed = float(np.mean(found.coverages < low))
        below = f"{np.quantile(found.coverages, 0.05):.4f}; {within(missed, (0.05 * 0.95 / count) ** 0.5)} below"
        figures = (f"{choice.mean:.5f}", f"{choice.sd:.5f}", f"{low:.4f}")
        yield name, asked, *figures, mean_of(found), spread_of(found), below
    mean, spread, low = split_distribution(sum(sizes), ALPHA)
    yield "central", str(split_order(sum(sizes), ALPHA)), f"{mean:.5f}", f"{spread:.5f}", f"{low:.4f}", "", "", ""


def central_conditional(total: int, alpha: float = ALPHA, delta: float = DELTA) -> float:
    """Return the mean coverage of all scores in one place, the promise being for one calibration."""
    orders = np.arange(1, total + 1)
    held = 1 - betainc(orders, total - orders + 1, 1 - alpha) >= 1 - delta
    return float(orders[held][0] / (total + 1))


def _conditional(replications: int) -> None:
    rows = []
    for sites, scores in SHAPES:
        sizes = (scores,) * sites
        exact, theorem = Setting(sizes, delta=DELTA), Setting(sizes, delta=DELTA, rule="paper")
        paper = Setting(sizes, rule="paper").plan.choice
        found = [repeat(each, replications, seed_of("conditional", each)) for each in (exact, theorem)]
        stated = [
            float(survival(each.plan.kinds, each.plan.number, each.plan.choice, np.array([1 - ALPHA]))[0])
            for each in (exact, theorem)
        ]
        parts = [
            f"{told:.4f}; {within(each.part(0.9), (told * (1 - told) / len(each.coverages)) ** 0.5)}"
            for told, each in zip(stated, found, strict=True)
        ]
        plain = float(probability(sites, scores, paper.orders[0][0], paper.rank, 1 - ALPHA))
        means = [f"{each.plan.choice.mean:.4f}" for each in (theorem, exact)]
        rows.append(
            ((sites, scores), *means, f"{central_conditional(sites * scores):.4f}", *parts[::-1], f"{plain:.3f}")
        )
    headers = ("(m, n)", "theorem 3.3: mean", "exact: mean", "central: mean", "theorem: P(cov >= .9); simulated")
    show(f"Training-conditional, delta {DELTA}", (*headers, "exact: P; simulated", "plain argmin: P"), rows)


def _exact(replications: int) -> None:
    rows = []
    for sites, scores in (*SHAPES, (10, 40)):
        plain, exact = (Setting((scores,) * sites, exact=each) for each in (False, True))
        found = repeat(exact, replications, seed_of("exact", sites, scores))
        rows.append(((sites, scores), f"{plain.plan.choice.mean:.5f}", mean_of(found), spread_of(found)))
    show("exact=True: one of two ranks at random", ("(m, n)", "without", "simulated mean", "simulated sd"), rows)


if __name__ == "__main__":
    run()
