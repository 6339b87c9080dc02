"""Every question can be explained before it is asked: what it asks, what it protects, how wide the answer will be."""

from importlib import import_module
from typing import Any

from sottovoce.core.checks import nearest
from sottovoce.core.errors import BadInput
from sottovoce.server.explanation import Explanation

# What plans a function, by its name.
PLANS = {
    "federated_quantile": ("sottovoce.api.quantile.planning", "plan_study"),
    "federated_quantiles": ("sottovoce.api.quantile.levels", "plan_levels"),
    "quantile_difference": ("sottovoce.api.quantile.difference", "plan_difference"),
    "integrated_quantile": ("sottovoce.api.integration", "plan_integrated"),
    "conformal_threshold": ("sottovoce.api.conformal.threshold", "plan_threshold"),
    "coverage_report": ("sottovoce.api.conformal.report", "plan_report"),
}


def explain(question: Any, *args: Any, **settings: Any) -> Explanation:
    """Say what a call would ask, what it would protect and how wide its interval would be, asking nobody.

    Parameters
    ----------
    question
        A function or estimator of this package: `federated_quantile`, `federated_quantiles`, `quantile_difference`,
        `integrated_quantile`, `conformal_threshold`, `coverage_report`, or a `PrivateQuantileRegressor`,
        `FederatedConformalRegressor` or `FederatedConformalClassifier`.
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
        return explain(import_module("sottovoce.api.conformal.report").coverage_report, owner, *args, **settings)
    estimator = question if owner is None else owner
    if callable(call := getattr(estimator, "_explain_call", None)):
        found: Explanation = call(*args, **settings)
        return found
    if name not in PLANS or not getattr(question, "__module__", "").startswith("sottovoce."):
        raise BadInput(
            f"explain knows no plan of {name or type(question).__name__!r}{nearest(name, PLANS)}; give one of "
            f"{', '.join(PLANS)}, or an estimator of this package."
        )
    home, plan = PLANS[name]
    settings.pop("progress", None)
    seeded = settings.get("randomness") is not None
    if name not in ("integrated_quantile", "conformal_threshold", "coverage_report"):
        settings.pop("randomness", None)
    planned: Any = getattr(import_module(home), plan)(*args, **settings)
    explained: Explanation = planned.explain(seeded)
    return explained
