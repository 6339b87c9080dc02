"""The choice of a channel: never worse than the paper's, a fifth better on average, and explained."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import within
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.design import choose
from sottovoce.server.regression.omega import covariance, covariates

# Table 2 of the paper: (q, s) for each (tau, p), at epsilon .5, 1, 2, 4, 8
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
TABLE_2 = {
    (0.5, 1): ((4, 1), (2, 1), (4, 1), (4, 2), (16, 2)),
    (0.5, 2): ((2, 1), (2, 1), (2, 1), (4, 3), (8, 3)),
    (0.5, 5): ((2, 1), (2, 1), (4, 1), (8, 1), (3, 5)),
    (0.5, 8): ((2, 1), (2, 1), (4, 1), (3, 2), (3, 5)),
    (0.75, 1): ((4, 1), (2, 2), (2, 2), (4, 2), (8, 2)),
    (0.75, 2): ((2, 1), (2, 2), (4, 1), (3, 3), (8, 3)),
    (0.75, 5): ((2, 1), (4, 1), (4, 1), (3, 2), (3, 6)),
    (0.75, 8): ((2, 1), (2, 1), (3, 1), (8, 1), (3, 5)),
}
# what an independent implementation reached, against Table 2's choice
BEST_KNOWN = {
    (0.5, 1): (0.499, 0.744, 0.709, 0.948, 0.994),
    (0.5, 2): (0.846, 0.791, 0.569, 0.675, 0.963),
    (0.5, 5): (0.913, 0.848, 0.850, 0.610, 0.825),
    (0.5, 8): (0.935, 0.867, 0.874, 0.847, 0.823),
    (0.75, 1): (0.375, 0.763, 0.828, 0.955, 0.983),
    (0.75, 2): (0.681, 0.636, 0.642, 0.882, 0.949),
    (0.75, 5): (0.810, 0.647, 0.759, 0.741, 0.784),
    (0.75, 8): (0.860, 0.720, 0.838, 0.694, 0.696),
}


def against_the_paper(tau: float, p: int, epsilon: float) -> float:
    q, s = TABLE_2[tau, p][EPSILONS.index(epsilon)]
    paper = float(np.trace(covariance(cq(tau, p, epsilon, q, s), covariates(p))))
    return choose(tau, p, epsilon).alternative.trace / paper


@pytest.mark.parametrize(
    ("tau", "p", "epsilon"),
    [(0.5, 1, 0.5), (0.75, 1, 1.0), (0.5, 2, 2.0), (0.75, 2, 4.0), (0.5, 5, 1.0), (0.75, 8, 2.0), (0.5, 8, 8.0)],
)
def test_a_few_cells_are_as_good_as_the_best_known(tau: float, p: int, epsilon: float) -> None:
    assert against_the_paper(tau, p, epsilon) < BEST_KNOWN[tau, p][EPSILONS.index(epsilon)] * 1.002


@pytest.mark.slow
def test_a_fifth_better_than_table_2_on_average_and_nowhere_worse() -> None:
    found = [against_the_paper(tau, p, epsilon) for tau, p in TABLE_2 for epsilon in EPSILONS]
    assert np.mean(found) <= 0.784
    assert max(found) < 1.0


@pytest.mark.parametrize("tau", [0.01, 0.4, 0.99])
@pytest.mark.parametrize(("p", "epsilon"), [(0, 1.0), (1, 0.05), (20, 0.3), (20, 16.0), (3, 24.0)])
def test_any_setting_has_a_design_within_its_budget(tau: float, p: int, epsilon: float) -> None:
    design = choose(tau, p, epsilon)
    assert within(design.channel.ratio, epsilon)
    assert 0 <= epsilon - design.channel.epsilon < 1e-8
    assert design.alternative.trace <= min(other.trace for other in design.alternatives) * 1.001
    assert design.channel.letters <= 1 << 32


def test_what_is_predicted_is_the_channels_own_covariance() -> None:
    moments = [0.1, 0.3, 0.5, 0.9]
    design = choose(0.5, 4, 1.0, moments)
    spread = covariance(design.channel, covariates(4, moments))
    assert design.alternative.errors[0] == pytest.approx(np.sqrt(np.diagonal(spread)), rel=1e-12)
    assert design.alternative.trace == pytest.approx(float(np.trace(spread)), rel=1e-12)


def test_slopes_that_are_harder_to_see_are_asked_for_more_often() -> None:
    design = choose(0.5, 4, 1.0, [0.05, 0.3, 0.3, 0.9])
    asked: npt.NDArray[np.float64] = sum(
        (block.probability * block.inclusion(4) for block in design.channel.blocks), np.zeros(5)
    )
    assert asked[1] > 2 * asked[2] > 2 * asked[4]
    even = choose(0.5, 4, 1.0)
    assert design.alternative.trace < np.trace(covariance(even.channel, covariates(4, [0.05, 0.3, 0.3, 0.9])))


def test_no_privacy_is_exact() -> None:
    design = choose(0.5, 2, math.inf)
    assert design.name == "open"
    assert design.alternative.errors[0] == pytest.approx([0.5, 0.5 * math.sqrt(3), 0.5 * math.sqrt(3)])


@pytest.mark.parametrize(("epsilon", "split"), [(0.5, True), (1.0, True), (4.0, False), (8.0, False)])
def test_several_levels_share_a_report_at_large_budgets_only(epsilon: float, split: bool) -> None:
    design = choose((0.75, 0.25, 0.5), 2, epsilon)
    assert design.taus == (0.25, 0.5, 0.75)
    assert design.split is split
    assert len(design.channels) == (3 if split else 1)
    assert {other.name for other in design.alternatives} == {"split", "shared box"}


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_of_several_levels_the_chosen_one_is_the_best_of_its_own_table(epsilon: float) -> None:
    design = choose((0.1, 0.5, 0.9), 2, epsilon)
    assert design.alternative.trace == min(other.trace for other in design.alternatives)
    lines = design.explain().splitlines()
    assert lines[lines.index("") + 2].startswith(f"* {design.name} ")


@pytest.mark.parametrize("moments", [[1e-6, 1.0], [0.9, 1e-4, 0.5], [1e-7, 1e-7]], ids=str)
def test_slopes_that_matter_more_than_all_else_leave_nothing_untold(moments: list[float]) -> None:
    design = choose(0.5, len(moments), 0.5, moments)
    assert np.isfinite(design.alternative.errors).all()
    told = sum((block.probability * block.inclusion(len(moments)) for block in design.channel.blocks), np.zeros(1))
    assert (told > 0).all()


def test_the_explanation_of_many_levels_is_wrapped() -> None:
    text = choose([k / 20 for k in range(1, 20)], 1, 8.0).explain()
    assert max(map(len, text.splitlines())) <= 100
    head = " ".join(text.split("Predicted")[0].split())
    assert head.startswith("channel split (tau 0.05, 0.1,")
    assert head.endswith("0.95; 1 slopes; epsilon 8): each person answers for one level, drawn at random.")


def test_the_explanation_names_every_alternative_and_the_price() -> None:
    text = choose(0.75, 8, 2.0).explain(n=1_000_000)
    lines = text.splitlines()
    assert lines[0] == "channel lp (tau 0.75; 8 slopes; epsilon 2): pairs from a linear program."
    assert [line.split()[0] for line in lines[4:8]] == ["*", "box", "cq", "cq:3,1"]
    assert "1.00x" in lines[4]
    assert "1.2" in lines[7]
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("taus", "p", "epsilon", "moments", "words"),
    [
        (0.0, 2, 1.0, None, "quantile levels lie between 0 and 1"),
        ((0.5, 0.5), 2, 1.0, None, "each once"),
        ((), 2, 1.0, None, "quantile levels"),
        (0.5, -1, 1.0, None, "number of slopes"),
        (0.5, 2, 0.0, None, "epsilon must lie above 0"),
        (0.5, 2, math.nan, None, "epsilon must lie above 0"),
        (0.5, 2, 1e-12, None, "epsilon 1e-12 is too small"),
        (0.5, 2, 9e-7, None, "epsilon 9e-07 is too small"),
        ([k / 400 for k in range(1, 400)], 0, 1e-6, None, "too small to tell 400 sides"),
        (0.5, 2, 25.0, None, "at most at 24"),
        (0.5, 2, 1.0, [0.3], "not those of 2 slopes"),
        (0.5, 2, 1.0, [0.3, 1.2], "at most at 1"),
        (0.5, 2, 1.0, [0.3, 0.0], "leave constant columns out"),
        (0.5, 2, 1.0, [[0.3, 0.3], [0.3, 0.3]], "collinear"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    taus: float | list[float], p: int, epsilon: float, moments: list[float] | None, words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        choose(taus, p, epsilon, moments)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")
