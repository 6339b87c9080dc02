"""Where the package meets its callers: errors leave without the frames that hold records, warnings name the caller.

A traceback holds the local variables of every frame below the public call, columns of records among them, and tools
that report errors send them on. So an error leaves a public call alone: no frame below it, no error behind it. One that
nobody expected keeps its class and its places in the package, and loses its message, which may quote a record.
"""

import functools
import math
import re
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
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
_FEW = 10  # settings in a list
_TOKENS = re.compile(r"'[^']{5,}'|\"[^\"]{5,}\"|-?\d[\d_.e+-]{4,}")  # what may be a value that a sentence quotes
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
            given = (*zip(names, args, strict=False), *kwargs.items())
            left = leaving(error, [value for name, value in given if name != "site"])  # labels of sites are names
            del given
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
        try:
            text = without_data(str(error), given)
        except Exception:  # of a collection that cannot be looked at
            text = "a parameter is a collection where none can be used; check the call."
        error.args = (text,)
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


def _unquoted(text: str, value: Any) -> str:
    """Take what a sentence quotes of one collection out of it: the whole of it, and any value that is in it."""
    if isinstance(value, np.ndarray) or not _nested(value):
        text = _replaced(text, value)
    if _nested(value) and getattr(value, "ndim", 1) > 0 and len(value):
        first = next(iter(value.values() if isinstance(value, Mapping) else value))
        if not _unwritten(first, text) and repr(first) in text:  # costly: only where the sentence begins to
            text = _replaced(_replaced(text, value), list(value))
    for token in set(_TOKENS.findall(text)):
        if _holds(value, token.strip("'\"")):
            text = text.replace(token, "a value of it")
    return text


def _replaced(text: str, value: Any) -> str:
    """Put the kind of a value in the place of the value."""
    if _unwritten(value, text):
        return text
    try:
        written = repr(value)
    except Exception:  # of an object that is not whole
        return text
    if len(written) > len(text):
        return text
    return text.replace(written, kind_of(value)).replace(escaped(written), kind_of(value))


def _unwritten(value: object, text: str) -> bool:
    """Tell whether a value cannot stand in a text, without writing it out, which is costly for an array."""
    return type(value) is np.ndarray and "array(" not in text


def _holds(value: Any, token: str) -> bool:
    """Tell whether a collection holds what is written as a token."""
    if isinstance(value, Mapping):
        return any(_holds(each, token) for each in value.values())
    if isinstance(value, str | bytes):
        return token in (value if isinstance(value, str) else value.decode(errors="replace"))
    try:
        number = float(token)
    except ValueError:
        number = math.nan
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return bool((value == number).any())
    listed = getattr(value, "tolist", getattr(value, "to_list", None))
    rows = listed() if callable(listed) else value if isinstance(value, list | tuple | set) else ()
    rows = rows if isinstance(rows, list | tuple | set) else [rows]
    return any(_holds(each, token) if _nested(each) else str(each) == token or _same(each, number) for each in rows)


def _same(value: Any, number: float) -> bool:
    """Tell whether a value is a number, whatever its type."""
    try:
        return isinstance(value, Number) and float(value) == number  # type: ignore[arg-type]
    except (TypeError, OverflowError):  # no real number, or too large for one
        return False


def _nested(value: object) -> bool:
    """Tell whether a value has parts."""
    return isinstance(value, list | tuple | set | np.ndarray | Mapping)


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
