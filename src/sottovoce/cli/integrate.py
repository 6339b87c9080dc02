"""`sottovoce integrate`: one site's quantile, helped by other sites that may or may not be alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.limit import set_limit
from sottovoce.cli.named_file import read_text
from sottovoce.cli.options import (
    BUDGET,
    FILES,
    VALUE,
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
    Resolution,
    Save,
    Scale,
    Site,
    flag,
    option,
)
from sottovoce.cli.output import check_outputs, in_options, progress_bar, say_before, show, show_plan
from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.api.tables import SiteTable
    from sottovoce.core.unit import Unit
    from sottovoce.server.integration.result import IntegratedResult
    from sottovoce.server.integration.site_summary import SiteSummary

EXAMPLE = '{"north": {"estimate": 17.2, "se": 0.3}}'
_PAPER = "adaptive, decay, conservative-paper, ivw, target"


def integrate(
    target: Annotated[str, option("NAME", "The site whose quantile is wanted.")],
    tau: Annotated[str, option("LEVEL", "Level of the quantile: 0.5.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILES", help=f"{FILES} None where all is in --summaries.")
    ] = None,
    value: Annotated[str | None, option("COLUMN", VALUE)] = None,
    epsilon: Annotated[list[str] | None, option("BUDGET", BUDGET)] = None,
    site: Site = None,
    sources: Annotated[
        list[str] | None, option("NAMES", "Sites that may help: north,south. All others by default.")
    ] = None,
    summaries: Annotated[
        str | None,
        option(
            "FILE",
            f"JSON of sites that give numbers only: {EXAMPLE}; also interval, interval_level, n, df, trusted.",
        ),
    ] = None,
    method: Annotated[
        str,
        option(
            "METHOD", f"valid, conservative, known-bound; the paper's, not valid wherever sources differ: {_PAPER}."
        ),
    ] = "valid",
    level: Level = 0.95,
    bound: Annotated[
        list[str] | None,
        option(
            "BOUND",
            "Largest difference between a source and the target, chosen before any data were seen: 500; or a "
            "source: north=500,south=900; or @FILE (known-bound).",
        ),
    ] = None,
    variance: Annotated[str, option("KIND", "printed or theorem (the paper's methods).")] = "printed",
    quantile: Annotated[str, option("NAME", "z or t (the paper's methods).")] = "z",
    caution: Annotated[float, option("ERRORS", "The paper's constant C (conservative-paper).")] = 1.96,
    sites: Annotated[str | None, option("HOW", "How private sites are asked: staged, or the paper's chains.")] = None,
    chains: Annotated[int, option("N", "Chains that a site runs (chains).")] = 10,
    bounds: Annotated[str | None, option("LOW,HIGH", "Public limits of all quantiles; shorten the search.")] = None,
    scale: Scale = None,
    resolution: Resolution = None,
    person: Person = None,
    drop_missing: DropMissing = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sensitivity: Annotated[
        bool, flag("--sensitivity", "Show the interval for each bound that might have been assumed.")
    ] = False,
    explain: Explain = False,
    limit: Limit = None,
    json: Json = False,
    plot: Annotated[str | None, option("PATH", "Draw all intervals to a .png, .svg or .pdf file.")] = None,
    report: Report = None,
    save: Save = None,
    no_progress: NoProgress = False,
) -> None:
    """Estimate one site's quantile with the help of other sites, each record answering once.

    By default the interval covers however much the sources differ. All input is checked before any record answers.
    """
    each = options.joined_pairs(epsilon, "--epsilon")
    budgets: Any = None if each is None else options.per_site(each, "epsilon")
    asked = options.as_number(tau, "--tau", "give one level, such as 0.5")
    limits = options.bound(options.joined_pairs(bound, "--bound"))
    study: dict[str, Any] = {
        "bounds": options.pair(bounds),
        "scale": options.number_or_text(scale),
        "resolution": options.number_or_text(resolution),
    }
    named = options.joined(sources, "--sources")
    helpers = None if named is None else options.names(named, "--sources")
    published = {} if summaries is None else read_summaries(summaries)
    if files:
        _require(value, "--value", "the column of the records")
        _require(budgets, "--epsilon", "the budget of a record")
    else:
        if not published:
            raise BadInput("there are neither FILES nor --summaries; give records, or numbers about them.")
        about_records = "{option} is about records, and there are no FILES; name them, or leave {option} out."
        given_names = {"value": value, "site": site, "person": person}
        options.refuse_given(about_records, **{name: text is not None for name, text in given_names.items()})

    from sottovoce.api import tables
    from sottovoce.api.integration import by_name, plan_integrated, run_integrated
    from sottovoce.server.integration.plan import check_settings

    how: dict[str, Any] = {"method": method, "level": level, "variance": variance, "quantile": quantile}
    how |= {"caution": caution, "sites": sites, "chains": chains}
    check_settings(tau=asked, **how)
    check_outputs(plot, report, save)
    missing = "drop" if drop_missing else "refuse"
    columns: dict[str, Any] = {"site": site, "person": person, "delimiter": delimiter, "decimal": decimal}
    table = tables.read_files(files, value=value, missing=missing, **columns) if files and value else None
    given = {} if table is None else by_name(table)
    known = joined(given, in_unit(published, None if table is None else table.unit, str(summaries)))
    chosen = chosen_sites(known, target, helpers)
    unasked = known.keys() - chosen.keys()
    if sensitivity:
        check_curve(chosen, target)
    records = sum(chosen[name].records[0].size for name in chosen if name in given)
    planned = plan_integrated(
        target, chosen, asked, without(budgets, unasked), bound=without(limits, unasked), **how, **study
    )
    if explain:
        show_plan(planned.explain(), json, plot, report, save=save)
        return
    set_limit(limit)
    say_before(planned.warnings)
    with progress_bar(records, wanted=not no_progress) as progress:
        found = run_integrated(planned, progress)
    _show(found, {} if table is None else rows_left_out(table, chosen), sensitivity, json, plot, report, save)


def _show(
    found: "IntegratedResult",
    rows: dict[str, Any],
    sensitivity: bool,
    json: bool,
    plot: str | None,
    report: str | None,
    save: str | None,
) -> None:
    """Print the result; the records are spent, so nothing that fails from here on may cost the answer."""
    payload, lines = {**found.to_dict(), **rows}, [in_options(found.summary()), *in_words(rows)]
    if sensitivity:
        try:
            curve = found.sensitivity()
        except BadInput as error:
            payload["sensitivity"] = None
            lines.append(f"Sensitivity:   {error}")
        else:
            payload["sensitivity"] = curve.to_dict()
            lines.append(f"Sensitivity to the bound on every source's difference:\n{curve.table()}")
    show(found, payload, lines, json, plot, report, save)


def _require(given: Any, option: str, what: str) -> None:
    if given is None:
        raise BadInput(f"{option} is missing, {what}; add it, or name no FILES and give --summaries alone.")


def joined(records: Mapping[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """Join sites with records and sites with summaries, each known by one of them."""
    for name in published:
        if name in records:
            raise BadInput(f"site {name!r} has both records and a summary; leave one of them out.")
    return {**records, **published}


def chosen_sites(known: Mapping[str, Any], target: str, helpers: list[str] | None) -> dict[str, Any]:
    """Return the target and the sources that may help."""
    if helpers is None or target not in known:
        return dict(known)
    for place, name in enumerate(helpers):
        if name not in known:
            from sottovoce.core.checks import close_names, first_few

            close = close_names(name, known)
            raise BadInput(
                f"--sources names {name!r}, which is not one of the sites {first_few(known)}; {close or 'correct it.'}"
            )
        if name in helpers[:place]:
            raise BadInput(f"--sources names {name!r} twice; keep one.")
        if name == target:
            raise BadInput(f"the target {name!r} is among --sources too, and a site cannot help itself; take it out.")
    return {name: known[name] for name in [target, *helpers]}


def check_curve(chosen: Mapping[str, Any], target: str) -> None:
    """Refuse --sensitivity where it is plain that there will be no curve."""
    if not any(name != target and getattr(site, "trusted", True) for name, site in chosen.items()):
        raise BadInput("--sensitivity needs a source with a standard error; add one, or leave --sensitivity out.")


def without(values: Any, unasked: Any) -> Any:
    """Leave out what was said of sites that do not take part."""
    return {name: item for name, item in values.items() if name not in unasked} if isinstance(values, dict) else values


def rows_left_out(table: "SiteTable", chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Count the rows of files that are no records: missing values, no site, further rows of a person."""
    dropped = {name: count for name, count in table.dropped.items() if name in chosen}
    return {"dropped": dropped, "unplaced": table.unplaced, "further_rows": table.left_out}


def in_words(rows: Mapping[str, Any]) -> list[str]:
    """Say which rows were left out, where there are any."""
    lines, dropped = [], sum(rows.get("dropped", {}).values())
    if dropped or rows.get("unplaced"):
        lines.append(f"Rows left out: {dropped:,} missing values, {rows['unplaced']:,} without a site")
    if rows.get("further_rows"):
        lines.append(f"Person:        one record each, drawn at random; {rows['further_rows']:,} further rows left out")
    return lines


def read_summaries(text: str) -> dict[str, dict[str, Any]]:
    """Read the file of --summaries: one object with an object for each site."""
    import json

    path = Path(text).expanduser()
    content = read_text(path, f"--summaries is {path}")
    try:
        found = json.loads(content, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} is not JSON (line {error.lineno}); correct it.") from None
    except BadInput as error:
        raise BadInput(f"{path} {error}") from None
    except (RecursionError, ValueError):
        raise BadInput(f"{path} is nested too deeply, or holds too long a number; write it as in {EXAMPLE}.") from None
    if not isinstance(found, dict) or not found:
        raise BadInput(f"{path} does not say what each site published; write it as in {EXAMPLE}.")
    for name, value in found.items():
        if not isinstance(value, dict):
            raise BadInput(f"{path} does not say what {name!r} published in braces; write it as in {EXAMPLE}.")
    return found


def in_unit(published: Mapping[str, Mapping[str, Any]], unit: "Unit | None", path: str) -> "dict[str, SiteSummary]":
    """Turn what was read into summaries; where there are records of dates or durations, it may be written as such."""
    from sottovoce.server.integration.site_summary import summary_from

    found = {}
    for name, given in published.items():
        where = f"{name!r} in {path}"
        found[name] = summary_from(given if unit is None else _in_unit(given, unit, where), where)
    return found


def _in_unit(given: Mapping[str, Any], unit: "Unit", where: str) -> dict[str, Any]:
    """Read what stands there as text in the unit of the records."""
    from sottovoce.server.integration.plan import width_of

    values = dict(given)
    if isinstance(values.get("estimate"), str):
        values["estimate"] = unit.parse(values["estimate"], where=f"the estimate of {where}")
    if isinstance(values.get("se"), str):
        values["se"] = width_of(values["se"], f"se of {where}", unit)
    if isinstance(values.get("interval"), list):
        ends, place = values["interval"], f"the interval of {where}"
        values["interval"] = [unit.parse(end, where=place) if isinstance(end, str) else end for end in ends]
    return values


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice in one object, of which JSON would keep the last."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadInput(f"names {name!r} twice; keep one.")
        found[name] = value
    return found
