"""Every question can be explained before it is asked: what it asks, what it protects, how wide the answer will be."""

from collections.abc import Callable
from typing import Any

from sottovoce.core.checks import nearest
from sottovoce.core.errors import BadInput
from sottovoce.server.explanation import Explanation

FUNCTIONS = (
    "federated_quantile",
    "federated_quantiles",
    "group_quantiles",
    "quantile_difference",
    "expected_shortfall",
    "integrated_quantile",
    "conformal_threshold",
    "conformal_thresholds",
    "coverage_report",
)


def explain(question: Any, *args: Any, **settings: Any) -> Explanation:
    """Say what a call would ask, what it would protect and how wide its interval would be, asking nobody.

    Parameters
    ----------
    question
        A function or estimator of this package: `federated_quantile`, `federated_quantiles`, `group_quantiles`,
        `quantile_difference`, `expected_shortfall`, `integrated_quantile`, `conformal_threshold`,
        `conformal_thresholds`, `coverage_report`, or a `PrivateQuantileRegressor`, `FederatedConformalRegressor` or
        `FederatedConformalClassifier`.
    *args, **settings
        What the function, or the estimator's ``fit`` or ``conformalize``, would be called with. All of it is checked.

    Returns
    -------
    The explanation: print it, or take its ``width``, ``warnings``, ``privacy`` and ``to_dict()``. The width is told in
    levels of the quantile, and in values where a public scale is known.

    Examples
    --------
    >>> import sottovoce as sv
    >>> waits = sv.sim.dice(1).generator().gamma(2.0, 10.0, 60_000)
    >>> plan = sv.explain(sv.federated_quantile, [waits], 0.5, 1.0)
    >>> round(plan.width, 3), plan.widths[0].text
    (0.02, 'from about the 0.49 to the 0.51 quantile')
    """
    owner, name = getattr(question, "__self__", None), getattr(question, "__name__", "")
    if owner is not None and name == "report":
        from sottovoce.api.conformal.report import coverage_report

        return explain(coverage_report, owner, *args, **settings)
    estimator = question if owner is None else owner
    if callable(call := getattr(estimator, "_explain_call", None)):
        found: Explanation = call(*args, **settings)
        return found
    if name not in FUNCTIONS or not getattr(question, "__module__", "").startswith("sottovoce."):
        raise BadInput(
            f"explain knows no plan of {name or type(question).__name__!r}{nearest(name, FUNCTIONS)}; give one of "
            f"{', '.join(FUNCTIONS)}, or an estimator of this package."
        )
    settings.pop("progress", None)
    seeded = settings.get("randomness") is not None
    if name == "expected_shortfall" or ("quantile" in name and name != "integrated_quantile"):
        settings.pop("randomness", None)
    explained: Explanation = _planner(name)(*args, **settings).explain(seeded)
    return explained


def _planner(name: str) -> Callable[..., Any]:
    """Return what checks the input of a function and plans it, loading no other method."""
    if name == "federated_quantile":
        from sottovoce.api.quantile.planning import plan_study

        return plan_study
    if name == "federated_quantiles":
        from sottovoce.api.quantile.levels import plan_levels

        return plan_levels
    if name == "group_quantiles":
        from sottovoce.api.quantile.groups import plan_groups

        return plan_groups
    if name == "quantile_difference":
        from sottovoce.api.quantile.difference import plan_difference

        return plan_difference
    if name == "expected_shortfall":
        from sottovoce.api.quantile.shortfall import plan_shortfall

        return plan_shortfall
    if name == "integrated_quantile":
        from sottovoce.api.integration import plan_integrated

        return plan_integrated
    if name == "conformal_threshold":
        from sottovoce.api.conformal.threshold import plan_threshold

        return plan_threshold
    if name == "conformal_thresholds":
        from sottovoce.api.conformal.thresholds import plan_thresholds

        return plan_thresholds
    from sottovoce.api.conformal.report import plan_report

    return plan_report
