"""A small neural network of two conditional quantiles (Taylor 2000), trained by Adam on the pinball loss.

Two hidden layers of 64 rectified units with dropout, batches of 64, as in Romano, Patterson and Candès (2019). A tenth
of the training records is held out; the network of the epoch that predicts these best is kept, and training ends when
it has not improved for a while, or after so many steps.
"""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.families import Generator

HIDDEN, BATCH, DROPPED, RATE = 64, 64, 0.1, 5e-4
EPOCHS, STEPS, PATIENCE = 1000, 20_000, 200
HELD_OUT = 0.1
DECAYS, SMALL = (0.9, 0.999), 1e-8  # Adam's own


class Network(NamedTuple):
    """Weights and shifts of the layers, and what the responses were divided by."""

    layers: tuple[Floats, ...]
    scale: float


def train(
    features: Floats,
    responses: Floats,
    levels: tuple[float, ...],
    generator: Generator,
    epochs: int = EPOCHS,
    rate: float = RATE,
) -> Network:
    """Train a network on standardised features, on one thread.

    Parameters
    ----------
    features, responses
        The training records.
    levels
        Of the quantiles.
    generator
        Where the first weights, the order of the records and the dropout come from.
    epochs
        How often every record is seen at most.
    rate
        The length of the steps.

    Examples
    --------
    >>> from sottovoce.sim import dice
    >>> source = dice(1).generator()
    >>> network = train(source.normal(size=(50, 2)), source.normal(size=50), (0.1, 0.9), source, epochs=2)
    >>> predict(network, np.zeros((3, 2))).shape
    (3, 2)
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    scale = float(np.mean(np.abs(responses))) or 1.0
    order = generator.permutation(len(responses))
    held = order[: max(int(HELD_OUT * len(order)), 1)]
    used = order[len(held) :]
    x, y, wanted = features[used], responses[used] / scale, np.array(levels)
    layers = _first(features.shape[1], len(levels), generator)
    means = [np.zeros_like(part) for part in layers]
    squares = [np.zeros_like(part) for part in layers]
    best, kept, since, steps = np.inf, tuple(layers), 0, 0
    with threadpool_limits(1):
        while epochs > 0 and steps < STEPS and since < PATIENCE:
            epochs -= 1
            shuffled = generator.permutation(len(used))
            for start in range(0, len(used), BATCH):
                some = shuffled[start : start + BATCH]
                steps += 1
                slopes = _slopes(layers, x[some], y[some], wanted, generator)
                length = rate * np.sqrt(1 - DECAYS[1] ** steps) / (1 - DECAYS[0] ** steps)
                for part, slope, mean, square in zip(layers, slopes, means, squares, strict=True):
                    mean += (1 - DECAYS[0]) * (slope - mean)
                    square += (1 - DECAYS[1]) * (slope * slope - square)
                    part -= length * mean / (np.sqrt(square) + SMALL)
            loss = pinball(_through(layers, features[held]), responses[held] / scale, wanted)
            since += 1
            if loss < best:
                best, kept, since = loss, tuple(part.copy() for part in layers), 0
    return Network(kept, scale)


def predict(network: Network, features: Floats) -> Floats:
    """Return the quantiles of new records, (records, levels), in order: those of a network may cross."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return np.sort(network.scale * _through(network.layers, features), axis=1)


def pinball(predicted: Floats, responses: Floats, levels: Floats) -> float:
    """Return the mean pinball loss over records and levels.

    >>> pinball(np.array([[0.0], [2.0]]), np.array([1.0, 1.0]), np.array([0.9])).__round__(6)
    0.5
    """
    above = responses[:, None] - predicted
    return float(np.mean(np.maximum(levels * above, (levels - 1) * above)))


def _first(inputs: int, outputs: int, generator: Generator) -> list[Floats]:
    """Return first weights: uniform, within one over the root of the number of inputs."""
    layers = []
    for rows, columns in ((inputs, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, outputs)):
        reach = 1 / np.sqrt(rows)
        layers += [generator.uniform(-reach, reach, (rows, columns)), generator.uniform(-reach, reach, columns)]
    return layers


def _through(layers: list[Floats] | tuple[Floats, ...], x: Floats) -> Floats:
    one = np.maximum(x @ layers[0] + layers[1], 0.0)
    two = np.maximum(one @ layers[2] + layers[3], 0.0)
    return np.asarray(two @ layers[4] + layers[5])


def _slopes(layers: list[Floats], x: Floats, y: Floats, levels: Floats, generator: Generator) -> list[Floats]:
    """Return the slopes of the mean pinball loss of a batch, some of the units dropped."""
    keep = (generator.random((2, len(x), HIDDEN)) >= DROPPED) / (1 - DROPPED)
    one = np.maximum(x @ layers[0] + layers[1], 0.0) * keep[0]
    two = np.maximum(one @ layers[2] + layers[3], 0.0) * keep[1]
    above = y[:, None] - (two @ layers[4] + layers[5])
    out = (np.where(above > 0, 0.0, 1.0) - levels) / above.size
    down_two = (out @ layers[4].T) * keep[1] * (two > 0)
    down_one = (down_two @ layers[2].T) * keep[0] * (one > 0)
    return [
        x.T @ down_one,
        down_one.sum(axis=0),
        one.T @ down_two,
        down_two.sum(axis=0),
        two.T @ out,
        out.sum(axis=0),
    ]
