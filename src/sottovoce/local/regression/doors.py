"""The doors of a regression in one process: people divided over the channels in public, each part behind its own."""

import numpy as np

from sottovoce.client.door import Door, SiteLimits
from sottovoce.client.order import order_key
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private
from sottovoce.protocol.card import identity
from sottovoce.protocol.regression.carried import whose
from sottovoce.protocol.regression.questions import KEY, public_words
from sottovoce.server.regression.dithered.method import BY_SHARE, BatchRule
from sottovoce.server.regression.method import RegressionMethod
from sottovoce.server.regression.plan import RegressionPlan


def open_doors(
    plan: RegressionPlan,
    rows: Rows,
    dice: RandomSource | None = None,
    batches: BatchRule = BY_SHARE,
    limits: SiteLimits | None = None,
) -> tuple[RegressionMethod, list[Door], bytes]:
    """Return a method, the doors that it asks, and the identity of their study.

    ``rows`` are everybody's records; ``batches`` says how many people are asked under one query.
    """
    source: RandomSource = SystemEntropy() if dice is None else dice
    key = source.words(KEY // 8).tobytes()
    channels = plan.design.channels
    parts = [rows]
    if len(channels) > 1:
        drawn = whose(public_words(key, 0, rows.size), len(channels))
        mine = [np.flatnonzero(drawn == channel) for channel in range(len(channels))]
        parts = [Rows(rows.features()[where], rows.response()[where]) for where in mine]
    method = RegressionMethod(plan, [part.size for part in parts], key, batches, is_private(source))
    study = identity(plan.card(key, method.people))
    doors = []
    for part, channel in zip(parts, channels, strict=True):
        order = order_key(source) if plan.settings.shuffle else None
        epsilon = max(plan.design.epsilon, channel.epsilon)
        persons = Persons(part, channel, source, epsilon=epsilon, order=order, key=key, limits=limits)
        doors.append(Door(persons, study, limits))
    return method, doors, study
