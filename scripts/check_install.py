"""Build wheels and sdists, look into them, install each into an environment of its own, and use what was installed."""

import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = {  # all that is no Python: tables, pages, scripts of pages
    str(path.relative_to(ROOT / "src"))
    for path in (ROOT / "src" / "sottovoce").rglob("*")
    if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__"
}
SIDES = {"core", "client", "protocol"}
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


def build(work: Path) -> tuple[Path, Path, Path]:
    """Return the wheel and the sdist of the package, and the wheel of the side that only answers."""
    programs = environment(work / "build")
    run(programs / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "build")
    # a copy, so that nothing of an earlier build, and nothing that git does not know, gets in
    source = work / "source"
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(programs / "python", "-m", "build", "--outdir", work / "dist", source)
    run(programs / "python", "-m", "build", "--wheel", "--outdir", work / "dist", source / "client")
    (sdist,) = (work / "dist").glob("sottovoce-*.tar.gz")
    (wheel,) = (work / "dist").glob("sottovoce-*.whl")
    (site,) = (work / "dist").glob("sottovoce_client-*.whl")
    return wheel, sdist, site


def look(wheel: Path, sdist: Path, site: Path) -> None:
    """Check that nothing is missing and nothing is too much."""
    package = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "sottovoce").rglob("*.py")}
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == package | DATA, inside ^ (package | DATA)
    few = {name for name in zipfile.ZipFile(site).namelist() if ".dist-info/" not in name}
    assert few == {name for name in package if name.count("/") == 1 or name.split("/")[1] in SIDES} | {
        "sottovoce/py.typed"
    }
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in package | DATA} | {"README.md", "LICENSE", "pyproject.toml"} <= held
    strange = {
        name
        for name in held
        if name.startswith(".") or name.split("/")[0] in ("papers", "shared", "notes", "benchmarks")
    }
    assert not strange, strange


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
        wheel, sdist, site = build(work)
        look(wheel, sdist, site)
        say(f"built {wheel.name}, {sdist.name}, {site.name}")
        for made in (wheel, sdist):
            programs = environment(work / made.name.replace(".", "-"))
            install(programs, made)
            use(programs, work)
            say(f"{made.name}: installed and used")
        programs = environment(work / "site")
        install(programs, site)
        run(programs / "python", "-W", "error", "-c", SITE, cwd=work)
        say(f"{site.name}: installed and used")
    say(f"make test-install took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
