"""What every command does with wrong words: one sentence on stderr and exit code 2, never a traceback.

An option that takes one word and is given twice is refused, since whoever gives it twice means both.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from sottovoce.cli.output import Option, in_options, options_in_use, say
from sottovoce.core.errors import BadInput, SearchFailed

USAGE: Any = typer.BadParameter.__bases__[0]  # click's error of usage, of whichever click typer brings along
REFUSED, STOPPED = 2, 130


class Command(TyperCommand):
    """A command that says what is wrong in one sentence, in the words of its own options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option of one word that is given twice, and read the words."""
        if not ctx.resilient_parsing:
            order: list[Any]
            *_, order = self.make_parser(ctx).parse_args(list(args))
            single = [each for each in order if not (getattr(each, "is_flag", True) or each.multiple)]
            for each in single:
                if single.count(each) > 1:
                    raise USAGE(f"{each.opts[0]} is given twice, and takes one value; keep one of them.")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        named = {
            str(parameter.name): Option(parameter.opts[0], str(parameter.metavar or ""))
            for parameter in self.params
            if parameter.opts[0].startswith("--")
        }
        token = options_in_use.set(named)
        try:
            with plain_errors(), warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = _said
                return super().invoke(ctx)
        finally:
            options_in_use.reset(token)


def _said(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Say a warning as a command does, without the line of code that gave it; of other libraries, none."""
    if issubclass(category, UserWarning):
        say(in_options(str(message)))


class Commands(TyperGroup):
    """All commands; what click would say of wrong words in three lines is said in one."""

    def main(self, args: Any = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command and leave with its exit code."""
        alone = extra.pop("standalone_mode", True)
        try:
            code = super().main(args, prog_name, standalone_mode=False, **extra)
        except USAGE as error:
            if not alone:
                raise
            text = str(error.format_message())
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                say(f"{text[:1].lower()}{text[1:]}")
            sys.exit(REFUSED)
        except typer.Abort:
            say("stopped before the end.")
            sys.exit(STOPPED)
        if not alone:
            return code
        sys.exit(code or 0)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn an error of the input into one sentence and exit code 2, without a traceback."""
    try:
        yield
    except (BadInput, SearchFailed) as error:
        text = in_options(str(error), error.parameter)
        if isinstance(error, SearchFailed) and "spent" not in text:
            text = f"{text.rstrip('.')} (the records that answered are spent)."
        say(text)
        raise typer.Exit(REFUSED) from None
    except KeyboardInterrupt:
        say("stopped; records that have answered are spent.")
        raise typer.Exit(STOPPED) from None


@contextmanager
def no_traceback() -> Iterator[None]:
    """Name class and place of an error that nobody expected, and not its message, which may quote the data."""
    try:
        yield
    except Exception as error:
        say(
            f"an unexpected {type(error).__name__} at {_place(error)} ended the command; if records had begun to "
            "answer, they are spent; please report this line, which shows nothing of the data."
        )
        sys.exit(REFUSED)


def _place(error: BaseException) -> str:
    """Return module and line where an error left this package."""
    package, trace, found = Path(__file__).parents[1], error.__traceback__, "an unknown place"
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).is_relative_to(package):
            found = f"{trace.tb_frame.f_globals.get('__name__', 'sottovoce')}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
