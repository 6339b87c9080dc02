"""Coverage, error and length of the staged design, and the sizes of its one-sided tests, band by band."""

import numpy as np

from benchmarks.cells import BANDS, KINKED, TUNED, UNSEEN, staged_cells, valley_cells
from sottovoce_papers.simulation.experiment import Score, score_all

COLUMNS = ("coverage", "error", "length", "certified", "rounds", "searched", "greater", "less", "above", "below")


def report(title: str, scores: list[Score], worst: int = 4) -> None:
    print(f"\n{title}  ({scores[0].replications} replications a cell)")
    print(f"{'s/t0':>12} {'cells':>6} {'lowest':>9} {'longest':>9} " + " ".join(f"{name:>9}" for name in COLUMNS))
    for low, high in BANDS:
        band = [score for score in scores if low < score.support <= high]
        if band:
            means = [float(np.mean([getattr(score, name) for score in band])) for name in COLUMNS]
            extremes = f"{min(s.coverage for s in band):>9.3f} {max(s.length for s in band):>9.3f}"
            print(f"{f'{low:g}-{high:g}':>12} {len(band):>6} {extremes} " + " ".join(f"{m:>9.4f}" for m in means))
    for score in sorted(scores, key=lambda score: score.coverage)[:worst]:
        print(f"   lowest: {line(score)}, certified {score.certified:.3f}, worst error {score.worst:.1f} sd")


def line(score: Score) -> str:
    return f"{score.name:<45} coverage {score.coverage:.3f}, error {score.error:.2f}, length {score.length:.2f}"


def run(replications: int, jobs: int) -> None:
    for title, families, seed in (
        ("Staged, families the constants were chosen on", TUNED, 1000),
        ("Staged, families the constants were not chosen on", UNSEEN, 2000),
    ):
        report(title, score_all(list(staged_cells(families)), replications, seed, jobs))
    print("\nStaged between two modes; last, where the second begins with a kink")
    for score in score_all([*valley_cells(), *valley_cells(KINKED)], 2 * replications, 3000, jobs):
        print(f"   {line(score)}, certified {score.certified:.3f}")
