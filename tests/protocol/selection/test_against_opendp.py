"""The noise against OpenDP's discrete Laplace mechanism: the same distribution and the same price."""

from typing import Any

import numpy as np
import pytest
from scipy.special import chdtri

from sottovoce.protocol.selection.geometric import cost
from sottovoce.protocol.selection.sparse_vector import sparse_vector

opendp: Any = pytest.importorskip("opendp.prelude")
FALSE_ALARM = 1e-6  # OpenDP draws from the system: this is how often the test fails without a fault
DRAWS = 5000


@pytest.mark.parametrize("epsilon", [0.4, 2.0, 5.0])
def test_a_difference_of_one_sided_noises_is_its_discrete_laplace(epsilon: float) -> None:
    opendp.enable_features("contrib")
    domain = opendp.vector_domain(opendp.atom_domain(T=int))
    peer = opendp.m.make_laplace(domain, opendp.l1_distance(T=int), scale=2 / epsilon)
    mechanism = sparse_vector(100, 90, 11, epsilon, split=0.5)
    # one unit of either noise costs what one unit costs there, and the scan pays for both
    assert cost(mechanism.query) == pytest.approx(peer.map(1), rel=1e-12)
    assert mechanism.epsilon == pytest.approx(2 * peer.map(1), rel=1e-12)
    draws = np.array(peer([0] * DRAWS))
    reach = np.arange(-400, 400)
    cumulated = mechanism.failure(reach)
    edges = reach[np.unique(np.searchsorted(cumulated, np.linspace(0.002, 0.998, 40)))]
    distribution = np.diff(np.concatenate([[0.0], mechanism.failure(edges), [1.0]]))
    found = np.bincount(np.searchsorted(edges, draws), minlength=len(distribution))
    assert len(distribution) >= 4
    assert ((found - DRAWS * distribution) ** 2 / (DRAWS * distribution)).sum() < chdtri(
        len(distribution) - 1, FALSE_ALARM
    )
    shifted = np.bincount(np.searchsorted(edges, draws + 1), minlength=len(distribution))
    assert ((shifted - DRAWS * distribution) ** 2 / (DRAWS * distribution)).sum() > chdtri(
        len(distribution) - 1, FALSE_ALARM
    )
