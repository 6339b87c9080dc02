"""`sottovoce integrate`: one site's quantile, helped by other sites that may or may not be alike."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.helping import check_curve, chosen_sites, in_words, joined, rows_left_out, without
from sottovoce.cli.output import in_options, plain_errors, print_json, progress_bar
from sottovoce.cli.per_site import as_number, per_site
from sottovoce.cli.summaries import in_unit, read_told
from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.server.integration.result import IntegratedResult

_PAPER = "adaptive, decay, conservative-paper, ivw, target"


def integrate(
    target: Annotated[str, typer.Option(metavar="NAME", help="The site whose quantile is wanted.")],
    tau: Annotated[str, typer.Option(metavar="LEVEL", help="Level of the quantile: 0.5.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="Parquet, CSV or Arrow: one file a site, or any with --site; globs too. None where all is in "
            "--summaries.",
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the records: numbers, durations, dates.")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="BUDGET", help="1; or a site: north=0.5,south=inf; or @sites.csv (.json, .toml)."),
    ] = None,
    site: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that says where a record is held.")] = None,
    sources: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Sites that may help: north,south. All others by default.")
    ] = None,
    summaries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='JSON of sites that give numbers only: {"north": {"estimate": 17.2, "se": 0.3}}; also interval, '
            "interval_level, n, df, trusted.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help=f"valid, conservative, known-bound; the paper's, not valid wherever sources differ: {_PAPER}.",
        ),
    ] = "valid",
    level: Annotated[float, typer.Option(metavar="LEVEL", help="Confidence level.")] = 0.95,
    bound: Annotated[
        str | None,
        typer.Option(
            metavar="BOUND",
            help="Largest difference between a source and the target, chosen before any data were seen: 500; or a "
            "source: north=500,south=900; or @FILE (known-bound).",
        ),
    ] = None,
    variance: Annotated[
        str, typer.Option(metavar="KIND", help="printed or theorem (the paper's methods).")
    ] = "printed",
    quantile: Annotated[str, typer.Option(metavar="LAW", help="z or t (the paper's methods).")] = "z",
    caution: Annotated[
        float, typer.Option(metavar="ERRORS", help="The paper's constant C (conservative-paper).")
    ] = 1.96,
    sites: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="How private sites are asked: staged, or the paper's chains."),
    ] = None,
    chains: Annotated[int, typer.Option(metavar="N", help="Chains that a site runs (chains).")] = 10,
    bounds: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Public limits of all quantiles; shorten the search.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="WIDTH", help="Rough public spread of the records; shortens the search.")
    ] = None,
    resolution: Annotated[
        str | None, typer.Option(metavar="STEP", help="Public step the records are rounded to.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Make the person the unit of privacy: one record each is drawn."),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave missing values out and count them.")
    ] = False,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="Show the interval for each bound that might have been assumed.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="PATH", help="Draw all intervals to a .png, .svg or .pdf file.")
    ] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")] = False,
) -> None:
    """Estimate one site's quantile with the help of other sites, each record answering once.

    By default the interval covers however much the sources differ. All input is checked before any record answers.
    """
    with plain_errors():
        budgets: Any = None if epsilon is None else per_site(epsilon, "epsilon")
        asked = as_number(tau, "--tau", "give one level, such as 0.5")
        limits = options.bound(bound)
        study: dict[str, Any] = {
            "bounds": options.pair(bounds),
            "scale": options.number_or_text(scale),
            "resolution": options.number_or_text(resolution),
        }
        helpers = None if sources is None else options.names(sources, "--sources")
        told = {} if summaries is None else read_told(summaries)
        if files:
            _require(value, "--value", "the column of the records")
            _require(budgets, "--epsilon", "the budget of a record")
        else:
            _refuse_without_files(told, value=value, site=site, person=person)

        from sottovoce.api.integration.integrated import integrated_quantile
        from sottovoce.api.integration.sites import by_name
        from sottovoce.api.quantile import tables
        from sottovoce.server import picture as drawing
        from sottovoce.server.integration.settings import check_settings

        check_settings(method, level, asked, variance, quantile, caution, sites, chains)
        if plot is not None:
            drawing.check_path(plot)
        missing = "drop" if drop_missing else "refuse"
        table = (
            tables.read_files(files, value=value, site=site, person=person, missing=missing)
            if files and value
            else None
        )
        given = {} if table is None else by_name(table)
        known = joined(given, in_unit(told, None if table is None else table.unit, str(summaries)))
        chosen = chosen_sites(known, target, helpers)
        unasked = known.keys() - chosen.keys()
        if sensitivity:
            check_curve(chosen, target)
        records = sum(chosen[name].records[0].size for name in chosen if name in given)
        with progress_bar(records, wanted=not no_progress) as progress:
            found = integrated_quantile(
                target,
                chosen,
                asked,
                without(budgets, unasked),
                method=method,
                level=level,
                bound=without(limits, unasked),
                variance=variance,
                quantile=quantile,
                caution=caution,
                sites=sites,
                chains=chains,
                progress=progress,
                **study,
            )
        _show(found, {} if table is None else rows_left_out(table, chosen), sensitivity, json, plot)


def _show(found: "IntegratedResult", rows: dict[str, Any], sensitivity: bool, json: bool, plot: str | None) -> None:
    """Print the result; the records are spent, so nothing that fails from here on may cost the answer."""
    payload, text = {**found.to_dict(), **rows}, [in_options(found.summary()), *in_words(rows)]
    if sensitivity:
        try:
            curve = found.sensitivity()
        except BadInput as error:
            payload["sensitivity"] = None
            text.append(f"Sensitivity:   {error}")
        else:
            payload["sensitivity"] = curve.to_dict()
            text.append(f"Sensitivity to the bound on every source's difference:\n{curve.table()}")
    try:
        if plot is not None:
            payload["plot"] = str(found.plot(plot))
            text.append(f"Plot:          {payload['plot']}")
    finally:
        if json:
            print_json(payload)
        else:
            typer.echo("\n".join(text))


def _require(given: Any, option: str, what: str) -> None:
    if given is None:
        raise BadInput(f"{option} is missing, {what}; add it, or name no FILES and give --summaries alone.")


def _refuse_without_files(told: Mapping[str, Any], **given: str | None) -> None:
    """Refuse options that are about records where there are none."""
    if not told:
        raise BadInput("there are neither FILES nor --summaries; give records, or numbers about them.")
    for name, text in given.items():
        if text is not None:
            raise BadInput(f"--{name} is about records, and there are no FILES; name them, or leave --{name} out.")
