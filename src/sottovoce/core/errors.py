"""The errors a user meets: each is one sentence that says what is wrong, where, and what to do."""


class BadInput(ValueError):
    """Input that cannot be used; raised before any record has answered, so nothing is spent."""


class Infeasible(BadInput):
    """A question the data cannot support at this budget; the sentence says how many records it would need."""


class SearchFailed(RuntimeError):
    """The search did not find the quantile; the records that answered are spent, and no interval is given."""


Refused, Lost = Infeasible, SearchFailed  # their former names
