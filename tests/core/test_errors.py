"""An error is one sentence, and may name the parameters that it advises to change."""

import copy

import pytest

from sottovoce.core.errors import BadInput, Infeasible, SearchFailed


@pytest.mark.parametrize("kind", [BadInput, Infeasible, SearchFailed])
def test_the_names_of_parameters_travel_with_an_error(kind: type[BadInput] | type[SearchFailed]) -> None:
    error = kind("give density and size", parameter=("density", "size"))
    for other in (error, copy.copy(error)):
        assert (type(other), str(other), other.parameter) == (kind, "give density and size", ("density", "size"))


def test_one_name_or_none() -> None:
    assert BadInput("leave exact out", parameter="exact").parameter == ("exact",)
    assert BadInput("there are no sites").parameter == ()
    assert isinstance(BadInput(""), ValueError)
    assert isinstance(SearchFailed(""), RuntimeError)
