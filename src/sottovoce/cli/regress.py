"""`sottovoce regress`: how a quantile of one column changes with others, each row answering once."""

from typing import Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.limit import set_limit
from sottovoce.cli.options import (
    Decimal,
    Delimiter,
    DropMissing,
    Explain,
    Json,
    Level,
    Limit,
    NoProgress,
    Person,
    Report,
    Save,
    flag,
    option,
)
from sottovoce.cli.output import check_outputs, in_options, progress_bar, say_before, show, show_plan


def regress(
    files: Annotated[
        list[str], typer.Argument(metavar="FILES", help="Parquet, CSV, TSV or Arrow: one row a person; globs too.")
    ],
    response: Annotated[str, option("COLUMN", "Column whose quantile is modelled.")],
    features: Annotated[list[str], option("COLUMNS", "Columns it depends on: miles,hour.")],
    tau: Annotated[list[str], option("LEVELS", "0.5; or several: 0.25,0.5,0.75.")],
    epsilon: Annotated[str, option("BUDGET", "Of a person's one report; inf: no privacy.")],
    bounds: Annotated[
        list[str] | None,
        option(
            "NAME=LOW:HIGH",
            "Public bounds of a feature, once for each; 0:1 alone is for all others. Without any: -1:1.",
        ),
    ] = None,
    levels: Annotated[
        list[str] | None,
        option("NAME=LEVELS", "Public levels of a category, the base first: carrier=AA,UA,other; once for each."),
    ] = None,
    two_valued: Annotated[
        list[str] | None,
        option("COLUMNS", "Features that take their two bounds alone, declared in public: night,member."),
    ] = None,
    clip: Annotated[bool, flag("--clip", "Move values to their bounds and count the rows.")] = False,
    channel: Annotated[str, option("NAME", "auto, cq, cq:q,s, lp, box, open.")] = "auto",
    inference: Annotated[str, option("METHOD", "dithered, self-normalised, groups, higrad.")] = "dithered",
    level: Level = 0.95,
    density: Annotated[str | None, option("GUESS", "Public guess: density of the response at the quantile.")] = None,
    size: Annotated[str | None, option("GUESS", "Public guess: how far the features move the quantile.")] = None,
    start: Annotated[str | None, option("GUESS", "Public guess: the intercept, or it and all slopes.")] = None,
    person: Person = None,
    drop_missing: DropMissing = False,
    in_order: Annotated[bool, flag("--in-order", "Ask in the order of the file, not in a random one.")] = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    explain: Explain = False,
    limit: Limit = None,
    json: Json = False,
    plot: Annotated[str | None, option("PATH", "Draw the coefficients to a .png, .svg or .pdf file.")] = None,
    report: Report = None,
    save: Save = None,
    no_progress: NoProgress = False,
) -> None:
    """Fit a linear model of a quantile, each person answering once with one randomised letter.

    The intervals count sampling noise and privacy noise. All input is checked before anybody answers. Without the
    guesses of density and size they are estimated privately from the first people.
    """
    columns = options.names(options.joined(features, "--features") or "", "--features")
    declared = options.category_levels(levels or [])
    asked: dict[str, Any] = {
        "tau": options.numbers(options.joined(tau, "--tau"), "--tau"),
        "epsilon": options.number(epsilon, "--epsilon", "give a budget such as 1, or inf for no privacy"),
        "levels": declared,
        "two_valued": options.names(options.joined(two_valued, "--two-valued") or "", "--two-valued")
        if two_valued
        else None,
        "bounds": options.feature_bounds(bounds or [], [name for name in columns if name not in declared]),
        "clip": clip,
        "channel": channel,
        "inference": inference,
        "density": options.numbers(density, "--density"),
        "size": options.number(size, "--size", "give a number above 0"),
        "start": options.numbers(start, "--start"),
        "shuffle": not in_order,
    }
    from sottovoce.api.regression.file import regression_study

    check_outputs(plot, report, save)
    marks = {"delimiter": delimiter, "decimal": decimal}
    missing = "drop" if drop_missing else "refuse"
    rows: dict[str, Any] = {"person": person, "missing": missing, "marks": marks}
    study = regression_study(files, response, columns, level=level, **rows, **asked)
    if explain:
        show_plan(study.explain(), json, plot, report, save=save)
        return
    set_limit(limit)
    say_before(study.warnings)
    with progress_bar(study.people, wanted=not no_progress, who="people") as progress:
        found = study.run(progress)
    payload, lines = dict(found.describe().values), [in_options(found.summary())]
    if drop_missing:
        payload["dropped"] = study.files.dropped
        lines.append(f"Left out:      {study.files.dropped:,} rows with missing values")
    if person is not None:
        payload["further_rows"] = study.files.further
        lines.append(f"Person:        one row each, drawn at random; {study.files.further:,} further rows left out")
    show(found, payload, lines, json, plot, report, save)
