"""The public surface, kept as a file: names, parameters, members of results, commands, options and exit codes.

Write it anew with WRITE_GOLDEN=1 and read what changed (docs/stability.md): a line that goes, or a parameter that must
be given, is a major version (before 1.0 a minor one), a line that comes a minor one.
"""

import copy
import dataclasses
import inspect
import os
import types
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.cli.audit import FAULTY
from sottovoce.cli.command import REFUSED, STOPPED
from sottovoce_papers.command import reproduce

KEPT = Path(__file__).parent / "surface.txt"
INSIDE = {"to_state", "from_state", "with_cost", "describe", "draw"}  # how the package keeps and shows a result
EXITS = {0: "done", FAULTY: "the audit found a fault", REFUSED: "refused", STOPPED: "stopped"}


class Given:
    """Stands for any default: its value may change, that there is one may not."""

    def __repr__(self) -> str:
        return "…"


def signature(thing: Any, bound: bool = False) -> str:
    """Return the parameters of a function or class: names, kinds, and whether there is a default."""
    parameters = list(inspect.signature(thing).parameters.values())[1 if bound else 0 :]
    empty = inspect.Parameter.empty
    plain = [each.replace(annotation=empty, default=empty if each.default is empty else Given()) for each in parameters]
    return str(inspect.Signature(plain)).replace("=…", "?").replace(" = …", "?")


def kinds(annotation: Any) -> Iterator[type]:
    """Yield the package's own classes in an annotation, those of unions, mappings and sequences too."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is not None:
        for part in typing.get_args(annotation):
            yield from kinds(part)
    elif isinstance(annotation, type) and annotation.__module__.startswith("sottovoce."):
        yield annotation


def returned(named: dict[str, Any]) -> dict[str, type]:
    """Return the classes of what public functions return, and the tuples that those return in turn, by name."""
    results = {each.__name__: each for thing in named.values() if inspect.isfunction(thing) for each in returns(thing)}
    classes = [*results.values(), *(thing for thing in named.values() if isinstance(thing, type))]
    inside = [each for kind in classes for _, made in methods(kind) for each in returns(made)]
    tuples = {each.__name__: each for each in inside if issubclass(each, tuple) and ".client." not in each.__module__}
    return {**tuples, **{name: kind for name, kind in results.items() if kind not in named.values()}}


def returns(made: Any) -> list[type]:
    """Return the package's own classes that a function is annotated to return."""
    return list(kinds(getattr(made, "__annotations__", {}).get("return")))


def methods(kind: type) -> list[tuple[str, Any]]:
    """Return the public members of a class that the package defines, by name: functions, and what properties call."""
    seen: dict[str, Any] = {}
    for owner in kind.__mro__:
        if owner.__module__.startswith("sottovoce"):
            for name, value in vars(owner).items():
                # those of scikit-learn's routing come and go with its version
                if not name.startswith("_") and not name.endswith("_request") and name not in INSIDE:
                    seen.setdefault(name, value)
    made = {name: getattr(each, "fget", getattr(each, "func", each)) for name, each in seen.items()}
    return sorted((name, getattr(each, "__func__", each)) for name, each in made.items())


def members(name: str, kind: type) -> Iterator[str]:
    """Yield a line for each public field, property and method of a class."""
    if issubclass(kind, tuple):
        yield from (f"{name}[{place}].{field}" for place, field in enumerate(getattr(kind, "_fields", ())))
    fields = {each.name for each in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    yield from (f"{name}.{field}" for field in sorted(fields) if not field.startswith("_"))
    for member, made in methods(kind):
        if member in fields or member in getattr(kind, "_fields", ()):
            continue
        raw = inspect.getattr_static(kind, member)
        if inspect.isfunction(raw):
            yield f"{name}.{member}{signature(raw, bound=True)}"
        elif isinstance(raw, classmethod | staticmethod):
            yield f"{name}.{member}{signature(made, bound=isinstance(raw, classmethod))}"
        else:
            yield f"{name}.{member}"


def options(name: str, of: Any) -> Iterator[str]:
    """Yield a line for each argument and option of a command, and of the commands below it."""
    for each in of.params:
        if getattr(each, "hidden", False):
            continue
        must, many = ("", " (required)")[each.required], ("", " (repeated)")[each.multiple or each.nargs == -1]
        words = " ".join([*each.opts, *each.secondary_opts]) if each.param_type_name == "option" else each.name.upper()
        yield f"{name} {words}{'' if getattr(each, 'is_flag', False) else ' VALUE'}{must}{many}"
    for below, inside in sorted(getattr(of, "commands", {}).items()):
        yield f"{name} {below}"
        yield from options(f"{name} {below}", inside)


def lines() -> Iterator[str]:
    """Yield the whole surface."""
    named = {name: getattr(sv, name) for name in sorted(sv.__all__) if name != "__version__"}
    yield "# Public names: `?` stands behind a parameter that has a default"
    for name, thing in named.items():
        if inspect.ismodule(thing):
            yield from (f"sv.{name}.{each}{signature(getattr(thing, each))}" for each in sorted(thing.__all__))
        elif isinstance(thing, type) and issubclass(thing, Exception):
            yield f"sv.{name}({', '.join(each.__name__ for each in thing.__bases__)})"
        else:
            yield f"sv.{name}{signature(thing)}"
            yield from members(f"sv.{name}", thing) if isinstance(thing, type) else ()
    yield from (f"sv.{old}, now sv.{new}" for old, new in sorted(sv._FORMER.items()))
    yield "\n# What public functions and their results return"
    for name, kind in sorted(returned(named).items()):
        yield from members(name, kind)
    yield "\n# Commands"
    whole = copy.copy(app)
    whole.registered_commands = [known for known in app.registered_commands if known.name != "reproduce"]
    whole.command(name="reproduce")(reproduce)
    yield from options("sottovoce", typer.main.get_command(whole))
    yield "\n# Exit codes"
    yield from (f"{code}: {means}" for code, means in sorted(EXITS.items()))


def test_the_public_surface_is_as_kept() -> None:
    """Read the lines that changed, decide which version that is, and write the changelog."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = "".join(f"{line}\n" for line in lines())
    if os.environ.get("WRITE_GOLDEN"):
        KEPT.write_text(found)
    kept = KEPT.read_text()
    gone = sorted({*kept.splitlines()} - {*found.splitlines()})
    came = sorted({*found.splitlines()} - {*kept.splitlines()})
    assert (gone, came) == ([], []), "the public surface changed: read docs/stability.md, then say WRITE_GOLDEN=1"
    assert found == kept
