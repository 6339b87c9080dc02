"""Write `docs/cli.md`, the command reference, from the commands themselves.

Run `python scripts/write_cli_reference.py` after a command or its words changed; `tests/docs/test_generated_pages.py`
holds the page against the commands. `reproduce` belongs to the distribution `sottovoce-papers` and stands there too.
"""

import copy
from pathlib import Path
from typing import Any

import typer

from sottovoce.cli import app
from sottovoce_papers.command import reproduce

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
PAGES = {
    "quantile": ("Federated quantiles", "federated-quantile.md"),
    "groups": ("Quantiles of groups", "groups.md"),
    "integrate": ("One site helped by others", "data-integration.md"),
    "regress": ("Quantile regression", "quantile-regression.md"),
    "conformal": ("Prediction sets", "conformal.md"),
    **dict.fromkeys(
        (f"plan {each}" for each in ("quantile", "difference", "regression", "integration", "conformal")),
        ("Plan a study", "plan.md"),
    ),
    "serve": ("A federation", "federation.md"),
    "site": ("A federation", "federation.md"),
    "certificates": ("A federation", "federation.md"),
    "ledger": ("A federation", "federation.md"),
    "collect": ("A collector", "collector.md"),
    "replay": ("A collector", "collector.md"),
    "key": ("A collector", "collector.md"),
    "token": ("A collector", "collector.md"),
    "explore": ("Explore a file", "explore.md"),
    "audit": ("Audit", "audit.md"),
    "demo": ("Federated quantiles", "federated-quantile.md"),
    "reproduce": ("The papers' tables again", "reproduction.md"),
}
OPENING = """# Commands

Written by `scripts/write_cli_reference.py` from the commands themselves: change their words there, then run it again.

Files are Parquet, CSV or Arrow. `--json` prints one object instead of a table; a progress bar goes to stderr, and only
on a terminal. A command ends with 0 on success and with 2 on bad input: one sentence says what is wrong, and nothing is
spent. Noise comes from the operating system; only `reproduce`, which simulates, has a seed.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([OPENING, *(section(name, command) for name, command in commands().items())])


def commands() -> dict[str, Any]:
    """Return every command by name, those of a group too: the core's, then `reproduce`, installed or not."""
    whole = copy.copy(app)
    whole.registered_commands = [known for known in app.registered_commands if known.name != "reproduce"]
    whole.command(name="reproduce")(reproduce)
    group: Any = typer.main.get_command(whole)
    every: dict[str, Any] = {}
    for name, command in group.commands.items():
        inside = getattr(command, "commands", None)
        every |= {name: command} if inside is None else {f"{name} {each}": inside[each] for each in inside}
    return every


def section(name: str, command: Any) -> str:
    """Return what stands on the page about a command."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join(["sottovoce", name, *map(_placeholder, arguments), *(["[OPTIONS]"] if options else [])])
    extra = ["Needs the distribution `sottovoce-papers` (`pip install . ./papers`).", ""] if name == "reproduce" else []
    blocks = [f"## {name}", "", "```text", usage, "```", "", command.help, "", *extra]
    if name in PAGES:
        title, link = PAGES[name]
        blocks += [f"More: [{title}]({link}).", ""]
    if arguments:
        blocks += ["| argument | |", "|---|---|", *map(_row, arguments), ""]
    return "\n".join(
        [*blocks, "| option | |", "|---|---|", *map(_row, options), "| `--help` | Show the help and exit. |", ""]
    )


def _placeholder(argument: Any) -> str:
    """Return an argument as it stands in the usage line."""
    word = argument.metavar or argument.name.upper()
    word = f"{word}..." if argument.nargs == -1 else word
    return word if argument.required else f"[{word}]"


def _row(parameter: Any) -> str:
    """Return a line of a table: the spelling, what it is, and what holds without it."""
    words = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar or parameter.name.upper()]
    spelling = ", ".join([*words, *parameter.secondary_opts])
    if parameter.param_type_name == "option" and not parameter.is_flag:
        spelling += f" {parameter.metavar or parameter.name.upper()}"
    notes = ["required"] if parameter.required else []
    notes += ["may be repeated"] if getattr(parameter, "multiple", False) else []
    if not parameter.required and parameter.default not in (None, False, (), []):
        notes += [f"default `{parameter.default}`"]
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    remark = f" ({', '.join(notes)})" if notes else ""
    return f"| `{spelling}` | {text}{remark} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
