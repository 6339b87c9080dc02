"""`sottovoce plan`: two of width, epsilon and people give the third, from public guesses, before anybody is asked."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.command import Command
from sottovoce.cli.options import Json, Level, flag, option
from sottovoce.cli.output import check_outputs, draw, in_options, print_json
from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.planner.forecast import StudyForecast

plan = typer.Typer(
    name="plan",
    help="Plan a study: give two of --epsilon, --people and --width, and get the third; nobody is asked.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
GUESS = "give one guess"

Epsilon = Annotated[list[str] | None, option("BUDGET", "1; or a site: north=0.5,south=2; left out, it is found.")]
People = Annotated[list[str] | None, option("N", "10000; or a site: north=4000,south=6000; left out, they are found.")]
Width = Annotated[
    str | None, option("WIDTH", "How long the interval may be, in values; in levels, if nothing is guessed.")
]
Sites = Annotated[str | None, option("N", "How many sites of one size, or their names; 1 by default.")]
Tau = Annotated[str, option("TAU", "Level of the quantile: 0.9; several: 0.25,0.5,0.75.")]
Bounds = Annotated[str | None, option("LOW,HIGH", f"Public limits of the values ({GUESS}).")]
Sd = Annotated[str | None, option("NUMBER", f"Guessed standard deviation ({GUESS}).")]
Iqr = Annotated[str | None, option("NUMBER", f"Guessed interquartile range ({GUESS}).")]
Density = Annotated[str | None, option("NUMBER", f"Guessed density at the quantile ({GUESS}).")]
Shape = Annotated[str | None, option("NAME", "normal, uniform, exponential, lognormal; if it is publicly known.")]
Step = Annotated[str | None, option("STEP", "Public step the records are rounded to; 1 for whole numbers.")]
Plot = Annotated[str | None, option("PATH", "Draw width against epsilon to a .png, .svg or .pdf file.")]


@plan.command(cls=Command)
def quantile(
    tau: Tau = "0.5",
    epsilon: Epsilon = None,
    people: People = None,
    width: Width = None,
    sites: Sites = None,
    each: Annotated[bool, flag("--each", "Every name of --people is a group with an interval of its own.")] = False,
    bounds: Bounds = None,
    sd: Sd = None,
    iqr: Iqr = None,
    density: Density = None,
    shape: Shape = None,
    method: Annotated[str, option("NAME", "staged, certified (any distribution), sequence (at any time).")] = "staged",
    resolution: Step = None,
    level: Level = 0.95,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Plan a quantile, or several: sottovoce plan quantile --epsilon 1 --width 2 --sd 15."""
    given = _common(epsilon, people, width, sites, level) | _guess(tau, bounds, sd, iqr, density, shape)
    step = options.number(resolution, "--resolution")
    _show("quantile", given | {"method": method, "resolution": step, "groups": each or None}, json, plot)


@plan.command(cls=Command)
def difference(
    tau: Tau = "0.5",
    epsilon: Epsilon = None,
    people: Annotated[
        list[str] | None, option("N", "Of both groups: men=4000,women=6000; left out, they are found.")
    ] = None,
    width: Width = None,
    bounds: Bounds = None,
    sd: Sd = None,
    iqr: Iqr = None,
    density: Density = None,
    shape: Shape = None,
    method: Annotated[str, option("NAME", "staged, certified (any distribution), sequence (at any time).")] = "staged",
    level: Level = 0.95,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Plan how far a quantile of two groups is apart: --people men=4000,women=6000 --epsilon 1 --sd 15."""
    given = _common(epsilon, people, width, None, level) | _guess(tau, bounds, sd, iqr, density, shape)
    _show("difference", given | {"method": method}, json, plot)


@plan.command(cls=Command)
def regression(
    features: Annotated[
        list[str], option("BOUNDS", "Columns with their public bounds: age=18:90,hours=0:60; may be repeated.")
    ],
    tau: Tau = "0.5",
    epsilon: Annotated[str | None, option("BUDGET", "Of a person's one report; left out, it is found.")] = None,
    people: Annotated[str | None, option("N", "How many answer; left out, they are found.")] = None,
    width: Annotated[
        str | None, option("WIDTH", "How long: a number for every coefficient, or age=0.1,hours=0.5.")
    ] = None,
    sd: Annotated[str | None, option("NUMBER", f"Guessed deviation of the response about its fit ({GUESS}).")] = None,
    iqr: Iqr = None,
    density: Density = None,
    shape: Shape = None,
    level: Level = 0.95,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Plan a quantile regression: --features age=18:90 --people 300000 --epsilon 2 --sd 10."""
    given = _common([epsilon] if epsilon else None, [people] if people else None, width, None, level)
    given |= _guess(tau, None, sd, iqr, density, shape)
    names = [part.rpartition("=")[0].strip() for text in features for part in options.names(text, "--features")]
    if not all(names):
        raise BadInput("--features takes NAME=LOW:HIGH for each column; write it as in age=18:90.")
    _show("regression", given | {"features": _features(features, names)}, json, plot)


@plan.command(cls=Command)
def integration(
    target: Annotated[str, option("SITE", "The site whose quantile is wanted.")],
    tau: Tau = "0.5",
    epsilon: Epsilon = None,
    people: Annotated[
        list[str] | None, option("N", "Of every site: ours=5000,north=80000; left out, they are found.")
    ] = None,
    width: Width = None,
    sites: Annotated[str | None, option("NAMES", "Names of sites of one size, where people are to be found.")] = None,
    bounds: Bounds = None,
    sd: Sd = None,
    iqr: Iqr = None,
    density: Density = None,
    shape: Shape = None,
    method: Annotated[str, option("NAME", "valid, or conservative.")] = "valid",
    level: Level = 0.95,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Plan one site helped by others: --target ours --people ours=5000,north=80000 --epsilon 1 --sd 15."""
    given = _common(epsilon, people, width, sites, level) | _guess(tau, bounds, sd, iqr, density, shape)
    _show("integration", given | {"target": target, "method": method}, json, plot)


@plan.command(cls=Command)
def conformal(
    alpha: Annotated[str, option("PART", "Part of new scores that may lie above.")] = "0.1",
    epsilon: Epsilon = None,
    people: Annotated[
        list[str] | None, option("N", "Scores: 2000; or a site: north=500,south=800; left out, they are found.")
    ] = None,
    width: Annotated[
        str | None, option("WIDTH", "Between how many levels of the scores the threshold may lie: 0.05.")
    ] = None,
    sites: Sites = None,
    mechanism: Annotated[
        str | None, option("NAME", "auto (default), sparse-vector, counts, exponential, local, aggregate.")
    ] = None,
    guarantee: Annotated[str, option("NAME", "marginal, or for one calibration: training-conditional.")] = "marginal",
    bins: Annotated[str | None, option("N", "Equal steps of the public grid; unless given, equal ratios.")] = None,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Plan a conformal threshold: --people 2000 --sites 10 --epsilon 1."""
    given = _common(epsilon, people, width, sites, 0.95)
    asked = {"alpha": options.number(alpha, "--alpha", "give 0.1 for a coverage of 0.9"), "mechanism": mechanism}
    _show("conformal", given | asked | {"guarantee": guarantee, "bins": options.whole(bins, "--bins")}, json, plot)


def _common(
    epsilon: list[str] | None, people: list[str] | None, width: str | None, sites: str | None, level: float
) -> dict[str, Any]:
    """Read what every plan is about."""
    paid, asked = options.joined_pairs(epsilon, "--epsilon"), options.joined_pairs(people, "--people")
    return {
        "epsilon": None if paid is None else options.per_site(paid, "epsilon"),
        "people": None if asked is None else options.per_site(asked, "people"),
        "width": None if width is None else options.per_site(width, "width"),
        "sites": _sites(sites),
        "level": level,
    }


def _guess(
    tau: str, bounds: str | None, sd: str | None, iqr: str | None, density: str | None, shape: str | None
) -> dict[str, Any]:
    """Read the level and what is publicly guessed of the values."""
    ends = options.pair(bounds)
    return {
        "tau": options.levels(tau),
        "bounds": None if ends is None else tuple(options.as_number(each, "an end of --bounds") for each in ends),
        "sd": options.number(sd, "--sd"),
        "iqr": options.number(iqr, "--iqr"),
        "density": options.number(density, "--density"),
        "shape": shape,
    }


def _sites(text: str | None) -> int | list[str] | None:
    """Read --sites: how many, or which.

    >>> _sites("3"), _sites("north, south")
    (3, ['north', 'south'])
    """
    if text is None or text.strip().isdigit():
        return None if text is None else int(text)
    return options.names(text, "--sites")


def _features(texts: list[str], names: list[str]) -> dict[str, tuple[float, float]]:
    """Read the columns of a regression and their bounds, in the words of their own option."""
    try:
        return options.feature_bounds(texts, names) or {}
    except BadInput as error:
        raise BadInput(str(error).replace("--bounds", "--features")) from None


def _show(question: str, given: dict[str, Any], json: bool, plot: str | None) -> None:
    """Plan, draw where a plot is asked for, and print."""
    from sottovoce.planner.asking import plan as planned

    check_outputs(plot, None)
    found: StudyForecast = planned(question, **{name: value for name, value in given.items() if value is not None})
    lines, payload = [in_options(found.summary())], found.to_dict() if json else {}
    draw(found, payload, lines, plot)
    if json:
        print_json(payload)
    else:
        typer.echo("\n".join(lines))
