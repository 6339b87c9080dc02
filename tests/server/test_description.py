"""The promise says what is protected, by how much, and what is not."""

import math

from sottovoce.server.description import promise


def test_the_worst_budget_is_named_with_its_odds() -> None:
    text = promise({"a": 0.5, "b": 2.0}, private=True, per_person=False)
    assert "factor 7.39" in text
    assert "epsilon 2" in text
    assert "each record" in text.lower()
    assert "Not protected" in text
    assert "simulation" not in text
    assert "infinite" not in text


def test_a_person_is_promised_as_a_person() -> None:
    text = promise({"a": 1.0}, private=True, per_person=True)
    assert text.startswith("Each person")
    assert "record answered" not in text


def test_a_simulation_protects_nobody() -> None:
    assert "protects nobody" in promise({"a": 1.0}, private=False, per_person=False)


def test_sites_without_a_budget_are_named() -> None:
    text = promise({"open": math.inf, "north": 1.0}, private=False, per_person=False)
    assert "Not so at open, where epsilon is infinite" in text
    assert "factor 2.72" in text


def test_no_budget_anywhere_is_no_privacy() -> None:
    text = promise({"a": math.inf, "b": math.inf}, private=False, per_person=False)
    assert text.startswith("No privacy")
    assert "at most a factor" not in text
