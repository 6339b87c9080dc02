"""What was asked of a file in this session: each run under an id of its own, so that nothing is asked twice by mistake.

One run goes on at a time, in a thread of its own. A run that is known answers with what is known of it, whoever sends
it again; no error names a record.
"""

import json
import re
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from sottovoce.api.asking import limit
from sottovoce.api.explored import ExploredFile, FileQuestion, HeldBack
from sottovoce.core.calling import places
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.version import VERSION
from sottovoce.explore.planning import Whisper, planned
from sottovoce.explore.question import MOST_EPSILON, MOST_LEVELS, AskedQuestion, question_of, read_question
from sottovoce.explore.telling import told
from sottovoce.explore.words import on_page
from sottovoce.server.description import finite
from sottovoce.server.stored import report_text

ASKING, DONE, REFUSED, FAILED = "asking", "done", "refused", "failed"
HELD = "these columns cannot be asked as they are; the terminal says why."
MOST_RUNS = 1000  # of a session, whose results all stay in memory
_ID = re.compile(r"[0-9a-f-]{16,64}")


class NotNow(BadInput):
    """A question that may be asked, but not now."""


class UnknownRun(BadInput):
    """A run that nobody has begun."""


@dataclass
class ExploreRun:
    """One question that was asked, and how far it has come."""

    id: str
    number: int
    asked: AskedQuestion
    plan: dict[str, Any]
    began: str
    state: str = ASKING
    answered: int = 0
    seconds: float | None = None
    why: str = ""
    found: Any = field(default=None, repr=False)

    def on_page(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        return {
            "id": self.id,
            "number": self.number,
            "asked": msgspec.to_builtins(self.asked),
            "plan": self.plan,
            "began": self.began,
            "state": self.state,
            "answered": self.answered,
            "seconds": self.seconds,
            "why": self.why,
            "result": None if self.found is None else told(self.found),
        }


class ExploreSession:
    """A file, what was asked of it, and what its holder alone is told (``whisper``), each sentence once."""

    def __init__(self, file: ExploredFile, whisper: Whisper = lambda _: None) -> None:
        self._file, self._whisper = file, whisper
        self._whispered: set[str] = set()
        self._runs: dict[str, ExploreRun] = {}
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        for hint in file.hints:
            self._tell_holder(hint)

    def about(self) -> dict[str, Any]:
        """Return what is public of the file, and what may be chosen."""
        return {
            "version": VERSION,
            "file": self._file.name,
            "rows": self._file.rows,
            "person": self._file.person,
            "left_out": self._file.left_out,
            "columns": [
                {**each._asdict(), "value": each.holds_values, "site": each.holds_labels} for each in self._file.columns
            ],
            "limit": finite(limit.now()),
            "most_levels": MOST_LEVELS,
            "most_epsilon": MOST_EPSILON,
        }

    def sites(self, plain: Any) -> list[str]:
        """Return the names of the sites that two columns make."""
        asked = read_question(plain)
        try:
            return list(self._file.sites(FileQuestion(asked.value, asked.taus, asked.epsilon, asked.site)))
        except BadInput as error:
            raise BadInput(self._said(error)) from None

    def plan(self, plain: Any) -> dict[str, Any]:
        """Return what a question will come to; a refusal is an answer, too."""
        try:
            asked = read_question(plain)
            found = planned(asked, self._file, self._tell_holder)
        except BadInput as error:
            return {"refused": self._said(error)}
        same = [run.number for run in list(self._runs.values()) if run.asked == asked and run.state != REFUSED]
        return {**found, "asked_before": same[-1] if same else None}

    def begin(self, id: Any, plain: Any) -> ExploreRun:
        """Ask a question under an id; one that is known is not asked again."""
        if not (isinstance(id, str) and _ID.fullmatch(id)):
            raise BadInput("a run needs an id of its own; load the page again.")
        asked = read_question(plain)
        with self._lock:
            if (known := self._runs.get(id)) is not None:
                if known.asked != asked:
                    raise BadInput("this run has asked something else; load the page again.")
                return known
            if self.asking:
                raise NotNow("another question is being asked; wait until it is answered.")
            if len(self._runs) >= MOST_RUNS:
                raise NotNow(f"{MOST_RUNS:,} questions were asked in this session; start the program again.")
            try:
                plan = planned(asked, self._file, self._tell_holder)
            except BadInput as error:
                raise BadInput(self._said(error)) from None
            if plan["cost"]["refused"]:
                raise BadInput(plan["cost"]["refused"])
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            run = self._runs[id] = ExploreRun(id, len(self._runs) + 1, asked, plan, now)
            self._thread = threading.Thread(target=self._ask, args=(run,), name="sottovoce-explore", daemon=True)
            self._thread.start()
            return run

    @property
    def asking(self) -> bool:
        """Tell whether a question is being asked."""
        return any(run.state == ASKING for run in list(self._runs.values()))

    def wait(self) -> None:
        """Wait until the question that is being asked is answered."""
        if self._thread is not None:
            self._thread.join()

    def runs(self) -> dict[str, Any]:
        """Return all that was asked, and what the dearest row has paid."""
        return {"runs": [run.on_page() for run in list(self._runs.values())], "spent": self._file.spent}

    def run(self, id: str) -> ExploreRun:
        """Return a run."""
        if id not in self._runs:
            raise UnknownRun("nothing was asked under this id.")
        return self._runs[id]

    def result(self, id: str) -> str:
        """Return the result of a run as JSON, which `sv.load` reads."""
        return json.dumps(self._found(id).to_dict(), allow_nan=False, ensure_ascii=False)

    def report(self, id: str) -> str:
        """Return the page on a result for readers outside."""
        return report_text(self._found(id))

    def headlines(self) -> list[str]:
        """Return what was found, a line each."""
        return [run.found.headline for run in self._runs.values() if run.found is not None]

    def _found(self, id: str) -> Any:
        found = self.run(id).found
        if found is None:
            raise UnknownRun("this run has no result.")
        return found

    def _ask(self, run: ExploreRun) -> None:
        """Ask, and keep what comes of it."""
        begun = time.perf_counter()

        def progress(answered: int) -> None:
            run.answered += answered

        state = FAILED
        try:
            run.found = self._file.run(question_of(run.asked, self._file)[0], progress)
            state = DONE
        except BadInput as error:
            state, run.why = REFUSED, self._said(error)
        except SearchFailed as error:
            run.why = f"{on_page(str(error)).rstrip('.')} (the records that answered are spent)."
        except Exception as error:  # its message may quote the data
            where = places(error)
            run.why = (
                f"an unexpected {type(error).__name__} at {where[-1] if where else 'an unknown place'} ended the run; "
                "records that had begun to answer are spent; please report this line, which shows nothing of the data."
            )
        run.seconds = round(time.perf_counter() - begun, 3)
        run.state = state  # at last: whoever sees it finds the rest

    def _said(self, error: BadInput) -> str:
        """Return what the page says of a refusal; one that says what is in the records goes to their holder."""
        if not isinstance(error, HeldBack):
            return on_page(str(error))
        self._tell_holder(str(error))
        return HELD

    def _tell_holder(self, text: str) -> None:
        """Tell whoever holds the file, and no page, what its records show."""
        if text not in self._whispered:
            self._whispered.add(text)
            self._whisper(text)
