"""What the documentation site has beyond `docs/`: documents of the root folder, and the reference of public names.

MkDocs calls these functions while it builds (`hooks` of `mkdocs.yml`). A document outside of `docs/` becomes a page in
`project/`, and links between the two are turned to where a page lies on the site; a link to a file that is no page,
such as a source file, becomes plain text. The reference has one page a theme: names come from the package, so that a
new public name is there without being written down again.
"""

import posixpath
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import sottovoce as sv

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "GLOSSARY.md": "project/glossary.md",
    "SECURITY.md": "project/security.md",
    "client/README.md": "project/client.md",
    "docs/README.md": "pages.md",  # on the site its place is the home page's
    "examples/README.md": "project/examples.md",
    "papers/README.md": "project/papers.md",
}
THEMES = {  # a page of the reference: its title, and the modules whose public names stand there
    "quantiles": ("Quantiles", ("api.quantile.", "server.quantile.")),
    "regression": ("Regression", ("api.regression.", "server.regression.")),
    "integration": ("Integration", ("api.integration", "server.integration.")),
    "prediction-sets": ("Prediction sets", ("api.conformal.", "server.conformal.")),
    "planning": ("Planning", ("planner.", "api.explain", "inference.", "server.explanation")),
    "proof": ("Audit", ("auditing.",)),
    "tables": ("Tables, results, limits", ("api.tables", "api.asking", "server.load", "client.reading.")),
    "errors": ("Errors", ("core.errors",)),
    "simulation": ("Simulation", ("sim",)),
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *```.*?^ *```\s*?$)", re.DOTALL | re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference where the navigation says so."""
    pages = [{title: f"reference/{key}.md"} for key, (title, _) in THEMES.items()]
    config.nav = _filled(config.nav, pages)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root folder and the pages of the reference."""
    for outside, inside in OUTSIDE.items():
        files.append(File.generated(config, inside, content=(ROOT / outside).read_text(encoding="utf-8")))
    for key, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{key}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Turn the links of a page to where their targets lie on the site."""
    uri = page.file.src_uri
    origins = {inside: outside for outside, inside in OUTSIDE.items()}
    origin = origins.get(uri, f"docs/{uri}")
    parts = FENCE.split(markdown)
    return "".join(part if FENCE.match(part) else _turned(part, origin, uri, files) for part in parts)


def _turned(text: str, origin: str, uri: str, files: Files) -> str:
    """Return a text with its links turned; `origin` is the document's place in the repository, `uri` on the site."""

    def turned(found: re.Match[str]) -> str:
        picture, words, link = found.groups()
        name, mark, anchor = link.partition("#")
        if not name or "://" in name or name.startswith("mailto:"):
            return found.group()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), name))
        place = OUTSIDE.get(target) or target.removeprefix("docs/")
        if target in OUTSIDE or (target.startswith("docs/") and files.get_file_from_path(place)):
            return f"{picture}[{words}]({posixpath.relpath(place, posixpath.dirname(uri) or '.')}{mark}{anchor})"
        return found.group() if target.startswith("docs/") else words

    return LINK.sub(turned, text)


def reference_pages() -> dict[str, str]:
    """Return the text of each page of the reference: public names, then the classes that functions return."""
    results = runpy.run_path(str(ROOT / "scripts" / "write_reference.py"))["results"]
    names: dict[str, list[str]] = {key: [] for key in THEMES}
    for name in sv.__all__:
        if name != "__version__":
            home = getattr(sv, name)
            theme = _theme(getattr(home, "__module__", None) or home.__name__)
            former = getattr(home, "__name__", name).rpartition(".")[2]
            told = f"## {name} {{ #sottovoce.{name} }}\n\nThe former name of [{former}][sottovoce.{former}]."
            names[theme].append(f"::: sottovoce.{name}" if former == name else told)
    for kind in results():
        names[_theme(kind.__module__)].append(f"::: {kind.__module__}.{kind.__name__}")
    return {key: "\n\n".join([f"# {title}", *names[key]]) + "\n" for key, (title, _) in THEMES.items()}


def _theme(module: str) -> str:
    """Return the page on which names of a module stand."""
    inner = module.removeprefix("sottovoce.")
    for key, (_, homes) in THEMES.items():
        if inner.startswith(homes):
            return key
    raise ValueError(f"no page of the reference for names of {module}: name it in THEMES of scripts/site_hooks.py")


def _filled(nav: Any, pages: list[dict[str, str]]) -> Any:
    """Return the navigation with the pages of the reference in place of their mark."""
    if isinstance(nav, dict):
        return {key: _filled(value, pages) for key, value in nav.items()}
    if isinstance(nav, list):
        return [each for part in nav for each in (pages if part == "reference-pages" else [_filled(part, pages)])]
    return nav
