"""The pair channel: the best private distribution for the side and one slope, from a linear program, held in integers.

*The program.* A letter decodes to ``(D_0, D_1)`` and has probability ``mass`` for some symbols and ``e^epsilon mass``
for the others (its pattern); extremal distributions need nothing else (Kairouz, Oh and Viswanath 2016,
arXiv:1407.1338). Over the masses, least ``E (weight_0 D_0^2 + weight_1 D_1^2)`` subject to "rows are distributions" and
"decoding is unbiased" is a linear program; HiGHS solves it for a few letters, and its dual prices say which letters in
the plane would improve on them. For given prices the pattern of a letter is a sign, and the best letter of a pattern
the minimum of a quadratic. Letters come in mirrored pairs (slope and D_1 change sign), so only symbols with slope >= 0
need rows.

*The integers.* Then the weights are made whole, so privacy and unbiasedness are exact whatever the solver's
tolerance was. Each letter's smaller weight is rounded down and its larger one is the largest integer within e^epsilon
of it. What a row then lacks of the die goes to one more letter, the blank: about one outcome in a million, but not
quite alike, as the solver's tolerance is no smaller than 1e-7; the blank is made so much larger that its own
likelihood ratio is within e^epsilon too (mostly less than a hundredth of the die at epsilon 1e-5). The channel's
constructor checks all this in integers.

*The covariate* in [-1, 1] is taken for a Beta distribution with its public moments (mean 0 and second moment 1/3:
uniform); any other is decoded without bias too, with a variance that depends on its distribution little. Stochastic
rounding to a grid turns the distribution into hat-function expectations, which are second differences of
``E (z - t)_+``; for a Beta distribution these are incomplete Beta functions (`chances`).
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.checks import quantile_level
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.exact import exponential
from sottovoce.protocol.regression.box_channel import FINEST

UNIFORM = 1 / 3  # the second moment of the uniform distribution on [-1, 1]
_TWO_POINTS = 1e-9  # closer than this to second moment 1, the distribution is taken to sit on -1 and 1


@functools.lru_cache(maxsize=65536)
def chances(places: int, second: float = UNIFORM, mean: float = 0.0, scale: float = 1.0) -> tuple[float, ...]:
    """Return how often ``scale`` x covariate, rounded at random to ``places`` equal steps of [-1, 1], is each place.

    >>> [round(chance, 4) for chance in chances(5)]
    [0.125, 0.25, 0.25, 0.25, 0.125]
    """
    if places == 1:
        return (1.0,)
    step = 2 / (places - 1)
    at: Floats = -1 + step * np.arange(-1, places + 1, dtype=np.float64)
    size = abs(scale)
    excess = np.maximum(-at, 0.0) if size == 0 else size * _excess(at / size, second, math.copysign(mean, mean * scale))
    found = np.maximum(excess[:-2] - 2 * excess[1:-1] + excess[2:], 0.0) / step
    return tuple((found / found.sum()).tolist())


def rounded(places: int, second: float = UNIFORM, mean: float = 0.0, scale: float = 1.0) -> float:
    """Return the second moment of ``scale`` x covariate after random rounding to ``places`` steps of [-1, 1].

    >>> round(rounded(3), 6), rounded(2)
    (0.5, 1.0)
    """
    if places == 1:
        return 0.0
    return float(np.linspace(-1, 1, places) ** 2 @ np.array(chances(places, second, mean, scale)))


def _excess(at: Floats, second: float, mean: float) -> Floats:
    """Return E (z - t)_+ for the Beta distribution on [-1, 1] with these moments."""
    from scipy.special import betainc

    middle, variance = (1 + mean) / 2, (second - mean * mean) / 4
    where = np.clip((at + 1) / 2, 0.0, 1.0)
    below = np.maximum(-1 - at, 0.0)
    size = middle * (1 - middle) / variance - 1
    if size < _TWO_POINTS:
        return np.asarray(2 * middle * (1 - where) + below)
    first, last = middle * size, (1 - middle) * size
    upper = middle * (1 - betainc(first + 1, last, where)) - where * (1 - betainc(first, last, where))
    return np.asarray(2 * upper + below)


LARGEST = 10.0  # beyond it the smaller probabilities sink below the solver's tolerance: randomised response then
_RARE = 1e-3  # every step of the slope counts at least this much, or a letter for it could decode to anything
_ROUNDS = 60  # of column generation; half as many are usual
_GAP = 3e-4  # how far the objective may lie above its dual bound, relatively
_OFF = 2.5e-7  # how far a row's distribution may lie from adding up to one: the blank letter makes up for it
_STAY = 0.3  # how much of the best prices so far is kept: smoothing stops the prices from swinging
_KEPT = 250  # letters that stay in the program from round to round
_STRIDE = 4  # of the net: its other points are offered too, lest a few letters chase each other
_REACH = 2.5  # times the decoded value of randomised response: how far out letters are looked for
_NET = (49, 25)  # where letters are looked for first: D_0, and D_1 >= 0


@dataclass(frozen=True)
class Letters:
    """Decoded values (M, 2), patterns (M, symbols) and masses (M,) of a channel, mirrored letters adjacent."""

    values: Floats
    patterns: Bools
    masses: Floats


@dataclass(frozen=True)
class _Problem:
    odds: Floats  # of the symbols, side-major
    vertices: Floats  # (symbols, 2)
    weights: Floats  # of the two variances
    growth: float  # e^epsilon
    half: npt.NDArray[np.intp]  # symbols with slope >= 0
    mirror: npt.NDArray[np.intp]

    def distribution(self, patterns: Bools) -> Floats:
        """Return letters' probabilities by symbol, scaled to mean 1: the masses of a distribution then add up to 1."""
        distribution = np.where(patterns, 1.0, 1 / self.growth)
        return np.asarray(distribution / distribution.mean(axis=1, keepdims=True))

    def columns(self, values: Floats, patterns: Bools) -> tuple[Floats, Floats]:
        """Return the costs and the constraint columns of letters, each averaged with its mirror image."""
        distribution = self.distribution(patterns)
        even = (distribution[:, self.half] + distribution[:, self.mirror[self.half]]) / 2
        odd = (distribution[:, self.half] - distribution[:, self.mirror[self.half]]) / 2
        cost = (distribution @ self.odds) * (values**2 @ self.weights)
        return cost, np.hstack([even, even * values[:, :1], odd * values[:, 1:]]).T

    @property
    def target(self) -> Floats:
        """Return the right-hand sides: ones, first and second coordinates of the vertices."""
        return np.concatenate([np.ones(len(self.half)), self.vertices[self.half, 0], self.vertices[self.half, 1]])

    def prices(self, dual: Floats) -> Floats:
        """Return each symbol's prices (symbols, 3) of a unit of probability, of it times D_0, and of it times D_1."""
        found = np.zeros((len(self.odds), 3))
        split = dual.reshape(3, -1).T / 2
        found[self.half] += split
        np.add.at(found, self.mirror[self.half], split * np.array([1.0, 1.0, -1.0]))
        return found


def solve_pair(
    tau: float, epsilon: float, weights: tuple[float, float], second: float, places: int, rounds: int = _ROUNDS
) -> Letters:
    """Return the best letters for ``places`` (an odd number) steps of the slope; no rounds: randomised response."""
    problem = _problem(tau, epsilon, weights, second, places)
    values, patterns = _randomised_response(problem)
    size = len(values)
    centre, bound = None, -np.inf
    masses = np.ones(size) / size
    for _ in range(rounds if epsilon <= LARGEST else 0):
        cost, rows = problem.columns(values, patterns)
        solved = _master(cost, rows, problem.target)
        if solved is None:
            break
        objective, dual, masses = solved
        point = dual if centre is None else _STAY * centre + (1 - _STAY) * dual
        more_values, more_patterns, worst = _better(problem, problem.prices(point), epsilon)
        below = float(point @ problem.target) + min(worst, 0.0)
        if below > bound:
            centre, bound = point, below
        # letters in use stay: at a side that is next to nothing, their reduced cost may be anything but zero
        kept = np.sort(np.argsort(np.where(masses > 0, -np.inf, cost - dual @ rows))[:_KEPT])
        values, patterns, masses = values[kept], patterns[kept], masses[kept]
        if objective - bound < _GAP * objective:
            break
        values, patterns = np.vstack([values, more_values]), np.vstack([patterns, more_patterns])
    used = np.flatnonzero(masses > 1e-8 * masses.max())  # letters offered last have no mass yet
    values, patterns = values[used], patterns[used]
    return _with_images(problem, values, patterns, masses[used] * problem.distribution(patterns).min(axis=1))


def _problem(tau: float, epsilon: float, weights: tuple[float, float], second: float, places: int) -> _Problem:
    line = np.linspace(-1, 1, places)
    sides = np.array([-tau, 1 - tau])
    vertices = np.array([(side, side * z) for side in sides for z in line])
    likely = np.array(chances(places, second)) * (1 - _RARE) + _RARE / places
    odds = np.outer([1 - tau, tau], likely).ravel()
    order = np.arange(2 * places)
    mirror = (order // places) * places + (places - 1 - order % places)
    half = np.flatnonzero(vertices[:, 1] * vertices[:, 0] >= -1e-15)
    scale = np.array(weights) / sum(weights)
    return _Problem(odds, vertices, scale, float(np.exp(epsilon)), half, mirror)


def _randomised_response(problem: _Problem) -> tuple[Floats, Bools]:
    """Return letters that always make a feasible distribution: one for each symbol."""
    size = len(problem.odds)
    rate = (problem.growth - 1) / (problem.growth + size - 1)
    centre = problem.vertices.mean(axis=0)
    return centre + (problem.vertices - centre) / rate, np.eye(size, dtype=bool)


def _master(cost: Floats, rows: Floats, target: Floats) -> tuple[float, Floats, Floats] | None:
    """Return the objective, the dual prices and the masses of the program over the letters at hand; None: unsolved."""
    from scipy.optimize import linprog

    size = np.abs(rows).max(axis=1)
    kept = size > 1e-9 * size.max()  # the slope 0 never moves D_1: its row is empty
    scale = 1 / size[kept]
    mean = cost.mean()
    matrix, right = rows[kept] * scale[:, None], target[kept] * scale
    for presolve in (True, False):  # presolve now and then mistakes a nearly empty row for a contradiction
        found = linprog(cost / mean, A_eq=matrix, b_eq=right, method="highs-ds", options={"presolve": presolve})
        # letters that decode to very much swamp a row's scale: "solved" then may mean that nothing is sent at all
        if found.status == 0 and np.abs((rows @ found.x - target)[: len(target) // 3]).max() < _OFF:
            break
    else:
        return None
    dual = np.zeros(len(target))
    dual[kept] = found.eqlin.marginals * scale * mean
    return float(found.fun) * mean, dual, np.asarray(found.x)


def _reduced(problem: _Problem, prices: Floats, values: Floats, least: Floats) -> tuple[Floats, Bools]:
    """Return the reduced cost of letters, and the patterns that bring it below ``least`` if any do (Dinkelbach)."""
    each = (values**2 @ problem.weights)[:, None] * problem.odds - prices[:, 0] - values @ prices[:, 1:].T
    patterns = each < least[:, None] / len(problem.odds)
    return (problem.distribution(patterns) * each).sum(axis=1), patterns


def _better(problem: _Problem, prices: Floats, epsilon: float) -> tuple[Floats, Bools, float]:
    """Return the locally best new letters, and the lowest reduced cost."""
    reach = _REACH * float(np.abs(problem.vertices).max()) / float(np.tanh(epsilon / 2))
    cheap = np.sqrt(problem.weights[1] / problem.weights[0])  # the coordinate that counts less may decode to more
    first = reach * max(1.0, 0.4 * cheap) * np.sinh(np.linspace(-2, 2, _NET[0])) / np.sinh(2)
    second = reach * max(1.0, 0.4 / cheap) * np.sinh(np.linspace(0, 2, _NET[1])) / np.sinh(2)
    values = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1)
    flat = values.reshape(-1, 2)
    found, _ = _reduced(problem, prices, flat, np.zeros(len(flat)))
    field = np.pad(found.reshape(_NET), 1, constant_values=np.inf)
    around = [field[1 + i : _NET[0] + 1 + i, 1 + j : _NET[1] + 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    low = (field[1:-1, 1:-1] <= np.minimum.reduce(around)).ravel()
    start, least = flat[low], found[low]
    for _ in range(30):
        least, patterns = _reduced(problem, prices, start, least)
        distribution = problem.distribution(patterns)
        fresh = distribution @ prices[:, 1:] / (2 * (distribution @ problem.odds)[:, None] * problem.weights)
        if np.allclose(fresh, start, rtol=1e-13, atol=1e-13):
            break
        start = fresh
    spread = values[::_STRIDE, ::_STRIDE].reshape(-1, 2)
    every = np.vstack([start, spread])
    found, patterns = _reduced(problem, prices, every, np.concatenate([least, np.zeros(len(spread))]))
    good = np.flatnonzero(found < 0)
    _, unique = np.unique(np.round(every[good], 12), axis=0, return_index=True)
    chosen = good[unique]
    return every[chosen], patterns[chosen], float(found.min())


def _with_images(problem: _Problem, values: Floats, patterns: Bools, masses: Floats) -> Letters:
    """Return every letter with its mirror image, each with half the mass; one that is its own image stays alone."""
    alone = (np.abs(values[:, 1]) < 1e-12) & (patterns == patterns[:, problem.mirror]).all(axis=1)
    every = [
        (np.array([v[0], sign * v[1]]), pattern if sign > 0 else pattern[problem.mirror], mass if lone else mass / 2)
        for v, pattern, mass, lone in zip(values, patterns, masses, alone, strict=True)
        for sign in ((1,) if lone else (1, -1))
    ]
    return Letters(
        np.array([v for v, _, _ in every]), np.array([s for _, s, _ in every]), np.array([m for *_, m in every])
    )


PLACES = (
    (1.0, 5),
    (6.0, 9),
    (math.inf, 17),
)  # up to each budget, finer steps of the slope gain less than half a percent
_BIAS = 1e-13  # of the largest decoded value: more than rounding

_BLANK = 20  # the blank letter has one outcome in 2^20: above any rounding of a float, and no loss to speak of


def lp_pair(tau: float, epsilon: float, weight: float, second_moment: float = UNIFORM) -> Channel:
    """Return the pair channel that makes E D_0^2 + weight x E D_1^2 least.

    Its symbols are side-major: the side y > fit with each step of the slope from -1 to 1, then the side y <= fit.

    ``weight`` says how much the variance of the slope counts against that of the intercept, and ``second_moment`` is
    the public E z^2 of the covariate. Epsilon is finite.

    >>> channel = lp_pair(0.75, 1.0, 9.0)
    >>> len(channel.weights), channel.epsilon <= 1.0 < channel.epsilon + 1e-8
    (10, True)
    """
    if not epsilon > 0 or math.isinf(epsilon):
        raise BadInput(f"the pair channel needs a finite positive budget, not {epsilon!r}; give epsilon such as 1.")
    quantile_level(tau, "tau")
    return _solved(float(tau), float(epsilon), float(weight), float(second_moment))


@functools.lru_cache(maxsize=256)
def _solved(tau: float, epsilon: float, weight: float, second_moment: float) -> Channel:
    places = next(count for most, count in PLACES if epsilon <= most)
    if math.log(OUTCOMES / FINEST) - epsilon < math.log(4 * places):
        raise BadInput(f"epsilon {epsilon!r} is more than the pair channel can express; give a smaller budget, or inf.")
    if tau < 0.5:
        return _mirrored(_solved(1 - tau, epsilon, weight, second_moment), epsilon)
    line = np.linspace(-1, 1, places)
    vertices = np.array([(side, side * z) for side in (-tau, 1 - tau) for z in line])
    letters = solve_pair(tau, epsilon, (1.0, weight), second_moment, places)
    channel = whole_channel("lp", epsilon, vertices, letters.values, letters.patterns, letters.masses)
    if np.abs(channel.distribution @ channel.table - vertices).max() <= _BIAS * np.abs(channel.table).max():
        return channel
    # a side that is next to nothing sinks below the solver's tolerance: its symbols may then share all their letters
    letters = solve_pair(tau, epsilon, (1.0, weight), second_moment, places, rounds=0)
    return whole_channel("lp", epsilon, vertices, letters.values, letters.patterns, letters.masses)


def _mirrored(channel: Channel, epsilon: float) -> Channel:
    """Return the channel for one less the level: the sides change places, and scores change sign."""
    half = len(channel.weights) // 2
    weights = channel.weights[half:] + channel.weights[:half]
    vertices = -np.roll(channel.vertices, half, axis=0)
    return Channel(channel.name, vertices, weights, -channel.table, budget=epsilon)


EXAMPLES = (
    (0.05, functools.partial(lp_pair, 0.75, weight=9.0)),
    (0.5, functools.partial(lp_pair, 0.99, weight=40.0, second_moment=0.1)),
    (1.0, functools.partial(lp_pair, 0.75, weight=9.0)),
    (2.0, functools.partial(lp_pair, 0.25, weight=3.0, second_moment=1.0)),
    (4.0, functools.partial(lp_pair, 0.5, weight=9.0)),
    (16.0, functools.partial(lp_pair, 0.6, weight=9.0)),
    (8.0, functools.partial(lp_pair, 0.5, weight=9.0)),
)
"""Budgets on which the universal channel checks run."""


def whole_channel(
    name: str, epsilon: float, vertices: Floats, values: Floats, patterns: Bools, masses: Floats
) -> Channel:
    """Return the exact channel of letters with probability ``masses``, times e^epsilon where ``patterns`` say so.

    ``vertices`` are what each symbol must decode to on average; ``values`` what each letter decodes to, ``patterns``
    the symbols that prefer it, ``masses`` its probability for the others. Epsilon is finite.

    >>> flip = 1 / (1 + np.exp(1.0))
    >>> square = np.array([[0.0], [1.0]])
    >>> channel = whole_channel("rr", 1.0, square, square, np.eye(2, dtype=bool), np.full(2, flip))
    >>> len(channel.table), channel.epsilon <= 1.0 < channel.epsilon + 1e-8
    (3, True)
    """
    kept, rows = _rows(epsilon, patterns, masses, OUTCOMES - wanted_blank(epsilon, patterns, masses))
    weights = tuple((*row, OUTCOMES - sum(row)) for row in rows)
    table = np.vstack([values[kept], np.zeros((1, values.shape[1]))])
    return Channel(name, vertices, weights, _unbiased(weights, vertices, table), budget=epsilon)


def wanted_blank(epsilon: float, patterns: Bools, masses: Floats) -> int:
    """Return how many outcomes the blank letter needs, lest it tell more of the symbols than e^epsilon allows."""
    sums = [sum(row) for row in _rows(epsilon, patterns, masses, OUTCOMES)[1]]
    # rounding down to whole outcomes moves a row by at most one for each letter; what is not rounded, shrinks
    apart = max(sums) - min(sums) + len(masses)
    return max(math.ceil(apart / (exponential(epsilon) - 1)) + max(sums) - OUTCOMES, 0) + (OUTCOMES >> _BLANK)


def _rows(epsilon: float, patterns: Bools, masses: Floats, scale: int) -> tuple[list[int], list[list[int]]]:
    """Return the letters that are common enough to keep, and each symbol's whole weights of them."""
    growth = exponential(epsilon)
    lows = [int(Fraction(float(mass)) * scale) for mass in masses]
    kept = [i for i, low in enumerate(lows) if low >= FINEST]
    highs = {i: int(growth * lows[i]) for i in kept}
    return kept, [[highs[i] if row[i] else lows[i] for i in kept] for row in patterns.T]


def _unbiased(weights: tuple[tuple[int, ...], ...], vertices: Floats, table: Floats) -> Floats:
    """Return the table nearest to ``table`` that decodes every symbol to its vertex, residuals taken in fractions."""
    distribution = np.array([[w / OUTCOMES for w in row] for row in weights])
    inverse = np.linalg.pinv(distribution)
    for _ in range(3):  # two refinements reach the last bit; the third keeps it
        rest = np.empty_like(vertices)
        for symbol, row in enumerate(weights):
            for axis in range(table.shape[1]):
                said = sum((w * Fraction(float(t)) for w, t in zip(row, table[:, axis], strict=True)), Fraction(0))
                rest[symbol, axis] = float(Fraction(float(vertices[symbol, axis])) - said / OUTCOMES)
        table = table + inverse @ rest
    return np.asarray(table)
