"""`sv.plan`: two of width, epsilon and people give the third, from public guesses, before anybody is asked."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sottovoce.core.calling import public
from sottovoce.core.checks import confidence, dimensions, label_text, number, per_site, quantile_level, unknown
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.planner.crowd import WHOLE, PlannedCrowd, read_crowd
from sottovoce.planner.forecast import StudyForecast
from sottovoce.planner.guess import PublicGuess, read_guess
from sottovoce.planner.question import Budgets, PlannedQuestion
from sottovoce.planner.search import Wish, advice, budget_words, epsilon_for, meets, people_for
from sottovoce.protocol.randomised_response import binary

QUESTIONS = ("quantile", "difference", "regression", "integration", "conformal")
FUNCTIONS = {
    "federated_quantile": "quantile",
    "federated_quantiles": "quantile",
    "quantile_difference": "difference",
    "PrivateQuantileRegressor": "regression",
    "integrated_quantile": "integration",
    "conformal_threshold": "conformal",
}
BELONGS = {  # what only some questions know
    "features": ("regression",),
    "target": ("integration",),
    "alpha": ("conformal",),
    "mechanism": ("conformal",),
    "guarantee": ("conformal",),
    "bins": ("conformal",),
    "shares": ("quantile", "difference"),
    "groups": ("quantile", "difference"),
    "kind": ("quantile", "difference"),
    "resolution": ("quantile", "difference", "integration"),
    "method": ("quantile", "difference", "integration"),
    **dict.fromkeys(("tau", "bounds", "sd", "iqr", "density", "shape"), QUESTIONS[:4]),
}


@public
def plan(
    question: Any = "quantile",
    *,
    tau: Any = None,
    epsilon: Any = None,
    people: Any = None,
    width: Any = None,
    sites: Any = None,
    groups: Any = None,
    bounds: Any = None,
    sd: float | None = None,
    iqr: float | None = None,
    density: float | None = None,
    shape: str | None = None,
    level: float = 0.95,
    method: str | None = None,
    resolution: float | None = None,
    kind: str | None = None,
    shares: Any = None,
    features: Any = None,
    target: str | None = None,
    alpha: float | None = None,
    mechanism: str | None = None,
    guarantee: str | None = None,
    bins: int | None = None,
) -> StudyForecast:
    """Plan a study before anybody is asked: give two of ``epsilon``, ``people`` and ``width``, and get the third.

    Parameters
    ----------
    question
        "quantile" (default), "difference" (of two groups), "regression", "integration" (one site helped by others) or
        "conformal"; or the function of this package that will ask it.
    tau
        The level (0.5 unless given); a list for several levels at once, a mapping from site to level.
    epsilon
        The budget of a person's one report, or a mapping from site (or group) to budget; ``math.inf`` for no privacy.
    people
        How many will answer: in all, or a mapping from site to people; of several groups, a mapping from group to
        people or to such a mapping.
    width
        How long the interval may be, in values (in levels, if nothing is guessed); a mapping for some of several.
    sites
        Where ``people`` is one number or is wanted: how many sites of one size, or their names.
    groups
        True: every name of ``people`` is a group with an interval of its own. Where people are wanted, their names.
    bounds, sd, iqr, density
        A public guess of the values: limits, standard deviation, interquartile range, or density at the quantile. One
        is enough; none of them is looked up in records.
    shape
        "normal", "uniform", "exponential" or "lognormal" values, if that is publicly known; else the width is told
        for a normal shape (between bounds: a uniform one), with its range over the others.
    level
        The confidence level.
    method
        Of a quantile "staged" (default), "certified" or "sequence"; of an integration "valid" or "conservative".
    resolution, kind, shares
        As for `federated_quantile`.
    features
        Of a regression: a mapping from column to its public bounds.
    target
        Of an integration: the site whose quantile is wanted.
    alpha, mechanism, guarantee, bins
        Of a conformal threshold, as for `conformal_threshold`; its width is in levels of the scores.

    Returns
    -------
    The plan: widths with their range, people, epsilon, a table of widths by people and budget, and what a trusted
    curator, or no privacy at all, would come to. `Infeasible` says what an impossible wish would need.

    Examples
    --------
    >>> import sottovoce as sv
    >>> round(sv.plan(epsilon=1, people=10_000, sd=15).width, 2)
    2.17
    >>> sv.plan(epsilon=1, width=1, sd=15).people
    35700
    >>> sv.plan(people=20_000, width=1, sd=15).epsilon
    1.45
    """
    asked = _kind(question)
    given = {
        "tau": tau, "bounds": bounds, "sd": sd, "iqr": iqr, "density": density, "shape": shape, "method": method,
        "resolution": resolution, "kind": kind, "shares": shares, "groups": groups, "features": features,
        "target": target, "alpha": alpha, "mechanism": mechanism, "guarantee": guarantee, "bins": bins,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None and asked not in BELONGS[name]:
            raise BadInput(f"{name} says nothing of question {asked!r}; leave it out.", parameter=name)
    if sum(each is not None for each in (epsilon, people, width)) < 2:
        raise BadInput(
            "give two of epsilon, people and width, and the third is found.", parameter=("epsilon", "people", "width")
        )
    confidence(level)
    crowd = _crowd(asked, people, sites, groups, target, epsilon)
    wish = None if width is None else Wish(width)
    paid = None if epsilon is None else _budgets(epsilon, crowd)
    found = _question(asked, given, level, crowd, paid)
    return _forecast(asked, found, crowd, paid, wish)


def _forecast(
    asked: str, question: PlannedQuestion, crowd: PlannedCrowd, epsilon: Budgets | None, wish: Wish | None
) -> StudyForecast:
    """Find what is not given, or refuse a wish with what it would need."""
    wanted = "width" if wish is None else "people" if not crowd.known else "epsilon" if epsilon is None else "nothing"
    if wish is None:
        assert epsilon is not None
        return StudyForecast(asked, question, crowd, epsilon, wish, wanted)
    if wanted == "people":
        assert epsilon is not None
        enough = people_for(question, wish, crowd, epsilon)
        if enough is None:
            raise Infeasible(
                f"no number of people brings {wish.words} at {budget_words(epsilon)}; wish for a wider one."
            )
        return StudyForecast(asked, question, crowd.of(enough), epsilon, wish, wanted)
    if wanted == "epsilon":
        budget = epsilon_for(question, wish, crowd)
        if budget is None:
            needs = advice(question, wish, crowd, None) or f"{wish.words} is out of reach of any epsilon and people"
            raise Infeasible(f"{needs}; ask more, or wish for a wider one.")
        return StudyForecast(asked, question, crowd, budget, wish, wanted)
    assert epsilon is not None
    if not meets(question, wish, crowd, epsilon):
        needs = advice(question, wish, crowd, epsilon) or f"{wish.words} is out of reach with more people or epsilon"
        raise Infeasible(f"{needs}; {_instead(question, crowd, epsilon)}.")
    return StudyForecast(asked, question, crowd, epsilon, wish, wanted)


def _instead(question: PlannedQuestion, crowd: PlannedCrowd, epsilon: Budgets) -> str:
    """Say what the people and the budget that were given come to."""
    there = f"{crowd.total:,.0f} people at {budget_words(epsilon)}"
    try:
        widest = max(each.value for each in question.wished(question.widths(crowd, epsilon)))
    except Infeasible:
        return f"{there} give no interval"
    return f"{there} give about {widest:.3g}" if math.isfinite(widest) else f"{there} leave an end open"


def _kind(question: Any) -> str:
    """Return which question is planned, by its name or by the function that asks it."""
    name = question if isinstance(question, str) else getattr(question, "__name__", type(question).__name__)
    kind = FUNCTIONS.get(name, name)
    if kind not in QUESTIONS:
        raise unknown("question", name, QUESTIONS)
    return kind


def _crowd(asked: str, people: Any, sites: Any, groups: Any, target: Any, epsilon: Any) -> PlannedCrowd:
    """Return who would be asked."""
    if asked == "difference":
        groups = True if isinstance(people, Mapping) else groups or ("first", "second")
    if groups and groups is not True:
        groups = [groups] if isinstance(groups, str) else list(groups)
        if people is not None and not isinstance(people, Mapping):
            raise BadInput("people must say how many each group has; give a mapping from group to people.")
    if people is None and sites is None and not groups and isinstance(epsilon, Mapping):
        sites = [label_text(name) for name in epsilon]
    if asked == "integration":
        if target is None:
            raise BadInput("an integration is about one site; name it with target=.", parameter="target")
        if people is None and sites is None:
            sites = [target, "source"]
    crowd = read_crowd(people, sites, groups)
    several = len(crowd.groups) > 1 or crowd.groups[0].name != WHOLE
    if asked == "difference" and len(crowd.groups) != 2:
        raise BadInput(f"a difference is between two groups, and people names {len(crowd.groups)}; name two.")
    if asked not in ("quantile", "difference") and several:
        raise BadInput(f"question {asked!r} has no groups; give people by site.")
    if asked == "integration" and target not in crowd.groups[0].sites:
        raise BadInput(f"target {target!r} is none of the sites; name it in people, or in sites.", parameter="target")
    return crowd


def _budgets(epsilon: Any, crowd: PlannedCrowd) -> Budgets:
    """Return what records pay, checked by the channel that they would answer through."""
    from sottovoce.planner.quantile import check_named, own

    if not isinstance(epsilon, Mapping):
        paid = number(epsilon, "epsilon")
        binary(paid)
        return paid
    check_named(epsilon, crowd, "epsilon")
    found: dict[str, float] = {}
    for group in crowd.groups:
        for site, (value, where) in zip(
            group.sites, per_site(own(epsilon, group), group.sites, "epsilon"), strict=True
        ):
            found[site] = number(value, where)
            binary(found[site])
    return found


def _question(asked: str, given: dict[str, Any], level: float, crowd: PlannedCrowd, paid: Any) -> PlannedQuestion:
    """Return the forward direction of a question, loading no other method."""
    if asked == "conformal":
        from sottovoce.planner.conformal import ConformalQuestion, conformal_settings

        private = paid is None or isinstance(paid, Mapping) or math.isfinite(paid)
        alpha = 0.1 if given["alpha"] is None else given["alpha"]
        settings = conformal_settings(alpha, given["mechanism"], given["guarantee"] or "marginal", private)
        return ConformalQuestion(settings if private else _bare(settings), given["bins"])
    guess = read_guess(*(given[name] for name in ("bounds", "sd", "iqr", "density", "shape")))
    tau = _taus(0.5 if given["tau"] is None else given["tau"], crowd)
    if asked == "regression":
        from sottovoce.planner.regression import RegressionQuestion

        if isinstance(tau, Mapping):
            raise BadInput("tau of a regression is one level or a list of levels; give 0.5.")
        return RegressionQuestion(tau, level, guess, _features(given["features"]))
    known: dict[str, Any] = {"bounds": given["bounds"], "resolution": given["resolution"]}
    if asked == "integration":
        from sottovoce.planner.integration import METHODS, IntegrationQuestion, integration_settings

        if isinstance(tau, Mapping | tuple):
            raise BadInput("an integration has one level; give tau=0.5.")
        how = given["method"] or "valid"
        if how not in METHODS:
            raise unknown("method", how, METHODS)
        return IntegrationQuestion(tau, str(given["target"]), integration_settings(tau, how, level), guess, known)
    return _quantile(asked, given, level, tau, guess, known)


def _quantile(
    asked: str, given: dict[str, Any], level: float, tau: Any, guess: PublicGuess, known: dict[str, Any]
) -> PlannedQuestion:
    """Return the question for a quantile, or a difference of two."""
    from sottovoce.planner.quantile import METHODS, QuantileQuestion

    method = given["method"] or "staged"
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if isinstance(tau, tuple) and method == "sequence":
        raise BadInput("several levels are asked in stages or certified; leave method out, or plan each level alone.")
    if asked == "difference":
        if guess.kind == "none":
            raise BadInput("a difference is told in values; give a public guess: bounds=, sd=, iqr= or density=.")
        if isinstance(tau, tuple):
            raise BadInput("a difference is of one level; give tau=0.5.")
    public = {**known, "kind": given["kind"], "shares": "pooled" if given["shares"] is None else given["shares"]}
    return QuantileQuestion(tau, method, level, guess, asked == "difference", public)


def _taus(tau: Any, crowd: PlannedCrowd) -> Any:
    """Return one level, a tuple of several, or a mapping from site to level."""
    from sottovoce.planner.quantile import check_named

    if isinstance(tau, Mapping):
        check_named(tau, crowd, "tau")
        return {label_text(site): quantile_level(each, f"tau of {site!r}") for site, each in tau.items()}
    if dimensions(tau) == 0:
        return quantile_level(tau, "tau")
    levels = tuple(quantile_level(each, "tau") for each in tau)
    if not levels:
        raise BadInput("tau is an empty list; give one level, such as 0.5, or several.")
    return levels if len(levels) > 1 else levels[0]


def _features(features: Any) -> tuple[tuple[str, tuple[float, float]], ...]:
    """Return the columns of a regression with their bounds."""
    if not isinstance(features, Mapping) or not features:
        raise BadInput(
            "a regression needs features=, a mapping from column to its public bounds, as in {'age': (18, 90)}.",
            parameter="features",
        )
    found = []
    for name, ends in features.items():
        if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
            raise BadInput(f"features gives {label_text(name)!r} no pair of bounds; write (low, high).")
        found.append((label_text(name), (number(ends[0], "a lower bound"), number(ends[1], "an upper bound"))))
    return tuple(found)


def _bare(settings: Any) -> Any:
    """Return conformal settings without privacy."""
    from dataclasses import replace

    return replace(settings, mechanism=None)
