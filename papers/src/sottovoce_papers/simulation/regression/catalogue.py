"""Designs by name: some to tune on, the others held out to judge what was tuned."""

from sottovoce.core.errors import BadInput
from sottovoce_papers.simulation.populations import Population, blend, population
from sottovoce_papers.simulation.regression.covariates import Covariates, Margin
from sottovoce_papers.simulation.regression.designs import Design, paper

UNIFORM = Margin("uniform")


def _beta(a: float, b: float) -> Margin:
    return Margin("beta", (a, b))


def _sign(chance: float) -> Margin:
    return Margin("sign", (chance,))


def _distribution(name: str, scale: float, *shape: float) -> Population:
    return population(name, *shape).moved(0.0, scale)


_HILLS = blend([population("normal").moved(-1.0, 0.5), population("normal").moved(1.2, 0.6)], [0.6, 0.4])
_CHAIN = tuple(tuple(0.8 ** abs(i - j) for j in range(6)) for i in range(6))  # neighbours are alike

_TUNING = [
    paper(1),
    paper(2),
    paper(5),
    paper(8),
    Design(
        "correlated-gumbel", Covariates((_beta(2, 4),) * 3, 0.5), (0.8, -0.5, 0.3, 0.6), _distribution("gumbel", 0.7)
    ),
    Design(
        "heteroscedastic-t3",
        Covariates((*(_beta(4, 2),) * 3, _sign(0.5)), 0.3),
        (0.5, -0.6, 0.4, 0.3, -0.2),
        _distribution("student", 0.7, 3.0),
        tilt=0.3,
    ),
    Design(
        "binary-laplace",
        Covariates((_sign(0.5), _sign(0.3), _sign(0.1))),
        (0.2, 0.5, -0.4, 0.7),
        _distribution("laplace", 0.6),
    ),
    Design("ends-normal", Covariates((_beta(0.5, 0.5),) * 2, -0.4), (-0.3, 0.7, 0.5), _distribution("normal", 0.8)),
]

_HELD_OUT = [
    Design(
        "skewed-exponential",
        Covariates((_beta(1, 3), UNIFORM), 0.2),
        (1.0, 0.5, -0.5),
        _distribution("exponential", 1.0),
        held_out=True,
    ),
    Design(
        "tilted-lognormal",
        Covariates((UNIFORM, _beta(3, 2), _sign(0.4)), 0.25),
        (0.4, -0.3, 0.6, 0.2),
        _distribution("lognormal", 1.0, 0.6),
        tilt=0.5,
        held_out=True,
    ),
    Design(
        "chain-cauchy",
        Covariates((_beta(2, 2),) * 6, _CHAIN),
        (0.1, 0.4, -0.4, 0.3, -0.3, 0.2, -0.2),
        _distribution("cauchy", 0.4),
        held_out=True,
    ),
    Design("two-hills", Covariates((UNIFORM,) * 2, 0.3), (0.3, 0.6, -0.6), _HILLS, held_out=True),
    Design(
        "many-correlated",
        Covariates((_beta(2, 3),) * 8, 0.6),
        (0.5, *(0.3, -0.3) * 4),
        _distribution("normal", 0.7),
        tilt=0.2,
        held_out=True,
    ),
    Design(
        "narrow-logistic",
        Covariates((_beta(12, 12),) * 2),
        (0.0, 1.5, -1.5),
        _distribution("logistic", 0.5),
        held_out=True,
    ),
]

DESIGNS: dict[str, Design] = {one.name: one for one in (*_TUNING, *_HELD_OUT)}
"""Every design; correlated-gumbel and heteroscedastic-t3 are known from earlier studies, the others are new."""

TUNING = tuple(one.name for one in _TUNING)
HELD_OUT = tuple(one.name for one in _HELD_OUT)


def design(name: str) -> Design:
    """Return a design by name.

    Examples
    --------
    >>> round(float(design("correlated-gumbel").hessian(0.75)[0, 0]), 4)
    0.3082
    """
    if name not in DESIGNS:
        raise BadInput(f"design {name!r} is not known; choose one of {', '.join(DESIGNS)}.")
    return DESIGNS[name]
