"""What a dotted name in a document stands for in the code."""

import importlib


def resolved(name: str) -> object:
    """Return what a dotted name such as ``inference.self_normalised.clock.Clock`` stands for."""
    parts = (name if name.startswith("sottovoce") else f"sottovoce.{name}").split(".")
    for depth in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            fields = getattr(found, "__annotations__", {})  # a field of a dataclass is not its attribute
            found = fields[part] if part in fields else getattr(found, part)
        return found
    raise ModuleNotFoundError(name)
