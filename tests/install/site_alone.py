"""A site answers a query of every kind and reads files; what it says is printed.

``python site_alone.py FOLDER a,b`` writes its files in FOLDER, and runs as if the packages a and b were not installed.
"""

import math
import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

FILES: dict[str, str | bytes] = {
    "waits.csv": "wait,age\n3,4\n,5\n4.5,6\nNA,6\n 7 ,8\n1e3,2\n\n-2,1\n",
    "counts.csv": "count\n3\n4\n\n5\n",
    "days.csv": 'day,x\n2013-01-02,1\n"2013-02-03",2\n',
    "moments.csv": "at\n2013-01-02 03:04:05\n2013-02-03 10:00:00\n",
    "torn.csv": "wait,age\n3,4\n5\n",
    "words.csv": "wait,age\n3,4\nlong,old\n",
    "mixed.csv": "wait\n2013-01-02\n3\n",
    "late.csv": "age,wait\n4,3\n5,old\n",
    "bare.csv": "wait\n",
    "quote.csv": 'wait\n"3\n4\n',
    "latin.csv": b"wait\n3\n\xe9\n",
    "zipped.csv.gz": b"wait\n3\n",
}


class Absent:
    """Finds no package of some names, as if they were not installed."""

    def __init__(self, names: str) -> None:
        self._names = set(names.split(","))

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def answer_queries() -> None:
    """Print what seeded sites say to queries of every method."""
    from sottovoce.client.conformal.shares import SharingSite
    from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
    from sottovoce.client.door import Door
    from sottovoce.client.integration.site import OpenSite
    from sottovoce.client.quantile.site import Site
    from sottovoce.client.reading.design_matrix import read
    from sottovoce.client.record import Records
    from sottovoce.client.regression.persons import Persons
    from sottovoce.protocol import messages as m
    from sottovoce.protocol.regression.box import cq
    from sottovoce.protocol.selection.geometric import noisy_count, polya
    from sottovoce.protocol.summaries import SummaryQuery
    from sottovoce.protocol.wire import seal
    from sottovoce.sim.randomness import dice

    study, draw = b"0123456789abcdef", dice(1).generator()
    column, edges = draw.normal(size=5_000), (-0.25, 0.5, 0.75, 1.0)

    def told(site: Any, *queries: m.Message) -> None:
        door = Door(site, study)
        for round, query in enumerate(queries, start=1):
            reply = door.answer(seal(study, round, query))
            print(type(site).__name__, type(query).__name__, len(reply), sha256(reply).hexdigest())

    for resolution in (0.0, 0.5):
        told(
            Site(Records(column.copy()), m.Study(0.5, 1.0, resolution), dice(2)),
            m.Query(1, (0.0, 0.5), (1_000, 500)),
            m.Query(2, (0.25, 0.0), (300, 200), 0.0, (0.5, 0.0)),
            m.WalkQuery(3, (0.25,), (2_000,), 0.125),
        )
    told(OpenSite(Records(column.copy()), m.Study(0.5, math.inf)), SummaryQuery(1, 0.5, 0.95))
    scores = Records(column.copy())
    told(CalibrationSite(scores, 2.0, dice(3)), m.CellQuery("sparse-vector", 4_500, 2.0, edges))
    told(CalibrationSite(scores, 2.0, dice(3)), m.CellQuery("exponential", 4_500, 2.0, edges))
    told(CalibrationSite(scores, math.inf, dice(3)), m.OrderQuery((4_500,)))
    told(CoverageSite(scores, 2.0, dice(4)), m.CoverageQuery(0.5, noisy_count(2.0).numerator))
    told(SharingSite(scores, 3, 2.0, dice(5)), m.SumQuery(edges, polya(2.0, 3).numerator, 3))
    X = draw.random((300, 2)) * 2 - 1  # noqa: N806
    pair, whole, steps = ((0.0, 1.0, 0.0), (0.0, 0.5, 0.5)), (-1.0, 1.0), ((0.25, -1.0, 1.0),)
    told(
        Persons(read(X, X @ [1.0, 2.0]).rows, cq(0.5, 2, 2.0, q=3, s=2), dice(6)),
        m.PeopleQuery(
            1,
            0,
            200,
            b"the public key..",
            ((0.5, -1.0, 0.25),),
            (pair,),
            (whole, whole),
            (pair,),
            steps,
            (0.1, 0.2, 0.3, 0.4),
        ),
        m.PilotQuery(2, 200, (0.5, -0.5), (40, 40)),
    )


def read_own_files() -> None:
    """Print what is read from files, or why they are refused."""
    from sottovoce.client.reading.files import read_files
    from sottovoce.client.reading.regression_files import read_regression_files
    from sottovoce.core.errors import BadInput

    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        Path(name).write_bytes(data)
        value = data.split()[0].decode()
        try:
            table = read_files([name], value=value.split(",")[0], missing="drop")
            (held,) = table.records
            print(name, held.unit, held.values().tolist(), table.dropped)
        except BadInput as refusal:
            print(name, refusal)
        try:
            found = read_regression_files(name, "wait", ["age"], bounds=(0, 10)).found
            print(name, found.rows.features().tolist(), found.rows.response().tolist())
        except BadInput as refusal:
            print(name, refusal)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    sys.meta_path.insert(0, Absent(sys.argv[2]))
    answer_queries()
    read_own_files()
