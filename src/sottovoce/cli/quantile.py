"""`sottovoce quantile`: one quantile, or several, of a column held at many sites."""

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

_RECURSION = "regression, self-normalised"


def quantile(
    files: Files,
    value: Value,
    tau: Annotated[list[str], option("LEVELS", "0.9; or several: 0.25,0.5; or a site: north=.5,south=.6.")],
    epsilon: Annotated[list[str], option("BUDGET", "1; or a site: north=0.5,south=2; or @sites.csv (.json, .toml).")],
    site: Site = None,
    shares: Annotated[
        list[str] | None, option("SHARES", "What a site counts: pooled (default), equal, north=.3,south=.7, or @FILE.")
    ] = None,
    weights: Weights = None,
    level: Level = 0.95,
    method: Annotated[str, option("METHOD", f"staged, certified, sequence, {_RECURSION}.")] = "staged",
    schedule: Annotated[str, option("RULE", f"every:5, log, or 1,1,2,4 ({_RECURSION}).")] = "every:1",
    participation: Annotated[float, option("PART", f"Part of the sites in each round ({_RECURSION}).")] = 1.0,
    graph: Annotated[str | None, option("GRAPH", f"ring: neighbours average, no server ({_RECURSION}).")] = None,
    norm: Annotated[str, option("NORM", "Of the interval: l2, sup, l1 (self-normalised).")] = "l2",
    bounds: Annotated[str | None, option("LOW,HIGH", "Public limits of the quantile; shorten the search.")] = None,
    scale: Scale = None,
    resolution: Resolution = None,
    kind: Annotated[
        str | None, option("KIND", "What the records are: counts, scores (whole numbers), amounts.")
    ] = None,
    until: Annotated[str | None, option("WIDTH", "Stop when the interval is no longer (sequence).")] = None,
    person: Person = None,
    censored: Censored = None,
    flag: Flag = None,
    drop_missing: DropMissing = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    test: Annotated[str | None, option("VALUE", "Test whether the quantile is VALUE; print the p-value.")] = None,
    alternative: Annotated[str, option("SIDE", "Of the test: two-sided, greater, less.")] = "two-sided",
    explain: Explain = False,
    limit: Limit = None,
    json: Json = False,
    plot: Annotated[str | None, option("PATH", "Draw the run to a .png, .svg or .pdf file.")] = None,
    report: Report = None,
    save: Save = None,
    no_progress: NoProgress = False,
) -> None:
    """Estimate a quantile over many sites, each record answering once through randomised response.

    The interval counts sampling noise and privacy noise. All input is checked before any record answers.
    """
    asked = options.levels(options.joined(tau, "--tau") or "")
    study: dict[str, Any] = {
        "epsilon": options.per_site(options.joined_pairs(epsilon, "--epsilon") or "", "epsilon"),
        "level": level,
        "shares": options.shares(options.joined_pairs(shares, "--shares") or "pooled"),
        "bounds": options.pair(bounds),
        "scale": options.number_or_text(scale),
        "resolution": options.number_or_text(resolution),
        "kind": kind,
    }
    if isinstance(asked, list):
        options.refuse_given(
            "{option} belongs to one level, and --tau names several; ask one level, or leave it out.",
            method=method not in ("staged", "certified"),
            schedule=schedule != "every:1",
            test=bool(test),
            plot=bool(plot),
            participation=participation != 1,
            graph=bool(graph),
            norm=norm != "l2",
            until=until is not None,
        )
        study["method"] = method
    else:
        study |= {"method": method, "schedule": options.schedule(schedule), "participation": participation}
        study |= {"graph": graph, "norm": norm, "until": options.number_or_text(until)}

    from sottovoce.api import tables
    from sottovoce.api.quantile.federated import run_study
    from sottovoce.api.quantile.levels import plan_levels, run_levels
    from sottovoce.api.quantile.planning import plan_study
    from sottovoce.core.checks import unknown
    from sottovoce.server.description import ALTERNATIVES

    check_outputs(plot, report, save)
    missing = "drop" if drop_missing else "refuse"
    marks: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "censored": censored or None, "flag": flag}
    columns: dict[str, Any] = {"value": value, "site": site, "person": person, "weight": weights}
    table = tables.read_files(files, **columns, missing=missing, **marks)
    if alternative not in ALTERNATIVES:
        raise unknown("alternative", alternative, ALTERNATIVES)
    if test is not None:
        table.unit.parse(test, where="--test")
    records = sum(held.size for held in table.records)
    steps: tuple[Any, Any] = (plan_levels, run_levels) if isinstance(asked, list) else (plan_study, run_study)
    plan, run = steps
    planned = plan(table, asked, **study)
    if explain:
        show_plan(planned.explain(), json, plot, report, save=save)
        return
    set_limit(limit)
    say_before(planned.warnings)
    with progress_bar(records, wanted=not no_progress) as progress:
        found: Any = run(planned, progress=progress)
    payload, lines = found.to_dict(), [in_options(found.summary())]
    if test is not None:
        tested = found.test(test, alternative)
        payload["test"] = tested._asdict()
        lines.append(
            f"Test:          the quantile is {table.unit.format(tested.value)}, {alternative}: p = {tested.pvalue:.4g}"
        )
    show(found, payload, lines, json, plot, report, save)
