"""`sottovoce regress`: how a quantile of one column changes with others, each row answering once."""

from typing import Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.output import in_options, plain_errors, print_json, progress_bar
from sottovoce.cli.per_site import as_number
from sottovoce.core.errors import BadInput


def regress(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Parquet, CSV, TSV or Arrow: one row a person.")],
    response: Annotated[str, typer.Option(metavar="COLUMN", help="Column whose quantile is modelled.")],
    features: Annotated[str, typer.Option(metavar="COLUMNS", help="Columns it depends on: miles,hour.")],
    tau: Annotated[str, typer.Option(metavar="LEVEL", help="0.5; or several: 0.25,0.5,0.75.")],
    epsilon: Annotated[str, typer.Option(metavar="BUDGET", help="Of a person's one report; inf: no privacy.")],
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Public bounds of a feature, once for each; 0:1 alone is for all others. Without any: -1:1.",
        ),
    ] = None,
    clip: Annotated[bool, typer.Option("--clip", help="Move values to their bounds and count the rows.")] = False,
    channel: Annotated[str, typer.Option(metavar="NAME", help="auto, cq, cq:q,s, lp, box, open.")] = "auto",
    inference: Annotated[
        str, typer.Option(metavar="METHOD", help="dithered, self-normalised, groups, higrad.")
    ] = "dithered",
    level: Annotated[float, typer.Option(metavar="LEVEL", help="Confidence level.")] = 0.95,
    density: Annotated[
        str | None, typer.Option(metavar="GUESS", help="Public guess: density of the response at the quantile.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="GUESS", help="Public guess: how far the features move the quantile.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="GUESS", help="Public guess: the intercept, or it and all slopes.")
    ] = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Ask in the order of the file, not in a random one.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Check all, print the channel and its predicted errors; ask nobody.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="PATH", help="Draw the coefficients to a .png, .svg or .pdf file.")
    ] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")] = False,
) -> None:
    """Fit a linear model of a quantile, each person answering once with one randomised letter.

    The intervals count sampling noise and privacy noise. All input is checked before anybody answers. Without the
    guesses of density and size the first people tell them, in private.
    """
    with plain_errors():
        columns = options.names(features, "--features")
        asked: dict[str, Any] = {
            "tau": options.numbers(tau, "--tau"),
            "epsilon": as_number(epsilon, "--epsilon", "give a budget such as 1, or inf for no privacy"),
            "bounds": options.feature_bounds(bounds or [], columns),
            "clip": clip,
            "channel": channel,
            "inference": inference,
            "density": options.numbers(density, "--density"),
            "size": None if size is None else as_number(size, "--size", "give a number above 0"),
            "start": options.numbers(start, "--start"),
            "shuffle": not in_order,
        }
        if explain and plot is not None:
            raise BadInput("--plot draws what people told, and --explain asks nobody; leave one of them out.")

        from sottovoce.api.regression.file import regression_study
        from sottovoce.server.quantile import plot as drawing

        if plot is not None:
            drawing.check_path(plot)
        study = regression_study(file, response, columns, level=level, **asked)
        if explain:
            if json:
                print_json(study.to_dict())
            else:
                typer.echo(f"{study.explain()}\nFeatures are scaled to [-1, 1] by their bounds. Nobody was asked.")
            return
        with progress_bar(study.people, wanted=not no_progress, who="people") as progress:
            found = study.run(progress)
        payload, text = dict(found.describe().values), [in_options(found.summary())]
        try:
            if plot is not None:
                payload["plot"] = str(found.plot(plot))
                text.append(f"Plot:          {payload['plot']}")
        finally:  # the reports are spent: a disk that is full must not cost the answer
            if json:
                print_json(payload)
            else:
                typer.echo("\n".join(text))
