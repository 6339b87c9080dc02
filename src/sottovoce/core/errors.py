"""The errors a user meets: each is one sentence that says what is wrong, where, and what to do."""

from sottovoce.core.shown import escaped


class _Sentence(Exception):
    """One sentence; `parameter` holds the names of the parameters that it advises to change, each as its last mention.

    The sentence is written for callers of Python. Whoever speaks to others, as the command line does, names options or
    fields where the sentence names parameters. What names and paths in it hide is escaped.
    """

    def __init__(self, text: object = "", *, parameter: str | tuple[str, ...] = ()) -> None:
        super().__init__(escaped(text) if isinstance(text, str) else text)
        self.parameter = (parameter,) if isinstance(parameter, str) else parameter


class BadInput(_Sentence, ValueError):
    """Input that cannot be used; raised before any record has answered, so nothing is spent."""


class Infeasible(BadInput):
    """A question the data cannot support at this budget; the sentence says how many records it would need."""


class SearchFailed(_Sentence, RuntimeError):
    """The search did not find the quantile; the records that answered are spent, and no interval is given."""
