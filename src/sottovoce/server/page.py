"""One page on a result for readers outside, an ethics board above all: it needs no script and asks nothing of anybody.

Question, answer, picture, privacy statement, assumptions, what is not protected, settings, version and date; the
picture stands inside the page.
"""

import datetime as dt
import os
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

from sottovoce.core.errors import BadInput
from sottovoce.core.version import VERSION
from sottovoce.server.description import Description
from sottovoce.server.markup import cells_table, rows_table
from sottovoce.server.picture import check_target

EXPOSED = "Not private: this result does not protect the records behind it; the privacy statement says why."
SUFFIXES = (".html", ".htm")
MOST_ROWS = 60
LIMITS = (
    "Further studies of the same records, here or elsewhere: each adds its epsilon to the cost that is stated here.",
    "What a population tells of its members: the result is meant to be published, and says something of all of them.",
    "Names of sites, columns and categories, the sizes of sites, and how many values were missing.",
    "Side channels (time, memory, power), a site that lies, and a program that was changed.",
)
STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1.2rem; max-width: 50rem; font: 1rem/1.5 system-ui, sans-serif; color: #1a1a1a;
  background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; color: #1f4e79; }
p, ul { margin: .4rem 0; } .answer { font-size: 1.15rem; font-weight: 600; }
.notice { border-left: .3rem solid #a33b0f; padding: .3rem .8rem; background: #fdf1ec; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
@media (max-width: 40rem) { figure img { max-width: none; width: 44rem; } }
table { border-collapse: collapse; font-size: .92rem; } caption { text-align: left; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #d0d0d0; vertical-align: top; }
footer { margin-top: 1.6rem; font-size: .85rem; color: #444; } figure { margin: .6rem 0; }
@media print { body { padding: 0; max-width: none; font-size: 10pt; } h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; } }
"""


def check_page(path: str | os.PathLike[str]) -> Path:
    """Refuse a path to which no report can be written; to be called before anything is spent."""
    return check_target(path, SUFFIXES, "report")


def write_page(text: str, target: Path) -> Path:
    """Write a page to its file and return the path, or say why that cannot be done."""
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"the report cannot be written to {target} ({error.strerror or error}); give another path."
        ) from None
    return target


def page(headline: str, about: Description, picture: bytes | str, private: bool) -> str:
    """Return the page of a result; ``picture`` is a PNG, or the sentence that says why there is none."""
    outside = about.outside
    assert outside is not None
    statement, _, unprotected = outside.privacy.partition("Not protected: ")
    limits = [unprotected[0].upper() + unprotected[1:], *LIMITS] if unprotected else LIMITS
    warnings = [] if private else [EXPOSED]
    warnings += [f"{label}: {text}" for label, text in about.notes if label in ("Warning", "Caution", "No interval")]
    parts = [
        f"<h1>{escape(about.title)}</h1>",
        _section("Question", _paragraphs([outside.question])),
        _section("Answer", f'<p class="answer">{escape(outside.answer)}</p>{_notices(warnings)}'),
        _section("Picture", _picture(picture, headline)),
    ]
    if about.cells:
        parts.append(_section("Table", f'<div class="wide">{cells_table(about.cells, MOST_ROWS)}</div>'))
    parts += [
        _section("Privacy statement", _paragraphs([statement])),
        _section("Assumptions", _listed(outside.assumptions)),
        _section("Limits: what is not protected", _listed(limits)),
        _section("Settings", f'<div class="wide">{rows_table([*about.rows, *outside.settings])}</div>'),
        f"<footer>Made with Sottovoce {VERSION} on {_today()}. This page has no script and no link; it "
        "asks nothing of any other machine.</footer>",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(headline)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _today() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")


def _section(title: str, inside: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{inside}\n</section>"


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _notices(texts: Sequence[str]) -> str:
    return "".join(f'<p class="notice">{escape(text)}</p>' for text in texts)


def _listed(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _picture(picture: bytes | str, headline: str) -> str:
    if isinstance(picture, str):
        return _paragraphs([picture])
    data = b64encode(picture).decode("ascii")
    return f'<figure class="wide"><img alt="{escape(headline)}" src="data:image/png;base64,{data}"></figure>'
