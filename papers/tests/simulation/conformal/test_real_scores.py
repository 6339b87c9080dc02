"""Scores of models on real data, where the folder is there; on made-up data everywhere."""

import numpy as np
import pytest

from sottovoce.core.errors import BadInput
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.data_sets import SHAPES, DataSet, absent, data_folder, read_set
from sottovoce_papers.simulation.conformal.real_scores import quantiles, residual_distribution, ridge

FOLDER = data_folder()
ROWS = {"bio": (45_730, 9), "bike": (10_886, 12), "community": (1_994, 99), "star": (2_161, 39), "concrete": (1_030, 8)}


def made_up() -> DataSet:
    source = dice(1).generator()
    features = source.normal(size=(600, 2))
    return DataSet("made up", features, features[:, 0] + 0.5 * source.normal(size=600))


def test_scores_are_of_records_that_the_model_has_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce_papers.simulation.conformal.real_scores.ROUNDS", 30)
    train, rest = np.arange(300), np.arange(300, 600)
    scored = ridge(made_up(), train, rest)
    assert scored.scores.shape == (300,)
    # two thirds of half a standard deviation, and no interval without a threshold
    assert 0.28 < float(np.median(scored.scores)) < 0.40
    assert not scored.lengths.any()
    both = quantiles(made_up(), train, rest)
    assert (both.scores < 0).mean() > 0.5
    assert both.lengths.mean() > 0.8


def test_a_distribution_of_residuals_lives_on_half_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce_papers.simulation.conformal.real_scores.ROUNDS", 10)
    distribution = residual_distribution(made_up())
    assert distribution.cdf(distribution.quantile(1.0)) == 1.0
    assert len(np.unique(distribution.quantile(np.linspace(1e-6, 1, 3000)))) == 300


@pytest.mark.skipif(FOLDER is None, reason=absent())
@pytest.mark.parametrize("name", SHAPES)
def test_the_sets_have_their_sizes(name: str) -> None:
    assert FOLDER is not None
    held = read_set(FOLDER, name)
    assert held.features.shape == ROWS[name]
    assert np.isfinite(held.features).all()
    assert np.isfinite(held.responses).all()
    assert held.features.mean(axis=0) == pytest.approx(np.zeros(ROWS[name][1]), abs=1e-9)


def test_absent_data_is_said_plainly(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("SOTTOVOCE_DATA", str(tmp_path))
    assert data_folder() is None
    monkeypatch.delenv("SOTTOVOCE_DATA")
    assert data_folder() is None
    assert "bio/bio.parquet" in absent()


def test_an_unknown_set_is_refused() -> None:
    from pathlib import Path

    with pytest.raises(BadInput, match="no data set 'iris'"):
        read_set(Path(), "iris")
