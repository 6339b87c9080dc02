"""Colours and marks of the pictures: told apart by every eye, and without colour; the default's are its own."""

from sottovoce_papers.harness.layout import DEFAULT

# Okabe and Ito's colours, darker where they are too light for a thin line.
COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5c5c5c", "#8c6d31", "#1a1a1a")
OURS, PRINT, NOMINAL, INK = "#d55e00", "#000000", "#8c8c8c", "#1a1a1a"
MARKS = ("o", "s", "^", "v", "D", "P", "X", "h")


def colours(series: list[str]) -> dict[str, str]:
    """Give each series a colour.

    Examples
    --------
    >>> colours(["C1", "default"])
    {'C1': '#0072b2', 'default': '#d55e00'}
    """
    return _given(series, COLOURS, OURS)


def marks(series: list[str]) -> dict[str, str]:
    """Give each series a mark.

    Examples
    --------
    >>> marks(["C1", "default"])
    {'C1': 'o', 'default': '*'}
    """
    return _given(series, MARKS, "*")


def _given(series: list[str], choices: tuple[str, ...], default: str) -> dict[str, str]:
    others = [name for name in series if name != DEFAULT]
    chosen = {name: choices[i % len(choices)] for i, name in enumerate(others)}
    return chosen | {name: default for name in series if name == DEFAULT}
