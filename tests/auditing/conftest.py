"""What the tests of audits share: seeded words in place of the system's, so that their figures stay."""

import pytest

from sottovoce.auditing import devices
from sottovoce.core.random_source import SystemEntropy
from sottovoce.sim import dice


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dice(80)
    monkeypatch.setattr(SystemEntropy, "words", lambda _, n: source.words(n))
    monkeypatch.setattr(devices, "KEPT", 10)  # each writes to disk, twice, and waits for it
