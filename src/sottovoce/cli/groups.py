"""`sottovoce groups`: a quantile for every site or every public group, with intervals that hold together."""

from typing import Annotated, Any

from sottovoce.cli import options
from sottovoce.cli.limit import set_limit
from sottovoce.cli.options import (
    Censored,
    Decimal,
    Delimiter,
    DropMissing,
    Explain,
    Files,
    Flag,
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
    Value,
    Weights,
    option,
)
from sottovoce.cli.output import check_outputs, in_options, progress_bar, say_before, show, show_plan


def groups(
    files: Files,
    value: Value,
    tau: Annotated[float, option("LEVEL", "Of the quantile, one for all groups: 0.9.")],
    epsilon: Annotated[list[str], option("BUDGET", "1; or a site: north=0.5,south=2; or @sites.csv (.json, .toml).")],
    group: Annotated[
        str | None, option("COLUMN", "Column of groups, which is public; without it every site is a group.")
    ] = None,
    site: Site = None,
    weights: Weights = None,
    level: Level = 0.95,
    each: Annotated[bool, options.flag("--each", "Let every interval hold by itself, not all together.")] = False,
    shrinkage: Annotated[
        str | None,
        option("HOW", "Let groups help each other: each (keeps every group's level), average (with --each)."),
    ] = None,
    compare: Annotated[
        str | None, option("GROUP", "Compare all groups with this one, or with others: their mean.")
    ] = None,
    method: Annotated[str, option("METHOD", "staged, certified.")] = "staged",
    shares: Annotated[
        list[str] | None,
        option("SHARES", "What a site counts in its groups: pooled (default), equal, north=.3,south=.7, or @FILE."),
    ] = None,
    bounds: Annotated[str | None, option("LOW,HIGH", "Public limits of the quantiles; shorten the search.")] = None,
    scale: Scale = None,
    resolution: Resolution = None,
    kind: Annotated[
        str | None, option("KIND", "What the records are: counts, scores (whole numbers), amounts.")
    ] = None,
    person: Person = None,
    censored: Censored = None,
    flag: Flag = None,
    drop_missing: DropMissing = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    explain: Explain = False,
    limit: Limit = None,
    json: Json = False,
    plot: Annotated[str | None, option("PATH", "Draw all groups to a .png, .svg or .pdf file.")] = None,
    report: Report = None,
    save: Save = None,
    no_progress: NoProgress = False,
) -> None:
    """Estimate a quantile for every site, or for every group of a public column.

    Each record answers once, for its own group. The intervals hold all together; all input is checked before any record
    answers, and groups too small for an answer are left out before.
    """
    study: dict[str, Any] = {
        "epsilon": options.per_site(options.joined_pairs(epsilon, "--epsilon") or "", "epsilon"),
        "level": level,
        "simultaneous": not each,
        "shrinkage": shrinkage,
        "method": method,
        "shares": options.shares(options.joined_pairs(shares, "--shares") or "pooled"),
        "bounds": options.pair(bounds),
        "scale": options.number_or_text(scale),
        "resolution": options.number_or_text(resolution),
        "kind": kind,
    }

    from sottovoce.api import tables
    from sottovoce.api.quantile.groups import plan_groups, run_groups

    check_outputs(plot, report, save)
    marks: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "censored": censored or None, "flag": flag}
    columns: dict[str, Any] = {"value": value, "site": site, "person": person, "group": group, "weight": weights}
    table = tables.read_files(files, **columns, missing="drop" if drop_missing else "refuse", **marks)
    planned = plan_groups(table, tau, **study)
    if compare is not None:
        planned.plan.check_group(compare)
    if explain:
        show_plan(planned.explain(), json, plot, report, save=save)
        return
    set_limit(limit)
    say_before(planned.warnings)
    records = sum(held.size for held in planned.table.records)
    with progress_bar(records, wanted=not no_progress) as progress:
        found = run_groups(planned, progress=progress)
    payload, lines = found.to_dict(), [in_options(found.summary())]

    def add_comparison() -> None:
        if compare is not None:
            compared = found.compare(to=compare)
            payload["compared"] = compared.to_dict()
            lines.append(compared.summary())

    show(found, payload, lines, json, plot, report, save, add_comparison)
