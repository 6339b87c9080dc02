"""Run with ``make bench``, or ``python -m benchmarks [PART ...] [--replications N] [--jobs N]``."""

import argparse
import os

from benchmarks import (
    absence,
    answered,
    answers,
    audit,
    certified,
    certified_peers,
    collector_load,
    conformal_pooled,
    conformal_private,
    conformal_real,
    conformal_speed,
    conformal_spread,
    federation,
    hostile,
    integration,
    integration_table_b2,
    large_site,
    ordinary,
    regression_default,
    regression_errors,
    regression_intervals,
    regression_speed,
    scale,
    speed,
    staged,
    walks,
)

PARTS = (
    "speed",
    "scale",
    "large-site",
    "answered",
    "hostile",
    "federation",
    "collector-load",
    "audit",
    "walks",
    "answers",
    "staged",
    "absence",
    "certified",
    "certified-peers",
    "ordinary",
    "regression-speed",
    "regression-intervals",
    "regression-errors",
    "integration",
    "integration-table-b2",
    "conformal-speed",
    "conformal-spread",
    "conformal-private",
    "conformal-pooled",
    "conformal-real",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--replications", type=int, default=400, help="replications a cell")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
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
    if "certified-peers" in options.parts:
        certified_peers.run(options.replications)
    if "regression-speed" in options.parts:
        regression_speed.run()
        regression_default.run()
    if "regression-intervals" in options.parts:
        regression_intervals.run(max(options.replications // 2, 40))
    if "regression-errors" in options.parts:
        regression_errors.run(max(options.replications // 4, 40))
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


if __name__ == "__main__":
    main()
