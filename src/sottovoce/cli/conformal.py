"""`sottovoce conformal`: a threshold for the scores of a model, from many sites in one round, and whom it fails."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from sottovoce.cli import options
from sottovoce.cli.command import Command, plain_errors
from sottovoce.cli.limit import both, set_limit
from sottovoce.cli.options import (
    BUDGET,
    Decimal,
    Delimiter,
    DropMissing,
    Explain,
    Files,
    Json,
    Limit,
    Report,
    Save,
    flag,
    option,
)
from sottovoce.cli.output import (
    check_outputs,
    draw,
    in_options,
    keep,
    printed,
    say_before,
    say_hints,
    show_plan,
    write_report,
)
from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.api.tables import SiteTable
    from sottovoce.server.conformal.settings import ConformalSettings

_PRIVATE = "with --epsilon"
_TEST = "--test"


def conformal(
    files: Files,
    score: Annotated[str, option("COLUMN", "Column of the scores: the larger, the worse the prediction was.")],
    site: Annotated[str | None, option("COLUMN", "Column that says where a score is held.")] = None,
    alpha: Annotated[str, option("PART", "Part of new scores that may lie above.")] = "0.1",
    epsilon: Annotated[list[str] | None, option("BUDGET", f"{BUDGET} Without it sites send scores.")] = None,
    maximum: Annotated[
        str | None, option("SCORE", f"Public end of the scores, chosen without a look at them ({_PRIVATE}).")
    ] = None,
    minimum: Annotated[str | None, option("SCORE", f"Public start of the scores; 0 by default ({_PRIVATE}).")] = None,
    bins: Annotated[
        str | None, option("N", f"Equal steps of the public grid; unless given, equal ratios ({_PRIVATE}).")
    ] = None,
    grid: Annotated[
        list[str] | None, option("EDGES", f"The grid itself: 0.1,0.2,0.5 or @edges.csv (.json, .txt) ({_PRIVATE}).")
    ] = None,
    mechanism: Annotated[
        str, option("NAME", f"auto, sparse-vector, counts, exponential, paper, local, aggregate ({_PRIVATE}).")
    ] = "auto",
    by: Annotated[
        list[str] | None,
        option("GROUPS", "A threshold each: site, or north=coast,south=hills, or @FILE.csv (columns site, by)."),
    ] = None,
    group: Annotated[
        str | None, option("COLUMN", "Column of groups of scores, which is public: a threshold each, instead of --by.")
    ] = None,
    small: Annotated[
        str, option("NAME", "What groups too small for their own have: common, together, infinite, refuse (--by).")
    ] = "common",
    simultaneous: Annotated[
        bool, flag("--simultaneous", "All thresholds hold at once; training-conditional (--by).")
    ] = False,
    guarantee: Annotated[str, option("NAME", "marginal, or for one calibration: training-conditional.")] = "marginal",
    delta: Annotated[str, option("PART", "Part of calibrations that may fail (training-conditional).")] = "0.1",
    rule: Annotated[str, option("RULE", "closest (to 1 - alpha, in mean square), or paper.")] = "closest",
    statistics: Annotated[str, option("N", "Order statistics that a site sends, 1 to 5; without --epsilon.")] = "1",
    exact: Annotated[
        bool, flag("--exact", "Draw one of two ranks: coverage 1 - alpha exactly; without --epsilon.")
    ] = False,
    person: Annotated[
        str | None, option("COLUMN", "Make the person the unit of privacy: one score each is drawn.")
    ] = None,
    drop_missing: DropMissing = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    coverage: Annotated[bool, flag("--coverage", "Tell the coverage by site, worst first; a second round.")] = False,
    test: Annotated[
        list[str] | None,
        option("FILES", "Judge by fresh scores: all words up to the next option, with the same columns (--coverage)."),
    ] = None,
    coverage_epsilon: Annotated[
        list[str] | None, option("BUDGET", "As --epsilon, for a noisy count a site; else not private (--coverage).")
    ] = None,
    weights: Annotated[
        list[str] | None,
        option("WEIGHTS", "Of the mixture: sites (default), records, north=.3,south=.7, or @FILE (--coverage)."),
    ] = None,
    level: Annotated[str, option("LEVEL", "Confidence level of the intervals (--coverage).")] = "0.95",
    explain: Explain = False,
    limit: Limit = None,
    json: Json = False,
    plot: Annotated[
        str | None, option("PATH", "Draw coverage by site (--coverage), or its distribution: .png, .svg or .pdf.")
    ] = None,
    report: Report = None,
    save: Save = None,
) -> None:
    """Find the score that new ones exceed with probability alpha at most, each site sending one message.

    All scores up to it make a prediction set. With --by each site, or each group of sites, has a threshold of its own.
    All input is checked before any record answers.
    """
    budget = options.joined_pairs(epsilon, "--epsilon")
    noise = options.joined_pairs(coverage_epsilon, "--coverage-epsilon")
    asked: dict[str, Any] = {
        "alpha": options.number(alpha, "--alpha", "give 0.1 for a coverage of 0.9"),
        "epsilon": None if budget is None else options.per_site(budget, "epsilon"),
        "maximum": options.number(maximum, "--maximum"),
        "minimum": options.number(minimum, "--minimum"),
        "bins": options.whole(bins, "--bins"),
        "grid": options.edges(options.joined(grid, "--grid")),
        "mechanism": mechanism,
        "guarantee": guarantee,
        "delta": options.number(delta, "--delta"),
        "rule": rule,
        "statistics": options.whole(statistics, "--statistics"),
        "exact": exact,
    }
    judged: dict[str, Any] = {
        "weights": options.shares(options.joined_pairs(weights, "--weights") or "sites", "weights"),
        "level": options.number(level, "--level"),
        "epsilon": None if noise is None else options.per_site(noise, "coverage-epsilon"),
    }
    parted = options.joined_pairs(by, "--by")
    if group is not None and (parted is not None or coverage):
        other = "--by names other groups" if parted is not None else "--coverage judges each site by one threshold"
        raise BadInput(f"--group is a threshold for each group of a column, and {other}; leave one out.")
    if parted is None and group is None:
        options.refuse_given(
            "{option} is about thresholds by group; add --by or --group, or leave {option} out.",
            small=small != "common",
            simultaneous=simultaneous,
        )
    if not coverage:
        options.refuse_given(
            "{option} is about the coverage by site; add --coverage, or leave {option} out.",
            test=bool(test),
            coverage_epsilon=bool(coverage_epsilon),
            weights=bool(weights),
            level=judged["level"] != 0.95,
        )

    from sottovoce.api.conformal.report import check_report, plan_report
    from sottovoce.api.conformal.threshold import plan_threshold, read_scores, run_threshold

    settings = _settings(asked)
    by_group = parted is not None or group is not None
    if plot is not None and settings.pooled and not coverage and not by_group:
        raise BadInput(
            f"mechanism {settings.mechanism!r} knows bounds of its coverage, and no distribution to draw; add "
            "--coverage to draw coverage by site, or leave --plot out."
        )
    check_outputs(plot, report, save)
    columns: dict[str, Any] = {"score": score, "site": site, "person": person}
    columns |= {"delimiter": delimiter, "decimal": decimal}
    columns["missing"] = "drop" if drop_missing else "refuse"
    table = read_scores(files, group=group, **columns)
    fresh = None
    if test:
        if "" in test:
            raise BadInput("--test names no file; give files of fresh scores, or leave --test out.")
        fresh = read_scores(test, **columns, apart_from=files)
    if coverage:
        check_report(table if fresh is None else fresh, **judged, called="--coverage-epsilon")
    planned: Any
    run: Any = run_threshold
    if not by_group:
        planned = plan_threshold(table, **asked)
    else:
        from sottovoce.api.conformal.thresholds import plan_thresholds, run_thresholds

        groups = "group" if parted is None else options.groups(parted)
        planned = plan_thresholds(table, by=groups, small=small, simultaneous=simultaneous, **asked)
        run = run_thresholds
    # what the second round cannot do is refused before the first
    second = [plan_report(planned.promised, table if fresh is None else fresh, **judged)] if coverage else []
    if explain:
        show_plan(planned.explain(), json, plot, report, *(each.explain() for each in second), save=save)
        return
    set_limit(limit, planned.budgets, *(each.budgets for each in second if fresh is None))
    say_before(planned.warnings)
    found = run(planned)
    _show(found, table, fresh, judged if coverage else None, json, plot, report, save)


def _settings(asked: dict[str, Any]) -> "ConformalSettings":
    """Check what the study would refuse, before a file is opened, and a part of failures that nobody promises."""
    from sottovoce.server.conformal.settings import check_settings

    names = ("alpha", "guarantee", "delta", "rule", "statistics", "exact", "mechanism")
    settings = check_settings(**{name: asked[name] for name in names}, private=asked["epsilon"] is not None)
    if settings.delta != 0.1 and not settings.conditional:
        raise BadInput("--delta belongs to --guarantee training-conditional; choose that, or leave --delta out.")
    return settings


def _show(
    found: Any,
    table: "SiteTable",
    fresh: "SiteTable | None",
    judged: dict[str, Any] | None,
    json: bool,
    plot: str | None,
    report: str | None,
    save: str | None,
) -> None:
    """Judge, draw and print; the message is spent, so nothing that fails from here on may cost the answer."""
    payload = {**found.describe().values, **_left_out(table)}
    lines = [in_options(found.summary()), *_in_words(table)]
    with printed(payload, lines, json):
        say_hints(found)
        keep(found, payload, lines, save)
        drawn: Any = found
        if judged is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # what both rounds cost is said in their own line
                drawn = found.coverage_by_site(table if fresh is None else fresh, **judged)
            together = None if fresh is not None else _together(found.epsilon, drawn.epsilon)
            payload["coverage_by_site"] = {
                **drawn.describe().values,
                **_left_out(table if fresh is None else fresh),
                "judged_by": "calibration" if fresh is None else "test",
                "epsilon_of_both_rounds": together,
            }
            lines += ["", _judged(table, fresh, together), drawn.summary()]
            lines += [] if fresh is None else _in_words(fresh)
        draw(drawn, payload, lines, plot)
        write_report(drawn, payload, lines, report)


def _left_out(table: "SiteTable") -> dict[str, int]:
    """Count the rows of files that are no scores."""
    return {"dropped": sum(table.dropped.values()), "unplaced": table.unplaced, "further_rows": table.left_out}


def _in_words(table: "SiteTable") -> list[str]:
    """Say which rows were left out beside missing values, which the table tells."""
    lines = []
    if table.unplaced:
        lines.append(f"Left out:      {table.unplaced:,} rows without a site")
    if table.per_person:
        lines.append(f"Person:        one score each, drawn at random; {table.left_out:,} further rows left out")
    return lines


def _together(first: Mapping[str, float] | None, second: Mapping[str, float] | None) -> dict[str, float] | None:
    """Return what both rounds cost a score of each site, where both were private."""
    if first is None or second is None:
        return None
    return both(first, second)


def _judged(table: "SiteTable", fresh: "SiteTable | None", together: Mapping[str, float] | None) -> str:
    """Say by which scores the threshold is judged, and what that adds to their cost."""
    if fresh is not None:
        return f"Judged by {sum(records.size for records in fresh.records):,} fresh scores:"
    text = f"Judged by the {sum(records.size for records in table.records):,} scores that made it"
    if together is None:
        return f"{text}:"
    return f"{text}; both rounds cost a score up to epsilon {max(together.values()):.4g}:"


class SeveralTests(Command):
    """A command whose --test takes all words up to the next option, since a shell writes a glob out into many words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its words; what --report meant once is called --coverage now."""
        with plain_errors():
            _refuse_former(args)
        return super().parse_args(ctx, repeated(args))


def _refuse_former(words: list[str]) -> None:
    """Refuse the former names of options, each with the one it has now."""
    for place, word in enumerate(words):
        name = word.partition("=")[0]
        if name == "--report-epsilon":
            raise BadInput("--report-epsilon is called --coverage-epsilon now; write that.")
        after = words[place + 1] if place + 1 < len(words) else "-"
        if word == "--report" and (after.startswith("-") or not after.lower().endswith((".html", ".htm"))):
            raise BadInput("--report PATH writes a page to a .html file; for the coverage by site write --coverage.")


def repeated(words: list[str]) -> list[str]:
    """Write the option before each of its words; without a word it has an empty one.

    >>> repeated(["old.csv", "--test", "a.csv", "b.csv", "--json", "new.csv"])
    ['old.csv', '--test', 'a.csv', '--test', 'b.csv', '--json', 'new.csv']
    >>> repeated(["--test", "--json"])
    ['--test', '', '--json']
    """
    written: list[str] = []
    inside = bare = False
    for place, word in enumerate(words):
        if inside and not word.startswith("-"):
            written += [_TEST, word]
            bare = False
            continue
        written += [_TEST, ""] if bare else []
        inside = bare = word == _TEST
        if word == "--":
            return written + words[place:]
        written += [] if inside else [word]
    return written + ([_TEST, ""] if bare else [])
