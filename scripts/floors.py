"""Print the lowest stated version of everything that users install, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("fast", "learn", "plot", "pandas", "polars", "demo")


def floors() -> list[str]:
    """Return ``name==version`` for each direct dependency of the package and of its extras for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [*project["dependencies"], *(need for extra in EXTRAS for need in project["optional-dependencies"][extra])]
    found = (re.match(r"([\w-]+)>=([\d.]+)", need) for need in needs if not need.startswith("sottovoce["))
    return [f"{each[1]}=={each[2]}" for each in found if each]


if __name__ == "__main__":
    sys.stdout.write("\n".join(floors()) + "\n")
