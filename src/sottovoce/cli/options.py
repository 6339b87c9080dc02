"""The options of the commands: how they are declared, and from their text to what the functions take.

What cannot be read is refused before a file is opened. One value for all sites, or one for each, is written `1`,
`north=0.5,south=2`, or `@budgets.csv`.
"""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sottovoce.cli.named_file import csv_rows, edge_words, site_rows
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted

SiteValues = dict[str, float]


def option(metavar: str, text: str) -> Any:
    """Declare an option that takes a word; `metavar` stands for the word in the help."""
    return typer.Option(metavar=metavar, help=text)


def flag(name: str, text: str) -> Any:
    """Declare an option that takes nothing."""
    return typer.Option(name, help=text)


FILES = "Parquet, CSV or Arrow: one file a site, or any with --site; globs too."
VALUE = "Column of the records: numbers, durations, dates."
BUDGET = "1; or a site: north=0.5,south=inf; or @sites.csv (.json, .toml)."

Files = Annotated[list[str], typer.Argument(metavar="FILES", help=FILES)]
Value = Annotated[str, option("COLUMN", VALUE)]
Site = Annotated[str | None, option("COLUMN", "Column that says where a record is held.")]
Person = Annotated[str | None, option("COLUMN", "Make the person the unit of privacy: one record each is drawn.")]
DropMissing = Annotated[bool, flag("--drop-missing", "Leave missing values out and count them.")]
Delimiter = Annotated[
    str | None, option("MARK", "What parts columns in CSV files: comma, semicolon, tab, pipe; found out by default.")
]
Decimal = Annotated[str | None, option("MARK", "What parts decimals in CSV files: point, comma; found out by default.")]
Level = Annotated[float, option("LEVEL", "Confidence level.")]
Weights = Annotated[str | None, option("COLUMN", "Column of public weights: how much each record counts.")]
Censored = Annotated[
    list[str] | None, option("LIMITS", 'Limits beyond which values are symbols: "<5", ">200" or "<5,>200".')
]
Flag = Annotated[str | None, option("COLUMN", "Column that marks values beyond limits: <, > or true.")]
Scale = Annotated[str | None, option("WIDTH", "Rough public spread of the records; shortens the search.")]
Resolution = Annotated[
    str | None, option("STEP", "Public step the records are rounded to; 1 for whole numbers by type; 0 for none.")
]
Explain = Annotated[
    bool, flag("--explain", "Check all, print what would be asked and how wide the answer will be; ask nobody.")
]
Json = Annotated[bool, flag("--json", "Print one JSON object instead of the table.")]
Report = Annotated[str | None, option("PATH", "Write a page for an ethics board, picture inside, to a .html file.")]
Save = Annotated[str | None, option("PATH", "Keep the result in a file, for sottovoce audit and sv.load.")]
Limit = Annotated[str | None, option("EPSILON", "Refuse what would cost a record more than this in all.")]
NoProgress = Annotated[bool, flag("--no-progress", "Show no progress bar.")]


def joined(texts: Sequence[str] | None, option: str) -> str | None:
    """Join the words of an option that takes a list, where it is given more than once.

    >>> joined(["0.25,0.5", "0.9"], "--tau"), joined(None, "--tau")
    ('0.25,0.5,0.9', None)
    """
    if not texts:
        return None
    if len(texts) > 1 and any(text.startswith("@") for text in texts):
        raise BadInput(f"{option} is given twice, once as a file; write all of it in one of them.")
    return ",".join(texts)


def joined_pairs(texts: Sequence[str] | None, option: str) -> str | None:
    """Join site=value pairs of an option that is given more than once; one value for all can be given only once."""
    if texts and len(texts) > 1 and not all("=" in text for text in texts):
        raise BadInput(f"{option} is given twice; keep one value for all, or write one a site: north=0.5,south=2.")
    return joined(texts, option)


def refuse_given(sentence: str, **given: bool) -> None:
    """Refuse an option that says nothing here; the sentence names it as {option}."""
    for name, present in given.items():
        if present:
            raise BadInput(sentence.format(option=f"--{name.replace('_', '-')}"))


def as_number(value: Any, where: str, advice: str = "correct it") -> float:
    """Turn text, or a number of a file, into a number."""
    try:
        if isinstance(value, bool | None):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{where} is {value!r}, which is not a number; {advice}.") from None
    if math.isinf(number) and "inf" not in str(value).lower():  # nobody gives up all privacy by a digit too many
        raise BadInput(f"{where} is {value!r}, which is beyond any number; {advice}.")
    return number


def per_site(text: str, name: str) -> float | SiteValues:
    """Read the value of an option such as --epsilon; a file has a column (CSV) or table (JSON, TOML) of that name.

    >>> per_site("1", "epsilon"), per_site("north=0.5,south=inf", "epsilon")
    (1.0, {'north': 0.5, 'south': inf})
    """
    if text.startswith("@"):
        return _site_values(Path(text[1:]).expanduser(), name)
    if "=" not in text:
        return as_number(text, f"--{name}", "give a number, one a site (north=0.5,south=2), or a file (@sites.csv)")
    pairs = [part.strip().rpartition("=") for part in text.split(",")]
    for site, _, value in pairs:
        if not site:
            raise BadInput(f"--{name} has a part {value!r} that is not site=number; write it as in north=0.5,south=2.")
    return _collected(((site.strip(), value) for site, _, value in pairs), f"--{name}")


def levels(text: str) -> float | list[float] | SiteValues:
    """Read --tau: one level, several, or one for each site.

    >>> levels("0.9"), levels("0.25,0.5"), levels("north=0.5,south=0.6")
    (0.9, [0.25, 0.5], {'north': 0.5, 'south': 0.6})
    """
    if text.startswith("@") or "=" in text or "," not in text:
        return per_site(text, "tau")
    return [as_number(part.strip(), "a level of --tau", "write levels as in 0.25,0.5,0.75") for part in text.split(",")]


def shares(text: str, name: str = "shares") -> str | SiteValues:
    """Read --shares, or --weights: a word, or one share for each site."""
    if not (text.startswith("@") or "=" in text):
        return text
    found = per_site(text, name)
    assert not isinstance(found, float)
    return found


def schedule(text: str) -> str | list[int]:
    """Read --schedule: a rule, or the lengths of the rounds.

    >>> schedule("every:5"), schedule("1, 1,2,4")
    ('every:5', [1, 1, 2, 4])
    """
    return [int(part) for part in text.split(",")] if re.fullmatch(r"\s*\d{1,18}\s*(,\s*\d{1,18}\s*)*", text) else text


def number_or_text(text: str | None) -> float | str | None:
    """Read a width, which is a number or, of times, a text such as 5min."""
    return None if text is None else _width(text)


def _width(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def groups(text: str) -> str | dict[str, str]:
    """Read --by: the word site, a group for each site, or a file with columns site and by.

    >>> groups("site"), groups("north=coast, south=coast, ridge=hills")
    ('site', {'north': 'coast', 'south': 'coast', 'ridge': 'hills'})
    """
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        pairs = csv_rows(path, "by")
    elif "=" in text:
        pairs = [(name.strip(), group.strip()) for name, _, group in (part.rpartition("=") for part in text.split(","))]
    elif text == "site":
        return text
    else:
        raise BadInput(
            f"--by is {quoted(text)}; write site for a threshold each, north=coast,south=hills, or @FILE.csv (columns "
            "site, by); for each group of a column, name it by --group."
        )
    found: dict[str, str] = {}
    for name, group in pairs:
        if not name or not group:
            raise BadInput("--by has a part that is not site=group; write it as in north=coast,south=hills.")
        if name in found:
            raise BadInput(f"--by names site {name!r} twice; keep one.")
        found[name] = group
    return found


def bound(text: str | None) -> float | str | dict[str, float | str] | None:
    """Read --bound: one width for all sources, or one for each source; of times a width may be a text such as 5min.

    >>> bound("500"), bound("north=5min, south=900")
    (500.0, {'north': '5min', 'south': 900.0})
    """
    if text is None or ("=" not in text and not text.startswith("@")):
        return number_or_text(text)
    if text.startswith("@"):
        read = per_site(text, "bound")
        assert not isinstance(read, float)
        return dict(read.items())
    found: dict[str, float | str] = {}
    for part in text.split(","):
        name, _, width = (piece.strip() for piece in part.rpartition("="))
        if not name or not width:
            raise BadInput(f"--bound has a part {part.strip()!r} that is not source=bound; write it as in north=500.")
        if name in found:
            raise BadInput(f"--bound names source {name!r} twice; keep one.")
        found[name] = _width(width)
    return found


def pair(text: str | None) -> tuple[str, str] | None:
    """Read --bounds: LOW,HIGH.

    >>> pair("-60,300")
    ('-60', '300')
    """
    if text is None:
        return None
    low, comma, high = text.partition(",")
    if not comma or not low.strip() or not high.strip() or "," in high:
        raise BadInput(f"--bounds is {text!r}; give the two ends with one comma between them, as in 0,300.")
    return low.strip(), high.strip()


def numbers(text: str | None, option: str) -> float | list[float] | None:
    """Read an option that takes one number, or several with commas between them.

    >>> numbers("0.5", "--tau"), numbers("0.25, 0.5", "--tau"), numbers(None, "--start")
    (0.5, [0.25, 0.5], None)
    """
    if text is None:
        return None
    found = [
        as_number(part.strip(), option, "give a number, or several with commas between them")
        for part in text.split(",")
    ]
    return found if "," in text else found[0]


def number(text: str | None, option: str, advice: str = "correct it") -> float | None:
    """Read an option that takes one number."""
    return None if text is None else as_number(text, option, advice)


def whole(text: str | None, option: str) -> int | None:
    """Read an option that takes a whole number.

    >>> whole("32", "--bins"), whole(None, "--bins")
    (32, None)
    """
    try:
        return None if text is None else int(text)
    except ValueError:
        raise BadInput(f"{option} is {text!r}, which is not a whole number; correct it.") from None


def names(text: str, option: str) -> list[str]:
    """Read the names of columns, with commas between them; a name that has a comma stands in double quotes.

    >>> names("miles, hour", "--features"), names('"a,b",c', "--features")
    (['miles', 'hour'], ['a,b', 'c'])
    """
    import csv

    try:
        found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error:  # a line break outside quotes
        found = []
    if not found or not all(found):
        raise BadInput(
            f"{option} is {text!r}, which does not name something between all commas; write it as in miles,hour."
        )
    return found


def feature_bounds(texts: Sequence[str], features: Sequence[str]) -> dict[str, tuple[float, float]] | None:
    """Read --bounds of `regress`: NAME=LOW:HIGH for a feature, or LOW:HIGH for all that are not named.

    >>> feature_bounds(["miles=0:30", "-1:1"], ["miles", "hour", "day"])
    {'miles': (0.0, 30.0), 'hour': (-1.0, 1.0), 'day': (-1.0, 1.0)}
    """
    if not texts:
        return None
    found: dict[str, tuple[float, float]] = {}
    for part in (part for text in texts for part in names(text, "--bounds")):
        name, _, ends = part.rpartition("=")
        low, colon, high = ends.partition(":")
        if not colon or not low.strip() or not high.strip() or ":" in high:
            raise BadInput(f"--bounds has a part {part!r} that is not NAME=LOW:HIGH; write it as in miles=0:30.")
        if name.strip() in found:
            raise BadInput(f"--bounds names {name.strip() or 'all features'!r} twice; keep one.")
        advice = "write bounds as in miles=0:30"
        found[name.strip()] = (
            as_number(low.strip(), f"the lower end of --bounds {part}", advice),
            as_number(high.strip(), f"the upper end of --bounds {part}", advice),
        )
    unknown = [name for name in found if name and name not in features]
    if unknown:
        raise BadInput(
            f"--bounds names {unknown[0]!r}, which is not among --features {', '.join(features)}; correct it."
        )
    absent = [name for name in features if name not in found and "" not in found]
    if absent:
        raise BadInput(
            f"--bounds says nothing of {', '.join(map(repr, absent))}; add --bounds {absent[0]}=LOW:HIGH, or LOW:HIGH "
            "alone for all features that are not named, or --levels for a column of categories."
        )
    return {name: found[name] if name in found else found[""] for name in features}


def category_levels(texts: Sequence[str]) -> dict[str, list[str]]:
    """Read --levels of `regress`: NAME=BASE,OTHERS for each column of categories.

    >>> category_levels(["carrier=AA,UA, other"])
    {'carrier': ['AA', 'UA', 'other']}
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        if not equals or not name.strip():
            raise BadInput("--levels takes NAME=LEVELS; write it as in carrier=AA,UA,other.")
        if name.strip() in found:
            raise BadInput(f"--levels names {name.strip()!r} twice; keep one.")
        found[name.strip()] = names(listed, f"--levels of {name.strip()}")
    return found


def edges(text: str | None) -> list[float] | None:
    """Read --grid, the edges of a public grid: numbers with commas between them, or a file of numbers.

    >>> edges("-0.5, 0, 2"), edges(None)
    ([-0.5, 0.0, 2.0], None)
    """
    if text is None:
        return None
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        return [_edge(word, path, place) for place, word in enumerate(edge_words(path), start=1)]
    advice = "give rising numbers with commas between them (0.1,0.2,0.5), or a file (@edges.csv)"
    return [as_number(word.strip(), "an edge of --grid", advice) for word in text.split(",")]


def _edge(word: str, path: Path, place: int) -> float:
    """Read an edge of a file; a file named by mistake may hold what no sentence may show."""
    try:
        return as_number(word, "")
    except BadInput:
        raise BadInput(f"an edge in {path} is no number, the one at place {place}; correct it.") from None


def _site_values(path: Path, name: str) -> SiteValues:
    """Read one value a site from a file."""
    found = _collected(site_rows(path, name), str(path))
    if not found:
        raise BadInput(f"{path} names no sites; give one value for each site.")
    return found


def _collected(rows: Iterable[tuple[str, Any]], where: str) -> SiteValues:
    """Collect one number a site, refusing a site named twice."""
    found: SiteValues = {}
    for site, value in rows:
        if site in found:
            raise BadInput(f"{where} names site {site!r} twice; keep one.")
        found[site] = as_number(value, f"the value of site {site!r} in {where}")
    return found
