"""Flower's ServerApp: the same rounds and the same log as over HTTPS, carried by Flower's grid."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from sottovoce.core.errors import BadInput
from sottovoce.federation.coordinator.exchange import Happened
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.coordinator.studies import WALKS
from sottovoce.federation.flower.folder import folder_of
from sottovoce.federation.flower.letter import body_of, packed
from sottovoce.federation.flower.post import GridPost
from sottovoce.federation.study import StudyTerms, read_study

LOG = logging.getLogger("flwr")  # what it says is what `flwr log` shows
LASTING = 900.0  # seconds that a letter is good for


def server_app(study: str | Path, random: Callable[[], bytes] | None = None) -> ServerApp:
    """Return the ServerApp that conducts a study.

    Parameters
    ----------
    study
        The study card; the run's configuration may name another beside it with ``study``.
    random
        Draws the public bytes of the study; the system's entropy if left out.
    """
    app = ServerApp()

    def main(grid: Grid, context: Context) -> None:
        conduct(FlowerLetters(grid), context, study, random)

    app.main()(main)
    return app


def conduct(letters: Any, context: Any, study: str | Path, random: Callable[[], bytes] | None = None) -> Any:
    """Conduct a study over Flower, from wherever its log stands; keep the result beside the log and return it."""
    terms = read_study(Path(study).parent / (context.run_config.get("study") or study))
    check_carried(terms)
    folder = folder_of(context)
    log = StudyLog(folder / "study.log", terms.name)
    try:
        known = log.study()
        if known is not None and known.result is not None:
            from sottovoce.server.load import from_dict

            result = from_dict(json.loads(known.result))
        else:
            post = GridPost(letters, terms.name, terms.sites, pins_of(context.run_config.get("nodes", ""), terms.sites))
            result = Rounds(terms, log, post, _said, random).conduct()
    finally:
        log.close()
    LOG.info("%s\nResult: %s", result.summary(), result.save(folder / "result.json"))
    return result


def check_carried(terms: StudyTerms) -> None:
    """Refuse what would take hours: a round over Flower takes seconds."""
    if terms.method == "quantile" and terms.asked.get("method") in WALKS:
        raise BadInput(
            "a walk takes thousands of rounds, and each takes seconds over Flower; conduct it over HTTPS with "
            "sottovoce serve, or choose another method."
        )


def pins_of(text: Any, sites: Collection[str]) -> Mapping[str, int] | None:
    """Read which node each site is: `north=123,south=456`; nothing leaves the names to what the nodes say."""
    if not str(text).strip():
        return None
    pairs = [part.rpartition("=") for part in str(text).split(",")]
    pins = {name.strip(): int(node) for name, _, node in pairs if node.strip().isdigit()}
    if set(pins) != set(sites) or len(pins) < len(pairs) or len(set(pins.values())) < len(pins):
        raise BadInput("nodes in the run's configuration must give each site its own node, north=123,...; correct it.")
    return pins


class FlowerLetters:
    """Letters over Flower's grid, without its pauses of three seconds."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def nodes(self) -> Collection[int]:
        """Return the ids of the nodes that are listed."""
        return list(self._grid.get_node_ids())

    def push(self, letters: Sequence[tuple[int, bytes]]) -> Sequence[str | None]:
        """Send bytes to nodes, all at once."""
        messages = [
            Message(packed(body), dst_node_id=node, message_type="query", ttl=LASTING) for node, body in letters
        ]
        taken = set(self._grid.push_messages(messages))
        marks = [message.metadata.message_id for message in messages]
        return [mark if mark in taken else None for mark in marks]

    def pull(self, marks: Collection[str]) -> Iterable[tuple[str, bytes | None]]:
        """Return the replies that have come."""
        return [
            (message.metadata.reply_to_message_id, body_of(message))
            for message in self._grid.pull_messages(list(marks))
        ]


def _said(event: Happened) -> None:
    """Say a line about what happened."""
    line = event.line()
    if line is not None and event.what != "told":
        LOG.info("%s", line)
