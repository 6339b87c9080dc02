"""Run with ``make bench``, or ``python -m benchmarks [PART ...] [--replications N] [--jobs N]``."""

import argparse
import os
from pathlib import Path

from benchmarks import (
    absence,
    answered,
    answers,
    audit,
    censored,
    certified,
    certified_peers,
    collector_coverage,
    collector_crash,
    collector_fuzz,
    collector_late,
    collector_load,
    collector_memory,
    collector_postgres,
    collector_workers,
    conformal_groups,
    conformal_pooled,
    conformal_private,
    conformal_real,
    conformal_small,
    conformal_speed,
    conformal_spread,
    federation,
    groups,
    hostile,
    integration,
    integration_table_b2,
    large_site,
    ordinary,
    plan,
    regression_default,
    regression_errors,
    regression_intervals,
    regression_plans,
    regression_speed,
    regression_tables,
    regression_ways,
    scale,
    shortfall,
    speed,
    staged,
    walks,
    weights,
)

PARTS = (
    "speed",
    "scale",
    "large-site",
    "answered",
    "hostile",
    "federation",
    "collector-load",
    "collector-workers",
    "collector-postgres",
    "collector-crash",
    "collector-fuzz",
    "collector-memory",
    "collector-late",
    "collector-coverage",
    "audit",
    "walks",
    "answers",
    "staged",
    "absence",
    "certified",
    "certified-peers",
    "shortfall",
    "groups",
    "weights",
    "ordinary",
    "plan",
    "regression-speed",
    "regression-intervals",
    "regression-errors",
    "regression-tables",
    "regression-plans",
    "regression-ways",
    "integration",
    "integration-table-b2",
    "conformal-speed",
    "conformal-spread",
    "conformal-private",
    "conformal-pooled",
    "conformal-real",
    "conformal-small",
    "conformal-groups",
    "censored",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--replications", type=int, default=400, help="replications a cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e9, help="of regression-tables: begin no fit after them")
    parser.add_argument("--output", type=Path, default=regression_tables.OUTPUT, help="of regression-tables")
    parser.add_argument("--seed", type=int, default=501, help="of regression-intervals")
    parser.add_argument(
        "--cells",
        nargs="*",
        default=[],
        help="of regression-intervals: design,tau,epsilon; of regression-tables: flights, or flights:0.75:2; of "
        "groups and weights: words in the names of cells",
    )
    parser.add_argument("--people", type=int, nargs="*", help="of regression-intervals, ascending")
    parser.add_argument("--out", type=Path, help="of regression-intervals: a file to go on from")
    parser.add_argument(
        "--seconds", type=float, default=regression_intervals.LONGEST, help="after which nothing begins"
    )
    options = parser.parse_args()
    if "speed" in options.parts:
        speed.run()
    if "scale" in options.parts:
        scale.run()
    if "large-site" in options.parts:
        large_site.run()
    if "answered" in options.parts:
        answered.run()
    if "federation" in options.parts:
        federation.run()
    if "collector-load" in options.parts:
        collector_load.run()
    if "collector-workers" in options.parts:
        collector_workers.run()
    if "collector-postgres" in options.parts:
        collector_postgres.run()
    if "hostile" in options.parts:
        hostile.run()
    if "audit" in options.parts:
        audit.run(max(options.replications, 1000))
    if "walks" in options.parts:
        walks.run(max(options.replications, 1000), options.jobs)
    if "answers" in options.parts:
        answers.run(max(options.replications, 600), options.jobs)
    if "staged" in options.parts:
        staged.run(options.replications, options.jobs)
    if "absence" in options.parts:
        absence.run(options.replications, options.jobs)
    if "certified" in options.parts:
        certified.run(max(options.replications // 4, 40), options.jobs)
    if "ordinary" in options.parts:
        ordinary.run(max(options.replications // 2, 200), options.jobs)
    if "plan" in options.parts:
        plan.run(max(options.replications // 40, 9), options.jobs)
    if "certified-peers" in options.parts:
        certified_peers.run(options.replications)
    if "shortfall" in options.parts:
        shortfall.run(max(options.replications // 4, 60), options.jobs)
    if "groups" in options.parts:
        groups.run(max(options.replications // 10, 40), options.jobs, options.cells)
    if "weights" in options.parts:
        weights.run(max(options.replications // 4, 25), options.jobs, options.cells)
    if "regression-speed" in options.parts:
        regression_speed.run()
        regression_default.run()
    if "regression-intervals" in options.parts:
        regression_intervals.run(
            options.replications,
            options.jobs,
            options.seed,
            options.cells,
            options.out,
            options.people or regression_intervals.PEOPLE,
            options.seconds,
        )
    if "regression-errors" in options.parts:
        regression_errors.run(max(options.replications // 4, 40))
    if "regression-tables" in options.parts:
        most = max(options.replications // 10, 4) if len(options.parts) > 1 else options.replications
        regression_tables.run(options.cells, most, options.jobs, options.output, options.minutes)
    if "regression-plans" in options.parts:
        most = max(options.replications // 10, 8) if len(options.parts) > 1 else options.replications
        regression_plans.run(most, options.cells, options.people or regression_plans.PEOPLE, jobs=options.jobs)
    if "regression-ways" in options.parts:
        regression_ways.run(max(options.replications // 10, 60), options.jobs)
    if "integration" in options.parts:
        integration.run(max(options.replications, 400), options.jobs)
    if "integration-table-b2" in options.parts:
        integration_table_b2.run(max(options.replications, 2000))
    if "conformal-speed" in options.parts:
        conformal_speed.run()
    if "conformal-spread" in options.parts:
        conformal_spread.run(max(options.replications, 4000))
    if "conformal-private" in options.parts:
        conformal_private.run(max(options.replications, 4000))
    if "conformal-pooled" in options.parts:
        conformal_pooled.run(max(options.replications, 4000))
    if "conformal-real" in options.parts:
        conformal_real.run()
    if "conformal-small" in options.parts:
        conformal_small.run(max(options.replications, 2000))
    if "conformal-groups" in options.parts:
        conformal_groups.run(options.replications)
    if "censored" in options.parts:
        censored.run(max(options.replications // 7, 40), options.jobs)

    if "collector-crash" in options.parts:
        collector_crash.run()
    if "collector-fuzz" in options.parts:
        collector_fuzz.run()
    if "collector-memory" in options.parts:
        collector_memory.run()
    if "collector-late" in options.parts:
        collector_late.run()
    if "collector-coverage" in options.parts:
        collector_coverage.run(max(options.replications // 2, 40), options.jobs)


if __name__ == "__main__":
    main()
