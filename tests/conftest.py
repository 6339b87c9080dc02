"""What tests of several rooms share: a PostgreSQL cluster, started by the first test of a process that needs one."""

from collections.abc import Iterator

import pytest
from tests.postgres import Cluster, missing


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Start a cluster that lasts as long as the tests of this process."""
    if (why := missing()) is not None:
        pytest.skip(why)
    found = Cluster()
    yield found
    found.remove()
