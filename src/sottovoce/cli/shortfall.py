"""`sottovoce shortfall`: value at risk and expected shortfall of a column held at many sites."""

from typing import Annotated, Any

from sottovoce.cli import options
from sottovoce.cli.limit import set_limit
from sottovoce.cli.options import (
    Decimal,
    Delimiter,
    DropMissing,
    Explain,
    Files,
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
    option,
)
from sottovoce.cli.output import check_outputs, in_options, progress_bar, say_before, show, show_plan


def shortfall(
    files: Files,
    value: Value,
    tau: Annotated[float, option("LEVEL", "Of the quantile: 0.95 for the worst 5 % of losses above it.")],
    epsilon: Annotated[list[str], option("BUDGET", "1; or a site: north=0.5,south=2; or @sites.csv (.json, .toml).")],
    bounds: Annotated[str, option("LOW,HIGH", "Public limits of the records, beyond which nothing counts for more.")],
    site: Site = None,
    tail: Annotated[str, option("TAIL", "upper (losses) or lower (returns).")] = "upper",
    shares: Annotated[
        list[str] | None, option("SHARES", "What a site counts: pooled (default), equal, north=.3,south=.7, or @FILE.")
    ] = None,
    level: Level = 0.95,
    method: Annotated[str, option("METHOD", "certified, staged (a shorter interval of the quantile).")] = "certified",
    split: Annotated[float | None, option("PART", "Of the records, that answers for the quantile.")] = None,
    scale: Scale = None,
    resolution: Resolution = None,
    kind: Annotated[
        str | None, option("KIND", "What the records are: counts, scores (whole numbers), amounts.")
    ] = None,
    person: Person = None,
    drop_missing: DropMissing = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    explain: Explain = False,
    limit: Limit = None,
    json: Json = False,
    plot: Annotated[str | None, option("PATH", "Draw both intervals to a .png, .svg or .pdf file.")] = None,
    report: Report = None,
    save: Save = None,
    no_progress: NoProgress = False,
) -> None:
    """Estimate value at risk and expected shortfall: a quantile, and the mean of the records beyond it.

    Each record answers once through randomised response. All input is checked before any record answers.
    """
    study: dict[str, Any] = {
        "epsilon": options.per_site(options.joined_pairs(epsilon, "--epsilon") or "", "epsilon"),
        "bounds": options.pair(bounds),
        "level": level,
        "tail": tail,
        "method": method,
        "split": split,
        "shares": options.shares(options.joined_pairs(shares, "--shares") or "pooled"),
        "scale": options.number_or_text(scale),
        "resolution": options.number_or_text(resolution),
        "kind": kind,
    }

    from sottovoce.api import tables
    from sottovoce.api.quantile.shortfall import plan_shortfall, run_shortfall

    check_outputs(plot, report, save)
    marks: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal}
    missing = "drop" if drop_missing else "refuse"
    table = tables.read_files(files, value=value, site=site, person=person, missing=missing, **marks)
    planned = plan_shortfall(table, tau, **study)
    if explain:
        show_plan(planned.explain(), json, plot, report, save=save)
        return
    set_limit(limit)
    say_before(planned.warnings)
    with progress_bar(sum(held.size for held in table.records), wanted=not no_progress) as progress:
        found = run_shortfall(planned, progress=progress)
    show(found, found.to_dict(), [in_options(found.summary())], json, plot, report, save)
