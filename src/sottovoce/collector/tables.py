"""The tables of a collector's log, the same in SQLite and PostgreSQL, and how a log of an earlier version becomes one.

A migration goes forward only, and each is one transaction with the change of the version.
"""

from collections.abc import Callable

import sqlalchemy as sa

from sottovoce.core.errors import BadInput

META = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

ABOUT = sa.Table(
    "about",
    META,
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("parts", sa.Integer, nullable=False, server_default="1"),  # that divide its groups; 0: nobody has yet
)
STUDY = sa.Table(
    "study",
    META,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("card", sa.Text, nullable=False),
    sa.Column("given", sa.Text),  # the study's file as JSON; none in a log begun before version 2
    sa.Column("coin", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("begun", sa.Float, nullable=False),
    sa.Column("secret", sa.LargeBinary),  # of the tokens, where devices have them
)
REPORTS = sa.Table(
    "reports",
    META,
    sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("part", sa.Integer, nullable=False, server_default="0"),  # of the process that took them
    sa.Column("scrubbed", sa.Boolean, nullable=False, default=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
BY_STUDY = sa.Index("reports_by_study", REPORTS.c.study, REPORTS.c.seq)
ROUND = sa.Table(
    "round",
    META,
    sa.Column("study", sa.Text, primary_key=True),
    sa.Column("grp", sa.Integer, primary_key=True),
    sa.Column("round", sa.Integer, primary_key=True),
    sa.Column("sums", sa.Text, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),  # of the last row of reports when it closed
    sa.Column("at", sa.Float, nullable=False),
)
KEYS = sa.Table(
    "api_key",
    META,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("made", sa.Float, nullable=False),
)


_BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA"}


def _second(base: sa.Connection) -> None:
    """From one study's terms to several studies' files; a part for each process; keys."""
    base.execute(sa.text("ALTER TABLE about ADD COLUMN parts INTEGER NOT NULL DEFAULT 1"))
    base.execute(sa.text("ALTER TABLE study ADD COLUMN given TEXT"))
    base.execute(sa.text(f"ALTER TABLE study ADD COLUMN secret {_BYTES[base.dialect.name]}"))
    base.execute(sa.text("ALTER TABLE study DROP COLUMN terms"))
    base.execute(sa.text("ALTER TABLE reports ADD COLUMN part INTEGER NOT NULL DEFAULT 0"))
    BY_STUDY.create(base)
    KEYS.create(base)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_second,)
VERSION = 1 + len(MIGRATIONS)


def prepare(engine: sa.Engine) -> None:
    """Make the tables of a new log, or bring those of an earlier version forward; refuse those of a later one."""
    found = 0
    while found < VERSION:
        with engine.begin() as base:
            if engine.dialect.name == "postgresql":  # two hosts may begin a log at the same time
                base.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('sottovoce tables'))"))
            if not sa.inspect(base).has_table(ABOUT.name):
                META.create_all(base)
                base.execute(ABOUT.insert().values(version=VERSION, parts=0))
                return
            found = base.execute(sa.select(ABOUT.c.version)).scalar_one()
            if 1 <= found < VERSION:
                MIGRATIONS[found - 1](base)
                base.execute(ABOUT.update().values(version=found + 1))
    if found != VERSION or VERSION < 1:
        raise BadInput(f"the log is of version {found}, and this program writes {VERSION}; use the program it is of.")
