"""The study card as a person writes it: a TOML file with a name, the sites, what is asked, and how rounds go.

    name = "waiting times, spring"
    sites = ["north", "south", "west"]

    [quantile]                  # or [quantiles], [difference], [integration], [conformal], [coverage], [regression]
    tau = 0.5
    epsilon = 1.0               # or a table: { north = 0.5, south = 1.0, west = 1.0 }

    [rounds]
    deadline = 600              # seconds until a site that has not answered counts as absent

What stands under the method are the arguments of the public function of that name, without the records.
"""

import math
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.core.checks import nearest
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted, shown

_PUBLIC = {"epsilon", "level", "method", "bounds", "scale", "resolution"}
METHODS: dict[str, frozenset[str]] = {
    "quantile": frozenset(
        {*_PUBLIC, "tau", "shares", "kind", "until", "schedule", "participation", "graph", "norm"},
    ),
    "difference": frozenset({*_PUBLIC, "first", "second", "tau", "shares", "kind", "until"}),
    "quantiles": frozenset({*_PUBLIC, "taus", "shares", "kind", "split"}),
    "integration": frozenset(
        {*_PUBLIC, "target", "tau", "bound", "variance", "quantile", "caution", "sites", "chains"},
    ),
    "conformal": frozenset(
        {"alpha", "epsilon", "maximum", "minimum", "bins", "grid", "mechanism"}
        | {"guarantee", "delta", "rule", "statistics", "exact"},
    ),
    "coverage": frozenset({"threshold", "alpha", "epsilon", "level", "shares"}),
    "regression": frozenset(
        {"response", "features", "tau", "epsilon", "level", "channel", "bounds", "levels"}
        | {"density", "size", "start", "second_moments", "limit", "two_valued", "moments"},
    ),
}
ROUNDS = {"deadline": 600.0, "least": None, "wait": 86_400.0}
MOST_SITES = 2_000
LARGEST = 1 << 22  # bytes of a TOML file
NAME = re.compile(r"[\w][\w .,:()+-]{0,99}")


class RoundRules(NamedTuple):
    """How rounds go: seconds until a site counts as absent, how many sites close a round, seconds to wait for all."""

    deadline: float = 600.0
    least: int | None = None
    wait: float = 86_400.0


class StudyTerms(NamedTuple):
    """What a study asks of whom."""

    name: str
    sites: tuple[str, ...]
    method: str
    asked: dict[str, Any]
    rounds: RoundRules


def read_study(path: str | Path) -> StudyTerms:
    """Read a study card from a TOML file, or refuse."""
    return study_of(read_toml(path), str(path))


def study_of(given: dict[str, Any], where: str = "the study") -> StudyTerms:
    """Check what a study card says.

    >>> study_of({"name": "waits", "sites": ["a", "b"], "quantile": {"tau": 0.5, "epsilon": 1.0}}).method
    'quantile'
    """
    check_names(given, {"name", "sites", "rounds", *METHODS}, where)
    chosen = [method for method in METHODS if method in given]
    if len(chosen) != 1:
        raise BadInput(f"{where} must have one of the tables {', '.join(f'[{each}]' for each in METHODS)}; give one.")
    [method] = chosen
    name = text_of(given, "name", where)
    if not NAME.fullmatch(name):
        raise BadInput(f"the name of {where} must be up to 100 letters, digits, blanks and .,:()+-; rename it.")
    sites = given.get("sites")
    if not (isinstance(sites, list) and sites and all(map(is_name, sites))):
        raise BadInput(f"sites of {where} must be a list of names, of letters, digits, blanks and .,:()+-; give one.")
    if len(set(sites)) < len(sites) or len(sites) > MOST_SITES:
        raise BadInput(f"sites of {where} must be up to {MOST_SITES:,} different names; give each once.")
    asked = given[method]
    if not isinstance(asked, dict):
        raise BadInput(f"[{method}] of {where} must be a table; write its arguments below it.")
    check_names(asked, METHODS[method], f"[{method}] of {where}")
    return StudyTerms(name, tuple(sites), method, asked, _rounds(given.get("rounds", {}), len(sites), where))


def is_name(value: Any) -> bool:
    """Tell whether a value can be the name of a site; it is a folder's, too."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _rounds(given: Any, sites: int, where: str) -> RoundRules:
    """Check how rounds go."""
    if not isinstance(given, dict):
        raise BadInput(f"[rounds] of {where} must be a table; give deadline, least or wait.")
    check_names(given, set(ROUNDS), f"[rounds] of {where}")
    times = [
        seconds_of(given.get(name, ROUNDS[name]), f"{name} of [rounds] in {where}") for name in ("deadline", "wait")
    ]
    least = given.get("least")
    if least is not None and not (type(least) is int and 1 <= least <= sites):
        raise BadInput(f"least of [rounds] in {where} must be a whole number from 1 to the {sites} sites; correct it.")
    return RoundRules(times[0], least, times[1])


def seconds_of(value: Any, where: str) -> float:
    """Return a positive number of seconds."""
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise BadInput(f"{where} must be a positive number of seconds; correct it.")
    return float(value)


def text_of(given: dict[str, Any], name: str, where: str) -> str:
    """Return a text that must be there."""
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f'{where} has no {name}, or one that is no text; give {name} = "...".')
    return value


def check_names(given: dict[str, Any], known: set[str] | frozenset[str], where: str) -> None:
    """Refuse names that mean nothing here: whoever wrote one meant something."""
    for name in given:
        if name not in known:
            raise BadInput(f"{where} has {quoted(name)}, which is not known{nearest(name, sorted(known))}; remove it.")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file, or refuse without a word of what it holds."""
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:  # a pipe would be waited for
            raise BadInput(f"{shown(path)} is no file, or too large for a TOML file; give a TOML file.")
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line \d+", str(error))
        raise BadInput(f"{shown(path)} is not TOML{f' in {place[0]}' if place else ''}; correct it.") from None
    except RecursionError:
        raise BadInput(f"{shown(path)} is nested too deeply; correct it.") from None
    except BadInput:
        raise
    except (OSError, UnicodeDecodeError, ValueError):
        raise BadInput(f"{shown(path)} cannot be read; give a TOML file.") from None


class Certificates(NamedTuple):
    """The files of one party: the authority's certificate, its own, and its key."""

    authority: Path
    certificate: Path
    key: Path

    def check(self) -> "Certificates":
        """Refuse files that are not there."""
        for path in self:
            if not path.is_file():
                raise BadInput(f"there is no file {path}; make a test set with sottovoce certificates, or ask for one.")
        return self
