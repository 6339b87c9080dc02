"""What every test of this house begins with: a process that has asked nobody yet."""

from collections.abc import Iterator

import pytest

from sottovoce.client.answered import MEMORY


@pytest.fixture(autouse=True)
def nobody_has_answered() -> Iterator[None]:
    """Forget, before each test, which rows have answered."""
    MEMORY.clear()
    yield
    MEMORY.clear()
