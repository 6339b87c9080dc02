"""What an audit found: exact costs, what clients sent, and whether anything is wrong; a line, a table or a page."""

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sottovoce.auditing.blackbox import SubjectAudit
from sottovoce.auditing.certificate import StudyCertificate, StudyCosts, certify, plain, write
from sottovoce.auditing.parts import ExactCost
from sottovoce.core.shown import shown
from sottovoce.server.description import Description, Outside, finite, percent
from sottovoce.server.markup import in_notebook
from sottovoce.server.page import check_page, page, write_page

MOST_ROWS = 40
HEAD = ("part or client", "asked", "exact", "at least", "")
ROW = "{:<40} {:>9} {:>11} {:>9}  {}"
CANNOT = (
    "A lower bound shows a client that breaks its promise; it can never prove one that keeps it. The exact epsilon "
    "does, for the code that runs with these integers and with entropy that nobody can foresee."
)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """The audit of a channel, a study or a whole installation; print it, or `summary()`, for a table."""

    study: StudyCosts = field(repr=False)
    clients: tuple[SubjectAudit, ...]
    confidence: float
    black_box: bool

    @property
    def epsilon(self) -> float:
        """Return the largest exact epsilon of any part; infinite where one is not private, or no integers were kept."""
        return max((each.epsilon for each in self.study.costs), default=math.inf)

    @property
    def checked(self) -> bool:
        """Tell whether there were integers to compute an epsilon from; a budget that is stated proves nothing."""
        return bool(self.study.costs)

    @property
    def bound(self) -> float:
        """Return the largest lower bound that any client showed."""
        return max((each.bound for each in self.clients), default=0.0)

    @property
    def costs(self) -> tuple[ExactCost, ...]:
        """Return the exact cost of every part."""
        return tuple(self.study.costs)

    @property
    def faults(self) -> tuple[str, ...]:
        """Return what is wrong, a sentence each; nothing where all is as it is stated."""
        integers = [
            f"{each.part.role}: its integers cost epsilon {each.epsilon:.6g}, more than the {each.part.asked:.6g} asked"
            for each in self.study.costs
            if not each.kept
        ]
        return (*integers, *(f"{each.name}: {flag}" for each in self.clients for flag in each.flags))

    @property
    def honest(self) -> bool:
        """Tell whether nothing was found to be wrong, of what could be checked."""
        return self.checked and not self.faults

    @property
    def skipped(self) -> tuple[str, ...]:
        """Return which clients were not audited, and why."""
        return tuple(f"{each.name}: {each.skipped}" for each in self.clients if each.skipped)

    @property
    def headline(self) -> str:
        """Return the audit in one line."""
        ran = sum(not each.skipped for each in self.clients)
        if not self.checked:
            return f"Audit: exact epsilon {self._stated}; nothing could be checked"
        found = "nothing found against it" if self.honest else f"{len(self.faults)} faults found"
        exact = f"{self.epsilon:.6g}" if math.isfinite(self.epsilon) else "infinite (no privacy)"
        return f"Audit: exact epsilon {exact}, at least {self.bound:.4g} seen of {ran} clients; {found}"

    def describe(self) -> Description:
        """Return what the audit says of itself."""
        rows = [("Asked", ", ".join(f"{name} {text}" for name, text in self.study.asked.items()))]
        exact = f"{self.epsilon:.10g}" if math.isfinite(self.epsilon) else "infinite: not private"
        exact = f"{exact}, from the integers of {len(self.study.costs):,} parts" if self.checked else self._stated
        rows.append(("Exact epsilon", exact))
        if self.clients:
            rows.append(
                ("At least", f"{self.bound:.4g} seen, at confidence {percent(self.confidence)} over all clients")
            )
        rows.append(("Verdict", self._verdict))
        notes = [("Fault", text) for text in self.faults] + [("Skipped", text) for text in self.skipped]
        if self.study.stated:
            notes.append(("Stated", f"{len(self.study.stated):,} budgets, of which no integers were kept"))
        notes.append(("Reading", CANNOT))
        cells = self._cells()
        table = [ROW.format(*each) for each in cells[: MOST_ROWS + 1]]
        if len(cells) > MOST_ROWS + 1:
            table.append(f"and {len(cells) - MOST_ROWS - 1:,} more")
        outside = Outside(
            "Does each report cost no more than the epsilon that is stated?",
            self.headline,
            f"{CANNOT} Not protected: what the integers do not speak of, such as names of sites and their sizes.",
            (
                "The code that was audited is the code that runs.",
                "The noise comes from a generator that nobody can foresee.",
                "The audit made its own inputs; no record was read.",
            ),
        )
        return Description("Audit of privacy", rows, table, notes, self._values(), cells, outside)

    @property
    def _verdict(self) -> str:
        if not self.checked:
            return "NOT CHECKED: no integers were kept, so what is stated was computed by nobody here"
        return "nothing was found against it" if self.honest else "NOT as stated; see the faults"

    @property
    def _stated(self) -> str:
        """Say what is stated where nothing is known."""
        stated = self.study.stated
        return f"not known, stated {max(stated.values()):.6g}" if stated else "not known"

    def summary(self) -> str:
        """Return a table."""
        return self.describe().text()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        return self._values()

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one page on the audit for readers outside; a file that ends in .html."""
        target = check_page(path)
        private = math.isfinite(self.epsilon) and self.honest
        return write_page(page(self.headline, self.describe(), "No picture.", private), target)

    def certificate(self) -> dict[str, Any]:
        """Return the certificate as plain values."""
        return plain(self._certified())

    def save_certificate(self, path: str | os.PathLike[str]) -> Path:
        """Write the certificate; `sottovoce audit --verify` computes it again."""
        return write(self._certified(), path)

    def _certified(self) -> StudyCertificate:
        return certify(self.study, list(self.clients) if self.black_box else None, self.confidence)

    def _values(self) -> dict[str, Any]:
        return {
            "asked": dict(self.study.asked),
            "honest": self.honest,
            "checked": self.checked,
            "epsilon": finite(self.epsilon),
            "bound": self.bound,
            "confidence": self.confidence,
            "parts": [
                {
                    "part": each.part.role,
                    "form": each.part.form,
                    "asked": each.part.asked,
                    "epsilon": finite(each.epsilon),
                }
                for each in self.study.costs
            ],
            "stated": dict(self.study.stated),
            "clients": [
                {**each._asdict(), "epsilon": finite(each.epsilon), "flags": list(each.flags)} for each in self.clients
            ],
            "faults": list(self.faults),
            "skipped": list(self.skipped),
        }

    def _cells(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = [HEAD]
        sent = {each.name for each in self.clients}  # a part that is audited as a client has its row there
        found += [
            (
                shown(each.part.role, 40),
                _text(each.part.asked),
                _text(each.epsilon),
                "",
                "" if each.kept else "TOO DEAR",
            )
            for each in self.study.costs
            if each.part.role not in sent
        ]
        found += [(shown(name, 40), "", f"{value:.4g}", "", "stated") for name, value in self.study.stated.items()]
        for each in self.clients:
            verdict = "skipped" if each.skipped else "FLAGGED" if each.flags else "ok"
            least = "" if each.skipped else f"{each.bound:.4g}"
            found.append((shown(each.name, 40), _text(each.asked), _text(each.epsilon), least, verdict))
        return found

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{self.headline}>"

    def _repr_html_(self) -> str:
        return in_notebook(self.headline, self.describe())


def _text(epsilon: float | None) -> str:
    return "none" if epsilon is None or math.isinf(epsilon) else f"{epsilon:.7g}"
