"""The privacy promise in words: what a finished study protects, and what it does not."""

import math
from collections.abc import Mapping


def promise(epsilons: Mapping[str, float], private: bool, per_person: bool) -> str:
    """Return the paragraph that belongs under every private number."""
    unit = "person" if per_person else "record"
    exposed = [name for name, epsilon in epsilons.items() if math.isinf(epsilon)]
    finite = [epsilon for epsilon in epsilons.values() if math.isfinite(epsilon)]
    if not finite:
        return "No privacy: epsilon is infinite, so every answer was sent as it is."
    worst = max(finite)
    text = (
        f"Each {unit} answered at most once, with one bit that was turned round at random before it left its site; "
        f"whoever sees that bit can shift the odds between any two values of the {unit} by at most a factor "
        f"{math.exp(worst):.3g} (epsilon {worst:.3g}, computed from the integers of the channel). "
    )
    if exposed:
        text += f"Not so at {', '.join(exposed)}, where epsilon is infinite. "
    if not private:
        text += "This run used seeded or infinite-budget dice, so it protects nobody: it is a simulation. "
    text += (
        f"Not protected: which sites took part, how many records each holds, and, where one individual gave several "
        f"{unit}s or several studies ask the same {unit}, the sum of their epsilons."
    )
    return text
