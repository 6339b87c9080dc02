"""What a method left behind as plain values, for a file, and back."""

from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.inference.self_normalised.memory import Path
from sottovoce.protocol.randomised_response import flips_of, with_flips
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.certified.sequence import Sequel
from sottovoce.server.quantile.recursion.schedule import StepSize
from sottovoce.server.quantile.recursion.walk import WalkState, WalkStudy
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.solutions import (
    CertifiedSolution,
    FittedSolution,
    RegressionSolution,
    SelfNormalisedSolution,
    SequenceSolution,
    Solution,
    StagedSolution,
    Walked,
)
from sottovoce.server.quantile.staged import Local


class KeptWalk(NamedTuple):
    """A finished walk as plain values; equal rounds are kept as one run of their length."""

    taus: Floats
    shares: Floats
    flips: tuple[int, ...]
    sizes: Ints
    lengths: Ints
    repeats: Ints
    start: float
    pace: StepSize
    mixing: Floats | None
    participation: float
    burn: float
    first: int
    state: WalkState
    rows: tuple[WalkState, ...]
    searched: int
    norm: str | None
    path: Path | None
    relaxation: float


# what a study and a kept walk hold by the same name
ALIKE = ("taus", "shares", "sizes", "start", "pace", "mixing", "participation", "burn", "first")


class KeptSolution(NamedTuple):
    """What one of the methods left behind, as plain values; the others are None."""

    local: Local | None = None
    fitted: Fitted | None = None
    walk: KeptWalk | None = None
    certificate: Certificate | None = None
    sequel: Sequel | None = None


def kept(solution: Solution) -> KeptSolution:
    """Return a solution as plain values."""
    if isinstance(solution, StagedSolution):
        return KeptSolution(local=solution.local)
    if isinstance(solution, FittedSolution):
        return KeptSolution(fitted=solution.fitted)
    if isinstance(solution, CertifiedSolution):
        return KeptSolution(certificate=solution.certificate)
    if isinstance(solution, SequenceSolution):
        return KeptSolution(sequel=solution.sequel)
    if not isinstance(solution, Walked):
        raise TypeError(f"a {type(solution).__name__} cannot be stored")
    study, norm, path, relaxation = solution.study, None, None, 0.0
    if isinstance(solution, SelfNormalisedSolution):
        norm, path, relaxation = solution.norm, solution.path, solution.relaxation
    starts = np.flatnonzero(np.diff(study.elapsed, prepend=study.elapsed[0] - 1))
    walk = KeptWalk(
        **{name: getattr(study, name) for name in ALIKE},
        flips=tuple(map(flips_of, study.channels)),
        lengths=np.ascontiguousarray(study.elapsed[starts]),
        repeats=np.diff(starts, append=len(study.elapsed)),
        state=solution.state,
        rows=solution.rows,
        searched=solution.searched,
        norm=norm,
        path=path,
        relaxation=relaxation,
    )
    return KeptSolution(walk=walk)


def restored(kept: KeptSolution) -> Solution:
    """Return the solution that plain values were made from."""
    if kept.local is not None:
        return StagedSolution(kept.local)
    if kept.fitted is not None:
        return FittedSolution(kept.fitted)
    if kept.certificate is not None:
        return CertifiedSolution(kept.certificate)
    if kept.sequel is not None:
        return SequenceSolution(kept.sequel)
    if kept.walk is None:
        raise BadInput("the stored result holds no solution; store it again.")
    walk = kept.walk
    elapsed = np.repeat(walk.lengths, walk.repeats)
    if len(walk.lengths) == 1:
        elapsed = np.broadcast_to(walk.lengths, int(walk.repeats[0]))
    alike = {name: getattr(walk, name) for name in ALIKE}
    study = WalkStudy(channels=tuple(map(with_flips, walk.flips)), elapsed=elapsed, **alike)
    ends = (study, walk.state, walk.rows, walk.searched)
    if walk.norm is None:
        return RegressionSolution(*ends)
    return SelfNormalisedSolution(*ends, walk.norm, walk.path, walk.relaxation)
