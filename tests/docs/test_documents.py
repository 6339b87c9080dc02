"""All documents: paths, links, targets and names exist, decisions are whole, and the words are the field's."""

import ast
import re
from pathlib import Path

import pytest
from tests.docs.naming import resolved

import sottovoce as sv

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sottovoce"
PAPERS = ROOT / "papers" / "src" / "sottovoce_papers"
DECISIONS = ROOT / "docs" / "decisions"
ARCHITECTURE, GLOSSARY = ((ROOT / name).read_text() for name in ("ARCHITECTURE.md", "GLOSSARY.md"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"])
PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "README.md")
PATH = re.compile(r"[\w./-]*\w(?:/|\.py|\.md|\.txt|\.png|\.cff)|pyproject\.toml|\.importlinter|\.ci/run")
MADE = "demo/"  # what the demonstration and the examples write
LAWS = 20  # the word in its sense of a distribution: at most so often in all documents together
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def quoted(text: str) -> list[str]:
    """Return what stands in backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", without_blocks(text))


@every_document
def test_every_name_behind_sv_is_public(document: Path) -> None:
    named = set(re.findall(r"\bsv\.(\w+)", document.read_text()))
    assert named <= set(sv.__all__)


@every_document
def test_every_target_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z.-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z.-]*[a-z])\b", document.read_text(), re.MULTILINE))
    assert named <= targets
    assert {"demo", "test"} <= targets


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are linked by."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_document
def test_every_link_leads_somewhere(document: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            lost.append(link)
    assert lost == []


def exists(name: str) -> bool:
    """Tell whether a path is there, seen from the root, the package, or a side of it."""
    homes = [ROOT, SOURCE.parent, SOURCE, *(path for path in SOURCE.iterdir() if path.is_dir())]
    return any((home / name).exists() for home in homes)


@every_document
def test_every_path_exists(document: Path) -> None:
    paths = [name for name in quoted(document.read_text()) if PATH.fullmatch(name) and not name.startswith(MADE)]
    assert [name for name in paths if not exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=[path.name for path in PAGES])
def test_every_page_stands_in_the_index(page: Path) -> None:
    assert f"({page.name})" in (ROOT / "docs" / "README.md").read_text()


def test_the_architecture_is_short_and_names_every_side_and_method() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 130
    assert len({name for name in quoted(ARCHITECTURE) if PATH.fullmatch(name)}) > 40
    sides = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    assert [side for side in sides if f"`{side}/`" not in ARCHITECTURE] == []
    methods = [path.name for path in (SOURCE / "server").iterdir() if (path / "__init__.py").exists()]
    assert [method for method in methods if f"| {method} |" not in ARCHITECTURE] == []


def dotted() -> list[str]:
    sides = "|".join(["sottovoce_papers", *(path.name for path in SOURCE.iterdir() if path.is_dir())])
    return sorted({name for name in quoted(GLOSSARY) if re.fullmatch(rf"(?:{sides})(?:\.\w+)+", name)})


@pytest.mark.parametrize("name", dotted())
def test_every_name_of_the_glossary_is_in_the_code(name: str) -> None:
    assert resolved(name) is not None


def members() -> dict[str, set[str]]:
    """Return what the classes of both distributions define, by name."""
    found: dict[str, set[str]] = {}
    for path in [*SOURCE.rglob("*.py"), *PAPERS.rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                inside = found.setdefault(node.name, set())
                for part in node.body:
                    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        inside.add(part.target.id)
                    elif isinstance(part, ast.FunctionDef):
                        inside.add(part.name)
    return found


def test_every_class_of_the_glossary_is_in_the_code() -> None:
    known = members()
    named = [name for name in quoted(GLOSSARY) if re.fullmatch(r"[A-Z][a-z]\w+\.\w+(?:\[\w+\])?", name)]
    assert len(named) > 15
    lost = [
        name for name in named if name.partition(".")[2].partition("[")[0] not in known.get(name.split(".")[0], set())
    ]
    assert lost == []


def test_the_glossary_names_the_code() -> None:
    assert len(dotted()) > 100


def test_every_decision_is_linked_numbered_and_whole() -> None:
    index = (DECISIONS / "README.md").read_text()
    records = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    assert len(records) >= 40
    for path in records:
        text = path.read_text()
        title = text.splitlines()[0].removeprefix("# ")
        assert f"[{title}]({path.name})" in index
        assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]


def test_the_words_are_the_fields() -> None:
    texts = {path: path.read_text() for path in DOCUMENTS}
    assert sum(len(re.findall(r"\blaws?\b", text, re.IGNORECASE)) for text in texts.values()) <= LAWS
    assert [
        path.name
        for path in DOCUMENTS
        if re.search(r"honest intervals?", texts[path]) and path != ROOT / "CHANGELOG.md"
    ] == []


@every_document
def test_no_figure_is_left_open(document: Path) -> None:
    remarks = re.findall(r"<!-- (.*?) -->", document.read_text())
    assert set(remarks) <= {"tallies", "end"}  # what a script fills in
