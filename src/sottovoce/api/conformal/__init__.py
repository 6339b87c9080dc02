"""Conformal prediction where the scores are; thresholds learn here to report on scores, which no server holds."""

from typing import TYPE_CHECKING, Any

from sottovoce.server.conformal.base import Threshold

if TYPE_CHECKING:
    from sottovoce.server.conformal.report import CoverageReport


def _report(threshold: Threshold, scores: Any, **settings: Any) -> "CoverageReport":
    """Report the coverage of a threshold site by site, worst first."""
    from sottovoce.api.conformal.report import coverage_report

    return coverage_report(threshold, scores, **settings)


Threshold.reporter = _report
