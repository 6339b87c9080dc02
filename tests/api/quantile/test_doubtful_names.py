"""Names that differ only in case or blanks are said before any record answers, by every method."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.client.conformal.site import CalibrationSite
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.quantile.site import Site

DELAYS = sv.sim.dice(1).generator().gamma(2.0, 10.0, size=(2, 30_000))
SITES = {"North": DELAYS[0], "north ": DELAYS[1]}
DOUBT = "sites 'North' and 'north ' may be one site"
CALLS: dict[str, Callable[[], Any]] = {
    "one level": lambda: sv.federated_quantile(SITES, 0.5, 2.0),
    "levels": lambda: sv.federated_quantiles(SITES, [0.4, 0.6], 2.0),
    "integration": lambda: sv.integrated_quantile("North", SITES, 0.5, 2.0),
    "conformal": lambda: sv.conformal_threshold(SITES, 0.1),
}


@pytest.fixture
def no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a record answered")

    for site in (Site, OpenSite, CalibrationSite):
        for door in ("answer", "tally", "hand_over"):
            if hasattr(site, door):
                monkeypatch.setattr(site, door, spend)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_doubtful_names_are_said_once_and_before_any_answer(call: Callable[[], Any], no_answers: None) -> None:
    with (
        pytest.warns(UserWarning, match="may be one site") as said,
        pytest.raises(AssertionError, match="a record answered"),
    ):
        call()
    assert [str(warning.message).startswith(DOUBT) for warning in said] == [True]


def test_a_target_that_may_have_been_meant() -> None:
    sites = {"north": np.arange(9.0), "south": np.arange(9.0) + 1}
    with pytest.raises(sv.BadInput, match=r"the target 'North ' is not one of the sites .*; did you mean 'north'\?"):
        sv.integrated_quantile("North ", sites, 0.5, 1.0)
