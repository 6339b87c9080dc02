"""Build wheels and sdists, look into them, install each into an environment of its own, and use what was installed."""

import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = {  # all that is no Python: tables, pages, scripts of pages
    str(path.relative_to(ROOT / "src"))
    for path in (ROOT / "src" / "sottovoce").rglob("*")
    if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__"
}
SIDES = {"core", "client", "protocol"}
PAPERS = {path.parent.name for path in (ROOT / "papers").glob("*/README.md")}
MOST_BYTES = 3_000_000  # of a wheel: a picture or a table too much is seen
TYPED = """
import sottovoce as sv
from sottovoce_papers.harness import catalogue
told: str = sv.federated_quantile({"north": [1.0]}, 0.5, 1.0).guarantee
number: int = sv.federated_quantile({"north": [1.0]}, 0.5, 1.0).guarantee  # type: ignore[assignment]
folder: int = catalogue.papers_folder()  # type: ignore[assignment]
"""
SITE = """
from sottovoce.client.quantile.site import Site
from sottovoce.client.reading.files import read_files
from sottovoce.protocol.messages import Query, Study
(records,) = read_files(["waits.csv"], value="wait").records
assert 0 < Site(records, Study(0.5, 1.0)).tally(Query(1, (50.0,), (records.size,))).ones[0] < records.size
"""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints; end with its words if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder: Path) -> Path:
    """Make an empty environment and return its folder of programs."""
    venv.create(folder, with_pip=True)
    return folder / "bin"


def install(programs: Path, *what: str | Path) -> None:
    """Install with the versions of constraints.txt."""
    run(
        programs / "python",
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        "-c",
        ROOT / "constraints.txt",
        *what,
    )


def build(work: Path) -> Path:
    """Build all packages from the working tree, as a release does, and return their folder."""
    run(sys.executable, ROOT / "scripts" / "release.py", "--dry", "--out", work / "dist")
    return work / "dist"


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of a folder that a pattern names."""
    (path,) = folder.glob(pattern)
    return path


def sources(folder: Path) -> set[str]:
    """Return the modules of a package, by their names in a wheel."""
    return {str(path.relative_to(folder.parent)) for path in folder.rglob("*.py")}


def look(dist: Path) -> None:
    """Check that nothing is missing and nothing is too much."""
    package = sources(ROOT / "src" / "sottovoce")
    inside = described(only(dist, "sottovoce-*.whl"))
    assert inside == package | DATA, inside ^ (package | DATA)
    few = described(only(dist, "sottovoce_client-*.whl"))
    sides = {name for name in package if name.count("/") == 1 or name.split("/")[1] in SIDES}
    assert few == sides | {"sottovoce/py.typed"}, few ^ sides
    papers = sources(ROOT / "papers" / "src" / "sottovoce_papers") | {"sottovoce_papers/py.typed"}
    tables = {name for name in described(only(dist, "sottovoce_papers-*.whl")) if "/tables/" in name}
    assert described(only(dist, "sottovoce_papers-*.whl")) - tables == papers
    items = len([*(ROOT / "papers").glob("*/*.toml")])
    assert len([name for name in tables if name.endswith(".toml")]) == items, items
    least = {"README.md", "LICENSE", "pyproject.toml", "PKG-INFO"}
    for pattern, needed, known in (
        ("sottovoce-*.tar.gz", {f"src/{name}" for name in package | DATA}, {"src"}),
        ("sottovoce_papers-*.tar.gz", {f"src/{name}" for name in papers}, {"src", "tests", *PAPERS}),
    ):
        with tarfile.open(only(dist, pattern)) as archive:
            held = {name.partition("/")[2] for name in archive.getnames()}
        assert needed | least <= held, (needed | least) - held
        strange = {
            name for name in held if name.split("/")[0] not in {*least, *known, "setup.cfg", "setup.py", "MANIFEST.in"}
        }
        assert not strange, strange


def described(wheel: Path) -> set[str]:
    """Return what is in a wheel, after a look at its licence, long description and versions of Python."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert wheel.stat().st_size < MOST_BYTES, f"{wheel.name} has {wheel.stat().st_size:,} bytes"
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = message_from_bytes(archive.read(metadata))
    body = told.get_payload()
    assert metadata.replace("METADATA", "licenses/LICENSE") in names, wheel.name
    assert (told["License-Expression"], told["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert told["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in told.get_all("Classifier", [])
    assert isinstance(body, str)
    assert body.startswith("# ")
    lost = re.findall(
        r"\]\((?!https?:|mailto:|#)[^)]*\)", re.sub(r"^```.*?^```$", "", body, flags=re.DOTALL | re.MULTILINE)
    )
    assert not lost, f"{wheel.name}: links that lead nowhere from an index: {lost}"
    return {name for name in names if ".dist-info/" not in name}


def use(programs: Path, folder: Path) -> None:
    """Ask a file for a private quantile, as a newcomer would."""
    run(programs / "sottovoce", "--version", cwd=folder)
    run(programs / "sottovoce", "--help", cwd=folder)
    printed = run(
        *(programs / "sottovoce", "quantile", "waits.csv", "--value", "wait", "--site", "clinic", "--tau", "0.5"),
        *("--epsilon", "4"),
        cwd=folder,
    )
    assert "Private:       yes" in printed, printed


def main() -> None:
    """Build, look, install and use."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        rows = (f"{i * 7919 % 4001 / 40},{'north' if i % 2 else 'south'}\n" for i in range(4_000))
        (work / "waits.csv").write_text("wait,clinic\n" + "".join(rows))
        dist = build(work)
        look(dist)
        say(f"built twice, alike, and looked into: {', '.join(sorted(path.name for path in dist.iterdir()))}")
        for kind in ("*.whl", "*.tar.gz"):
            made = only(dist, f"sottovoce-{kind}")
            programs = environment(work / made.name.replace(".", "-"))
            install(programs, made)
            use(programs, work)
            say(f"{made.name}: installed and used")
            papers = only(dist, f"sottovoce_papers-{kind}")
            install(programs, papers)  # what it needs of sottovoce is there, and is not fetched
            assert "Table 2" in run(programs / "sottovoce", "reproduce", "--list", cwd=work)
            say(f"{papers.name}: installed and used")
            run(programs / "python", "-m", "pip", "check")
            if kind == "*.whl":
                install(programs, "mypy")
                run(programs / "python", "-m", "mypy", "--strict", "-c", TYPED, cwd=work)
                say("both are typed for whoever checks types")
        site = only(dist, "sottovoce_client-*.whl")
        programs = environment(work / "site")
        install(programs, site)
        run(programs / "python", "-W", "error", "-c", SITE, cwd=work)
        say(f"{site.name}: installed and used")
    say(f"make test-install took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
