"""Whether the columns of a table are those a model was fitted to; the sentences are those scikit-learn looks for."""

from collections.abc import Callable, Sequence

from sottovoce.client.reading.matrix import Matrix
from sottovoce.core.errors import BadInput

_SHOWN = 5


def check_features(
    matrix: Matrix, names: Sequence[str] | None, p: int, estimator: str, warn: Callable[[str], None]
) -> None:
    """Refuse a table with other columns than a model was fitted to, or with the same ones in another order.

    Parameters
    ----------
    matrix
        The table.
    names
        The names of the columns at the fit; None when they had no names.
    p
        Their number.
    estimator
        What the model is called in a sentence.
    warn
        Is told when names can not be compared, since one table has none.
    """
    if names is not None and not matrix.named:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
    elif names is None and matrix.named:
        warn(f"X has feature names, but {estimator} was fitted without feature names")
    elif names is not None and tuple(names) != matrix.names:
        raise _other_names(matrix.names, names)
    if matrix.p != p:
        raise BadInput(f"X has {matrix.p} features, but {estimator} is expecting {p} features as input.")


def _other_names(given: Sequence[str], expected: Sequence[str]) -> BadInput:
    """Say which names are new, which are gone, or that their order is another one."""
    unseen, gone = sorted(set(given) - set(expected)), sorted(set(expected) - set(given))
    text = "The feature names should match those that were passed during fit.\n"
    if unseen:
        text += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if gone:
        text += f"Feature names seen at fit time, yet now missing:\n{_listed(gone)}"
    if not unseen and not gone:
        text += "Feature names must be in the same order as they were in fit.\n"
    return BadInput(text)


def _listed(names: Sequence[str]) -> str:
    """List the first names, one a line."""
    return "".join(f"- {name}\n" for name in names[:_SHOWN]) + ("- ...\n" if len(names) > _SHOWN else "")
