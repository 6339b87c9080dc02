"""Build wheels and sdists of all distributions into dist/, the same bytes whoever builds them, and their SHA256SUMS.

Everything is built twice, from two copies of the sources in two folders, under two umasks, file times, time zones and
hash seeds; where a byte differs, nothing is written. `--dry` asks neither for a clean tree nor for a changelog.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BACKEND = ROOT / "scripts" / "backend.txt"
READMES = ("README.md", "papers/README.md", "client/README.md")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
# Of the two builds of a release: umask, added to the files' times, time zone, hash seed.
WAYS = ((0o022, 0, "UTC", "0"), (0o077, 86_400 * 365, "Pacific/Auckland", "1"))
DATED = r"^## \[{}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## \[|\Z)"
UNRELEASED = r"^## \[Unreleased\]\n(.*?)(?=^## \[|\Z)"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


class Refusal(Exception):
    """A sentence that says why nothing is released."""


def git(*words: str, root: Path = ROOT) -> str:
    """Return what git prints."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refusal(f"git {words[0]} failed ({done.stderr.strip()}); a release is made in a clone.")
    return done.stdout


def found(pattern: str, path: Path) -> str:
    """Return what a pattern finds in a file, or what is missing."""
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else "nothing"


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each place names; the first is the source."""
    return {
        "src/sottovoce/core/version.py": found('^VERSION = "(.+)"$', root / "src/sottovoce/core/version.py"),
        "papers/pyproject.toml": found('^version = "(.+)"$', root / "papers/pyproject.toml"),
        "the pin in papers/pyproject.toml": found(
            r'^dependencies = \["sottovoce\[[a-z,]+\]==([^"]+)"', root / "papers/pyproject.toml"
        ),
        "CITATION.cff": found("^version: (.+)$", root / "CITATION.cff"),
    }


def refuse(root: Path = ROOT, *, dry: bool = False) -> None:
    """Raise a sentence where this must not be released."""
    named = versions(root)
    source, version = next(iter(named.items()))
    for place, says in named.items():
        if says != version:
            raise Refusal(f"{place} says {says} where {source} says {version}; correct it.")
    if dry:
        return
    changed = git("status", "--porcelain", root=root).splitlines()
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        names = ", ".join(line[3:] for line in changed[:3])
        raise Refusal(f"the tree has what no commit holds ({names}{more}); commit it, or put it away.")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(DATED.format(re.escape(version)), changes, re.MULTILINE | re.DOTALL)
    if not section or not section[1].strip():
        raise Refusal(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' with what changed; write it.")
    ahead = re.search(UNRELEASED, changes, re.MULTILINE | re.DOTALL)
    if ahead and ahead[1].strip():
        raise Refusal(f"CHANGELOG.md still has entries under [Unreleased]; move them to [{version}].")


def standing_alone(text: str) -> str:
    """Return a README as an index can show it: no link and no picture that leads into the repository.

    >>> standing_alone("See [limits](docs/limits.md), [PEP](https://peps.python.org).")
    'See limits, [PEP](https://peps.python.org).'
    >>> standing_alone("![Two curves.](docs/demo.png)")
    '*Picture `docs/demo.png`: Two curves.*'
    """

    def plain(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if target.startswith(("http:", "https:", "mailto:", "#")):
            return match[0]
        return f"*Picture `{target}`: {words}*" if picture else words

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(plain, part) for part in parts)


def copied(folder: Path, moment: int, *, dry: bool) -> Path:
    """Copy what git knows into a folder, with one time for all files, and READMEs that stand alone."""
    also = ("--others", "--exclude-standard") if dry else ()
    for name in git("ls-files", "-z", "--cached", *also).split("\0"):
        if not name or not (ROOT / name).is_file():
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        held = (ROOT / name).read_bytes()
        target.write_bytes(standing_alone(held.decode()).encode() if name in READMES else held)
        os.utime(target, (moment, moment))
    return folder


def backend() -> Path:
    """Return a Python with the pinned build backend, made once: the one step that needs a network."""
    folder = ROOT / "build" / f"backend-{hashlib.sha256(BACKEND.read_bytes()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(BACKEND)], check=False)
        if done.returncode:
            raise Refusal(f"the build backend that {BACKEND.name} pins could not be fetched; see what pip says above.")
        (folder / "complete").touch()
    return python


def called(python: Path, kind: str, source: Path, out: Path, env: dict[str, str]) -> None:
    """Let the backend build one package."""
    words = [str(python), "-c", BUILD.format(kind), str(out)]
    done = subprocess.run(words, cwd=source, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refusal(f"the {kind} of {source} could not be built:\n{done.stdout}{done.stderr}")


def packed_sdist(path: Path, moment: int) -> bytes:
    """Return an sdist in order of names, without owners, with one time and one mode for files."""
    with tarfile.open(path) as archive:
        held = {each.name: read.read() for each in archive.getmembers() if (read := archive.extractfile(each))}
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, content in sorted(held.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), moment, 0o644
            made.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), 9, mtime=moment)


def packed_wheel(path: Path, moment: int) -> bytes:
    """Return a wheel in order of names, its own description last, with one time and one mode for files."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    when = time.gmtime(moment)[:6]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in sorted(held, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name)):
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o100644 << 16, 3
            archive.writestr(entry, held[name], compresslevel=9)
    return made.getvalue()


def built(python: Path, work: Path, way: tuple[int, int, str, str], *, dry: bool) -> dict[str, bytes]:
    """Return all packages by name, built in a folder in one of the ways."""
    mask, later, zone, seed = way
    moment = int(git("log", "-1", "--format=%ct"))
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(moment), "TZ": zone, "PYTHONHASHSEED": seed}
    env.pop("PYTHONPATH", None)
    before = os.umask(mask)
    try:
        source = copied(work / "source", moment + later, dry=dry)
        raw = work / "raw"
        raw.mkdir()
        for part in (source, source / "papers"):  # the wheel is made of the sdist, so that the sdist is whole
            alone = work / "unpacked" / part.name
            called(python, "sdist", part, raw, env)
            (sdist,) = (each for each in raw.glob("*.tar.gz") if ("papers" in each.name) == (part != source))
            with tarfile.open(sdist) as archive:
                archive.extractall(alone, filter="data")
            (inside,) = alone.iterdir()
            called(python, "wheel", inside, raw, env)
        called(python, "wheel", source / "client", raw, env)
    finally:
        os.umask(before)
    return {
        path.name: (packed_sdist if path.name.endswith(".gz") else packed_wheel)(path, moment)
        for path in sorted(raw.iterdir())
        if path.is_file()
    }


def release(out: Path, *, dry: bool) -> list[str]:
    """Build twice, compare, and write packages and sums; return the lines of the sums."""
    refuse(dry=dry)
    python = backend()
    with tempfile.TemporaryDirectory() as temporary:
        works = [Path(temporary) / name for name in ("one", "another-folder")]
        for work in works:
            work.mkdir()
        once, again = (built(python, work, way, dry=dry) for work, way in zip(works, WAYS, strict=True))
    differing = [name for name in once.keys() | again.keys() if once.get(name) != again.get(name)]
    if differing:
        raise Refusal(
            f"two builds of one tree differ in {', '.join(sorted(differing))}; find what they took from outside."
        )
    out.mkdir(parents=True, exist_ok=True)
    for path in (*out.glob("*.whl"), *out.glob("*.tar.gz")):  # of an earlier version
        path.unlink()
    for name, content in once.items():
        (out / name).write_bytes(content)
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in once.items()]
    (out / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return lines


def main() -> None:
    """Release, or say in a sentence why not."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--dry", action="store_true", help="build whatever the working tree holds")
    asked.add_argument("--out", type=Path, default=ROOT / "dist", metavar="FOLDER")
    chosen = asked.parse_args()
    began = time.monotonic()
    try:
        lines = release(chosen.out, dry=chosen.dry)
    except Refusal as error:
        sys.exit(f"Nothing is released: {error}")
    for line in lines:
        size = (chosen.out / line.partition("  ")[2]).stat().st_size
        sys.stdout.write(f"{line}  {size / 1000:,.0f} kB\n")
    sys.stdout.write(f"Built twice with equal bytes in {time.monotonic() - began:.0f} s: {chosen.out}\n")


if __name__ == "__main__":
    main()
