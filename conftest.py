"""What every test of this house begins with: a process that has asked nobody yet."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from sottovoce.client.answered import MEMORY

# Flower's own modules are needed to import what adapts them; it is an extra, and not part of the tests.
collect_ignore_glob = (
    []
    if find_spec("flwr")
    else [f"src/sottovoce/federation/flower/{name}.py" for name in ("client", "letter", "server")]
)


@pytest.fixture(autouse=True)
def nobody_has_answered() -> Iterator[None]:
    """Forget, before each test, which rows have answered."""
    MEMORY.clear()
    yield
    MEMORY.clear()
