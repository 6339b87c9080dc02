"""Table 2's channels beside the best ones: CQ_X(q, s) with the smallest trace of H^-1 Omega H^-1, and the default's."""

import re
from pathlib import Path

import numpy as np

from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.design import parse
from sottovoce.server.regression.omega import omega
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.simulation.regression.asymptotic import chosen_channel, inverse_hessian, printed_channel

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Return the best q and s, and the traces of the printed and of the default channel over the best one's."""
    del replications, seed, data
    tau, p, epsilon = float(setting["tau"]), int(setting["p"]), float(setting["epsilon"])
    best = parse("cq", tau, p, epsilon).channel
    theirs, ours = printed_channel(tau, p, epsilon), chosen_channel(tau, p, epsilon)
    least = trace(tau, best)
    q, s = grid(best.name)
    return [
        Row(
            {"method": "CQ", "channel": best.name},
            {"q": exact(q), "s": exact(s), "trace": exact(trace(tau, theirs) / least)},
        ),
        Row(
            {"method": "default", "channel": ours.name},
            {"trace": exact(trace(tau, ours) / least), "gain": exact(trace(tau, ours) / trace(tau, theirs))},
        ),
    ]


def trace(tau: float, channel: RegressionChannel) -> float:
    """Return n x the asymptotic mean squared error of all coefficients in the paper's design."""
    return float(np.diag(omega(channel)) @ inverse_hessian(tau, channel.p) ** 2)


def grid(name: str) -> tuple[int, int]:
    """Return q and s of a channel's name.

    >>> grid("cq:3,2")
    (3, 2)
    """
    q, s = re.fullmatch(r"cq:(\d+),(\d+)", name).groups()  # type: ignore[union-attr]
    return int(q), int(s)
