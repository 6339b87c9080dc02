"""How far a study is: by what its cells were guessed to cost, and by what those that were run did cost."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from sottovoce_papers.harness import cache, runner
from sottovoce_papers.harness.cell import Cell
from sottovoce_papers.harness.digits import lasting

# So many seconds of guesses weigh as much as the same seconds measured: the first cell must not decide alone.
TRUST = 2.0


def seconds_left(plan: runner.Plan, seconds: Mapping[str, float], ran: set[str], jobs: int) -> float:
    """Guess how long the rest takes: its costs, corrected recipe by recipe by what cells of this run took.

    Parameters
    ----------
    plan
        All cells with their guesses.
    seconds
        What finished cells took, those kept from before among them.
    ran
        Those that were finished in this run, on this machine: they alone correct the guesses.
    jobs
        How many cells run at a time.
    """
    left = [key for key in plan.cells if key not in seconds]
    if not left:
        return 0.0
    overall = _ratio(plan, seconds, ran, 1.0)
    ratios = {
        recipe: _ratio(plan, seconds, {key for key in ran if plan.cells[key].recipe == recipe}, overall)
        for recipe in {plan.cells[key].recipe for key in left}
    }
    guesses = [plan.costs[key] * ratios[plan.cells[key].recipe] for key in left]
    return max(max(guesses), sum(guesses) / jobs)


def _ratio(plan: runner.Plan, seconds: Mapping[str, float], ran: set[str], before: float) -> float:
    guessed = sum(plan.costs[key] for key in ran)
    return (sum(seconds[key] for key in ran) + TRUST * before) / (guessed + TRUST)


@dataclass
class Watch:
    """What has come in of a study: handed to it as ``begun`` and ``progress``."""

    folder: Path
    fresh: bool = False
    changed: Callable[[Cell | None], None] | None = None
    plan: runner.Plan | None = None
    before: set[str] = field(default_factory=set)
    seconds: dict[str, float] = field(default_factory=dict)

    def begun(self, plan: runner.Plan) -> None:
        """Take the plan; see which cells are kept, or forget them."""
        self.plan = plan
        for key, cell in plan.cells.items():
            path = cache.path_of(self.folder, cell)
            if self.fresh:
                path.unlink(missing_ok=True)
            elif path.exists():
                self.before.add(key)
        self._tell(None)

    def progress(self, cell: Cell, seconds: float) -> None:
        """Take a finished cell."""
        self.seconds[cell.key] = seconds
        self._tell(cell)

    def _tell(self, cell: Cell | None) -> None:
        if self.changed is not None:
            self.changed(cell)

    @property
    def ran(self) -> set[str]:
        """Return the cells finished in this run."""
        return set(self.seconds) - self.before

    def by_item(self) -> dict[tuple[str, str], float]:
        """Return the seconds of each item's cells, added up; a cell that two items share counts for both."""
        items = {} if self.plan is None else self.plan.of_item
        return {name: sum(self.seconds.get(key, 0.0) for key in set(keys)) for name, keys in items.items()}

    def stopped(self, shown: str) -> str:
        """Say what is kept of an interrupted study."""
        if self.plan is None:
            return "stopped before anything was run."
        done = sum(cache.path_of(self.folder, cell).exists() for cell in self.plan.cells.values())
        return (
            f"stopped: {done} of {len(self.plan.cells)} cells are kept in {shown}; the same command goes on from there."
        )


class _Left(ProgressColumn):
    """The time left, running down between two cells."""

    def render(self, task: Task) -> Text:
        """Write the time."""
        left = task.fields["left"] - (time.monotonic() - task.fields["since"])
        return Text("" if task.finished else "almost done" if left < 1 else f"about {lasting(left)} left")


@contextmanager
def bar(watch: Watch, jobs: int, wanted: bool) -> Iterator[None]:
    """Show the bar on stderr while a study runs; nothing where it is not wanted or stderr is no terminal."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[cells]}"), _Left())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("reading the plan", total=None, cells="", left=0.0, since=time.monotonic())

        def changed(cell: Cell | None) -> None:
            plan, seconds = watch.plan, watch.seconds
            assert plan is not None
            shown.update(
                task,
                description=at_work(plan, seconds, cell),
                total=sum(plan.costs.values()),
                completed=sum(plan.costs[key] for key in seconds),
                cells=f"{len(seconds)} of {len(plan.cells)} cells",
                left=seconds_left(plan, seconds, watch.ran, jobs),
                since=time.monotonic(),
            )

        watch.changed = changed
        yield


def at_work(plan: runner.Plan, seconds: Mapping[str, float], cell: Cell | None) -> str:
    """Name the item that is at work: that of the last cell if more of its cells are to come, else one that has some."""
    open_items = [name for name, keys in plan.of_item.items() if any(key not in seconds for key in keys)]
    of_cell = [name for name in open_items if cell is not None and cell.key in plan.of_item[name]]
    chosen = (of_cell or open_items)[:1]
    return " ".join(chosen[0]) if chosen else "all cells"
