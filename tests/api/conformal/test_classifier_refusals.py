"""Bad input of a conformal classifier: one sentence that names the site, and no label."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

import sottovoce as sv
from sottovoce.api.conformal.classifier import FederatedConformalClassifier

X = np.linspace(-2, 2, 600).reshape(300, 2)[::-1] ** np.array([1, 2])
Y = np.resize(["flu", "cold", "none"], 300)
SITES = {"north": (X[100:200], Y[100:200]), "south": (X[200:], Y[200:])}


def fitted(**settings: Any) -> FederatedConformalClassifier:
    return FederatedConformalClassifier(**settings).fit(X[:100], Y[:100])


class Fixed:
    """A model that gives every row the same probabilities."""

    classes_ = ("cold", "flu", "none")

    def __init__(self, row: Any) -> None:
        self.row = row

    def predict_proba(self, x: Any) -> Any:
        return np.tile(np.array(self.row, dtype=np.float64), (len(x), 1))


def with_label(label: Any) -> Any:
    y = Y[200:300].astype(object)
    y[7] = label
    return {"north": SITES["north"], "south": (X[200:300], y)}


@pytest.mark.parametrize("label", ["plague", "FLU", "", 3, None, math.nan, ("flu",), ["flu"]])
def test_an_unknown_label_is_refused_without_being_told(label: Any) -> None:
    with pytest.raises(sv.BadInput) as refused:
        fitted().conformalize(with_label(label))
    assert str(refused.value) == (
        "y of site 'south' holds a label that the model does not know: fit the model to all labels."
    )
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    ("sites", "complaint"),
    [
        ({"south": (X[:5], Y[:4])}, "site 'south' has 5 rows in X and 4 in y"),
        ({"south": (X[:0], Y[:0])}, "site 'south' has no records"),
        ({"south": (X[:5], np.tile(Y[:5, None], 2))}, r"y of site 'south' has the shape \(5, 2\): give one label"),
        ({"south": (X[:5], None)}, r"y of site 'south' has the shape \(\): give one label"),
        ({"south": (X[:5, :1], Y[:5])}, "X of site 'south' does not fit the model: X has 1 features"),
        ({"south": (np.where(X > 1.5, np.nan, X), Y)}, r"X of site 'south' holds NaN in row \d+"),
        ({"a": (X, Y), "b": (X, Y[200:])}, "site 'b' has 300 rows in X and 100 in y"),
        ({"a": (X, Y), "b": (X[200:], Y[200:])}, "sites 'a' and 'b' share records"),
    ],
)
def test_refusals_name_the_site(sites: Any, complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint):
        fitted().conformalize(sites)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ((0.5, 0.5), r"probabilities of shape \(100, 2\) for the rows of site 'north', not \(100, 3\)"),
        ((0.5, math.nan, 0.5), "probabilities with NaN in row 1 for the rows of site 'north'"),
        ((0.5, 0.3, 0.3), "probabilities that do not add up to 1 for the rows of site 'north'"),
        ((1.5, -0.25, -0.25), "probabilities that do not add up to 1"),
    ],
)
def test_a_model_without_probabilities_is_refused(row: Any, complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint):
        FederatedConformalClassifier(Fixed(row), prefit=True).conformalize(SITES)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"conformity_score": "absolute"},
            "conformity_score 'absolute' is unknown; choose one of 'lac', 'aps-inclusive', 'aps'",
        ),
        ({"conformity_score": ["lac"]}, r"conformity_score .* is unknown"),
        ({"estimator": RidgeClassifier()}, "the estimator is a RidgeClassifier without predict_proba"),
        ({"estimator": (GaussianNB(), GaussianNB())}, "the estimator is a tuple without predict_proba"),
    ],
)
def test_bad_settings(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(sv.BadInput, match=complaint):
        fitted(**settings)


def test_several_labels_a_row_are_refused() -> None:
    two = np.column_stack([Y[:100], Y[:100]])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        FederatedConformalClassifier().fit(X[:100], two)
    several = MultiOutputClassifier(GaussianNB()).fit(X[:100], two)
    with pytest.raises(sv.BadInput, match="the model predicts several labels a row"):
        FederatedConformalClassifier(several, prefit=True).conformalize(SITES)
