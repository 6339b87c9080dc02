"""Quantile regression of all rows at once: Newton's method on check losses that are smoothed less and less."""

import numpy as np
from scipy.special import expit

from sottovoce.core.arrays import Floats

WIDTHS = 10.0 ** -np.arange(0.5, 3.1, 0.5)  # of the smoothing, in standard deviations of the residuals
ROUNDS = 30


def exact_fit(x: Floats, y: Floats, tau: float) -> Floats:
    """Return the coefficients, intercept first.

    Parameters
    ----------
    x, y
        Covariates (n, p) and response (n,).
    tau
        The level.

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 2001)[:, None]
    >>> noise = np.tile([-1.0, 0.0, 3.0], 667)
    >>> exact_fit(x, 1.0 + 2.0 * x[:, 0] + noise, 0.5).round(2).tolist()
    [1.0, 2.0]
    """
    design = np.column_stack([np.ones(len(y)), x])
    beta = np.asarray(np.linalg.lstsq(design, y, rcond=None)[0], dtype=np.float64)
    beta[0] += np.quantile(y - design @ beta, tau)
    scale = float(np.std(y - design @ beta))

    def loss(at: Floats, width: float) -> float:
        away = y - design @ at
        return float(np.mean(tau * away + width * np.logaddexp(0, -away / width)))

    for width in scale * WIDTHS:
        for _ in range(ROUNDS):
            below = expit((design @ beta - y) / width)
            slope = (design.T * (below * (1 - below) / width)) @ design / len(y) + 1e-9 * np.eye(len(beta))
            step = np.linalg.solve(slope, design.T @ (below - tau) / len(y))
            part, now = 1.0, loss(beta, width)
            while part > 1e-4 and loss(beta - part * step, width) > now:
                part /= 2
            beta = np.asarray(beta - part * step)
            if np.abs(part * step).max() < 1e-6 * scale:
                break
    return beta
