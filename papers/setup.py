"""The papers' tables inside the built package; all else of the build stands in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
KINDS = ("*/*.toml", "*/*.print.csv", "*/*.ours.csv", "*/horizon/*.csv", "*/README.md")


class WithPapers(build_py):
    """Copy the tables into the package; an editable install reads it where it is."""

    def run(self) -> None:
        """Build the package, then add the papers."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "sottovoce_papers" / "tables"
        shutil.rmtree(target, ignore_errors=True)  # what an earlier build left
        for path in (path for kind in KINDS for path in sorted(ROOT.glob(kind))):
            beside = target / path.relative_to(ROOT)
            beside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, beside)


setup(cmdclass={"build_py": WithPapers})
