"""What a question needs of the records: two different ones for a quantile, one score for a threshold."""

import numpy as np
import pytest

from sottovoce.client.reading.table import QUANTILE, SCORES, read_sites
from sottovoce.core.errors import BadInput


def test_one_score_a_site_is_enough() -> None:
    table = read_sites({"a": [1.0], "b": [2.0, 3.0]}, needs=SCORES)
    assert [records.size for records in table.records] == [1, 2]
    with pytest.raises(BadInput, match="site 'a' has only one record: give it at least two"):
        read_sites({"a": [1.0], "b": [2.0, 3.0]}, needs=QUANTILE)


def test_scores_may_all_be_equal() -> None:
    sites = {"a": np.zeros(5), "b": np.zeros(1)}
    assert read_sites(sites, needs=SCORES).names == ("a", "b")
    with pytest.raises(BadInput, match="one and the same value"):
        read_sites({"a": np.zeros(5), "b": np.zeros(2)})


@pytest.mark.parametrize("needs", [SCORES, QUANTILE])
def test_none_is_never_enough(needs: object) -> None:
    least = "one" if needs is SCORES else "two"
    with pytest.raises(BadInput, match=f"site 'b' has no records: give it at least {least}, or leave it out"):
        read_sites({"a": [1.0, 2.0], "b": []}, needs=needs)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=f"no records once its 2 missing values are left out: give it at least {least}"):
        read_sites({"a": [1.0, 2.0], "b": [None, np.nan]}, missing="drop", needs=needs)  # type: ignore[arg-type]


def test_shared_memory_is_refused_all_the_same() -> None:
    values = np.array([1.0])
    with pytest.raises(BadInput, match="share records, which would answer twice"):
        read_sites({"a": values, "b": values}, needs=SCORES)
