"""The privacy promise in words: what a finished study protects, and what it does not."""

import math
from collections.abc import Mapping


def promise(epsilons: Mapping[str, float], private: bool, per_person: bool, seeded: bool | None = None) -> str:
    """Return the paragraph that belongs under every private number; ``seeded`` where it is not plain from the rest."""
    unit = "person" if per_person else "record"
    again = "" if per_person else "one individual gave several records or "
    exposed = [name for name, epsilon in epsilons.items() if math.isinf(epsilon)]
    finite = [epsilon for epsilon in epsilons.values() if math.isfinite(epsilon)]
    if not finite:
        return "No privacy: epsilon is infinite, so every answer was sent as it is."
    worst = max(finite)
    text = (
        f"Each {unit} answered at most once, with one bit that was randomised before it left its site; "
        f"whoever sees that bit can shift the odds between any two values of the {unit} by at most a factor "
        f"{math.exp(worst):.3g} (epsilon {worst:.3g}, computed from the integers of the channel). "
    )
    if exposed:
        text += f"Not so at {', '.join(exposed)}, where epsilon is infinite. "
    if (not private and not exposed) if seeded is None else seeded:
        text += "This run used seeded dice, which anybody can throw again: it is a simulation and protects nobody. "
    text += (
        "Not protected: which sites took part, how many records and missing values each holds, and, where "
        f"{again}several studies ask the same {unit}, the sum of their epsilons."
    )
    return text
