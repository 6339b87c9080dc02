"""What an integration would ask, and how wide the target's interval will be, from public numbers alone."""

import math

from sottovoce.core.checks import first_few
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.integration import known_bound
from sottovoce.inference.integration.weighted import METHODS as PAPER
from sottovoce.server.description import WIDTH, promise
from sottovoce.server.explanation import LEVELS, VALUES, ExpectedWidth, Explanation, reaching
from sottovoce.server.integration.plan import IntegrationPlan, PlannedSite
from sottovoce.server.quantile.expected import ROUNDS, assumption_of, expected_reach

HELP = {
    "valid": "about 5 % shorter than the target's own where sources agree, up to 3 % longer where they do not",
    "conservative": "never longer than the target's own; shorter where sources agree",
    "target": "the target's own",
}


def expected_own(plan: IntegrationPlan, site: PlannedSite) -> ExpectedWidth:
    """Return how wide a site's own interval will be."""
    level, z = plan.settings.level, two_sided(plan.settings.level)
    if site.summary is not None:
        return ExpectedWidth(site.name, 2 * z * site.summary.measured().std_error, VALUES)
    assert site.study is not None
    tau, scale = site.study.tau, site.study.scale
    if site.kind == "open":
        half = z * math.sqrt(tau * (1 - tau) / site.study.roster.sizes[0])
        return reaching(site.name, max(tau - half, 0.0), min(tau + half, 1.0), scale)
    return reaching(site.name, *expected_reach(site.study, "certified" if site.certified else "staged", level), scale)


def expected_help(plan: IntegrationPlan) -> ExpectedWidth | None:
    """Return the width where the sources help as much as the method allows; None where it cannot be foretold."""
    z = two_sided(plan.settings.level)
    own, *others = (expected_own(plan, site) for site in plan.asked)
    if not others or any(other.unit != own.unit or not math.isfinite(other.value) for other in (own, *others)):
        return None
    if plan.settings.method in PAPER and plan.settings.method != "target":
        pooled = sum(each.value**-2 for each in (own, *others)) ** -0.5
        return ExpectedWidth("if all sources agree", pooled, own.unit)
    if plan.settings.bound is None or own.unit == LEVELS:
        return None
    sites = [SiteEstimate(0.0, each.value / (2 * z)) for each in (own, *others)]
    limits = [plan.settings.bound[each.of] for each in others]
    private = [site.kind == "private" for site in plan.asked[1:]]
    found = known_bound.combine(sites[0], sites[1:], limits, plan.settings.level, private)
    return ExpectedWidth("under the bound", found.high - found.low, VALUES)


def explain_integration(plan: IntegrationPlan) -> Explanation:
    """Say what an integration would do."""
    private = [site for site in plan.asked if site.study is not None]
    total = sum(site.size or 0 for site in private)
    rounds = ROUNDS["staged"] if plan.settings.chains is None else f"{plan.settings.chains.number} chains a site"
    own, helped = expected_own(plan, plan.target)._replace(of="its own"), expected_help(plan)
    names = [site.name for site in plan.asked[1:]]
    asked = [
        ("Question", f"the {plan.settings.tau:g} quantile of {plan.target.name}, method {plan.settings.method!r}"),
        ("Answers", f"one of 2 letters a record, each asked once at most; {total:,} records, {rounds}"),
        ("Sources", first_few(names) if names else "none are asked"),
    ]
    if plan.small:
        asked.append(("Left out", ", ".join(name for name, _ in plan.small)))
    if names and plan.settings.method in HELP:
        asked.append(("Help", HELP[plan.settings.method]))
    study = plan.target.study
    epsilons = {site.name: site.study.channels[0].epsilon for site in private if site.study is not None}
    seeded = plan.seeded or plan.simulated
    protects = all(map(math.isfinite, epsilons.values())) and not seeded
    return Explanation(
        f"Plan, nothing asked: one site helped by others, {plan.settings.level:.4g} interval",
        asked,
        promise(epsilons, protects, plan.per_person, seeded) if epsilons else "No record is read.",
        [own] if helped is None else [own, helped],
        "the published standard error" if study is None else assumption_of(study, "staged"),
        plan.warnings,
        _table(plan),
        {
            "method": plan.settings.method,
            "level": plan.settings.level,
            "tau": plan.settings.tau,
            "target": plan.target.name,
            "sites": [{"name": site.name, "kind": site.kind, "records": site.size} for site in plan.asked],
            "sites_left_out": [*(name for name, _ in plan.small), *plan.idle],
            "letters": 2,
        },
    )


def _table(plan: IntegrationPlan) -> list[str]:
    """Return the sites, how they are asked, and how wide their own intervals will be."""
    lines = [f"{'site':<28}{'kind':>10}{'records':>12}{'own interval':>28}", "-" * WIDTH]
    for site in plan.asked:
        own = expected_own(plan, site)
        width = f"{own.value:.3g} wide" if own.unit == VALUES else f"{own.low:.3f} to {own.high:.3f} quantile"
        shown = site.name if len(site.name) <= 28 else site.name[:27] + "…"
        lines.append(f"{shown:<28}{site.kind:>10}{'' if site.size is None else f'{site.size:,}':>12}{width:>28}")
    return lines
