"""What the page asks, from JSON: shapes and texts are checked here, all else by whoever plans the question."""

import math
from typing import Annotated, Any, Literal

import msgspec

from sottovoce.api.explored import ExploredFile, FileQuestion
from sottovoce.core.checks import moderate
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted
from sottovoce.core.unit import Unit

MOST_LEVELS = 5  # quantiles that are asked for together
MOST_EPSILON = 20.0  # beyond it nothing is kept secret, and the page is no place to ask so
Text = Annotated[str, msgspec.Meta(max_length=200)]


class AskedGuess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What everybody knows of the values, as it was typed."""

    kind: Literal["none", "bounds", "sd"] = "none"
    low: Text = ""
    high: Text = ""
    sd: Text = ""


class AskedQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The controls of the page, as they stand."""

    value: Text
    taus: Annotated[tuple[float, ...], msgspec.Meta(min_length=1, max_length=MOST_LEVELS)]
    epsilon: float
    site: Text | None = None
    only: Text | None = None
    method: Literal["staged", "certified", "sequence"] = "staged"
    level: float = 0.95
    resolution: Text = ""
    kind: Literal["counts", "scores", "amounts"] | None = None
    guess: AskedGuess = AskedGuess()


class KnownGuess(msgspec.Struct, frozen=True):
    """What everybody knows of the values, in their unit."""

    bounds: tuple[float, float] | None = None
    sd: float | None = None


def read_question(plain: Any) -> AskedQuestion:
    """Read a question, or refuse it without quoting it."""
    try:
        return msgspec.convert(plain, AskedQuestion)
    except msgspec.ValidationError:
        raise BadInput("this is no question that the page would ask; load the page again.") from None


def question_of(asked: AskedQuestion, file: ExploredFile) -> tuple[FileQuestion, KnownGuess]:
    """Return a question as the file takes it, and what is guessed of the values."""
    if not 0 < asked.epsilon <= MOST_EPSILON:
        raise BadInput(f"epsilon must lie above 0 and be at most {MOST_EPSILON:g}; choose one there.")
    if len(set(asked.taus)) < len(asked.taus):
        raise BadInput("two quantiles are the same; change one of them, or remove it.")
    if not asked.value:
        raise BadInput("choose the column of the values.")
    plain = FileQuestion(
        asked.value, tuple(sorted(asked.taus)), asked.epsilon, asked.site, asked.only, asked.method, asked.level
    )
    unit, guess = file.unit(plain), asked.guess
    known = KnownGuess()
    if guess.kind == "bounds":
        if not (guess.low.strip() and guess.high.strip()):
            raise BadInput("fill in both limits, or choose another answer.")
        ends = [
            unit.parse(text.strip(), where=f"the {end} limit")
            for text, end in ((guess.low, "lower"), (guess.high, "upper"))
        ]
        known = KnownGuess(bounds=(ends[0], ends[1]))
    elif guess.kind == "sd":
        if not guess.sd.strip():
            raise BadInput("fill in the standard deviation, or choose another answer.")
        known = KnownGuess(sd=_width(guess.sd, unit, "the rough spread"))
    step = _width(asked.resolution, unit, "“Rounded to”", zero=True) if asked.resolution.strip() else None
    return plain._replace(bounds=known.bounds, scale=known.sd, resolution=step, kind=asked.kind), known


def _width(text: str, unit: Unit, where: str, zero: bool = False) -> float:
    """Read a difference of two values: a number, in days for dates, or of times a text such as 5min."""
    try:
        found = float(text)
    except ValueError:
        found = unit.parse_width(text.strip(), where=where) if unit.timed else math.nan
    if not (moderate(found) or (zero and found == 0)):
        raise BadInput(f"{where} is {quoted(text)}, which is no positive number; correct it.")
    return found
