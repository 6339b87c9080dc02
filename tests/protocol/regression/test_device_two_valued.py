"""A device moves what lies between the two declared values of a column to the nearer one."""

import msgspec

from sottovoce.protocol.device_regression import RegressionTerms

TERMS = RegressionTerms("wait", ("age", "member"), (18.0, 0.0), (90.0, 1.0), (), (1,))


def test_only_declared_columns_are_moved() -> None:
    assert TERMS.scaled((54.0, 0.3)) == [0.0, -1.0]
    assert TERMS.scaled((54.0, 0.5)) == [0.0, 1.0]
    assert TERMS.scaled((36.0, 7.0)) == [-0.5, 1.0]


def test_a_card_that_declares_nothing_is_as_it_was() -> None:
    plain = RegressionTerms("wait", ("age",), (18.0,), (90.0,), ())
    assert "two_valued" not in msgspec.to_builtins(plain)
    assert msgspec.to_builtins(TERMS)["two_valued"] == (1,)
