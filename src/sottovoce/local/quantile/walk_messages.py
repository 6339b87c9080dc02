"""The rounds of a walk over sites, message by message: what a federation does, in one process."""

from collections.abc import Sequence

from sottovoce.client.quantile.site import Site
from sottovoce.local.quantile.participation import Coin
from sottovoce.local.quantile.trajectory import Watch, checkpoints
from sottovoce.server.quantile.recursion.study import WalkStudy
from sottovoce.server.quantile.recursion.walk import WalkState, init, query, step


def run(study: WalkStudy, sites: Sequence[Site], coin: Coin | None = None, watch: Watch | None = None) -> WalkState:
    """Ask the sites round by round and return the last state.

    Parameters
    ----------
    study
        What is estimated and how.
    sites
        Who answers, in the order of the study.
    coin
        Who is asked when participation is partial; the operating system's coin if not given.
    watch
        Is shown a few states on the way (see `trajectory.checkpoints`).
    """
    coin = Coin(study) if coin is None else coin
    looks = set(checkpoints(len(study.elapsed)).tolist()) if watch is not None else set()
    state = init(study)
    for _ in range(len(study.elapsed)):
        masks = coin.masks(1)
        present = masks[0] if len(masks) else None
        letters = [
            site.answer(question).letters if question.counts[0] else b""
            for site, question in zip(sites, query(study, state, present), strict=True)
        ]
        state = step(study, state, letters, present)
        if watch is not None and state.round in looks:
            watch(state)
    return state
