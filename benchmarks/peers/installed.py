"""Peers that are installed, and why others are not there: nothing of theirs is imported at the top of a file."""

import importlib
import re
import sys
import types
import warnings
from importlib import metadata
from typing import Any, NamedTuple

DIFFPRIVLIB_MODELS = "diffprivlib.models"


class Peer(NamedTuple):
    """A peer: its distribution, its version, the module asked for, and where it is not there, the reason."""

    name: str
    version: str
    module: Any
    reason: str

    @property
    def title(self) -> str:
        """Return how a table calls it."""
        return f"{self.name} {self.version}".strip()


def peer(name: str, module: str) -> Peer:
    """Import a module of a peer, quietly; where that fails, keep the reason.

    >>> peer("a peer that nobody wrote", "no_such_module").module is None
    True
    """
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Peer(name, "", None, f"{name} is not installed: pip install '.[bench]' brings it where it can be had")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Peer(name, version, importlib.import_module(module), "")
    except Exception as error:  # a peer may break in any way beside the versions of others
        return Peer(
            name, version, None, f"{name} {version} cannot be imported here ({type(error).__name__}: {plain(error)})"
        )


def plain(error: Exception) -> str:
    """Return an error's first line without the folder of this machine that Python adds.

    >>> plain(ImportError("cannot import name 'DOUBLE' from 'sklearn.tree._tree' (/home/a/_tree.so)"))
    "cannot import name 'DOUBLE' from 'sklearn.tree._tree'"
    """
    return re.sub(r" \(\S*[/\\]\S*\)", "", str(error).partition("\n")[0])


def diffprivlib() -> Peer:
    """Import diffprivlib's tools; where its models break beside the installed scikit-learn, without its models."""
    found = peer("diffprivlib", "diffprivlib.tools")
    if found.module is not None or not found.version:
        return found
    for name in [name for name in sys.modules if name.split(".")[0] == "diffprivlib"]:
        del sys.modules[name]
    sys.modules[DIFFPRIVLIB_MODELS] = types.ModuleType(DIFFPRIVLIB_MODELS)  # its quantile uses none of them
    again = peer("diffprivlib", "diffprivlib.tools")
    return again._replace(
        reason=found.reason if again.module is None else f"{found.reason}; its quantiles run without its models"
    )
