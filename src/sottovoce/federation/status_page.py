"""The status page of either side: one page without anything from elsewhere, on loopback, that looks again by itself.

All words are escaped, since names and refusals come from the other side. Whoever asks under another name than loopback
is sent away, so that no web site can make a browser read the page for it.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from sottovoce.core.errors import BadInput
from sottovoce.federation.status import cost_line

HOST = "127.0.0.1"
SECONDS = 5  # that a connection may take
STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --dim: #5c6b7c; --line: #dfe5ec; --paper: #f5f7fa; --card: #fff;
  --blue: #1f5fa8; --good: #1b7f4d; --warn: #a05a00; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --dim: #94a3b5; --line: #2c3846; --paper: #11171e;
  --card: #1a222c; --blue: #7db4f0; --good: #5fcf95; --warn: #f0b35f; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  overflow-wrap: anywhere; }
main { max-width: 62rem; margin: 0 auto; padding: 1.6rem 1.2rem; }
header p { margin: 0; color: var(--dim); } h1 { font-size: 1.6rem; margin: .1rem 0 .3rem; line-height: 1.25; }
h2 { font-size: 1rem; margin: 0 0 .6rem; color: var(--blue); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin: 1.1rem 0; }
.fact, section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.fact > span { display: block; color: var(--dim); font-size: .82rem; } .fact b { font-size: 1.2rem; font-weight: 600; }
section { margin: .8rem 0; } .wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-size: .82rem; font-weight: 500; color: var(--dim); }
th, td { padding: .35rem 1.1rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: nowrap; }
td.text { white-space: normal; min-width: 20rem; }
tr:last-child td { border-bottom: 0; } .number { text-align: right; }
code { font: .85em ui-monospace, monospace; } .none { color: var(--dim); margin: 0; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
.bar { height: .55rem; border-radius: .3rem; background: var(--line); overflow: hidden; margin: .2rem 0 .5rem; }
.bar i { display: block; height: 100%; background: var(--blue); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0; } dt { color: var(--dim); }
dd { margin: 0; } footer { color: var(--dim); font-size: .82rem; margin-top: 1rem; } #gone { display: none; }
.stopped #gone { display: block; margin: .8rem 0; padding: .6rem 1rem; border: 1px solid var(--bad);
  border-radius: .6rem; color: var(--bad); }
"""
SCRIPT = """
setInterval(async () => {
  try {
    const text = await (await fetch('/', { cache: 'no-store' })).text();
    const next = new DOMParser().parseFromString(text, 'text/html');
    document.querySelector('main').replaceWith(next.querySelector('main'));
    document.title = next.title;
    document.body.className = '';
  } catch { document.body.className = 'stopped'; }
}, 2000);
"""
_GOOD = {"there", "takes part", "asking", "done", "connected", "open", "closed"}
_BAD = {"failed", "refused"}
_POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    f"script-src 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
)


class StatusServer:
    """Shows a status on a port of loopback, in a thread of its own, as long as it is open: ``/``, ``/status.json``."""

    def __init__(self, port: int, status: Callable[[], dict[str, Any]]) -> None:
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(status))
        except (OSError, OverflowError):
            raise BadInput(f"the status page cannot use port {port}; give another with --status.") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="sottovoce-status", daemon=True)

    @property
    def url(self) -> str:
        """Return where the page is."""
        return f"http://{HOST}:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(status: Callable[[], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    """Return what answers a request."""

    class StatusRequest(BaseHTTPRequestHandler):
        """Answers GET alone, and only whoever asks for loopback by name."""

        timeout = SECONDS
        server_version, sys_version = "sottovoce", ""

        def do_GET(self) -> None:
            port = self.connection.getsockname()[1]
            if self.headers.get("Host", "") not in (f"{HOST}:{port}", f"localhost:{port}"):
                return self._send(403, "text/plain", "this page is for this machine alone")
            if self.path not in ("/", "/status.json"):
                return self._send(404, "text/plain", "there are / and /status.json")
            try:
                found = status()
                text = status_page(found) if self.path == "/" else json.dumps(found, allow_nan=False)
            except Exception as error:  # the page must not end what it looks at, nor quote it
                return self._send(503, "text/plain", f"no status now ({type(error).__name__})")
            return self._send(200, "text/html" if self.path == "/" else "application/json", text)

        def _send(self, code: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", _POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: stderr belongs to the command."""

    return StatusRequest


def status_page(status: Mapping[str, Any]) -> str:
    """Return the page of a status."""
    title, parts = _coordinator(status) if status["side"] == "coordinator" else _site(status)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<noscript><meta http-equiv="refresh" content="5"></noscript>\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + f"\n<footer>As of {escape(_time(status['at']))} (UTC); looks again every two seconds. Also as "
        "<code>/status.json</code>. This page shows no record, no score and no reply, and asks nothing of any other "
        "machine.</footer>\n"
        '<p id="gone">The program has stopped, or does not answer: what is shown is the last that it said.</p>\n'
        f"</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _coordinator(status: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return title and parts of the coordinator's page."""
    sites = status["sites"]
    interval = status["interval"]
    facts = [
        ("state", _state(status["state"])),
        ("round", f"{status['round']:,}"),
        ("sites that take part", f"{sum(each['state'] == 'takes part' for each in sites)} of {len(sites)}"),
        ("cost", escape(cost_line(status["epsilon"]))),
    ]
    if interval is not None:
        low, high = ("open" if end is None else f"{end:.6g}" for end in interval)
        facts.append(("interval so far", f"{low} to {high}"))
    rows = [
        (
            escape(each["site"]),
            _state(each["state"]),
            "" if each["records"] is None else f"{each['records']:,}",
            _ago(each["seconds_since"]),
            f"{each['answered']:,}",
            f"{each['absent']:,}",
            f"{each['refused']:,}",
            "" if each["ledger"] is None else f"{each['ledger']['counter']:,}",
            "" if each["ledger"] is None else _digest(each["ledger"]["head"]),
        )
        for each in sites
    ]
    columns = ("site", "state", "#records", "last seen", "#answered", "#absent", "#refused", "#ledger", "head")
    refused = [(_time(each["at"]), each["site"], str(each["round"] or ""), each["why"]) for each in status["refusals"]]
    files = [("log", f"<code>{escape(status['log'])}</code>"), ("listens on", escape(status["address"]))]
    return f"{status['study']}: {status['state']}", [
        _head("Coordinator", status["study"], f"Method: {status['method']}"),
        _facts(facts),
        _section("Sites", _table(columns, rows, "No sites.")),
        _section("Refused", _table(("at", "site", "#round", "~why"), _escaped(refused), "Nothing was refused.")),
        _section("Where", _terms(files)),
    ]


def _site(status: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return title and parts of a site's page."""
    caps, line, ledger = status["caps"], status["line"], status["ledger"]
    spent = "no limit holds" if caps["spent"] is None else f"{caps['spent']:g}"
    facts = [
        ("line to the coordinator", _state(line["state"])),
        ("records", f"{status['records']:,}"),
        ("spent of the cap", f"{spent} of {caps['all_studies']:g}"),
        ("left", "0" if caps["left"] is None else f"{caps['left']:g}"),
    ]
    share = 100.0 if caps["spent"] is None else min(100.0, 100 * caps["spent"] / caps["all_studies"])
    rows = [
        (
            escape(each["name"]),
            f"<code>{escape(each['study'])}</code>",
            escape(each["method"]),
            _state(each["state"]),
            escape(cost_line(each["epsilon"]).removesuffix(" a record")),
            f"{each['rounds']:,}",
            f"{each['asked']:,} of {each['records']:,}",
            escape(_time(str(each["opened"]))),
        )
        for each in reversed(status["studies"])
    ]
    columns = ("study", "identity", "method", "state", "cost a record", "#rounds", "#records asked", "opened")
    refused = [(_time(each["at"]), each["order"], each["study"], each["why"]) for each in status["refusals"]]
    budget = (
        f'<div class="bar"><i style="width:{share:.1f}%"></i></div>'
        f'<p class="none">A study may cost a record up to epsilon {caps["a_study"]:g}, all together up to '
        f"{caps['all_studies']:g}, charged {escape(status['charged'])}.</p>"
    )
    where = [
        ("coordinator", f"<code>{escape(line['coordinator'])}</code>"),
        ("last heard", escape(_time(line["last_heard"] or "never"))),
        ("ledger", f"<code>{escape(ledger['file'])}</code>, {ledger['counter']:,} transactions"),
        ("head", f"<code>{escape(ledger['head'])}</code>"),
    ]
    return f"{status['site']}: {line['state']}", [
        _head("Site", status["site"], f"Source: {status['source']}"),
        _facts(facts),
        _section("Budget", budget),
        _section("Studies", _table(columns, rows, "No study has asked yet.")),
        _section("Refused", _table(("at", "order", "study", "~why"), _escaped(refused), "Nothing was refused.")),
        _section("Where", _terms(where)),
    ]


def _head(kind: str, name: str, under: str) -> str:
    return f"<header><p>Sottovoce &middot; {kind}</p><h1>{escape(name)}</h1><p>{escape(under)}</p></header>"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    inside = "".join(f'<div class="fact"><span>{escape(name)}</span><b>{value}</b></div>' for name, value in facts)
    return f'<div class="facts">{inside}</div>'


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], none: str) -> str:
    """Return a table of cells that are HTML already; a column with # holds numbers, one with ~ sentences."""
    if not rows:
        return f'<p class="none">{escape(none)}</p>'
    marks = [{"#": ' class="number"', "~": ' class="text"'}.get(each[0], "") for each in columns]
    head = "".join(f"<th{mark}>{escape(name.lstrip('#~'))}</th>" for name, mark in zip(columns, marks, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{mark}>{cell}</td>' for cell, mark in zip(row, marks, strict=True))}</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _terms(pairs: Iterable[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{value}</dd>' for name, value in pairs)}</dl>"


def _escaped(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[escape(cell) for cell in row] for row in rows]


def _state(words: str) -> str:
    mark = "good" if words in _GOOD else "bad" if words in _BAD else "warn"
    return f'<span class="{mark}">{escape(words)}</span>'


def _time(stamp: str) -> str:
    """Return a time to read, without its zone, which is UTC."""
    return stamp[:19].replace("T", " ")


def _digest(head: str) -> str:
    return f'<code title="{escape(head)}">{escape(head[:12])}</code>'


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
