"""What is lent to a compiled loop is not kept alive by it: only arguments, whose caller holds them, may be lent."""

import ast
from pathlib import Path

import pytest

from sottovoce import client, local

LOOPS = [
    path
    for side in (client, local)
    for path in sorted(Path(side.__path__[0]).rglob("*.py"))
    if "import Room, lent" in path.read_text()
]


def borrowed(source: str) -> list[tuple[str, str, bool]]:
    """Return each lent thing: the function, what is lent, and whether it is one of the function's arguments."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        arguments = {argument.arg for argument in function.args.args}
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "lent":
                owner = call.args[0]
                while isinstance(owner, ast.Subscript):
                    owner = owner.value
                found.append((function.name, ast.unparse(call), getattr(owner, "id", None) in arguments))
    return found


def test_both_loops_borrow() -> None:
    assert {path.stem for path in LOOPS} == {"loop", "liu_hu"}


@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_only_arguments_are_lent(path: Path) -> None:
    things = borrowed(path.read_text())
    assert len(things) > 5
    assert [thing for *thing, argument in things if not argument] == []


def test_an_array_made_inside_would_be_noticed() -> None:
    assert borrowed("def loop(room):\n    own = zeros(3)\n    a, b = lent(own[0]), lent(room[1])") == [
        ("loop", "lent(own[0])", False),
        ("loop", "lent(room[1])", True),
    ]
