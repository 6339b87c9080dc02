"""What is declared in public of the covariates of a regression: columns of two values, categories, known moments."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.categories import Levels, dummies
from sottovoce.core.checks import first_few, number
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.dithered.declared import NUMBERS, Declared, declare, guessed_moments

KnownMoments = Mapping[str, tuple[float, ...]] | Floats
ROUNDING = 1e-9  # by which a census may miss its own bounds
_MOMENTS = "moments of column {!r} "
UNIFORM = 1 / 3


class PublicMoments(NamedTuple):
    """E x x' of x = (1, z), as it is guessed or known; what is declared of single columns; whether all is known."""

    matrix: Floats
    declared: Declared | None
    known: bool


def read_two_valued(names: Any) -> tuple[str, ...]:
    """Read the names of columns that take their two bounds alone.

    >>> read_two_valued(["member"]), read_two_valued(None)
    (('member',), ())
    """
    if names is None:
        return ()
    if isinstance(names, str | bytes | Mapping) or not hasattr(names, "__iter__"):
        raise BadInput("two_valued must be a list of names of columns; correct it.", parameter="two_valued")
    found = tuple(names)
    if not all(isinstance(name, str) and name for name in found) or len(set(found)) < len(found):
        raise BadInput("two_valued must name columns, each once; correct it.", parameter="two_valued")
    return found


def read_known_moments(given: Any) -> KnownMoments | None:
    """Read known moments: a mapping from column to (mean, standard deviation) or mean, or the matrix E x x'."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        found = {}
        for name, pair in given.items():
            parts = list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else [pair]
            if len(parts) not in (1, 2):
                raise BadInput(_MOMENTS.format(name) + "must be a mean, or (mean, standard deviation); correct them.")
            found[str(name)] = tuple(number(each, _MOMENTS.format(name).strip()) for each in parts)
        return found
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        matrix = np.zeros(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise BadInput(
            "moments must be a mapping from column to (mean, standard deviation), or the matrix E x x' of x = (1, "
            "covariates); correct it.",
            parameter="moments",
        )
    return matrix


def check_two_valued(two_valued: Sequence[str], names: Sequence[str], levels: Levels) -> None:
    """Refuse columns of two values that are not there, or are categories."""
    if strange := [name for name in two_valued if name not in names]:
        told = "whose levels are declared" if strange[0] in levels else f"which is not among {first_few(names)}"
        raise BadInput(f"two_valued names {strange[0]!r}, {told}; leave it out.", parameter="two_valued")


def public_moments(
    bounds: Bounds,
    two_valued: Sequence[str] = (),
    levels: Levels | None = None,
    moments: KnownMoments | None = None,
    second_moments: Floats | None = None,
) -> PublicMoments | None:
    """Return what is public of the moments of scaled covariates; None if nothing is declared of any.

    >>> bounds = Bounds(np.zeros(2), np.array([10.0, 1.0]), ("miles", "night"))
    >>> public_moments(bounds, ["night"]).matrix.round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.333, 0.0], [0.0, 0.0, 1.0]]
    >>> public_moments(bounds, ["night"], moments={"miles": (4.0, 2.0)}).declared.values.round(3).tolist()
    [[-0.2, 0.2], [0.0, 1.0]]
    """
    names, p = list(bounds.names), len(bounds.names)
    check_two_valued(two_valued, names, levels or {})
    categories = np.full(p, NUMBERS, dtype=np.int64)
    groups = [dummies(name, declared) for name, declared in (levels or {}).items()]
    for number_of, group in enumerate([*groups, *([name] for name in two_valued)], start=1):
        categories[[names.index(name) for name in group if name in names]] = number_of
    if isinstance(moments, np.ndarray):
        return PublicMoments(_scaled_matrix(moments, bounds, categories != NUMBERS), declare(categories), known=True)
    means, seconds = _known(moments or {}, bounds, categories != NUMBERS)
    declared = declare(categories, means, seconds)
    if declared is None:
        return None
    guess = np.full(p, UNIFORM)
    if second_moments is not None:
        guess = np.broadcast_to(np.diag(second_moments) if second_moments.ndim == 2 else second_moments, p).copy()
    return PublicMoments(guessed_moments(declared, guess), declared, known=False)


def _known(moments: Mapping[str, tuple[float, ...]], bounds: Bounds, two_valued: Any) -> tuple[Floats, Floats]:
    """Return the known means and second moments of scaled covariates, NaN where none are."""
    means, seconds = np.full((2, len(bounds.names)), np.nan)
    for name, parts in moments.items():
        if name not in bounds.names:
            raise BadInput(f"moments names {name!r}, which is not among {first_few(bounds.names)}; correct it.")
        at = bounds.names.index(name)
        low, high = float(bounds.low[at]), float(bounds.high[at])
        if not low < parts[0] < high:
            raise BadInput(_MOMENTS.format(name) + "have a mean that is not within its bounds; correct them.")
        means[at] = (parts[0] - bounds.centre[at]) / bounds.half[at]
        if len(parts) == 1:
            continue
        largest = (parts[0] - low) * (high - parts[0])
        if not 0 < parts[1] ** 2 <= largest * (1 + ROUNDING):
            raise BadInput(
                _MOMENTS.format(name) + "have a standard deviation that no column of that mean has within its bounds; "
                "correct them."
            )
        if two_valued[at] and abs(parts[1] ** 2 - largest) > 0.01 * largest:
            raise BadInput(
                _MOMENTS.format(name) + "have another standard deviation than a column of two values; give the mean "
                "alone."
            )
        seconds[at] = min(means[at] ** 2 + (parts[1] / bounds.half[at]) ** 2, 1.0)
    return means, seconds


def _scaled_matrix(raw: Floats, bounds: Bounds, two_valued: Any) -> Floats:
    """Return E x x' of scaled covariates from that of raw ones, or refuse what no covariates have."""
    d = len(bounds.names) + 1
    if raw.shape != (d, d):
        raise BadInput(f"moments is a {len(raw)} x {len(raw)} matrix and x has {d} entries, the constant first.")
    if abs(raw[0, 0] - 1) > ROUNDING or not np.allclose(raw, raw.T, rtol=1e-9, atol=0):
        raise BadInput("moments must be E x x' of x = (1, covariates): symmetric, its first entry 1; correct it.")
    to_scaled = bounds.to_raw.T  # z = to_scaled x, as z'beta is x' to_raw beta
    scaled = to_scaled @ raw @ to_scaled.T
    squares, means = np.diag(scaled)[1:], scaled[0, 1:]
    for name, square, mean, two in zip(bounds.names, squares, means, two_valued, strict=True):
        if not (abs(mean) < 1 and square <= 1 + ROUNDING and (not two or abs(square - 1) < 1e-6)):
            raise BadInput(f"moments say of column {name!r} what its bounds do not allow; correct either.")
    if np.linalg.eigvalsh(scaled)[0] < 1e-8:
        raise BadInput("moments must be positive definite, as those of columns that differ are; correct them.")
    return np.asarray((scaled + scaled.T) / 2)
