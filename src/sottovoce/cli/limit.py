"""`--limit`: what a record may cost in all, set before anything is asked."""

from collections.abc import Mapping

from sottovoce.cli.options import number
from sottovoce.core.errors import BadInput


def set_limit(text: str | None, *rounds: Mapping[str, float]) -> None:
    """Set what a record may cost in all, and refuse rounds whose budgets, by site, would pass it together."""
    if text is None:
        return
    most = number(text, "--limit", "give what a record may cost in all, such as 2")
    from sottovoce.api.asking import limit

    limit(epsilon=float(most if most is not None else 0))
    together = max(both(*rounds).values(), default=0.0)
    if len(rounds) > 1 and together > limit.now():
        raise BadInput(
            f"both rounds together would cost a record epsilon {together:.4g}, and --limit is {text}; ask for less, or "
            "judge by fresh scores."
        )


def both(*rounds: Mapping[str, float]) -> dict[str, float]:
    """Return what all rounds cost a record of each site; a site that a round does not ask pays nothing for it.

    >>> both({"a": 1.0, "b": 2.0}, {"a": 0.5, "tiny": 5.0})
    {'a': 1.5, 'b': 2.0, 'tiny': 5.0}
    """
    names = dict.fromkeys(name for each in rounds for name in each)
    return {name: sum(each.get(name, 0.0) for each in rounds) for name in names}
