"""Replies are hostile until checked: what does not fit is refused in a sentence, and counts nothing."""

import math
from typing import Any

import numpy as np
import pytest

from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.protocol.card import identity
from sottovoce.protocol.messages import (
    CellQuery,
    CellReport,
    CoverageCount,
    CoverageQuery,
    Message,
    OrderQuery,
    OrderReport,
    Query,
    SumQuery,
    SumShare,
    Tally,
)
from sottovoce.protocol.selection.geometric import noisy_count
from sottovoce.server.conformal.plan import ConformalPlan, Participants, SiteFacts, card_of, plan
from sottovoce.server.conformal.pooled import CountsMethod, SumMethod, TallyMethod, plan_pooled
from sottovoce.server.conformal.report import CoverageMethod, CoveragePlan
from sottovoce.server.conformal.settings import ConformalSettings, check_settings
from sottovoce.server.conformal.votes import VotesMethod, take_rank
from sottovoce.server.method import Method, restore

SECRET = 123456.789
EDGES = tuple(np.linspace(0.5, 4.0, 8).tolist())


def settings_of(mechanism: str | None = None, statistics: int = 1, exact: bool = False) -> ConformalSettings:
    private = mechanism is not None
    return check_settings(0.1, "marginal", 0.1, "closest", statistics, exact, mechanism or "sparse-vector", private)


def people(*facts: tuple[int, float]) -> Participants:
    return Participants(tuple(f"site {i}" for i in range(len(facts))), tuple(SiteFacts(*fact) for fact in facts))


def voting(statistics: int = 1) -> VotesMethod:
    """Return a study of an open site, and of a private one where there is one statistic."""
    who = people((300, math.inf), (400, 2.0 if statistics == 1 else math.inf))
    settings = settings_of("sparse-vector" if statistics == 1 else None, statistics)
    line = EDGES if statistics == 1 else ()
    return VotesMethod(plan(who.facts, settings, len(line) + 1 if line else 0), who, line)


def pooled(kind: type[TallyMethod] | type[SumMethod]) -> TallyMethod | SumMethod:
    who = people((4_000, 2.0), (3_000, 3.0))
    settings = settings_of("local" if kind is TallyMethod else "aggregate")
    return kind(plan_pooled(who.facts, settings, len(EDGES)), settings, who, EDGES)


def counts() -> CountsMethod:
    """Return a study of two sites that count, of which the second has no budget."""
    who, settings = people((400, 2.0), (300, math.inf)), settings_of("counts")
    return CountsMethod(plan_pooled(who.facts, settings, 2), settings, who, EDGES[4:6])


def counting(private: bool = False) -> CoverageMethod:
    who = people((100, math.inf), (50, math.inf))
    noises = (noisy_count(1.0), noisy_count(0.5)) if private else None
    return CoverageMethod(CoveragePlan(1.5, 0.1, 0.95, (0.5, 0.5), "sites", noises), who)


def test_what_is_asked_follows_from_the_plan() -> None:
    queries = voting().query(voting().init())
    assert queries is not None
    first, second = queries.messages
    assert isinstance(first, OrderQuery)
    assert isinstance(second, CellQuery)
    assert (second.mechanism, second.epsilon, second.edges) == ("sparse-vector", 2.0, EDGES)
    assert (queries.round, queries.records) == (1, 700)
    asked = pooled(TallyMethod).messages
    assert asked == (Query(1, EDGES, (500,) * 8), Query(1, EDGES, (375,) * 8))
    shares = pooled(SumMethod).messages
    assert isinstance(shares[0], SumQuery)
    assert shares[0] == shares[1]
    assert shares[0].sites == 2
    counted = counts().messages
    assert {message.threshold for message in counted if isinstance(message, CoverageQuery)} == set(EDGES[4:6])
    assert [message.noise for message in counted if isinstance(message, CoverageQuery)] == [
        noisy_count(2.0).numerator,
        0,
    ]


HOSTILE: dict[str, tuple[Any, list[Message]]] = {
    "open": (
        voting,
        [
            OrderReport(()),
            OrderReport((1.0,) * 5_000),  # five thousand votes for one site
            OrderReport((1.0, 2.0)),
            OrderReport((math.nan,)),
            OrderReport((math.inf,)),
            OrderReport((-math.inf,)),
            CellReport(3),
            Tally(1, (3,)),
            SumShare((1,)),
        ],
    ),
    "tallies": (
        lambda: pooled(TallyMethod),
        [
            Tally(1, (1,) * 7),
            Tally(1, (1,) * 9),
            Tally(2, (1,) * 8),
            Tally(1, ()),
            Tally(1, (501, *(1,) * 7)),
            Tally(1, (-1, *(1,) * 7)),
            Tally(1, (2**63 - 1,) * 8),
            SumShare((1,) * 8),
        ],
    ),
    "sums": (
        lambda: pooled(SumMethod),
        [
            SumShare((1,) * 7),
            SumShare(()),
            SumShare((1,) * 7 + (2**32,)),
            SumShare((1,) * 7 + (-1,)),
            Tally(1, (1,) * 8),
        ],
    ),
    "counts": (
        counting,
        [
            CoverageCount(101, (1.0,)),
            CoverageCount(-1, (2.0,)),
            CoverageCount(91),
            CoverageCount(91, (1.0, 1.0)),
            CoverageCount(91, (math.nan,)),
            CoverageCount(91, (math.inf,)),
            CoverageCount(91, (1.6,)),  # ninety of a hundred are at most that, and it is above the threshold
            CoverageCount(80, (1.4,)),
            CellReport(3),
        ],
    ),
    "counts at an edge": (
        counts,
        [
            CoverageCount(400 + 36),
            CoverageCount(-36),
            CoverageCount(2**63 - 1),
            CoverageCount(91, (1.0,)),
            CellReport(3),
        ],
    ),
    "noisy counts": (
        lambda: counting(private=True),
        [CoverageCount(100 + 71), CoverageCount(-71), CoverageCount(2**63 - 1), CoverageCount(91, (1.0,))],
    ),
}


@pytest.mark.parametrize(("make", "replies"), HOSTILE.values(), ids=HOSTILE)
def test_a_reply_that_does_not_fit_is_refused_and_the_state_is_as_it_was(make: Any, replies: list[Message]) -> None:
    method = make()
    state = method.init()
    before = codec.to_bytes(state)
    for reply in replies:
        with pytest.raises(BadInput, match=r"^the reply of site number 1 is not .*; ask it again\.$"):
            method.step(state, [reply, None])
    assert codec.to_bytes(state) == before


def test_a_private_site_sends_a_cell_of_the_grid_and_nothing_else() -> None:
    method = voting()
    for reply in (CellReport(-1), CellReport(9), CellReport(2**62), OrderReport((1.0,)), OrderReport((SECRET,))):
        with pytest.raises(BadInput, match="site number 2 is not a cell from 0 to 8") as caught:
            method.step(method.init(), [None, reply])
        assert "123456" not in str(caught.value)
    state = method.step(method.init(), [None, CellReport(8)])
    assert state.values[1] == (math.inf,)


def test_several_scores_stand_in_their_order() -> None:
    method = voting(3)
    message = method.messages[0]
    assert isinstance(message, OrderQuery)
    good = OrderReport((1.0, 1.0, 2.0))
    assert method.step(method.init(), [good, None]).values[0] == good.values
    for values in ((2.0, 1.0, 3.0), (1.0, math.nan, 3.0), (1.0, 2.0, math.inf), (1.0, 2.0)):
        with pytest.raises(BadInput, match="3 scores in the order of the ranks asked"):
            method.step(method.init(), [OrderReport(values), None])


def test_a_rank_beyond_the_scores_is_answered_with_infinity_alone() -> None:
    who = people((2, math.inf), (500, math.inf))
    made = plan(who.facts, check_settings(0.1, "marginal", 0.1, "paper", 1, False, "sparse-vector", False), 0)
    method = VotesMethod(made, who)
    assert method.messages[0] == OrderQuery((3,))
    assert method.step(method.init(), [OrderReport((math.inf,)), None]).values[0] == (math.inf,)
    with pytest.raises(BadInput, match="site number 1"):
        method.step(method.init(), [OrderReport((1.0,)), None])


@pytest.mark.parametrize("make", [voting, lambda: pooled(TallyMethod), lambda: pooled(SumMethod), counting, counts])
def test_one_reply_a_site_and_none_twice(make: Any) -> None:
    method: Method[Any, Any] = make()
    state = method.init()
    for replies in ([], [None], [None] * 3):
        with pytest.raises(BadInput, match="2 sites take part"):
            method.step(state, replies)
    assert method.step(state, [None, None]) == state
    good: Any = {
        VotesMethod: OrderReport((1.0,)),
        TallyMethod: Tally(1, (3,) * 8),
        SumMethod: SumShare((3,) * 8),
        CoverageMethod: CoverageCount(91, (1.4,)),
        CountsMethod: CoverageCount(380),
    }[type(method)]
    state = method.step(state, [good, None])
    for again in (good, SumShare((4,) * 8)):
        with pytest.raises(BadInput, match="site number 1 answered without being asked"):
            method.step(state, [again, None])
    queries = method.query(state)
    assert queries is not None
    assert queries.messages[0] is None
    with pytest.raises(BadInput, match="1 of 2 sites have not answered"):
        method.outcome(state)


def test_a_state_of_another_study_is_refused() -> None:
    who = people((300, math.inf), (400, math.inf), (500, math.inf))
    other = VotesMethod(plan(who.facts, settings_of(), 0), who)
    with pytest.raises(BadInput, match="a study of other sites"):
        voting().query(other.init())
    with pytest.raises(BadInput, match="not a stored Votes"):
        restore(voting(), codec.to_bytes(pooled(SumMethod).init()))


def test_shares_are_added_modulo_two_to_the_32_and_none_is_kept() -> None:
    method = pooled(SumMethod)
    assert isinstance(method, SumMethod)
    state = method.step(method.init(), [SumShare((2**32 - 3, 5, *(0,) * 6)), None])
    state = method.step(state, [None, SumShare((4, 2**31, *(0,) * 6))])
    assert state.counts == (1, 2**31 + 5, *(0,) * 6)
    assert state.known == (True, True)


def test_counts_point_at_the_edge_above_the_highest_sum_that_is_too_large() -> None:
    method = counts()
    lower, upper = sorted(range(2), key=lambda place: method.messages[place].threshold)  # type: ignore[union-attr]
    sizes = (400, 300)
    few, many = [sizes[place] - 5 for place in range(2)], [sizes[place] // 2 for place in range(2)]
    for at_lower, at_upper, value in ((few, few, EDGES[4]), (many, few, EDGES[5]), (few, many, math.inf)):
        replies: list[Message | None] = [None, None]
        replies[lower], replies[upper] = CoverageCount(at_lower[lower]), CoverageCount(at_upper[upper])
        found = method.outcome(method.step(method.init(), replies))
        assert found.value == value
        assert found.edges_asked[f"site {upper}"] == EDGES[5]
        assert not found.private  # one site has no budget


def test_a_drawn_rank_is_the_upper_with_its_probability() -> None:
    who = people(*[(40, math.inf)] * 10)
    made = plan(who.facts, settings_of(exact=True), 0)
    low, high = take_rank(made, 2**64 - 1), take_rank(made, 0)
    assert (low.rank, high.rank) == (made.choice.rank - 1, made.choice.rank)
    assert 0 < low.chance == high.chance < 1
    assert take_rank(made).chance == 1


def test_a_plan_holds_public_numbers_and_can_be_compared() -> None:
    who = people((300, 1.0), (400, 2.0), (300, 1.0))
    one, two = (plan(who.facts, settings_of("sparse-vector"), 9) for _ in range(2))
    assert one == two
    assert isinstance(one, ConformalPlan)
    assert (one.number, one.kind_of) == ((2, 1), (0, 1, 0))
    assert one.spent() is not None
    asked = one.queries(EDGES)
    assert asked[0] is asked[2]


def test_a_card_names_the_study_by_its_public_terms() -> None:
    who, settings = people((300, 1.0), (400, 2.0)), settings_of("sparse-vector")
    same = identity(card_of(who, settings, EDGES))
    assert same == identity(card_of(who, settings, EDGES))
    others = (card_of(people((301, 1.0), (400, 2.0)), settings, EDGES), card_of(who, settings, EDGES[:-1]))
    assert len({same, *map(identity, others), identity(card_of(who, settings_of("exponential"), EDGES))}) == 4
    assert card_of(who, settings, EDGES).terms["sites"] == ["site 0", "site 1"]
