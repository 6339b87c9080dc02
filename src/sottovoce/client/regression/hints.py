"""What the rows of a regression show to whoever holds them, before anybody is asked; nothing of it is sent."""

from collections.abc import Sequence

import numpy as np

from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.checks import first_few

STANDARDISED = (
    "every covariate has exactly mean 0 and standard deviation 1, as if scaled by the data themselves: such means and "
    "deviations are not protected, so scale by public bounds instead"
)
FROM_DATA = (
    "every covariate of many values reaches both of its bounds exactly, as if the bounds were taken from the data: "
    "smallest and largest values are not protected, so give bounds that are known beforehand"
)
LEAST = 100  # rows, below which nothing is guessed
MANY = 20  # values, above which a column is no scale of a few steps, whose ends are public
NARROW = 0.1  # standard deviation in half-widths: a sixth of a uniform column's, so 33 times as many people
DIGITS = 3  # of a bound that is known beforehand, at most
EDGE = 1e-9  # half-widths, by which rounding may miss a bound
MOVED = 0.1  # of all rows


def standardised(raw: Floats) -> bool:
    """Tell whether covariates were scaled by their own means and deviations, of whichever divisor.

    >>> hours = np.array([[1.0], [2.0], [4.0], [9.0]])
    >>> away = hours - hours.mean()
    >>> standardised(away / hours.std()), standardised(away / hours.std(ddof=1)), standardised(away)
    (True, True, False)
    """
    if len(raw) <= 2:
        return False
    of_sample = np.sqrt(1 - 1 / len(raw))
    spread = raw.std(axis=0)
    near = [bool(np.all(np.abs(spread - unit) < 1e-6)) for unit in (1.0, of_sample)]
    return any(near) and bool(np.all(np.abs(raw.mean(axis=0)) < 1e-9))


def of_covariates(rows: Rows, bounds: Bounds, clipped: int) -> tuple[str, ...]:
    """Return what is worth knowing of the covariates within their bounds.

    >>> draw = np.linspace(-1, 1, 500)
    >>> seen = Rows(np.column_stack([draw / 100]), draw)
    >>> of_covariates(seen, Bounds(np.array([-30.0]), np.array([30.0]), ("miles",)), 0)[0][:57]
    "column 'miles' varies by less than a twentieth of its bou"
    """
    features = rows.features()
    if len(features) < LEAST or not bounds.names:
        return ()
    found = []
    if clipped > MOVED * len(features):
        found.append("more than a tenth of the rows lie beyond the bounds and are moved to them: look at the bounds")
    elif bounds.given and not clipped and _reaches_its_ends(features, bounds):
        found.append(FROM_DATA)
    narrow = [bounds.names[at] for at in np.flatnonzero(features.std(axis=0) < NARROW)]
    if narrow:
        found.append(_varies_little(narrow))
    return tuple(found)


def _reaches_its_ends(features: Floats, bounds: Bounds) -> bool:
    """Tell whether every column of many values does, and one has bounds that nobody would have written down."""
    odd = False
    for at, (low, high) in enumerate(zip(features.min(axis=0), features.max(axis=0), strict=True)):
        column = features[:, at]
        if len(np.unique(column[:: max(len(column) // 1000, 1)])) <= MANY:
            continue
        if low > -1 + EDGE or high < 1 - EDGE:
            return False
        odd |= any(float(f"{end:.{DIGITS}g}") != end for end in (bounds.low[at], bounds.high[at]))
    return odd


def _varies_little(names: Sequence[str]) -> str:
    """Say which columns will tell little."""
    columns = "column " if len(names) == 1 else "columns "
    verb, its = ("varies", "its") if len(names) == 1 else ("vary", "their")
    return (
        f"{columns}{first_few(names)} {verb} by less than a twentieth of {its} bounds (standard deviation), so that "
        "reports tell little of the coefficient: tighten the bounds, with clip=True for the few values beyond, or "
        "leave the column out"
    )
