"""`--limit`: what a record may cost in all, set before anything is asked."""

from collections.abc import Iterable

from sottovoce.cli.options import number
from sottovoce.core.errors import BadInput


def set_limit(text: str | None, *rounds: Iterable[float]) -> None:
    """Set what a record may cost in all, and refuse rounds whose budgets would pass it together."""
    if text is None:
        return
    most = number(text, "--limit", "give what a record may cost in all, such as 2")
    from sottovoce.api.asking import limit

    limit(epsilon=float(most if most is not None else 0))
    together = sum(max(budgets) for budgets in rounds)
    if len(rounds) > 1 and together > limit.now():
        raise BadInput(
            f"both rounds together would cost a record epsilon {together:.4g}, and --limit is {text}; ask for less, or "
            "judge by fresh scores."
        )
