"""The pages of theory: what they cite exists, every mechanism has a proof, and an expansion is checked."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2
from tests.docs.naming import resolved

from sottovoce.auditing.parts import FORMS
from sottovoce.protocol.selection import SELECTIONS

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
PAGES = sorted(page for page in THEORY.glob("*.md") if page.stem != "index")
PROTOCOL = ROOT / "src" / "sottovoce" / "protocol"
SIDES = "auditing|client|core|inference|protocol|server"
PROOFS = {  # of each form of a mechanism that a certificate knows: the page, and the class or function it is about
    "bit": ("one-bit", "protocol.randomised_response.binary"),
    "matrix": ("regression-letters", "protocol.regression.lp.whole_channel"),
    "box": ("regression-letters", "protocol.regression.box_channel.BoxChannel"),
    "count": ("counts-and-sums", "protocol.selection.geometric.NoisyCount"),
    "sum": ("counts-and-sums", "protocol.selection.geometric.Polya"),
    "sparse-vector": ("selections", "protocol.selection.sparse_vector.SparseVector"),
    "exponential": ("selections", "protocol.selection.exponential.Exponential"),
    "paper": ("selections", "protocol.selection.exponential.PaperExponential"),
}
every_page = pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])


def names(text: str) -> list[str]:
    return re.findall(rf"`((?:{SIDES})(?:\.\w+)+)`", text)


@every_page
def test_every_name_of_a_proof_is_in_the_code(page: Path) -> None:
    found = names(page.read_text())
    assert len(found) >= 4
    for name in found:
        assert resolved(name) is not None


@every_page
def test_every_test_of_a_proof_exists(page: Path) -> None:
    cited = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())
    assert len(cited) >= 4
    for file, name in cited:
        tree = ast.parse((ROOT / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"


@every_page
def test_a_proof_states_its_claim_its_code_and_its_tests(page: Path) -> None:
    text = page.read_text()
    assert re.search(r"\*\*Claim( \d+)?( \(.+?\))?\.\*\*", text)
    assert "∎" in text
    rows = [line for line in text.partition("| what | code | test |\n")[2].splitlines() if line.startswith("| ")]
    assert len(rows) >= 4
    assert all(names(row) and "`tests/" in row for row in rows)
    assert f"({page.name})" in (THEORY / "index.md").read_text()


def test_every_mechanism_has_a_proof() -> None:
    assert set(PROOFS) == set(FORMS) - {"open"}  # an open block has no privacy to prove
    assert set(SELECTIONS) <= set(PROOFS)
    for page, name in PROOFS.values():
        assert name in names((THEORY / f"{page}.md").read_text()), name


def test_every_channel_with_examples_has_a_proof() -> None:
    channels = [path for path in PROTOCOL.rglob("*.py") if re.search(r"^EXAMPLES = ", path.read_text(), re.MULTILINE)]
    assert len(channels) >= 3
    named = {name for page in PAGES for name in names(page.read_text())}
    for path in channels:
        module = ".".join(path.relative_to(PROTOCOL.parent).with_suffix("").parts)
        assert any(name.startswith(f"{module}.") for name in named), module


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_the_doubt_is_paid_to_second_order(level: float) -> None:
    """Of an interval as long as the doubt the coverage errs by its fourth power; unpaid, by its square."""
    z = float(ndtri((1 + level) / 2))

    def off(doubt: float, paid: float) -> float:
        half = z * np.exp(doubt * NODES + paid * (z * z - 1) / 2 * doubt**2)
        return float((2 * ndtr(half) - 1) @ WEIGHTS) / math.sqrt(2 * math.pi) - level

    for doubt in (0.05, 0.1, 0.2, 0.4):
        assert abs(off(doubt, 1)) < 0.5 * doubt**4
        assert off(doubt, 0) < -0.1 * doubt**2


@pytest.mark.parametrize("d", [1, 3, 9])
def test_an_ellipsoid_pays_the_doubt_to_second_order(d: int) -> None:
    q = float(chi2.ppf(0.95, d))

    def off(doubt: float, paid: float) -> float:
        radius = q * np.exp(2 * doubt * NODES + paid * (q - d) * doubt**2)
        return float(chi2.cdf(radius, d) @ WEIGHTS) / math.sqrt(2 * math.pi) - 0.95

    for doubt in (0.05, 0.1, 0.2):
        assert abs(off(doubt, 1)) < 1.5 * d * doubt**4
        assert off(doubt, 0) < -0.18 * d * doubt**2
