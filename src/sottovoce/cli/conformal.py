"""`sottovoce conformal`: a threshold for the scores of a model, from many sites in one round, and whom it fails."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli import options
from sottovoce.cli.coverage import show
from sottovoce.cli.edges import edges
from sottovoce.cli.output import plain_errors
from sottovoce.cli.per_site import as_number, per_site
from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.server.conformal.settings import ConformalSettings

_PRIVATE = "with --epsilon"


def conformal(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES", help="Parquet, CSV or Arrow: one file a site, or any with --site; globs too."),
    ],
    score: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the scores: the larger, the worse the prediction was.")
    ],
    site: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that says where a score is held.")] = None,
    alpha: Annotated[str, typer.Option(metavar="PART", help="Part of new scores that may lie above.")] = "0.1",
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET",
            help="1; or a site: north=0.5,south=inf; or @sites.csv (.json, .toml). Without it sites send scores.",
        ),
    ] = None,
    maximum: Annotated[
        str | None,
        typer.Option(metavar="SCORE", help=f"Public end of the scores, chosen without a look at them ({_PRIVATE})."),
    ] = None,
    minimum: Annotated[
        str | None, typer.Option(metavar="SCORE", help=f"Public start of the scores; 0 by default ({_PRIVATE}).")
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(metavar="N", help=f"Steps of the public grid; 100, local 16, aggregate 32 ({_PRIVATE})."),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="EDGES", help=f"The grid itself: 0.1,0.2,0.5 or @edges.csv (.json, .txt) ({_PRIVATE})."),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"sparse-vector, exponential, paper, local, aggregate ({_PRIVATE})."),
    ] = "sparse-vector",
    guarantee: Annotated[
        str, typer.Option(metavar="NAME", help="marginal, or for one calibration: training-conditional.")
    ] = "marginal",
    delta: Annotated[
        str, typer.Option(metavar="PART", help="Part of calibrations that may fail (training-conditional).")
    ] = "0.1",
    rule: Annotated[
        str, typer.Option(metavar="RULE", help="closest (to 1 - alpha, in mean square), or paper.")
    ] = "closest",
    statistics: Annotated[
        str, typer.Option(metavar="N", help="Order statistics that a site sends, 1 to 5; without --epsilon.")
    ] = "1",
    exact: Annotated[
        bool, typer.Option("--exact", help="Draw one of two ranks: coverage 1 - alpha exactly; without --epsilon.")
    ] = False,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Make the person the unit of privacy: one score each is drawn."),
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave missing values out and count them.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Report the coverage site by site, worst first; a second round.")
    ] = False,
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES",
            help="Judge by fresh scores: all words up to the next option, with the same columns (--report).",
        ),
    ] = None,
    report_epsilon: Annotated[
        str | None,
        typer.Option(metavar="BUDGET", help="As --epsilon, for a noisy count a site; else not private (--report)."),
    ] = None,
    weights: Annotated[
        str,
        typer.Option(metavar="WEIGHTS", help="Of the mixture: sites, records, north=.3,south=.7, or @FILE (--report)."),
    ] = "sites",
    level: Annotated[str, typer.Option(metavar="LEVEL", help="Confidence level of the intervals (--report).")] = "0.95",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
    plot: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Draw coverage by site (--report), or its law: .png, .svg or .pdf."),
    ] = None,
) -> None:
    """Find the score that new ones exceed with probability alpha at most, each site sending one message.

    All scores up to it make a prediction set. All input is checked before any record answers.
    """
    with plain_errors():
        asked: dict[str, Any] = {
            "alpha": as_number(alpha, "--alpha", "give 0.1 for a coverage of 0.9"),
            "epsilon": None if epsilon is None else per_site(epsilon, "epsilon"),
            "maximum": None if maximum is None else as_number(maximum, "--maximum"),
            "minimum": None if minimum is None else as_number(minimum, "--minimum"),
            "bins": options.whole(bins, "--bins"),
            "grid": edges(grid),
            "mechanism": mechanism,
            "guarantee": guarantee,
            "delta": as_number(delta, "--delta"),
            "rule": rule,
            "statistics": options.whole(statistics, "--statistics"),
            "exact": exact,
        }
        judged: dict[str, Any] = {
            "weights": options.shares(weights, "weights"),
            "level": as_number(level, "--level"),
            "epsilon": None if report_epsilon is None else per_site(report_epsilon, "report-epsilon"),
        }
        if not report:
            _refuse_idle(
                test=test, report_epsilon=report_epsilon, weights=weights != "sites", level=judged["level"] != 0.95
            )

        from sottovoce.api.conformal.reading import read_scores
        from sottovoce.api.conformal.report import check_report
        from sottovoce.api.conformal.threshold import conformal_threshold
        from sottovoce.server.quantile import plot as drawing

        settings = _settings(asked)
        if plot is not None:
            _refuse_no_law(settings, report)
            drawing.check_path(plot)
        columns: dict[str, Any] = {"score": score, "site": site, "person": person}
        columns["missing"] = "drop" if drop_missing else "refuse"
        table = read_scores(files, **columns)
        fresh = None
        if test:
            _refuse_nothing(test)
            fresh = read_scores(test, **columns, apart_from=files)
        if report:
            check_report(table if fresh is None else fresh, **judged, called="--report-epsilon")
        found = conformal_threshold(table, **asked)
        show(found, table, fresh, judged if report else None, json, plot)


def _settings(asked: dict[str, Any]) -> "ConformalSettings":
    """Check what the facade would refuse, before a file is opened, and a part of failures that nobody promises."""
    from sottovoce.server.conformal.settings import check_settings

    names = ("alpha", "guarantee", "delta", "rule", "statistics", "exact", "mechanism")
    settings = check_settings(**{name: asked[name] for name in names}, private=asked["epsilon"] is not None)
    if settings.delta != 0.1 and not settings.conditional:
        raise BadInput("--delta belongs to --guarantee training-conditional; choose that, or leave --delta out.")
    return settings


def _refuse_idle(**given: Any) -> None:
    """Refuse options that are about a report where there is none."""
    for name, present in given.items():
        if present:
            option = f"--{name.replace('_', '-')}"
            raise BadInput(f"{option} is about the report by site; add --report, or leave {option} out.")


def _refuse_no_law(settings: "ConformalSettings", report: bool) -> None:
    if settings.pooled and not report:
        raise BadInput(
            f"mechanism {settings.mechanism!r} knows bounds of its coverage, and no law to draw; add --report to draw "
            "coverage by site, or leave --plot out."
        )


def _refuse_nothing(test: list[str]) -> None:
    if "" in test:
        raise BadInput("--test names no file; give files of fresh scores, or leave --test out.")
