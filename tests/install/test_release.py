"""What `make release` refuses, and that what it packs does not depend on who packs it."""

import importlib.util
import io
import subprocess
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import sottovoce as sv
from sottovoce.core.version import VERSION

ROOT = Path(__file__).parents[2]
DATED = f"# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - 2026-01-01\n\n* It counts.\n"
MOMENT = 1_700_000_000


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = script()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository of the files that name the version, all committed."""
    for name in ("src/sottovoce/core/version.py", "papers/pyproject.toml", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(DATED)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "all"], cwd=folder, check=True)


def test_every_place_names_the_one_version() -> None:
    assert set(release.versions(ROOT).values()) == {VERSION} == {sv.__version__}
    assert "nothing" not in release.versions(ROOT).values()
    assert f"## [{VERSION}] - " in (ROOT / "CHANGELOG.md").read_text()
    assert version("sottovoce") == VERSION, "install the package again: its version was raised"


def test_a_clean_tree_with_a_dated_section_is_released(clone: Path) -> None:
    release.refuse(clone)


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("CITATION.cff", VERSION, "9.9.9", r"CITATION\.cff says 9\.9\.9 where .*version\.py says"),
        ("papers/pyproject.toml", f"=={VERSION}", "==9.9.9", r"the pin in papers/pyproject\.toml says 9\.9\.9"),
        ("CHANGELOG.md", "2026-01-01", "unreleased", r"has no section '## \[.*\] - YYYY-MM-DD'"),
        ("CHANGELOG.md", "* It counts.\n", "", "has no section"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n* And more.\n", r"still has entries under \[Unreleased\]"),
    ],
)
def test_what_is_not_ready_is_refused_in_a_sentence(clone: Path, name: str, old: str, new: str, sentence: str) -> None:
    path = clone / name
    path.write_text(path.read_text().replace(old, new))
    commit(clone)
    with pytest.raises(release.Refusal, match=sentence):
        release.refuse(clone)
    if name == "CHANGELOG.md":
        release.refuse(clone, dry=True)
    else:
        with pytest.raises(release.Refusal, match=sentence):
            release.refuse(clone, dry=True)


@pytest.mark.parametrize("name", ["new.txt", "CITATION.cff"])
def test_a_dirty_tree_is_refused_by_the_names_of_its_files(clone: Path, name: str) -> None:
    with (clone / name).open("a") as file:
        file.write("# more\n")
    with pytest.raises(release.Refusal, match=rf"what no commit holds \({name}\); commit it"):
        release.refuse(clone)
    release.refuse(clone, dry=True)


def sdist(path: Path, names: list[str], owner: int) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.uid, entry.mtime, entry.mode, entry.size = owner, owner, 0o600 + owner, 2
            archive.addfile(entry, io.BytesIO(b"ok"))
    return path


def wheel(path: Path, names: list[str], year: int) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), b"ok")
    return path


def test_packages_are_packed_alike_whatever_order_owner_mode_and_time_they_had(tmp_path: Path) -> None:
    names = ["a-1/b.py", "a-1/README.md", "a-1/src/c.py"]
    one, other = sdist(tmp_path / "1", names, 0), sdist(tmp_path / "2", names[::-1], 7)
    assert one.read_bytes() != other.read_bytes()
    assert release.packed_sdist(one, MOMENT) == release.packed_sdist(other, MOMENT)
    with tarfile.open(fileobj=io.BytesIO(release.packed_sdist(one, MOMENT))) as archive:
        assert archive.getnames() == sorted(names)
        assert {(each.uid, each.mtime, each.mode) for each in archive} == {(0, MOMENT, 0o644)}
    names = ["a/b.py", "a-1.dist-info/RECORD", "a-1.dist-info/METADATA"]
    one, other = wheel(tmp_path / "3", names, 1999), wheel(tmp_path / "4", names[::-1], 2020)
    assert release.packed_wheel(one, MOMENT) == release.packed_wheel(other, MOMENT)
    with zipfile.ZipFile(io.BytesIO(release.packed_wheel(one, MOMENT))) as archive:
        assert archive.namelist() == ["a/b.py", "a-1.dist-info/METADATA", "a-1.dist-info/RECORD"]
        assert archive.getinfo("a/b.py").date_time == (2023, 11, 14, 22, 13, 20)


@pytest.mark.parametrize("name", release.READMES)
def test_a_readme_without_the_repository_keeps_its_words(name: str) -> None:
    text = (ROOT / name).read_text()
    alone = release.standing_alone(text)
    assert [each for each in release.LINK.findall(alone) if not each[2].startswith("http")] == []
    assert alone.count("```") == text.count("```")
    assert alone.splitlines()[0] == text.splitlines()[0]
