"""Names that somebody else wrote can neither steer a terminal, nor forge a line, nor fill the screen."""

import pytest

from sottovoce.core.checks import check_names, close_names, per_site
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.roster import Roster, doubtful_names
from sottovoce.core.shown import escaped, first_few, hides, quoted, shown
from sottovoce.core.unit import NUMBER
from sottovoce.server.description import Description

STEERING = [
    "\x1b[2J",
    "\x07",
    "\r",
    "\n",
    "\x00",
    "\x9b1m",
    "\x7f",
    "\u202e",
    "\u2066",
    "\u2028",
    "\ufeff",
    "\u200b",
    "\ud800",
]


@pytest.mark.parametrize("sign", STEERING, ids=ascii)
def test_what_steers_is_never_shown_raw(sign: str) -> None:
    name = f"north{sign}Private: yes"
    assert hides(name)
    for text in (shown(name), quoted(name), first_few([name]), escaped(name, keep=""), str(BadInput(shown(name)))):
        assert not hides(text)
        assert "north" in text
    assert not hides(str(BadInput(name)).replace("\n", ""))
    assert not hides(str(SearchFailed(name)).replace("\n", ""))
    assert not hides(Description(name, [(name, name)], [name], [(name, name)]).text().replace("\n", ""))


@pytest.mark.parametrize("sign", STEERING, ids=ascii)
def test_sites_whose_names_steer_are_refused(sign: str) -> None:
    with pytest.raises(BadInput, match="site 2 has a control or invisible character in its name: rename it"):
        check_names(["south", f"a{sign}b"])
    with pytest.raises(BadInput, match="a site has a control or invisible character"):
        Roster((f"a{sign}b",), (3,), NUMBER)


@pytest.mark.parametrize("name", ["Zürich", "Sankt Gallen", "a\u00a0b", "नमस्\u200dते", "🏥", "O'Hare", "北", "m²"])
def test_names_of_all_scripts_stay_as_they_are(name: str) -> None:
    assert check_names([name]) == [name]
    assert shown(name) == escaped(name) == name


def test_long_names_are_cut_and_no_names_of_sites() -> None:
    assert len(shown("x" * 10_000)) <= 61
    assert len(quoted("x" * 10_000)) <= 61
    assert len(first_few(["x" * 10_000] * 100)) < 500
    with pytest.raises(BadInput, match="site 1 has a name of 10,000 characters: give it one of at most 200"):
        check_names(["x" * 10_000])


@pytest.mark.parametrize(
    ("one", "two"), [("North", "north "), ("a b", "a  b"), ("Z\u00fcrich", "Zu\u0308rich"), ("A_1", "a 1"), ("Ａ", "a")]
)
def test_names_that_differ_by_little_are_doubtful(one: str, two: str) -> None:
    (said,) = doubtful_names([one, "elsewhere", two])
    assert said.startswith(f"sites {one!r} and {two!r} may be one site: their names differ only in case, blanks or")
    assert Roster((one, two), (3, 3), NUMBER).doubts == doubtful_names([one, two])


def test_names_that_differ_are_not_doubtful_and_many_pairs_are_counted() -> None:
    assert doubtful_names(["1", "-1", "11", "1.1", "ward 1", "ward 12", "é", "e", "site 1-1", "site 11"]) == ()
    assert "(and 2 more such names)" in doubtful_names(["a", "A", "b", "B", "c", "C"])[0]


def test_a_name_that_may_have_been_meant() -> None:
    assert close_names("NORTH ", ["south", "north"]) == "did you mean 'north'?"
    assert close_names("x" * 10_000, ["north"]) == ""
    with pytest.raises(
        BadInput, match=r"epsilon names 'nroth' \(did you mean 'north'\?\), which is not a site; give one"
    ):
        per_site({"nroth": 1.0, "south": 1.0}, ("north", "east"), "epsilon")
