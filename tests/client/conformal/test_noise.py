"""Noise has its law to the last bit of the numerator, whatever its scale; a uniform integer is uniform."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import chdtri

from sottovoce.client.conformal import draw
from sottovoce.client.conformal.draw import geometric, uniform_below
from sottovoce.protocol.selection.geometric import WORD, numerators
from sottovoce.sim.randomness import dice

FALSE_ALARM = 1e-6
Words = npt.NDArray[np.uint64]


class Given:
    """Dice that throw given words, in turn, and then the largest."""

    private = False

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, n: int) -> Words:
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken + [WORD - 1] * (n - len(taken)), dtype=np.uint64)

    def split(self, n: int) -> "list[Given]":
        return [self] * n


def test_noise_counts_the_words_below_the_numerator(monkeypatch: pytest.MonkeyPatch) -> None:
    words = (6, 7, 9, 0, 3, 6, 7, WORD - 1, 5, 8)
    for piece in (1, 2, 5, 1 << 16):
        monkeypatch.setattr(draw, "PIECE", piece)
        assert geometric(7, 5, Given(*words)).tolist() == [1, 0, 3, 0, 1]


@pytest.mark.parametrize("share", [1e-3, 0.4, 0.9, 0.999])
def test_noise_has_its_law(share: float) -> None:
    n, p = 20_000, round(share * WORD)
    found = geometric(p, n, dice(11))
    assert found.min() == 0
    # cells of about equal probability, by the survival function share^k
    cuts = np.unique(np.floor(np.log(np.linspace(1, 0, 20, endpoint=False)[1:]) / np.log(share)).astype(int))
    survive = share ** (np.concatenate([[0], cuts[cuts > 0]]))
    expected = -np.diff(np.concatenate([survive, [0.0]]))
    counts = np.histogram(found, bins=np.concatenate([[0], cuts[cuts > 0], [1 << 40]]))[0]
    statistic = ((counts - n * expected) ** 2 / (n * expected)).sum()
    assert statistic < chdtri(max(len(counts) - 1, 1), FALSE_ALARM)


def test_a_small_budget_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    source, asked = dice(5), []
    words = source.words

    def counted(n: int) -> Words:
        asked.append(n)
        return words(n)

    monkeypatch.setattr(source, "words", counted)
    found = geometric(numerators(1e-3, 0.5)[0], 100, source)
    assert len(asked) < 20
    assert 1000 < found.mean() < 4000


def test_no_noise_is_asked_for_without_a_law() -> None:
    assert geometric(1 << 63, 0, dice(1)).tolist() == []
    for numerator in (0, WORD):
        with pytest.raises(ValueError, match="between 0 and 2"):
            geometric(numerator, 1, dice(1))


def test_a_uniform_integer_is_uniform() -> None:
    n, source = 6000, dice(12)
    for bound in (6, 3 << 70):
        throws = [uniform_below(bound, source) for _ in range(n)]
        assert min(throws) >= 0
        assert max(throws) < bound
        counts = np.bincount([6 * throw // bound for throw in throws], minlength=6)
        assert ((counts - n / 6) ** 2 / (n / 6)).sum() < chdtri(5, FALSE_ALARM)


def test_the_last_throws_are_thrown_again() -> None:
    # 2^128 leaves 4 when divided by 6: the four largest throws would favour 0, 1, 2 and 3
    top = WORD - 1
    assert uniform_below(6, Given(top, top, top - 3, top, 5, 0)) == 5
    assert uniform_below(6, Given(top - 4, top, 1, 0)) == 5
