"""Draw the package as it stands: who imports whom, side by side and method by method, and what has grown too far.

Run it as ``make house``, or ``python scripts/house.py [--source FOLDER] [--json] [--no-load]``.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "sottovoce"
# as in .importlinter
HIGH = "__main__ > cli > auditing > collector federation explore > api > local"
LAYERS = f"{HIGH} > planner > client server > inference > protocol sim web > core"
SIDES = LAYERS.replace(" >", "").split()
RANK = {name: -depth for depth, names in enumerate(LAYERS.split(" > ")) for name in names.split()}
METHODS = ("quantile", "regression", "integration", "conformal")
SHARED = "shared"
HOMES = {"selection": "conformal", "regress": "regression", "integrate": "integration"}  # called by other words
CALL = "conformal_threshold"  # the call whose imports are timed: the one that should need the least
CALLED = f"sottovoce.{CALL}({{'a': list(range(100)), 'b': list(range(5, 90))}}, 0.1)"
LONGEST = 10

LOADING = """
import sys, sottovoce
eval(sys.argv[1])
print(sum(name.split(".")[0] == sottovoce.__name__ for name in sys.modules), len(sys.modules))
"""


class Module(NamedTuple):
    """One file of the package, and what it names."""

    name: str
    path: Path
    lines: int
    imports: frozenset[str]
    classes: tuple[str, ...]
    documented: bool

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the dotted name without the package's own, `__init__` left out."""
        return tuple(self.name.split(".")[1:])


def read(source: Path) -> dict[str, Module]:
    """Read every file of a package; late and type-checking imports are imports all the same."""
    paths = {dotted(source, path): path for path in sorted(source.rglob("*.py"))}
    modules = {}
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        modules[name] = Module(
            name,
            path,
            len(text.splitlines()),
            frozenset(imported(tree, package, paths.keys())) - {name},
            tuple(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)),
            ast.get_docstring(tree) is not None,
        )
    return modules


def dotted(source: Path, path: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, package: str, known: Iterable[str]) -> Iterator[str]:
    """Name the package's modules that a file imports, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found = inner if inner in known else base
                if found in known:
                    yield found


def edges(modules: Mapping[str, Module]) -> list[tuple[str, str]]:
    """Return every import between two files, but for those of the front door, which names everything public."""
    return [(name, to) for name, module in modules.items() if module.parts for to in sorted(module.imports)]


def side(name: str) -> str:
    """Return the folder that is a fence."""
    return (*name.split("."), "front door")[1]


def method(name: str) -> str:
    """Return the method a file belongs to: the folder inside a side, or a file of that name."""
    parts = name.split(".")
    inner = HOMES.get(parts[2], parts[2]) if len(parts) > 2 else ""
    return inner if inner in METHODS else SHARED


def place(name: str) -> str:
    """Return side and method as one word."""
    return side(name) if method(name) == SHARED else f"{side(name)}/{method(name)}"


def is_wrong(start: str, end: str) -> bool:
    """Tell whether an import between two sides climbs, crosses between neighbours, or opens another fence."""
    if start == end or start not in RANK:
        return False
    if start == "cli":
        known = ("auditing", "collector", "explore", "federation", "api", "planner", "server", "core")
        return end in RANK and end not in known
    if end == "sim" or (start == "client" and end == "inference") or (start == "inference" and end == "protocol"):
        return True
    return RANK[start] <= RANK.get(end, -len(SIDES))


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of files that import each other in a circle (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in graph:
        work = [(root, iter(sorted(graph[root])))] if root not in order else []
        if work:
            order[root] = low[root] = len(order)
            stack.append(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in order:
                    order[to] = low[to] = len(order)
                    stack.append(to)
                    work.append((to, iter(sorted(graph.get(to, ())))))
                    break
                if to in stack:
                    low[node] = min(low[node], order[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    group = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    if len(group) > 1:
                        found.append(sorted(group))
    return sorted(found)


def single_importers(modules: Mapping[str, Module]) -> list[tuple[str, str]]:
    """Return each file that one neighbour in its own folder imports, and nobody else: is it an idea of its own?"""
    importers: dict[str, set[str]] = defaultdict(set)
    for start, module in modules.items():
        for end in module.imports:
            importers[end].add(start)
    alone = []
    for name, who in sorted(importers.items()):
        only = next(iter(who))
        same = modules[name].path.parent == modules[only].path.parent
        if len(who) == 1 and same and modules[name].path.name != "__init__.py":
            alone.append((name, only))
    return alone


def shared_class_names(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Return the class names that stand for two things, and where."""
    homes: dict[str, list[str]] = defaultdict(list)
    for name, module in modules.items():
        for found in module.classes:
            homes[found].append(name)
    return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def survey(source: Path) -> dict[str, Any]:
    """Return everything that the files alone tell."""
    modules = read(source)
    links = edges(modules)
    between = Counter((side(start), side(end)) for start, end in links)
    inside = Counter((place(start), method(end)) for start, end in links)
    floor: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for name, module in modules.items():
        if module.parts:
            floor[side(name), method(name)][0] += 1
            floor[side(name), method(name)][1] += module.lines
    return {
        "files": len(modules),
        "lines": sum(module.lines for module in modules.values()),
        "floor": nested({key: list(value) for key, value in floor.items()}),
        "sides": nested(between),
        "methods": nested(inside),
        "wrong": [f"{start} -> {end}" for start, end in links if is_wrong(side(start), side(end))],
        "cycles": cycles({name: module.imports for name, module in modules.items()}),
        "single": [list(pair) for pair in single_importers(modules)],
        "longest": sorted(((module.lines, name) for name, module in modules.items()), reverse=True)[:LONGEST],
        "shared_names": shared_class_names(modules),
        "undocumented": sorted(name for name, module in modules.items() if not module.documented),
    }


def nested(counts: Mapping[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    """Turn pairs into rows of columns."""
    rows: dict[str, dict[str, Any]] = {}
    for (row, column), value in counts.items():
        rows.setdefault(row, {})[column] = value
    return rows


def loads(source: Path) -> dict[str, Any]:
    """Measure in fresh processes how many modules each public name loads, and where the time of one call goes."""
    names = public_names(source)
    by_home = {home: counted(source, f"sottovoce.{name}") for name, home in names.items()}
    counts = {name: by_home[home] for name, home in names.items()}
    if CALL not in names:
        return {"modules": counts}
    counts[f"{CALL}(...), once called"] = counted(source, CALLED)
    said = python(source, f"import sottovoce; sottovoce.{CALL}", options=("-X", "importtime")).stderr
    rows = [row.removeprefix("import time:").split("|") for row in said.splitlines() if row.startswith("import time:")]
    spent_in = {name.strip(): int(spent) for spent, _, name in rows if spent.strip().isdigit()}
    by_package: Counter[str] = Counter()
    for name, spent in spent_in.items():
        by_package[name.split(".")[0]] += spent
    slowest = Counter({name: spent for name, spent in spent_in.items() if name.split(".")[0] == source.name})
    return {
        "modules": counts,
        "call": CALL,
        "milliseconds": round(sum(spent_in.values()) / 1000, 1),
        "packages": [(name, round(spent / 1000, 1)) for name, spent in by_package.most_common(8)],
        "slowest": [(name, round(spent / 1000, 1)) for name, spent in slowest.most_common(8)],
    }


def counted(source: Path, expression: str) -> list[int]:
    """Return how many modules an expression loads: of the package, and of everything."""
    return [int(count) for count in python(source, LOADING, expression).stdout.split()]


def public_names(source: Path) -> dict[str, str]:
    """Return the names that the front door imports on first use, and the module of each."""
    for node in ast.walk(ast.parse((source / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "_HOMES":
            return dict(ast.literal_eval(node.value))
    return {}


def python(source: Path, code: str, *arguments: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run some code in a fresh process that sees this package."""
    return subprocess.run(
        [sys.executable, *options, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(source.parent)},
        capture_output=True,
        text=True,
        check=True,
    )


def drawn(found: Mapping[str, Any]) -> str:
    """Write a survey as text that fits a terminal."""
    sides = [name for name in SIDES if name in found["floor"]]
    sides += sorted(set(found["floor"]) - set(sides))
    columns = [*METHODS, SHARED]
    text = [f"{found['files']:,} files, {found['lines']:,} lines"]
    text += heading("Files and lines, side by method")
    text += grid(sides, columns, lambda row, to: "{:,} / {:,}".format(*found["floor"].get(row, {}).get(to, (0, 0))))
    text += heading("Imports from side (row) to side (column); ! goes the wrong way")
    text += grid(sides, sides, lambda row, to: marked(found["sides"].get(row, {}).get(to, 0), is_wrong(row, to)))
    text += heading("Imports from side and method (row) to method (column)")
    rows = [name for key in sides for name in (*(f"{key}/{kind}" for kind in METHODS), key) if name in found["methods"]]
    text += grid(rows, columns, lambda row, to: str(found["methods"][row].get(to, 0)))
    text += listed("Imports that go the wrong way", found["wrong"])
    text += listed("Import cycles", [" <-> ".join(group) for group in found["cycles"]])
    text += listed("Imported by one neighbour only", [f"{name}  (by {who})" for name, who in found["single"]])
    text += listed("Longest files", [f"{lines:>5}  {name}" for lines, name in found["longest"]])
    text += listed(
        "Class names that stand for two things",
        [f"{name}: {', '.join(where)}" for name, where in found["shared_names"].items()],
    )
    text += listed("Files without a docstring", found["undocumented"])
    return "\n".join(text + loaded(found.get("loads")))


def loaded(found: Mapping[str, Any] | None) -> list[str]:
    """Write what each public name loads."""
    if not found:
        return []
    text = heading("What a public name loads: modules of the package, of everything")
    text += [f"  {own:>5} {everything:>6}  {name}" for name, (own, everything) in found["modules"].items()]
    if "call" in found:
        text += heading(f"Import time of {found['call']}: {found['milliseconds']:g} ms, by package and by module")
        text += [f"  {spent:>8.1f}  {name}" for name, spent in [*found["packages"], *found["slowest"]]]
    return text


def marked(count: int, wrong: bool) -> str:
    """Write a count, with a mark where there should be none."""
    return f"{count}{'!' if wrong and count else ''}"


def heading(words: str) -> list[str]:
    """Write a heading."""
    return ["", words, "-" * len(words)]


def listed(words: str, items: Sequence[str]) -> list[str]:
    """Write a heading with a count, and one line an item."""
    return [*heading(f"{words}: {len(items)}"), *(f"  {item}" for item in items)]


def grid(rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], str]) -> list[str]:
    """Write a table; an empty cell is a dot, so that what is there stands out."""
    cells = [[value if (value := cell(row, column))[0] != "0" else "·" for column in columns] for row in rows]
    first = max(map(len, [*rows, ""]))
    widths = [max(len(name), *(len(line[at]) for line in cells), 0) for at, name in enumerate(columns)]
    text = [" " * first + "".join(f"  {name:>{width}}" for name, width in zip(columns, widths, strict=True))]
    for row, line in zip(rows, cells, strict=True):
        text.append(
            f"{row:<{first}}" + "".join(f"  {value:>{width}}" for value, width in zip(line, widths, strict=True))
        )
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, survey, and write."""
    parser = argparse.ArgumentParser(prog="house", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder of the package")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--no-load", action="store_true", help="read the files only: start no process")
    options = parser.parse_args(arguments)
    found = survey(options.source.resolve())
    if not options.no_load:
        found["loads"] = loads(options.source.resolve())
    sys.stdout.write((json.dumps(found, indent=1) if options.json else drawn(found)) + "\n")


if __name__ == "__main__":
    main()
