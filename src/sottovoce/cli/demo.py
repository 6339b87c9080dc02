"""`sottovoce demo`: nine out of ten flights arrive how late at most? Sixteen carriers, none shows a flight."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.output import plain_errors, print_json, progress_bar

if TYPE_CHECKING:
    from sottovoce.api.quantile.without_privacy import OpenAnswer
    from sottovoce.server.quantile.result import QuantileResult

TAU = 0.9
BUDGETS = {40_000: 1.0, 10_000: 1.5, 1_000: 2.0, 0: 3.0}  # from so many flights on: small carriers are asked for more


def demo(
    plot: Annotated[str, typer.Option(metavar="PATH", help="Where to draw the run: .png, .svg or .pdf.")] = (
        "demo/arrival-delays.png"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bar.")] = False,
) -> None:
    """Find the 0.9 quantile of real arrival delays, privately, and set it beside the answer without privacy.

    All flights that left New York City in 2013; the 16 carriers are the sites, each with a budget of its own.
    """
    with plain_errors():
        from sottovoce.api.quantile.federated import federated_quantile
        from sottovoce.api.quantile.tables import read_frame
        from sottovoce.api.quantile.without_privacy import pooled_quantile
        from sottovoce.cli.flights import arrival_delays
        from sottovoce.server.picture import check_path
        from sottovoce.server.quantile.plot import plot as draw

        flights = arrival_delays()
        path = Path(plot)
        check_path(path, make_folder=True)
        table = read_frame(flights, value="arr_delay", site="carrier", missing="drop")
        sizes = [records.size for records in table.records]
        with progress_bar(sum(sizes), wanted=not no_progress) as progress:
            result = federated_quantile(table, TAU, budgets(table.names, sizes), resolution=1, progress=progress)
        open_answer = pooled_quantile(table, TAU, result.level)
        try:
            draw(result, path, reference=("without privacy", open_answer.estimate), measure="arrival delay in minutes")
        finally:
            if json:
                print_json(_payload(result, open_answer, path))
            else:
                typer.echo(_text(result, open_answer, path))


def budgets(names: tuple[str, ...], sizes: list[int]) -> dict[str, float]:
    """Give each carrier a budget by its public size."""
    return {
        name: next(budget for least, budget in BUDGETS.items() if size >= least)
        for name, size in zip(names, sizes, strict=True)
    }


def _payload(result: "QuantileResult", open_answer: "OpenAnswer", path: Path) -> dict[str, object]:
    """Return the run and the answer without privacy as plain values."""
    return {**result.to_dict(), "without_privacy": open_answer._asdict(), "plot": str(path)}


def _text(result: "QuantileResult", open_answer: "OpenAnswer", path: Path) -> str:
    """Return the comparison at a glance, then the whole summary."""
    low, high = result.interval
    lines = [
        "Arrival delays of the flights that left New York City in 2013, in minutes.",
        f"{len(result.shares)} carriers are the sites; no flight leaves its carrier un-randomised.",
        "",
        f"{'':<36}{'estimate':>10}{f'{result.level:.0%} interval':>16}{'width':>8}",
        _row("private (each flight one noisy bit)", result.estimate, low, high),
        _row("not private (all flights in sight)", *open_answer),
        "",
        f"Nine out of ten flights arrive at most {result.estimate:.0f} minutes late, "
        f"give or take {(high - low) / 2:.2g}.",
        "",
        result.summary(),
        f"Plot:          {path}",
    ]
    return "\n".join(lines)


def _row(title: str, point: float, low: float, high: float) -> str:
    """Lay one line of the comparison."""
    return f"{title:<36}{point:>10.0f}{f'[{low:.0f}, {high:.0f}]':>16}{high - low:>8.0f}"
