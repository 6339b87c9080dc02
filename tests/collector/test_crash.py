"""Killed under load, a collector loses no acknowledged report and counts none twice; a large log is folded at once."""

from pathlib import Path

from benchmarks.collector_crash import crash


def test_killed_under_load_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    found = crash(tmp_path, kills=3, seed=41, people=200_000, longest=0.6)
    assert found["wrong"] == []
    assert found["requests that broke off"] > 0
    assert found["acknowledged"] == found["in the log"] > 1000
    assert min(found["rounds"]) > 3
