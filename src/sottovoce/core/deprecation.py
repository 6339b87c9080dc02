"""Names that go: each still works, and says since when it is old, what to write instead, and when it is gone.

A `FutureWarning` is shown wherever it comes up; a `DeprecationWarning` is not, in a library that somebody else calls.
docs/stability.md says how long an old name stays.
"""

from sottovoce.core.calling import warn


def say_former(old: str, new: str, *, since: str, gone: str) -> None:
    """Warn whoever called the package by an old name.

    Parameters
    ----------
    old
        The name that goes.
    new
        The name to write instead.
    since
        The version from which the old name warns.
    gone
        The version from which it no longer exists: at least two minor versions later.
    """
    warn(f"{old} is called {new} since version {since} and goes in version {gone}; write {new}.", FutureWarning)
