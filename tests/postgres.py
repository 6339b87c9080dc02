"""A PostgreSQL cluster for the time of a test: in a folder of its own, on a Unix socket, gone at the end."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

OWNER = "postgres"  # who runs the server where we are root: PostgreSQL refuses to be
CALM = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"  # for tests in which no machine dies


def missing() -> str | None:
    """Return why no cluster can be started here; None where one can."""
    if programs() is None:
        return "PostgreSQL's server programs (initdb, pg_ctl) are not installed"
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            return "PostgreSQL does not run as root, and there is no runuser"
        try:
            pwd.getpwnam(OWNER)
        except KeyError:
            return f"PostgreSQL does not run as root, and there is no user {OWNER}"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    return None


def programs() -> Path | None:
    """Return the folder of the server's programs: on the path, or the newest of Debian's."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("pg_ctl") is not None:
        return Path(found).parent
    debian = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(debian, key=lambda path: int(path.parent.name), default=None)


class Cluster:
    """A running cluster; ``settings`` are options of the server."""

    def __init__(self, settings: str = CALM) -> None:
        found = programs()
        assert found is not None, missing()
        self._programs, self._settings, self._count = found, settings, itertools.count(1)
        self.folder = Path(tempfile.mkdtemp(prefix="sv-pg-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, OWNER)
        self._run(
            "initdb", "-D", str(self.folder / "data"), "-U", OWNER, "-A", "trust", "-N", "-E", "UTF8", "--locale=C"
        )
        self.start()

    def _run(self, program: str, *words: str) -> None:
        """Run one of the server's programs as its owner."""
        as_owner = ["runuser", "-u", OWNER, "--"] if os.geteuid() == 0 else []
        whole = [*as_owner, str(self._programs / program), *words]
        done = subprocess.run(
            whole, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert done.returncode == 0, done.stderr.decode()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = f"-k {self.folder} -c listen_addresses='' {self._settings}"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "said"), "-w", "-o", settings, "start"
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: ``fast`` ends connections, ``immediate`` is a crash."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def url(self, schema: str = "public") -> str:
        """Return the address of a schema of the cluster."""
        return f"postgresql://{OWNER}@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def fresh(self) -> str:
        """Make a schema of its own and return its address: to us it is an empty database, made in a millisecond."""
        schema = f"log{next(self._count)}"
        self.execute(f"CREATE SCHEMA {schema}")
        return self.url(schema)

    @property
    def process(self) -> int:
        """Return the number of the server's first process."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def size(self, url: str) -> int:
        """Return how many bytes all tables and indexes of a schema take."""
        with self.connected(url) as base:
            whole = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace ="
            row = base.execute(f"{whole} CAST(current_schema() AS regnamespace)").fetchone()
        return int(row[0])

    def connected(self, url: str | None = None) -> Any:
        """Return a connection of our own."""
        import psycopg

        return psycopg.connect(url or self.url(), autocommit=True)

    def execute(self, text: str) -> None:
        """Say one statement to the server."""
        with self.connected() as base:
            base.execute(text)

    def remove(self) -> None:
        """Stop the server, and remove all that it kept."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
