"""Every comparison with peers runs on tiny sizes; what needs a peer that is not there is skipped with the reason."""

import datetime
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.peers import __main__ as command
from benchmarks.peers import (
    central_quantiles,
    conformal,
    installed,
    page,
    populations,
    randomised_response,
    regression,
    streams,
    timing,
)
from benchmarks.peers.sheets import Sheet


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Peers warn as they like."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def needs(*names: str) -> None:
    """Skip where a peer is not installed."""
    for name in names:
        if not installed.peer(name, "sys").version:
            pytest.skip(f"{name} is not installed; pip install '.[bench]' brings it")


def test_our_own_ways_say_the_opposite_as_often_as_they_should() -> None:
    for way in randomised_response.ours(1.0):
        differing = way.ready(20_000)()
        assert abs(differing - 5378.8) < 4.9 * 62.8, way.name  # binomial, 1e-6


def test_opendp_states_the_same_epsilon_and_flips_as_often() -> None:
    needs("opendp")
    module = installed.peer("opendp", "opendp.prelude").module
    for way in randomised_response.opendp_ways(module, 1.0):
        assert float(way.account) == pytest.approx(1.0, abs=1e-11)
        assert abs(way.ready(8_000)() - 2151.5) < 4.9 * 39.7, way.name


def test_pure_ldp_flips_as_often() -> None:
    needs("pure-ldp")
    module = installed.peer("pure-ldp", "pure_ldp.frequency_oracles.direct_encoding").module
    assert abs(randomised_response.pure_ldp_way(module, 1.0).ready(8_000)() - 2151.5) < 4.9 * 39.7


def test_what_is_not_there_has_no_row_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = installed.Peer("somebody", "", None, "somebody is not installed")
    monkeypatch.setattr(randomised_response, "peer", lambda *_: gone)
    found = randomised_response.run(50, 400, 1)
    names = [row[0] for sheet in found.sheets for row in sheet.rows]
    assert len(names) == 6
    assert all(name.startswith(("Sottovoce", "bare numpy")) for name in names)
    assert found.missing == ("somebody is not installed",) * 2
    assert "somebody is not installed" in page.page([found], datetime.date(2026, 1, 2))


def test_all_libraries_find_the_median_of_ages() -> None:
    needs("opendp", "diffprivlib", "python-dp")
    found, peers = central_quantiles.libraries()
    assert [library.name for library in found[1:5]] == [
        "OpenDP, central",
        "diffprivlib, central",
        *["Google (PyDP), central"] * 2,
    ]
    assert all(peer.version for peer in peers)
    asked = populations.ordinary()[0]
    cells = central_quantiles.measure(asked, 3_000, 2.0, found, 3, 1)
    assert [cell.failed for cell in cells] == [""] * (len(found) - 1)
    assert all(cell.error < 12 for cell in cells)  # ages of 18 to 95 with the median 48


def test_intervals_are_those_of_mapie_and_of_crepes_where_it_takes_the_same_rank() -> None:
    needs("mapie", "crepes")
    there = [
        ("MAPIE", installed.peer("mapie", "mapie.regression").module, conformal.mapie_intervals),
        ("crepes", installed.peer("crepes", "crepes").module, conformal.crepes_intervals),
    ]
    tasks, _ = conformal.regressions((49, 100))
    intervals, same = conformal.intervals_sheet(tasks, there)
    assert intervals.columns[-2:] == ("MAPIE: apart", "crepes: apart")
    assert all(float(row[-2]) < 1e-9 for row in intervals.rows)
    assert all(float(row[-1]) < 1e-9 for row in intervals.rows if row[1] == "100")
    assert same["MAPIE"] == len(tasks)


def test_without_peers_conformal_compares_nothing() -> None:
    tasks, _ = conformal.regressions((49,))
    intervals, same = conformal.intervals_sheet(tasks[:2], [])
    assert same == {}
    assert [len(row) for row in intervals.rows] == [4, 4]


def test_coefficients_beside_the_exact_fits() -> None:
    needs("statsmodels", "river")
    fitters, _ = regression.libraries()
    cell = regression.with_best_rate(regression.measure(regression.waits(), 2_000, fitters, 1, 3))
    assert set(cell) == {"statsmodels", "scikit-learn", "river, online", regression.OPEN, regression.PRIVATE}
    assert cell["statsmodels"].error == pytest.approx(cell["scikit-learn"].error, rel=0.05)
    assert all(shown.error < 30 for shown in cell.values())  # waits spread by 4 to 16 minutes


def test_streams_beside_sketches() -> None:
    needs("river", "datasketches")
    found, _ = streams.libraries()
    for ascending in (False, True):
        measured = streams.measure(found, 5_000, 1, ascending, 3)
        assert measured["numpy, all values kept"].errors == (0.0, 0.0, 0.0)
        assert measured["datasketches REQ, array"].errors[0] < 0.05
        assert measured["numpy, all values kept"].kept == 40_000 > measured["datasketches REQ, array"].kept
        assert 0 < measured["river, one by one"].kept < 1000


def test_the_quick_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["randomised-response", "--quick", "--write", str(tmp_path / "peers.md")])
    said, written = capsys.readouterr().out, (tmp_path / "peers.md").read_text()
    assert "RANDOMISED RESPONSE" in said
    assert "| Sottovoce, a site's answer |" in written
    assert "Measured on" in written
    assert "/site-packages/" not in written


def test_what_is_written_by_hand_stays(tmp_path: Path) -> None:
    found = tmp_path / "peers.md"
    found.write_text("# Ours\n\nBy hand.\n\n<!-- tallies -->\nold figures\n<!-- end -->\n\nThe end.\n")
    command.main(["randomised-response", "--quick", "--write", str(found)])
    written = found.read_text()
    assert written.startswith("# Ours\n\nBy hand.\n\n<!-- tallies -->\n\nMeasured on")
    assert written.endswith("<!-- end -->\n\nThe end.\n")
    assert "old figures" not in written
    found.write_text("# Ours, without a place\n")
    with pytest.raises(SystemExit, match="has no place"):
        page.write(found, [])


def test_a_library_that_fails_now_and_then_is_shown_with_how_often() -> None:
    asked = populations.ordinary()[0]

    def now_and_then(*_: object) -> central_quantiles.Asker:
        calls = iter(range(100))

        def ask(values: object) -> central_quantiles.Answer:
            if next(calls) % 3 == 0:
                raise RuntimeError("no candidate")
            return central_quantiles.Answer(asked.truth + 0.4, asked.truth - 0.4, asked.truth + 0.4)

        return ask

    shapes = [
        central_quantiles.Library("tree", central_quantiles.openly),
        central_quantiles.Library("tree", now_and_then),
    ]
    (cell,) = central_quantiles.measure(asked, 500, 1.0, shapes, 6, 2)
    assert (cell.error, cell.covered, cell.length) == (0.0, 1.0, 0.0)  # rounded: whole numbers
    assert cell.missing == " (2 of 6 fail)"


def test_river_has_the_best_of_its_rates() -> None:
    shown = [regression.Shown(error, 0.9, 1.0) for error in (3.0, 1.0, 2.0)]
    cell = dict(zip(("river, online 1", "river, online 10", "statsmodels"), shown, strict=True))
    assert regression.with_best_rate(cell) == {"river, online": shown[1], "statsmodels": shown[2]}


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["quantile"])
    assert "there is no part quantile" in capsys.readouterr().err


def test_a_ratio_is_taken_within_a_turn() -> None:
    made = []

    def ready(name: str, loops: int) -> timing.Ready:
        def make() -> Callable[[], object]:
            made.append(name)
            return lambda: sum(range(loops))

        return make

    found = timing.interleaved({"short": ready("short", 20_000), "long": ready("long", 2_000_000)}, 3)
    assert made == ["short", "long", "long", "short", "short", "long", "long", "short"]
    assert found["short"].ratio == 1.0
    assert found["long"].low <= found["long"].ratio <= found["long"].high


def test_a_sheet_in_text_and_in_markdown() -> None:
    sheet = Sheet("Sizes", ("name", "n"), (("a", "1"), ("long name", "20")), "A note.")
    assert sheet.text().splitlines()[2:4] == ["a           1", "long name  20"]
    assert "| long name | 20 |" in sheet.markdown()
