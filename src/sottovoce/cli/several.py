"""An option that takes all words up to the next option, since a shell writes a glob out into many words."""

from typing import Any

from typer.core import TyperCommand

OPTION = "--test"


class SeveralTests(TyperCommand):
    """A command whose --test takes several files."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its words."""
        return super().parse_args(ctx, repeated(args))


def repeated(words: list[str]) -> list[str]:
    """Write the option before each of its words; without a word it has an empty one.

    Examples
    --------
    >>> repeated(["old.csv", "--test", "a.csv", "b.csv", "--json", "new.csv"])
    ['old.csv', '--test', 'a.csv', '--test', 'b.csv', '--json', 'new.csv']
    >>> repeated(["--test", "--json"])
    ['--test', '', '--json']
    """
    written: list[str] = []
    inside = bare = False
    for place, word in enumerate(words):
        if inside and not word.startswith("-"):
            written += [OPTION, word]
            bare = False
            continue
        written += [OPTION, ""] if bare else []
        inside = bare = word == OPTION
        if word == "--":
            return written + words[place:]
        written += [] if inside else [word]
    return written + ([OPTION, ""] if bare else [])
