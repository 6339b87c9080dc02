"""The channel of a regression: searched for once, or taken as somebody built it."""

from typing import Any

import numpy as np
import pytest

from sottovoce.api.regression.regressor import PrivateQuantileRegressor
from sottovoce.core.bounds import read_bounds
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.box import cq
from sottovoce.server.regression.design import Design, design_of
from sottovoce.server.regression.settings import read_settings


def design(p: int = 2, **options: Any) -> Design:
    return design_of(
        read_settings(PrivateQuantileRegressor(**options).get_params(deep=False)),
        read_bounds(None, [f"x{j}" for j in range(p)]),
    )


def test_a_search_is_not_repeated_for_the_same_setting() -> None:
    moments = np.array([0.2, 0.4])
    first = design(epsilon=6.0, second_moments=moments)
    assert design(epsilon=6.0, second_moments=moments.tolist()) is first
    assert design(epsilon=6.0, second_moments=moments[::-1]) is not first
    assert design(epsilon=6.5, second_moments=moments) is not first
    assert first.known.second.tolist() == [0.2, 0.4]


def test_names_and_several_levels() -> None:
    assert design(channel="cq:2,1").channel.letters == 2
    assert design(channel="cq:2,1", tau=[0.7, 0.2]).taus == (0.2, 0.7)
    assert design(channel="open", epsilon=np.inf, tau=[0.7, 0.2]).channel.taus == (0.2, 0.7)


def test_a_built_channel_is_used_as_it_is() -> None:
    channel = cq(0.5, 2, 1.0, 2, 1)
    found = design(channel=channel, epsilon=1.0)
    assert found.channel is channel
    assert found.epsilon == channel.epsilon <= 1.0
    assert design(channel=channel, epsilon=3.0).epsilon == channel.epsilon
    with pytest.raises(BadInput, match="above the budget"):
        design(channel=channel, epsilon=0.9)
    with pytest.raises(BadInput, match="for 2 covariates and X has 3"):
        design(p=3, channel=channel)
    with pytest.raises(BadInput, match="give both the same levels"):
        design(channel=channel, tau=[0.2, 0.5])
