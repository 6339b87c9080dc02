"""Where the package meets its callers: errors leave without the frames that hold records, warnings name the caller.

A traceback holds the local variables of every frame below the public call, columns of records among them, and tools
that report errors send them on. So an error leaves a public call alone: no frame below it, no error behind it. One that
nobody expected keeps its class and its places in the package, and loses its message, which may quote a record.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from numbers import Number
from pathlib import Path
from types import UnionType
from typing import Any, ParamSpec, TypeVar, get_args

import numpy as np

from sottovoce.core.checks import kind_of
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.shown import escaped

PACKAGE = str(Path(__file__).parents[1])
_PLAIN = (str, int, float, bool, type(None), np.generic)  # what a sentence may quote
_FEW, _BRIEF = 10, 4  # settings in a list; letters of a value that may stand in a sentence by chance
_SETTING = {str, int, float, bool, type(None)}
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
    names = function.__code__.co_varnames
    annotated = function.__annotations__.items()
    kinds = {name: [*get_args(kind)] if isinstance(kind, UnionType) else [kind] for name, kind in annotated}
    settings = {name for name, kind in kinds.items() if all(each in _SETTING for each in kind)}

    @functools.wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            _check_settings(settings, (*zip(names, args, strict=False), *kwargs.items()))
            return function(*args, **kwargs)
        except BaseException as error:
            left = leaving(error, [*args, *kwargs.values()])
        del args, kwargs
        raise left

    return called


def _check_settings(settings: Container[str], given: Iterable[tuple[str, object]]) -> None:
    """Refuse a collection in the place of a word or a number, before anything is compared with it."""
    for name, value in given:
        if name in settings and not isinstance(value, _PLAIN):
            what = type(value).__name__
            raise BadInput(f"{name} must be a word or a number, not {what}; correct it.", parameter=name)


def leaving(error: BaseException, given: Sequence[object] = ()) -> BaseException:
    """Return an error as it may leave the package, which was given some arguments."""
    if isinstance(error, BadInput):
        error.args = (without_data(str(error), given),)
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


def without_data(text: str, given: Iterable[object]) -> str:
    """Put its kind in the place of every collection that a sentence quotes, unless it is short: it may be a column.

    >>> long = [12.5, 14.25] * 9
    >>> without_data(f"tau must be a number, not {long!r}; correct it.", [long])
    'tau must be a number, not a list; correct it.'
    >>> without_data("tau must ascend, not [0.9, 0.5]; sort them.", [[0.9, 0.5]])
    'tau must ascend, not [0.9, 0.5]; sort them.'
    """
    for value in given:
        own = hasattr(value, "get_params")  # an estimator: its parameters stand for those of the call
        for part in [each for name, each in vars(value).items() if name[-1:] != "_" != name[:1]] if own else [value]:
            if not _short(part):
                text = _unquoted(text, part)
    return text


def _short(value: object) -> bool:
    """Tell whether a value is a setting that a sentence may quote: a word, a number, or a few of them."""
    if isinstance(value, _PLAIN):
        return True
    held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else None
    return held is not None and len(held) <= _FEW and all(isinstance(each, _PLAIN) for each in held)


def _unquoted(text: str, value: object) -> str:
    """Take what a sentence quotes of one collection out of it."""
    parts: list[object] = []
    if isinstance(value, list | tuple | set) or (isinstance(value, np.ndarray) and value.ndim):
        parts = [list(value), *value]
    elif isinstance(value, Mapping):
        parts = [*value.values()]
    for part in (value, *parts):
        for written in _forms(part):
            if len(written) > _BRIEF and (written in text or escaped(written) in text):
                kind = kind_of(part)
                text = text.replace(written, kind).replace(escaped(written), kind)
    return text


def _forms(part: Any) -> Iterator[str]:
    """Yield how a sentence may have written a value."""
    try:
        yield repr(part)
        if isinstance(part, Number):
            yield repr(float(part))  # type: ignore[arg-type]
    except Exception:  # of an object that is not whole, or no real number
        return


def _expected(error: Exception) -> bool:
    """Tell whether an error is the caller's own: of a function that the caller gave, or of scikit-learn's contract."""
    if "NotFitted" in type(error).__name__:
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


def say_before(*texts: str) -> None:
    """Warn, before any record answers, whoever called the package."""
    for text in texts:
        warn(text)
