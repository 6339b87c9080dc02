"""A model is used with the columns it was fitted to, in their order; the sentences are scikit-learn's."""

from typing import Any

import pytest

from sottovoce.client.reading.design_matrix import check_features
from sottovoce.client.reading.matrix import open_matrix
from sottovoce.core.errors import BadInput

NAMED = {"a": [1.0], "b": [2.0]}


def check(table: Any, names: tuple[str, ...] | None, p: int = 2) -> list[str]:
    heard: list[str] = []
    check_features(open_matrix(table), names, p, "Model", heard.append)
    return heard


def test_the_same_columns_pass_in_silence() -> None:
    assert check(NAMED, ("a", "b")) == []
    assert check([[1.0, 2.0]], None) == []


def test_names_on_one_side_only_are_warned_of() -> None:
    assert check([[1.0, 2.0]], ("a", "b")) == [
        "X does not have valid feature names, but Model was fitted with feature names"
    ]
    assert check(NAMED, None) == ["X has feature names, but Model was fitted without feature names"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("b", "a"), "Feature names must be in the same order as they were in fit.\n"),
        (("a", "c"), "Feature names unseen at fit time:\n- b\nFeature names seen at fit time, yet now missing:\n- c\n"),
        (("a",), "Feature names unseen at fit time:\n- b\n"),
        (("a", "b", "c"), "Feature names seen at fit time, yet now missing:\n- c\n"),
        (("a", *"ihgfedcb"), "Feature names seen at fit time, yet now missing:\n- c\n- d\n- e\n- f\n- g\n- ...\n"),
    ],
)
def test_other_names_are_listed(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        check(NAMED, names, len(names))
    assert str(refused.value) == f"The feature names should match those that were passed during fit.\n{words}"


def test_another_number_of_columns() -> None:
    with pytest.raises(BadInput, match="X has 2 features, but Model is expecting 3 features as input"):
        check([[1.0, 2.0]], None, 3)
