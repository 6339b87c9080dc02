"""Write `docs/reference.md`, the public names with their signatures and first lines, from the package itself.

Run `python scripts/write_reference.py` after a public name changed; `tests/docs/test_generated_pages.py` holds the page
against the code.
"""

import dataclasses
import inspect
import types
import typing
from pathlib import Path
from typing import Any

import sottovoce as sv

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
OPENING = """# Reference

Written by `scripts/write_reference.py` from the package itself: change the docstrings there, then run it again.
`help(...)` on a name tells its parameters. Everything else in the package may change without notice.

```python
import sottovoce as sv
```
"""


def page() -> str:
    """Return the whole page: the public names, then what the results of the functions offer."""
    names = [name for name in sv.__all__ if name != "__version__"]
    sections = [_section(f"sv.{name}", getattr(sv, name)) for name in names]
    kinds = ", ".join(f"`{found.__name__}`" for found in results())
    told = f"## Results\n\n{kinds} are what the functions return.\n"
    return "\n".join([OPENING, *sections, told, *(_section(found.__name__, found, "###") for found in results())])


def results() -> list[type]:
    """Return the classes that the public functions return and that are no public names themselves."""
    public = [getattr(sv, name) for name in sv.__all__]
    found: list[type] = []
    for thing in public:
        if inspect.isfunction(thing):
            for kind in _kinds(inspect.signature(thing).return_annotation):
                if kind.__module__.startswith("sottovoce") and kind not in [*found, *public]:
                    found.append(kind)
    return found


def _kinds(annotation: Any) -> list[type]:
    """Return the classes of an annotation, those of a union too."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return [kind for part in typing.get_args(annotation) for kind in _kinds(part)]
    return [annotation] if isinstance(annotation, type) else []


def _section(name: str, thing: Any, heading: str = "##") -> str:
    """Return what stands on the page about a function, a class, an error or a module."""
    lines = [f"{heading} {name}", ""]
    if inspect.ismodule(thing):
        lines += [_first_line(thing), ""]
        inside = [(f"{name}.{key}", getattr(thing, key)) for key in getattr(thing, "__all__", [])]
        return "\n".join(
            [*lines, *(f"* `{key}{_signature(value)}`: {_first_line(value)}" for key, value in inside), ""]
        )
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    if not is_error and heading == "##":
        lines += ["```text", *_broken(f"{name}{_signature(thing)}"), "```", ""]
    lines += [_first_line(thing), ""]
    members = [] if is_error or not isinstance(thing, type) else _members(thing)
    return "\n".join([*lines, *members, *([""] if members else [])])


def _members(kind: type) -> list[str]:
    """Return a line for each public field, property and method that the package itself defines."""
    lines, seen = [], set()
    fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for owner in kind.__mro__:
        if not owner.__module__.startswith("sottovoce"):
            continue
        for key, value in vars(owner).items():
            if key.startswith("_") or key in seen or key in fields:
                continue
            seen.add(key)
            made = getattr(value, "__func__", getattr(value, "func", value))  # of a class method, of a cached property
            if isinstance(made, property) or (made is not value and not inspect.ismethod(getattr(kind, key, None))):
                lines.append(f"* `.{key}`: {_first_line(made)}")
            elif inspect.isfunction(made):
                lines.append(f"* `.{key}{_signature(made, bound=True)}`: {_first_line(made)}")
    plain = [f"`.{name}`" for name in fields if not name.startswith("_")]
    return [*([f"* {', '.join(plain)}: as they were given or found."] if plain else []), *lines]


def _signature(thing: Any, bound: bool = False) -> str:
    """Return the parameters with their defaults, without types."""
    parameters = list(inspect.signature(thing).parameters.values())[1 if bound else 0 :]
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain))


def _first_line(thing: Any) -> str:
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def _broken(text: str, width: int = 116) -> list[str]:
    """Return a signature in lines of at most a width, broken behind commas."""
    lines, line = [], ""
    for part in text.split(", "):
        grown = f"{line}, {part}" if line else part
        if len(grown) > width:
            lines.append(f"{line},")
            grown = f"    {part}"
        line = grown
    return [*lines, line]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
