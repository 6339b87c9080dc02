"""`sottovoce conformal --by`: a threshold for each site or group, as the function has it, and refusals before any."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sottovoce as sv
from sottovoce.cli import options
from sottovoce.core.errors import BadInput

Conformal = Callable[..., Any]
Drawn = tuple[dict[str, list[float]], dict[str, list[float]]]
PRIVATE = ("--epsilon", "2", "--maximum", "5")
SURE: dict[str, Any] = {"guarantee": "training-conditional", "simultaneous": True}


def as_json(done: Any) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ((), {}),
        (("--guarantee", "training-conditional", "--simultaneous"), SURE),
        (("--alpha", "0.2"), {"alpha": 0.2}),
    ],
    ids=["marginal", "simultaneous", "alpha"],
)
def test_the_command_finds_what_the_function_finds(
    conformal: Conformal, score_files: Path, scores: Drawn, words: tuple[str, ...], settings: dict[str, Any]
) -> None:
    expected = dict(sv.conformal_thresholds(scores[0], **settings).describe().values)
    found = as_json(conformal(score_files, "--by", "site", *words, "--json"))
    assert {key: found[key] for key in ("small", "estimand")} == {key: expected[key] for key in ("small", "estimand")}
    assert [each["value"] for each in found["groups"]] == [each["value"] for each in expected["groups"]]
    assert found["column"] == "residual"


def test_groups_of_sites_from_pairs_and_from_a_file(
    conformal: Conformal, score_files: Path, scores: Drawn, tmp_path: Path
) -> None:
    names = list(scores[0])
    by = {name: "odd" if place % 2 else "even" for place, name in enumerate(names)}
    expected = sv.conformal_thresholds(scores[0], by=by)
    pairs = ",".join(f"{name}={group}" for name, group in by.items())
    (tmp_path / "groups.csv").write_text("site,by\n" + "".join(f"{name},{group}\n" for name, group in by.items()))
    for text in (pairs, f"@{tmp_path / 'groups.csv'}"):
        found = as_json(conformal(score_files, "--by", text, "--json"))
        assert {each["name"]: each["value"] for each in found["groups"]} == dict(expected.values)


def test_private_thresholds_with_their_coverage(conformal: Conformal, score_files: Path, tmp_path: Path) -> None:
    plot, page = tmp_path / "coverage.png", tmp_path / "page.html"
    words = (
        "--by",
        "site",
        *PRIVATE,
        "--coverage",
        "--coverage-epsilon",
        "1",
        "--plot",
        str(plot),
        "--report",
        str(page),
    )
    done = conformal(score_files, *words)
    assert done.exit_code == 0, done.output
    for said in ("Thresholds by group", "of each site its own", "both rounds cost a score up to epsilon 3"):
        assert said in done.stdout
    assert plot.stat().st_size > 10_000
    assert "Coverage by site" in page.read_text()
    alone = conformal(score_files, "--by", "site", *PRIVATE, "--plot", str(plot))
    assert alone.exit_code == 0, alone.output


def write_sites(folder: Path, **sizes: int) -> None:
    """Write scores with a column of sites."""
    source = sv.sim.dice(1).generator()
    rows = [f"{score},{name}" for name, size in sizes.items() for score in abs(source.normal(size=size))]
    (folder / "scores.csv").write_text("residual,site\n" + "\n".join(rows) + "\n")


def test_a_site_that_only_the_second_round_asks_pays_for_it(conformal: Conformal, tmp_path: Path) -> None:
    write_sites(tmp_path, a=300, b=200, tiny=5)
    words = ("--site", "site", "--by", "site", "--epsilon", "1", "--maximum", "5")
    judged = (*words, "--coverage", "--coverage-epsilon", "a=0.1,b=0.1,tiny=5")
    done = conformal(tmp_path, *judged, files=("scores.csv",))
    assert "both rounds cost a score up to epsilon 5:" in " ".join(done.stdout.split())
    found = as_json(conformal(tmp_path, *judged, "--json", files=("scores.csv",)))["coverage_by_site"]
    assert found["epsilon_of_both_rounds"] == pytest.approx({"a": 1.1, "b": 1.1, "tiny": 5.0})
    refused = conformal(tmp_path, *judged, "--limit", "4", files=("scores.csv",))
    assert "both rounds together would cost a record epsilon 5, and --limit is 4" in refused.stderr
    assert conformal(tmp_path, *judged, "--limit", "5", files=("scores.csv",)).exit_code == 0


def test_fresh_scores_without_a_threshold_are_refused_before_anybody_is_asked(
    conformal: Conformal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: Any) -> None:
        raise AssertionError("a site was asked")

    monkeypatch.setattr("sottovoce.client.conformal.site.OneMessageSite._once", asked)
    write_sites(tmp_path, a=300, c=20)
    (tmp_path / "scores.csv").rename(tmp_path / "fresh.csv")
    write_sites(tmp_path, a=300, b=5)
    words = ("--site", "site", "--by", "site", *PRIVATE, "--coverage", "--test", str(tmp_path / "fresh.csv"))
    done = conformal(tmp_path, *words, files=("scores.csv",))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "site 'c' took no part, and these thresholds have no common one" in done.stderr


def test_a_limit_is_about_the_rounds_of_each_site(conformal: Conformal, tmp_path: Path) -> None:
    write_sites(tmp_path, a=300, b=300)
    words = ("--site", "site", "--epsilon", "a=2,b=0.5", "--maximum", "5", "--alpha", "0.3")
    for by in ((), ("--by", "site")):
        judged = (*words, *by, "--coverage", "--coverage-epsilon", "a=0.5,b=2")
        assert conformal(tmp_path, *judged, "--limit", "2.5", files=("scores.csv",)).exit_code == 0
        refused = conformal(tmp_path, *judged, "--limit", "2.4", files=("scores.csv",))
        assert "would cost a record epsilon 2.5, and --limit is 2.4" in refused.stderr


def test_groups_of_a_column(conformal: Conformal, score_files: Path, scores: Drawn) -> None:
    groups = ("--group", "clinic", "--json")
    found = as_json(conformal(score_files, *groups, files=("made.parquet",)))
    expected = {name: sv.conformal_threshold({"one": each}).value for name, each in scores[0].items()}
    assert {each["name"]: each["value"] for each in found["groups"]} == expected
    within = as_json(conformal(score_files, "--site", "whose", *groups, "--alpha", "0.3", files=("made.parquet",)))
    assert {each["name"]: each["scores"] for each in within["groups"]} == {"east": 40, "north": 60, "south": 40}
    for words, said in (
        (("--by", "site"), "--by names other groups; leave one out"),
        (("--coverage",), "--coverage judges each site by one threshold; leave one out"),
    ):
        refused = conformal(score_files, *groups, *words, files=("made.parquet",))
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert said in refused.stderr


def test_a_plan_asks_nobody(conformal: Conformal, score_files: Path) -> None:
    done = conformal(score_files, "--by", "site", *PRIVATE, "--explain")
    assert done.exit_code == 0
    assert "nobody so far" in done.stdout
    assert "Plan, nothing asked: thresholds by group" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--by", "clinic"),
            "--by is 'clinic'; write site for a threshold each, north=coast,south=hills, or @FILE.csv",
        ),
        (("--by", ""), "--by is ''; write site"),
        (("--by", "x" * 5_000), "…"),
        (("--by", f"north={'x' * 5_000},south=b,east=b"), "group 2 has a name of 5,000 characters"),
        (("--by", "north=\x1b[31m,south=b,east=b"), "group 2 has a control or invisible character in its name"),
        (("--by", "@/dev/zero"), "/dev/zero, which is no file"),
        (("--by", "site", "--alpha", "0"), "alpha must lie strictly between 0 and 1"),
        (("--by", "site", "--alpha", "nan"), "alpha must be a number, not nan"),
        (("--by", "site", "--epsilon", "0", "--maximum", "5"), "must be positive and at most 100, not 0"),
        (("--by", "site", "--epsilon", "inf", "--maximum", "5"), "epsilon is infinite everywhere"),
        (("--by", "site", "--limit", "0", *PRIVATE), "epsilon of a limit must be positive"),
        (("--by", "north=a,south"), "a part that is not site=group"),
        (("--by", "north=a,north=b"), "--by names site 'north' twice"),
        (("--by", "north=a"), "by says nothing of site"),
        (("--by", "@nowhere.csv"), "nowhere.csv, which cannot be read"),
        (("--by", "site", "--small", "pool"), "is unknown; choose one of 'common', 'together'"),
        (("--by", "site", "--simultaneous"), "add --guarantee training-conditional"),
        (("--small", "together"), "--small is about thresholds by group; add --by or --group"),
        (("--simultaneous",), "--simultaneous is about thresholds by group; add --by or --group"),
        (("--by", "site", "--limit", "1", "--epsilon", "20", "--maximum", "5"), "limit is 1"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_sentence(
    conformal: Conformal, score_files: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: Any) -> None:
        raise AssertionError("a site was asked")

    monkeypatch.setattr("sottovoce.client.conformal.site.OneMessageSite._once", asked)
    done = conformal(score_files, *words)
    assert done.exit_code == 2
    assert said in done.stderr.replace("\n", " ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_labels_of_a_file_that_are_markup_stay_text(conformal: Conformal, tmp_path: Path) -> None:
    rows = [f"{(i * 37 % 101) / 50},<script>alert({i % 3})</script>" for i in range(300)]
    (tmp_path / "scores.csv").write_text("residual,where\n" + "\n".join(rows) + "\n")
    page, plot = tmp_path / "page.html", tmp_path / "coverage.svg"
    words = ("--site", "where", "--by", "site", "--report", str(page), "--plot", str(plot))
    done = conformal(tmp_path, *words, files=("scores.csv",))
    assert done.exit_code == 0, done.output
    assert "<script>alert" in done.stdout
    assert "<script>alert" not in page.read_text()
    assert "&lt;script&gt;alert" in page.read_text()
    assert "<script" not in plot.read_text()


@pytest.mark.parametrize("label", ["y" * 5_000, "\x1b[2K", "a\u202eb"])
def test_labels_of_a_file_that_cannot_be_shown_are_refused(conformal: Conformal, label: str, tmp_path: Path) -> None:
    rows = [f"{i / 50},{label if i % 2 else 'south'}" for i in range(300)]
    (tmp_path / "scores.csv").write_text("residual,where\n" + "\n".join(rows) + "\n")
    done = conformal(tmp_path, "--site", "where", "--by", "site", files=("scores.csv",))
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert label not in done.stderr


def test_a_grid_that_is_another_file_is_not_shown(conformal: Conformal, score_files: Path, tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("0.5\nZebulon 9876\n")
    words = ("--by", "site", "--epsilon", "2", "--grid", f"@{tmp_path / 'patients.csv'}")
    done = conformal(score_files, *words)
    assert done.exit_code == 2
    assert "is no number, the one at place 2" in done.stderr
    assert "Zebulon" not in done.output


def test_the_options_reader() -> None:
    assert options.groups("site") == "site"
    assert options.groups("a=b, c = d") == {"a": "b", "c": "d"}
    with pytest.raises(BadInput, match="not site=group"):
        options.groups("=b")
