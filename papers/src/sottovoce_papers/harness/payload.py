"""An outcome as plain values, ready for JSON: every number with its place and every row; curves are left out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sottovoce_papers.harness.compare import Number, Tally, tally
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import Outcome
from sottovoce_papers.harness.words import added


def of_study(outcomes: Sequence[Outcome], seconds: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    """Return all items, and the tally of all."""
    return {
        "tally": _tally(added(tally(outcome.numbers) for outcome in outcomes)),
        "items": [of_outcome(outcome, seconds.get(named(outcome.item), 0.0)) for outcome in outcomes],
    }


def of_outcome(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Return one item with its numbers and rows."""
    return {
        **of_item(outcome.item),
        "judged": outcome.item.judged or None,
        "ran": outcome.replications,
        "seconds": round(seconds, 3),
        "skipped": outcome.skipped or None,
        "tally": _tally(tally(outcome.numbers)),
        "numbers": [_number(number) for number in outcome.numbers],
        "rows": [
            {"where": row.where, "measures": {name: _measure(one) for name, one in row.measures.items()}}
            for row in outcome.rows
        ],
    }


def of_item(item: Item) -> dict[str, Any]:
    """Return what is known of an item before it is run."""
    return {
        "paper": item.paper,
        "item": item.name,
        "title": item.title,
        "replications": most(item),
        "data": list(item.data),
        "recorded": item.ours_file.exists(),
    }


def most(item: Item) -> int:
    """Return the replications at full scale; the most, where cells differ."""
    return max((often for _, _, often in item.settings()), default=0)


def named(item: Item) -> tuple[str, str]:
    """Return what an item is called: its paper and its name."""
    return item.paper, item.name


def _tally(found: Tally) -> dict[str, Any]:
    return {**asdict(found), "share": found.share}


def _number(number: Number) -> dict[str, Any]:
    return {
        "where": number.where,
        "quantity": number.quantity,
        "print": number.text,
        "found": {reading: _measure(one) for reading, one in number.found.items()},
        "differences": number.differences,
        "comparable": number.comparable,
        "agrees": number.agrees,
        "why": number.why or None,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {"value": measure.value, "error": measure.error, "n": measure.n}
