"""Where the package meets its callers: errors leave without the frames that hold records, warnings name the caller.

A traceback holds the local variables of every frame below the public call, columns of records among them, and tools
that report errors send them on. So an error leaves a public call alone: no frame below it, no error behind it. One that
nobody expected keeps its class and its places in the package, and loses its message, which may quote a record.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sottovoce.core.errors import BadInput, SearchFailed

PACKAGE = str(Path(__file__).parents[1])
Given = ParamSpec("Given")
Returned = TypeVar("Returned")


class Unexpected(RuntimeError):
    """An error that nobody expected: its class, and where in the package it came from; nothing of the data."""


def public(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Let errors leave a public call without the frames and errors that may hold records.

    >>> @public
    ... def look(records):
    ...     return {}[records[0]]
    >>> look([12.5])
    Traceback (most recent call last):
    sottovoce.core.calling.Unexpected: an unexpected KeyError ended the call; please report it, nothing of the data is \
in it
    """

    @functools.wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            left = leaving(error)
        del args, kwargs
        raise left

    return called


def leaving(error: BaseException) -> BaseException:
    """Return an error as it may leave the package."""
    trace = error.__traceback__
    if isinstance(error, TypeError) and (trace is None or trace.tb_next is None or trace.tb_next.tb_next is None):
        return bare(error)  # of the call itself: a parameter too many or too few
    if isinstance(error, BadInput | SearchFailed | Unexpected | Warning) or not isinstance(error, Exception):
        return bare(error)
    if _expected(error):
        return bare(error)
    where = places(error)
    at = f" at {where[-1]}" if where else ""
    found = Unexpected(
        f"an unexpected {type(error).__name__}{at} ended the call; please report it, nothing of the data is in it"
    )
    for place in where[:-1]:
        found.add_note(f"called from {place}")
    return found


def _expected(error: Exception) -> bool:
    """Tell whether an error is the caller's own: of a function that the caller gave, or of scikit-learn's contract."""
    if type(error).__name__ == "NotFittedError":
        return True
    trace, last = error.__traceback__, ""
    while trace is not None:
        last, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return not last.startswith((PACKAGE, "<")) and "site-packages" not in last and "dist-packages" not in last


def bare(error: BaseException) -> BaseException:
    """Return an error without frames and without errors behind it."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def places(error: BaseException) -> list[str]:
    """Return module and line of every frame of the package that an error came through, the public call first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(PACKAGE) and code.co_filename != __file__:
            found.append(f"{trace.tb_frame.f_globals.get('__name__', 'sottovoce')}:{trace.tb_lineno}")
        trace = trace.tb_next
    return found


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn whoever called the package, wherever in it this is."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)
