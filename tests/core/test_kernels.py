"""Compiled kernels follow every source that they inline, wherever they are kept, and do without the compiler."""

import ast
import functools
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sottovoce
import sottovoce_papers
from sottovoce.core import kernels

INNER = """
from sottovoce.core.kernels import njit
from sottovoce.constants import FACTOR

@njit(cache=True)
def step(x):
    return x + FACTOR
"""
OUTER = """
import sys
from sottovoce.core.kernels import njit
from sottovoce.inner import step

@njit(cache=True)
def run(x):
    return 10 * step(x)

if __name__ != "__main__":
    print(run(1), sum(run.stats.cache_hits.values()) if hasattr(run, "stats") else "plain")
"""


class Copy:
    """A small package with the project's decorator and two kernels, one of which inlines the other."""

    def __init__(self, place: Path) -> None:
        self.root, self.cache = place / "code", place / "cache"
        package = self.root / "sottovoce"
        package.mkdir(parents=True)
        (package / "core").mkdir()
        for path in (package, package / "core"):
            (path / "__init__.py").touch()
        shutil.copy(kernels.__file__, package / "core" / "kernels.py")
        self.write("constants", "FACTOR = 1\n")
        self.write("inner", INNER)
        self.write("outer", OUTER)

    def write(self, name: str, text: str) -> None:
        """Write a module and give it the date of all others, as an archive may."""
        path = self.root / "sottovoce" / f"{name}.py"
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def run(self, line: str = "import sottovoce.outer") -> str:
        """Run a line in a process of its own; return what it prints."""
        hidden = ("NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR")
        given = {name: value for name, value in os.environ.items() if name not in hidden}
        settings = {**given, "PYTHONPATH": str(self.root), "XDG_CACHE_HOME": str(self.cache)}
        done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, env=settings, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


CHANGES = """
import os, sys
from pathlib import Path
sys.dont_write_bytecode = True  # Python itself keeps a module by its date

def again(name="", old="", new=""):
    if name:
        path = Path({root!r}, "sottovoce", name + ".py")
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, (1_700_000_000, 1_700_000_000))
    for module in [module for module in sys.modules if module.startswith("sottovoce")]:
        del sys.modules[module]
    import sottovoce.outer

again()
again()
again("constants", "1", "2")
again("inner", "x + FACTOR", "x - FACTOR")
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="caches lie in the home there")
def test_a_changed_function_is_compiled_anew_where_it_is_inlined(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    assert copy.run(CHANGES.format(root=str(copy.root))).splitlines() == ["20 0", "20 1", "30 0", "-10 0"]
    assert copy.run() == "-10 1"  # another process goes on with what this one left
    assert not list(copy.root.rglob("*.nbi"))
    assert len(list((copy.cache / "sottovoce" / "kernels" / "sottovoce.outer").iterdir())) == 3


def test_without_the_compiler_a_kernel_is_its_python_function(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    assert copy.run("import sys; sys.modules['numba'] = None; import sottovoce.outer") == "20 plain"
    assert not copy.cache.exists()


def test_a_users_own_folder_is_taken_and_an_unusable_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = functools.partial(kernels.folder_of.__wrapped__, "sottovoce.protocol.walk")
    importlib.import_module("sottovoce.protocol.walk")
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", str(tmp_path / "mine"))
    found = find()
    assert found is not None
    assert found.is_relative_to(tmp_path / "mine" / "sottovoce")
    (tmp_path / "file").touch()
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    found = find()
    assert found is not None
    assert found.is_relative_to(tmp_path)
    assert found.name == kernels.digest_of("sottovoce.protocol.walk")
    monkeypatch.setattr(kernels, "_bases", lambda: iter([tmp_path / "file"]))
    assert find() is None


def test_what_belongs_to_somebody_else_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_bases", lambda: iter([tmp_path]))
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1, raising=False)  # noqa: PTH116
    assert kernels.folder_of.__wrapped__("sottovoce.core.kernels") is None


def test_without_a_folder_kernels_are_compiled_in_memory_and_settings_are_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = kernels.numba.config.CACHE_DIR
    monkeypatch.setattr(kernels, "folder_of", lambda _: None)
    kernel = kernels.njit(cache=True)(lambda x: x + 1)
    assert kernel(1) == 2
    assert getattr(kernel, "stats", None) is None or kernel.stats.cache_path is None
    assert before == kernels.numba.config.CACHE_DIR


def test_only_a_few_folders_stay(tmp_path: Path) -> None:
    for age in range(10):
        (tmp_path / str(age)).mkdir()
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    kernels._forget(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3", "4", "5"]


def modules() -> dict[str, Path]:
    found = {}
    for package in (sottovoce, sottovoce_papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            spec = module.module_finder.find_spec(module.name, None)
            assert spec is not None
            found[module.name] = Path(str(spec.origin))
    return found


MODULES = modules()


def imports(path: Path) -> set[str]:
    """Return what a file of the project imports of the project at its top, read by Python's own parser."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found if name in MODULES}


def closure(module: str) -> set[str]:
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(MODULES[name])
    return found


KERNELS = sorted(name for name, path in MODULES.items() if "@njit" in path.read_text())


def test_there_are_kernels_and_one_door_to_the_compiler() -> None:
    assert {"sottovoce.client.quantile.encode", "sottovoce.client.regression.loop"} <= set(KERNELS)
    assert any(name.startswith("sottovoce_papers") for name in KERNELS)
    direct = {name for name, path in MODULES.items() if "from numba" in path.read_text()}
    assert direct == {"sottovoce.core.kernels", "sottovoce.client.regression.lent"}


@pytest.mark.parametrize("name", KERNELS)
def test_the_digest_is_of_all_that_a_kernel_may_inline(name: str) -> None:
    module = importlib.import_module(name)
    sources = kernels.sources_of(name)
    assert set(sources) == closure(name)
    kept: list[Any] = [value for value in vars(module).values() if hasattr(value, "py_func")]
    assert {value.py_func.__module__ for value in kept} <= set(sources)
