"""The one door to the compiler: a compiled kernel is kept on disk by a digest of every source that it may inline.

numba keeps a compiled function by its own file alone, and would go on with an old copy of a function from another file
that was inlined into it: after a fix of a randomiser, the faulty one. So each kernel gets a folder named by a digest of
its module and of all modules of the project that this one imports, directly or not, and of the versions of numba and
numpy; numba itself tells processors apart. The folders lie in ``NUMBA_CACHE_DIR`` if that is set, else where the
system keeps a user's caches, else beside this file; if none can be written to, kernels are compiled anew in each
process. Without numba a kernel is the Python function it was written as.
"""

import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # to the type checker a kernel is what it has always been, whatever numba makes of it
    from numba import njit, uint32, uint64

    numba: Any = None
else:
    try:
        import numba
    except ImportError:  # a site that only answers does without the compiler
        numba = None
    uint32, uint64 = (np.uint32, np.uint64) if numba is None else (numba.uint32, numba.uint64)

__all__ = ["COMPILED", "digest_of", "folder_of", "njit", "say_slow", "sources_of", "uint32", "uint64"]

COMPILED = numba is not None and not numba.config.DISABLE_JIT
LONG = 200_000  # records; a loop over them takes ten seconds when it is interpreted
_KEPT = 6  # folders of a module: other versions and other installations, the latest used ones
_OWN = ("sottovoce", "sottovoce_papers")
_IMPORT = re.compile(rb"^(?:from|import)[ \t]+([\w.]+)(?:[ \t]+import[ \t]+(\([^)]*\)|[^\n]*))?", re.MULTILINE)


def compiled(**options: Any) -> Any:
    """Compile a function of a module, as numba's decorator of this name does, and keep it under its digest."""

    def compile_kernel(function: Callable[..., Any]) -> Any:
        if numba is None:
            return function
        rest = {name: value for name, value in options.items() if name != "cache"}
        folder = None if numba.config.DISABLE_JIT or not options.get("cache") else folder_of(function.__module__)
        if folder is not None:
            with _kept_in(folder):
                kernel = numba.njit(cache=True, **rest)(function)
            if str(kernel.stats.cache_path).startswith(str(folder)):
                return kernel
        return numba.njit(**rest)(function)

    return compile_kernel


if not TYPE_CHECKING:
    njit = compiled


@functools.cache
def folder_of(module: str) -> Path | None:
    """Return the folder of a module's kernels, which can be written to; None if there is none."""
    try:
        digest = digest_of(module)
    except (KeyError, TypeError, AttributeError, OSError):  # no file to read, as in an archive or at a prompt
        return None
    for base in _bases():
        folder = base / module / digest
        try:
            fresh = not folder.is_dir()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
                continue  # what somebody else may have put there is not run
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)
        except OSError:
            continue
        if fresh:
            _forget(folder.parent)
        return folder
    return None


def digest_of(module: str) -> str:
    """Return a digest of all sources that the kernels of a loaded module may inline."""
    found = sources_of(module)
    whole = hashlib.blake2b(f"{numba and numba.__version__} {np.__version__}".encode(), digest_size=16)
    for name in sorted(found):
        whole.update(name.encode() + b"\0" + found[name])
    return whole.hexdigest()


def sources_of(module: str) -> dict[str, bytes]:
    """Return a loaded module and all modules of the project that it imports, directly or not, each with its digest."""
    found: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name], imported = _source(name)
            waiting += [each for each in imported if each in sys.modules and _ours(each, module)]
    return found


def _ours(name: str, module: str) -> bool:
    return name.partition(".")[0] in (*_OWN, module.partition(".")[0])


@functools.cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the digest of a module's file, and the names of what it imports when it is loaded, modules or not."""
    text = Path(str(sys.modules[module].__file__)).read_bytes()
    names = []
    for base, inside in _IMPORT.findall(text):
        names.append(base.decode())
        names += [f"{base.decode()}.{name.decode()}" for name in re.findall(rb"\w+", inside)]
    return hashlib.blake2b(text, digest_size=16).digest(), tuple(names)


def _bases() -> Iterator[Path]:
    """Yield the places where kernels may be kept, the best first."""
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR) / "sottovoce"
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - without a home this stays as it is, and does not fail
    usual = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}
    variable, below = usual.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    given = Path(os.environ.get(variable, "")) if variable else Path()
    if given.is_absolute():
        yield given / "sottovoce" / "kernels"
    elif home.is_absolute():
        yield home / below / "sottovoce" / "kernels"
    yield Path(__file__).parent / "__pycache__" / "kernels"


def _forget(module: Path) -> None:
    """Remove the folders of a module that were not used for longest, but for a few."""
    with suppress(OSError):  # another process may do the same
        folders = sorted(module.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in folders[_KEPT:]:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Let numba choose a folder for what is decorated meanwhile; its settings are put back."""
    changed = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}  # the second is not in every version
    before = {name: getattr(numba.config, name) for name in changed if hasattr(numba.config, name)}
    for name in before:
        setattr(numba.config, name, changed[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(numba.config, name, value)


def say_slow(records: int) -> None:
    """Warn before a long loop over records that is not compiled."""
    if not COMPILED and records >= LONG:
        from sottovoce.core.calling import warn

        warn("numba is not installed, so this takes about 25 times as long: install it with: pip install numba")
