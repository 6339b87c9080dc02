"""Split conformal prediction at one site and without privacy: the same intervals and sets as MAPIE and crepes?

Each library gets the same fitted model, the same records to calibrate with and the same new rows. Numbers of records
at which (n + 1)(1 - alpha) is whole are among them, where a rounding error of the level would choose another rank. Ties
are among them, too. What federation and privacy then cost is in one more table, which no peer has a row in.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import sottovoce as sv
from benchmarks.peers.installed import Peer, peer
from benchmarks.peers.sheets import Comparison, Sheet, figure, seconds
from benchmarks.peers.timing import Ready, interleaved
from sottovoce.core.arrays import Floats
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.data_sets import absent, data_folder, read_set

ALPHA, SIZES = 0.1, (49, 99, 100, 1000)
NAMES = ("concrete", "bike", "bio")


class Task(NamedTuple):
    """A fitted model, records to calibrate with, and new rows with their outcomes."""

    name: str
    model: Any
    x: Any
    y: Any
    new: Any
    outcomes: Any


def _task(name: str, model: Any, x: Any, y: Any, n: int, most: int = 4000) -> Task:
    """Part a table: a half to fit to, n to calibrate with, the rest are new."""
    order = dice(11).generator().permutation(len(y))
    x, y, half = np.asarray(x)[order], np.asarray(y)[order], len(y) // 2
    n = min(n, (len(y) - half) * 3 // 4)
    model = clone(model).fit(x[:half], y[:half])
    return Task(name, model, x[half : half + n], y[half : half + n], x[half + n :][:most], y[half + n :][:most])


def waits(n: int) -> tuple[Any, Any]:
    """Draw waits in whole minutes, which tie, with an hour and an age."""
    generator = dice(12).generator()
    x = np.column_stack([generator.uniform(0, 24, n), generator.integers(0, 90, n)])
    return x, np.round(generator.gamma(2, 5 + x[:, 0] / 2)) + x[:, 1] // 30


def regressions(sizes: Sequence[int] = SIZES) -> tuple[list[Task], list[str]]:
    """Return tasks on data that scikit-learn carries, on made-up waits, and on real tables; and which are missing."""
    sets = [
        ("diabetes", LinearRegression(), *load_diabetes(return_X_y=True)),
        ("waits in minutes", DecisionTreeRegressor(max_leaf_nodes=20, random_state=0), *waits(12_000)),
    ]
    folder = data_folder(NAMES)
    missing = [absent(NAMES)] if folder is None else []
    for name in NAMES:
        if folder is None:
            break
        held = read_set(folder, name)
        sets.append((name, LinearRegression(), held.features, held.responses))
    return [_task(name, model, x, y, n) for name, model, x, y in sets for n in sizes if n < len(y) * 3 // 8], missing


def classifications(sizes: Sequence[int] = SIZES) -> list[Task]:
    """Return tasks of classes."""
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    sets = [("wine", load_wine(return_X_y=True)), ("digits", load_digits(return_X_y=True))]
    return [_task(name, logistic, x, y, n) for name, (x, y) in sets for n in sizes if n < len(y) * 3 // 8]


def our_intervals(task: Task) -> Floats:
    """Return the intervals of a federation with one site and no epsilon."""
    found = sv.FederatedConformalRegressor(task.model, ALPHA, prefit=True).conformalize([(task.x, task.y)])
    return np.asarray(found.predict_interval(task.new))


def mapie_intervals(module: Any, task: Task) -> Floats:
    """Return MAPIE's split conformal intervals."""
    found = module.SplitConformalRegressor(task.model, 1 - ALPHA, prefit=True).conformalize(task.x, task.y)
    return np.asarray(found.predict_interval(task.new)[1][:, :, 0])


def crepes_intervals(module: Any, task: Task) -> Floats:
    """Return the intervals of crepes."""
    found = module.WrapRegressor(task.model)
    found.calibrate(task.x, task.y)
    return np.asarray(found.predict_int(task.new, confidence=1 - ALPHA))


def our_sets(task: Task) -> Any:
    """Return the sets of a federation with one site and no epsilon, a column a label."""
    found = sv.FederatedConformalClassifier(task.model, ALPHA, prefit=True).conformalize([(task.x, task.y)])
    return np.asarray(found.predict_set(task.new))


def mapie_sets(module: Any, task: Task) -> Any:
    """Return MAPIE's least ambiguous sets."""
    found = module.SplitConformalClassifier(task.model, 1 - ALPHA, prefit=True).conformalize(task.x, task.y)
    return np.asarray(found.predict_set(task.new)[1][:, :, 0])


def crepes_sets(module: Any, task: Task) -> Any:
    """Return the sets of crepes, without smoothing."""
    found = module.WrapClassifier(task.model)
    found.calibrate(task.x, task.y)
    return np.asarray(found.predict_set(task.new, confidence=1 - ALPHA, labels=False, smoothing=False)).astype(bool)


Maker = Callable[[Any, Task], Any]


def intervals_sheet(tasks: Sequence[Task], there: Sequence[tuple[str, Any, Maker]]) -> tuple[Sheet, dict[str, int]]:
    """Compare intervals end by end; return with how many tables each peer agrees."""
    rows, same = [], dict.fromkeys((name for name, *_ in there), 0)
    for task in tasks:
        ours = our_intervals(task)
        held = np.mean((ours[:, 0] <= task.outcomes) & (task.outcomes <= ours[:, 1]))
        length = float(np.mean(ours[:, 1] - ours[:, 0]))
        apart = [float(np.abs(ours - make(module, task)).max()) / length for _, module, make in there]
        for (name, *_), each in zip(there, apart, strict=True):
            same[name] += each < 1e-9
        rows.append((task.name, f"{len(task.y):,}", figure(length), f"{held:.3f}", *map(figure, apart)))
    columns = ("data", "calibrated with", "mean length", "coverage", *(f"{name}: apart" for name, *_ in there))
    note = (
        "Apart: the largest difference of an end, in mean lengths. Coverage is that of one split; of calibrations with "
        "a hundred records it varies by .03."
    )
    return Sheet(f"Intervals of level {1 - ALPHA:g}", columns, tuple(rows), note), same


def _sets_sheet(tasks: Sequence[Task], there: Sequence[tuple[str, Any, Maker]]) -> Sheet:
    """Compare sets label by label."""
    rows = []
    for task in tasks:
        ours = our_sets(task)
        labels = list(task.model.classes_)
        held = np.mean(ours[np.arange(len(ours)), [labels.index(each) for each in task.outcomes]])
        other = [int(np.count_nonzero(ours != make(module, task))) for _, module, make in there]
        rows.append(
            (
                task.name, f"{len(task.y):,}", f"{ours.sum(axis=1).mean():.3f}", f"{held:.3f}",
                *(f"{each} of {ours.size:,}" for each in other),
            )
        )  # fmt: skip
    columns = ("data", "calibrated with", "mean size", "coverage", *(f"{name}: other labels" for name, *_ in there))
    note = "Coverage is that of one split, as above."
    return Sheet(f"Sets of labels of level {1 - ALPHA:g}", columns, tuple(rows), note)


def _times_sheet(there: Sequence[tuple[str, Any, Maker]], sizes: Sequence[int], turns: int) -> Sheet:
    """Time calibration and prediction together, around a linear model."""
    rows = []
    for n in sizes:
        x, y = waits(3 * n)
        task = Task("waits", LinearRegression().fit(x[:n], y[:n]), x[n : 2 * n], y[n : 2 * n], x[2 * n :], y[2 * n :])

        def ready(work: Callable[[], object]) -> Ready:
            return lambda: work

        calls = {"Sottovoce": ready(lambda task=task: our_intervals(task))}  # type: ignore[misc]
        for name, module, make in there:
            calls[name] = ready(lambda make=make, module=module, task=task: make(module, task))  # type: ignore[misc]
        timed = interleaved(calls, turns)
        rows.append(
            (
                f"{n:,}",
                seconds(timed["Sottovoce"].seconds),
                *(f"{seconds(timed[name].seconds)}, {timed[name].spread}" for name, *_ in there),
            )
        )
    columns = ("calibrated with, and as many new", "Sottovoce", *(f"{name}: time, times ours" for name, *_ in there))
    return Sheet("Time to calibrate and to predict", columns, tuple(rows))


def _federated_sheet(task: Task, replications: int) -> Sheet:
    """Say what many sites and privacy cost in length, beside all scores in one place."""
    scores = np.abs(task.y - task.model.predict(task.x))
    one = sv.conformal_threshold([scores], ALPHA).value
    rows, generator = [], dice(13).generator()
    settings: tuple[tuple[str, dict[str, Any]], ...] = (
        ("20 sites, no privacy", {}),
        ("20 sites, epsilon 5 a site's message", {"epsilon": 5.0, "maximum": 60.0}),
        ("20 sites, epsilon 1 a site's message", {"epsilon": 1.0, "maximum": 60.0}),
    )
    for name, options in settings:
        found = [
            sv.conformal_threshold(np.array_split(generator.permutation(scores), 20), ALPHA, **options).value
            for _ in range(replications)
        ]
        rows.append((name, figure(float(np.mean(found))), figure(float(np.mean(found)) / one)))
    columns = ("who holds the scores", "half length", "times one place")
    first = ("one place (MAPIE, crepes, Sottovoce)", figure(one), "1")
    note = f"{task.name}, {len(scores):,} scores; the mean of {replications} deals to the sites."
    return Sheet("What many sites and privacy cost", columns, (first, *rows), note)


def run(sizes: Sequence[int] = SIZES, timed: Sequence[int] = (1_000, 100_000), turns: int = 9) -> Comparison:
    """Compare intervals, sets and times."""
    mapie, crepes = peer("mapie", "mapie.regression"), peer("crepes", "crepes")
    there: list[tuple[str, Any, Maker]] = []
    sets: list[tuple[str, Any, Maker]] = []
    if mapie.module is not None:
        there.append(("MAPIE", mapie.module, mapie_intervals))
        sets.append(("MAPIE", peer("mapie", "mapie.classification").module, mapie_sets))
    if crepes.module is not None:
        there.append(("crepes", crepes.module, crepes_intervals))
        sets.append(("crepes", crepes.module, crepes_sets))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tasks, missing = regressions(sizes)
        first, same = intervals_sheet(tasks, there)
        second = _sets_sheet(classifications(sizes), sets)
        third = _times_sheet(there, timed, turns)
        fourth = _federated_sheet(_task("waits in minutes", LinearRegression(), *waits(12_000), 1000), 5 * turns)
    agreement = [
        f"{name} and Sottovoce give the same intervals to rounding (1e-9 of their length) in {same[name]} of "
        f"{len(tasks)} tables."
        for name, *_ in there
    ]
    if same.get("crepes", len(tasks)) < len(tasks) and all(
        row[-1] == "0" or round((int(row[1].replace(",", "")) + 1) * ALPHA, 9) % 1 == 0 for row in first.rows
    ):
        agreement.append(
            "Where crepes differs, (n + 1) times the level is a whole number: it computes that product in floating "
            "point and takes the next rank, so its interval is a little longer there, and valid."
        )
    findings = [
        *agreement,
        "MAPIE and crepes do much that Sottovoce does not: cross-conformal, jackknife+ and risk control (MAPIE), "
        "predictive distributions and Mondrian categories (crepes). Take them where all records are in one place.",
        "Sottovoce adds many sites, one message each, with or without privacy.",
    ]
    question = (
        "One fitted model, one place, no privacy: do the libraries give the same intervals and sets, and how fast?"
    )
    peers = (mapie, crepes, *(Peer("", "", None, why) for why in missing))
    return Comparison("Conformal prediction", question, (first, second, third, fourth), tuple(findings), peers)
