"""The final horizon of Liu and Hu's simulations without simulating: every release's mean error by its closed form."""

import math
from pathlib import Path

from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.simulation.regression import perturbed
from sottovoce_papers.simulation.regression.asymptotic import (
    Length,
    chosen_channel,
    error,
    laplace_error,
    printed_channel,
)

VERSION = 1
READING = "closed form"


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Return the mean error after ``n`` reports of every release, and how much one run's error varies about it."""
    del replications, seed, data
    tau, p, epsilon, n = float(setting["tau"]), int(setting["p"]), float(setting["epsilon"]), float(setting["n"])
    private = math.isfinite(epsilon)
    found = [_unbiased("CQ" if private else "nonprivate", tau, printed_channel(tau, p, epsilon), n)]
    if private:
        found.append(_row("Direct Laplace", laplace_error(tau, p, epsilon, n)))
        found.append(_row("Face-exponential", perturbed.error(tau, p, epsilon, n)))
    return [*found, _unbiased("default", tau, chosen_channel(tau, p, epsilon), n)]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds: those of choosing the default's channel."""
    del replications
    return 1.0 if math.isfinite(float(setting["epsilon"])) else 0.1


def _unbiased(method: str, tau: float, channel: RegressionChannel, n: float) -> Row:
    return _row(method, error(tau, channel, n), channel.name)


def _row(method: str, size: Length, channel: str = "") -> Row:
    where: dict[str, str | int | float] = {"method": method, "reading": READING, "channel": channel}
    return Row(where, {"error": exact(size.mean), "spread": exact(size.spread / size.mean)})
