"""`sottovoce quantile`: one quantile, or several, of a column held at many sites."""

from typing import Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.output import in_options, plain_errors, print_json, progress_bar
from sottovoce.cli.per_site import per_site
from sottovoce.core.errors import BadInput

_RECURSION = "regression, self-normalised"


def quantile(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES", help="Parquet, CSV or Arrow: one file a site, or any with --site; globs too."),
    ],
    value: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the records: numbers, durations, dates.")],
    tau: Annotated[str, typer.Option(metavar="LEVEL", help="0.9; or several: 0.25,0.5; or a site: north=.5,south=.6.")],
    epsilon: Annotated[
        str, typer.Option(metavar="BUDGET", help="1; or a site: north=0.5,south=2; or @sites.csv (.json, .toml).")
    ],
    site: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that says where a record is held.")] = None,
    shares: Annotated[
        str, typer.Option(metavar="SHARES", help="What a site counts: pooled, equal, north=.3,south=.7, or @FILE.")
    ] = "pooled",
    level: Annotated[float, typer.Option(metavar="LEVEL", help="Confidence level.")] = 0.95,
    method: Annotated[str, typer.Option(metavar="METHOD", help=f"staged, {_RECURSION}.")] = "staged",
    schedule: Annotated[
        str, typer.Option(metavar="RULE", help=f"every:5, log, or 1,1,2,4 ({_RECURSION}).")
    ] = "every:1",
    participation: Annotated[
        float, typer.Option(metavar="PART", help=f"Part of the sites in each round ({_RECURSION}).")
    ] = 1.0,
    graph: Annotated[
        str | None, typer.Option(metavar="GRAPH", help=f"ring: neighbours average, no server ({_RECURSION}).")
    ] = None,
    norm: Annotated[str, typer.Option(metavar="NORM", help="Of the interval: l2, sup, l1 (self-normalised).")] = "l2",
    bounds: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Public limits of the quantile; shorten the search.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="WIDTH", help="Rough public spread of the records; shortens the search.")
    ] = None,
    resolution: Annotated[
        str | None, typer.Option(metavar="STEP", help="Public step the records are rounded to.")
    ] = None,
    robust: Annotated[bool, typer.Option("--robust", help="For a quantile that may lie between two modes.")] = False,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Make the person the unit of privacy: one record each is drawn."),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave missing values out and count them.")
    ] = False,
    test: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Test whether the quantile is VALUE; print the p-value.")
    ] = None,
    alternative: Annotated[
        str, typer.Option(metavar="SIDE", help="Of the test: two-sided, greater, less.")
    ] = "two-sided",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
    plot: Annotated[str | None, typer.Option(metavar="PATH", help="Draw the run to a .png, .svg or .pdf file.")] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")] = False,
) -> None:
    """Estimate a quantile over many sites, each record answering once through randomised response.

    The interval counts sampling noise and privacy noise. All input is checked before any record answers.
    """
    with plain_errors():
        asked = options.levels(tau)
        study: dict[str, Any] = {
            "epsilon": per_site(epsilon, "epsilon"),
            "level": level,
            "shares": options.shares(shares),
            "bounds": options.pair(bounds),
            "scale": options.number_or_text(scale),
            "resolution": options.number_or_text(resolution),
            "robust": robust,
        }
        if isinstance(asked, list):
            _refuse_with_several(
                method=method != "staged",
                schedule=schedule != "every:1",
                test=test,
                plot=plot,
                participation=participation != 1,
                graph=graph,
                norm=norm != "l2",
            )
        else:
            study |= {"method": method, "schedule": options.schedule(schedule), "participation": participation}
            study |= {"graph": graph, "norm": norm}

        from sottovoce.api.quantile import levels, tables
        from sottovoce.api.quantile.federated import federated_quantile
        from sottovoce.server import picture as drawing
        from sottovoce.server.quantile.result import ALTERNATIVES

        if plot is not None:
            drawing.check_path(plot)
        missing = "drop" if drop_missing else "refuse"
        table = tables.read_files(files, value=value, site=site, person=person, missing=missing)
        if alternative not in ALTERNATIVES:
            raise BadInput(f"--alternative is {alternative!r}; choose one of {', '.join(ALTERNATIVES)}.")
        if test is not None:
            table.unit.parse(test, where="--test")
        records = sum(held.size for held in table.records)
        with progress_bar(records, wanted=not no_progress) as progress:
            if isinstance(asked, list):
                found: Any = levels.federated_quantiles(table, asked, **study, progress=progress)
            else:
                found = federated_quantile(table, asked, **study, progress=progress)
        payload, text = found.to_dict(), [in_options(found.summary())]
        if test is not None:
            tested = found.test(test, alternative)
            payload["test"] = tested._asdict()
            text.append(
                f"Test:          the quantile is {found.format(tested.value)}, {alternative}: p = {tested.pvalue:.4g}"
            )
        try:
            if plot is not None:
                payload["plot"] = str(found.plot(plot))
                text.append(f"Plot:          {payload['plot']}")
        finally:  # the records are spent: a disk that is full must not cost the answer
            if json:
                print_json(payload)
            else:
                typer.echo("\n".join(text))


def _refuse_with_several(**given: Any) -> None:
    """Refuse options that belong to one level."""
    for name, present in given.items():
        if present:
            raise BadInput(f"--{name} belongs to one level, and --tau names several; ask one level, or leave it out.")
