"""What is said of an outcome in words: how many numbers agree, why others do not, what the marks mean."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sottovoce_papers.harness.compare import ERRORS, PART, Number, Tally
from sottovoce_papers.harness.digits import percent
from sottovoce_papers.harness.item import Item

OFF, KNOWN = "!", "·"
ENOUGH = 20  # replications from which on a standard error may be believed
RULE = f"within {ERRORS:g} standard errors of the difference or {PART:.0%} of the print".replace("%", " %")
LEGEND = f"diff: (ours - print) / its standard error. A number agrees {RULE}; {OFF} does not, {KNOWN} explained."


def mark(number: Number | None) -> str:
    """Return the sign of a number: none where it agrees, and none where it was not run."""
    if number is None or number.agrees is None:
        return ""
    if not number.comparable:
        return KNOWN
    if number.agrees:
        return ""
    return KNOWN if number.why else OFF


def added(tallies: Iterable[Tally]) -> Tally:
    """Add up the tallies of some items."""
    sums = [0] * 6
    for one in tallies:
        parts = (one.printed, one.comparable, one.agreeing, one.explained, one.unexplained, one.missing)
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
    return Tally(*sums)


def counted(total: Tally) -> str:
    """Say in one sentence how printed numbers came out.

    Examples
    --------
    >>> counted(Tally(50, 40, 38, 7, 1, 4))
    '38 of 40 numbers agree with the print (95 %), 7 are explained, 1 is neither, 4 were not run.'
    >>> counted(Tally(0, 0, 0, 0, 0, 0))
    'There is no printed number to compare with.'
    """
    if total.printed == 0:
        return "There is no printed number to compare with."
    parts = []
    if total.comparable:
        agree = "agrees" if total.agreeing == 1 else "agree"
        parts.append(
            f"{total.agreeing:,} of {total.comparable:,} numbers {agree} with the print ({percent(total.share)})"
        )
    for count, one, many in (
        (total.explained, "is explained", "are explained"),
        (total.unexplained, "is neither", "are neither"),
        (total.missing, "was not run", "were not run"),
    ):
        if count:
            parts.append(f"{count:,} {one if count == 1 else many}")
    return ", ".join(parts) + "."


def reasons(numbers: Sequence[Number]) -> list[tuple[str, int]]:
    """Return each reason once, with the number of printed numbers it explains, the most first."""
    told = Counter(number.why for number in numbers if number.why and (not number.comparable or number.agrees is False))
    return told.most_common()


def often(replications: int) -> str:
    """Say how often a thing was run.

    Examples
    --------
    >>> often(1000), often(0)
    ('1,000 replications', 'computed, not simulated')
    >>> often(4)
    '4 replications (too few to judge by: their standard errors are rough)'
    """
    if replications == 0:
        return "computed, not simulated"
    rough = " (too few to judge by: their standard errors are rough)" if 1 < replications < ENOUGH else ""
    return f"{replications:,} replications{rough}"


def readings(item: Item, there: Sequence[str]) -> list[str]:
    """Say what the readings mean and which is judged, where there are several."""
    said = []
    for name in there:
        meaning = item.readings.get(name, "")
        judged = " (held against the print)" if name == item.judged and len(there) > 1 else ""
        if meaning or judged:
            said.append(f"{name}{judged}: {meaning}" if meaning else f"{name}{judged}")
    return said
