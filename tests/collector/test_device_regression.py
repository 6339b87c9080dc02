"""A device that answers a regression: its own question by its own id, the letters of the compiled loop, its own cap."""

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from sottovoce.client.device import make_report
from sottovoce.client.regression.randomize_row import randomize_people
from sottovoce.collector.regression_study import device_channel
from sottovoce.core.errors import BadInput
from sottovoce.protocol import device_regression
from sottovoce.protocol.device import card_text, check_cap, identity, read_card
from sottovoce.protocol.device_regression import Asked, channel_of_word, row_letter, word_of
from sottovoce.protocol.regression import questions
from sottovoce.protocol.regression.blocks import RegressionChannel, tables_of
from sottovoce.protocol.regression.box import box, cq
from sottovoce.protocol.regression.carried import whose
from sottovoce.protocol.regression.questions import QueryDesign
from sottovoce.server.regression.design import parse
from sottovoce.sim import dice

HERE = Path(__file__).parent
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
KEPT: list[dict[str, Any]] = json.loads((HERE / "regression_vectors.json").read_text())


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: json.loads(kept["card"])["taus"])
def test_the_vectors_are_those_of_this_program(kept: dict[str, Any]) -> None:
    card = read_card(kept["card"])
    assert identity(kept["card"]).hex() == kept["identity"]
    terms = card.regression
    assert terms is not None
    asked = [msgspec.convert(each, Asked) for each in kept["asked"]]
    for round, id, word, channel, row, words, letter in kept["letters"]:
        own = word_of(card.nonce, round, bytes.fromhex(id))
        assert str(own) == word
        assert channel_of_word(own, len(terms.channels)) == channel
        features, throws = terms.scaled(row[1:]), [int(each) for each in words]
        assert row_letter(terms.channels[channel], asked[channel], features, row[0], own, throws) == letter


@needs_node
def test_javascript_says_the_same() -> None:
    script = Path(str(files("sottovoce.collector"))) / "web" / "device.js"
    vectors = [str(HERE / name) for name in ("regression_vectors.mjs", "regression_vectors.json")]
    words = ["node", "--no-warnings", vectors[0], str(script), vectors[1]]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    compared = sum(3 + 3 * len(kept["letters"]) + 2 + 1 + 4 for kept in KEPT)
    assert done.stdout.splitlines()[-1:] == [f"{compared} compared, 0 wrong"], done


CHANNELS: dict[str, Any] = {
    "matrix": lambda: parse("lp", 0.75, 3, 1.0).channel,
    "blocks": lambda: parse("auto", 0.5, 3, 2.5).channel,
    "cq": partial(cq, 0.9, 3, 2.0, q=3, s=2),
    "side apart": partial(box, (0.75,), 3, 2.0, slopes=2, cells=5, width=2, alone=0.3, side=False),
    "wide box": partial(box, (0.75,), 5, 8.0, slopes=5, cells=20, width=6),
    "levels": lambda: parse("auto", (0.25, 0.5, 0.8), 2, 3.0).channel,
    "many": partial(cq, 0.5, 70, 1.0, q=2, s=1),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_a_letter_is_that_of_the_compiled_loop(name: str) -> None:
    channel: RegressionChannel = CHANNELS[name]()
    source, n, p, levels = dice(30).generator(), 400, channel.p, len(channel.taus)
    features, response = source.uniform(-1, 1, (n, p)), source.normal(0, 2, n)
    points = np.sort(source.normal(0, 1, (levels, p + 1)), axis=0)
    pairs, ways = source.normal(0, 1, (4, 2, p + 1)), source.normal(0, 1, (3 * levels, 2, p + 1))
    lows = -source.uniform(0.1, 2, len(ways))
    steps = np.column_stack([source.uniform(0.1, 1, len(ways)), lows, lows + source.uniform(0.5, 3, len(ways))])
    ranges = np.column_stack([-source.uniform(0.1, 2, 8), source.uniform(0.1, 2, 8)])
    design = QueryDesign(pairs, ranges, ways, steps, np.linspace(0.1, 0.7, 9 + len(ways)))
    words = dice(31).words(n * (2 + max(channel.widest, 1))).reshape(n, -1)
    letters = np.empty(n, np.int64)
    with np.errstate(over="ignore"):
        randomize_people(
            tables_of(channel), points[None], design, features, response,
            np.arange(n, dtype=np.uint64), words, letters,
        )  # fmt: skip
    parts = {"point": points, **design._asdict()}
    asked = msgspec.convert({key: part.tolist() for key, part in parts.items()}, Asked)
    mine = device_channel(channel)
    said = [
        row_letter(mine, asked, row, float(value), own[0], own[1:])
        for row, value, own in zip(features.tolist(), response, words.tolist(), strict=True)
    ]
    assert said == letters.tolist()
    assert len(set(said)) > 1


def test_channels_are_drawn_as_over_sites() -> None:
    words = dice(32).words(500)
    assert [channel_of_word(int(word), 3) for word in words] == whose(words, 3).tolist()


def test_the_question_follows_from_the_id_and_the_letter_from_the_row() -> None:
    kept = KEPT[0]
    card, study = read_card(kept["card"]), bytes.fromhex(kept["identity"])
    query = {"study": study.hex(), "round": 9, "group": 0, "channels": kept["asked"], "needs": [3]}
    row = {"wait": 30, "age": 44.0, "distance": 7}
    bodies = {make_report(card, study, query, row) for _ in range(20)}
    assert {len(body) for body in bodies} == {41}
    assert len({body[16:32] for body in bodies}) == 20
    assert all(body[32:38] == bytes([0, 0, 0, 9, 0, 0]) for body in bodies)
    pilot = {"study": study.hex(), "round": 1, "group": 0, "points": [30.0], "periods": [0.0], "needs": [1]}
    assert make_report(card, study, pilot, row)[-1] in (0, 1)


@pytest.mark.parametrize(
    "row",
    [
        7.0,
        {"wait": 1.0},
        {"wait": 1.0, "age": 1.0, "distance": float("nan")},
        {"wait": 1.0, "age": True, "distance": 1.0},
        {"wait": 1.0, "age": 1.0, "distance": 1.0, "name": 2.0},
    ],
    ids=str,
)
def test_what_is_no_row_is_not_answered(row: Any) -> None:
    kept = KEPT[0]
    card, study = read_card(kept["card"]), bytes.fromhex(kept["identity"])
    query = {"study": study.hex(), "round": 9, "group": 0, "channels": kept["asked"], "needs": [3]}
    with pytest.raises(BadInput, match="nothing was sent"):
        make_report(card, study, query, row)


def test_a_query_of_another_shape_is_not_answered() -> None:
    kept = KEPT[0]
    card, study, row = read_card(kept["card"]), bytes.fromhex(kept["identity"]), {"wait": 1, "age": 2, "distance": 3}
    asked = kept["asked"][0]
    good = {"study": study.hex(), "round": 9, "group": 0, "channels": [asked], "needs": [3]}
    strange: list[dict[str, Any]] = [
        {"round": 0},
        {"round": 1 << 32},
        {"group": 1},
        {"study": "00"},
        {"channels": []},
        {"channels": [asked, asked]},
        {"channels": [asked | {"point": asked["point"][0]}]},
        {"channels": [asked | {"point": [[1.0, 2.0]]}]},
        {"channels": [asked | {"ways": asked["ways"][0]}]},
        {"channels": [asked | {"ways": asked["ways"][1:]}]},
        {"channels": [asked | {"pairs": asked["pairs"][1:]}]},
        {"channels": [asked | {"pairs": [[[1e101] * 3] * 2, *asked["pairs"][1:]]}]},
        {"channels": [asked | {"ranges": [[1.0, 1.0], *asked["ranges"][1:]]}]},
        {"channels": [asked | {"ranges": [[-1e308, 1e308], *asked["ranges"][1:]]}]},
        {"channels": [asked | {"upto": asked["upto"][::-1]}]},
        {"channels": [asked | {"upto": [*asked["upto"][:-1], 1.6]}]},
        {"channels": [asked | {"ways": [[[float("inf")] * 3] * 2, *asked["ways"][1:]]}]},
        {"channels": [asked | {"ways": [[[1e101] * 3] * 2, *asked["ways"][1:]]}]},
        {"channels": [asked | {"steps": asked["steps"][1:]}]},
        {"channels": [asked | {"steps": [[1.0, 2.0, 2.0], *asked["steps"][1:]]}]},
        {"channels": [asked | {"steps": [[float("nan"), -1.0, 1.0], *asked["steps"][1:]]}]},
        {"channels": [asked | {"steps": [[0.1, 1e308, 1.5e308], *asked["steps"][1:]]}]},
        {"channels": [asked | {"steps": [[1e308, 0.0, 1.0], *asked["steps"][1:]]}]},
        {"channels": [asked | {"ranges": [[-1.5e308, -1e308], *asked["ranges"][1:]]}]},
        {"channels": [asked | {"point": [[1e308] * 3]}]},
        {"channels": [asked | {"more": 1}]},
        {"channels": 7},
    ]
    for other in strange:
        with pytest.raises(BadInput, match="does not fit"):
            make_report(card, study, good | other, row)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: json.loads(kept["card"])["taus"])
def test_a_card_keeps_to_its_epsilon_and_a_device_to_its_cap(kept: dict[str, Any]) -> None:
    card = read_card(kept["card"])
    check_cap(card, card.epsilon)
    with pytest.raises(BadInput, match="costs more epsilon"):
        check_cap(card, card.epsilon * (1 - 1e-6))


def test_a_card_that_says_less_than_its_channel_costs_is_refused() -> None:
    for kept in KEPT:
        given = json.loads(kept["card"])
        block = given["regression"]["channels"][0]["blocks"][0]
        row = block["weights"][0]
        if block["box"] is None:  # from the first row's rarest letter to its most frequent one
            numbers = [int(weight) for weight in row]
            rare, often = numbers.index(min(numbers)), numbers.index(max(numbers))
            moved = 1 << 40
            row[rare], row[often] = str(numbers[rare] - moved), str(numbers[often] + moved)
        else:  # every letter a little less often by chance, the record's own the more
            kinds, slopes, cells, width = block["box"]
            moved = 1 << 20
            row[0] = str(int(row[0]) - moved * width**slopes)
            row[1] = str(int(row[1]) + moved * kinds * cells**slopes)
        with pytest.raises(BadInput, match="costs more epsilon"):
            read_card(_text(given))


@pytest.mark.parametrize(
    "other",
    [
        {"columns": ["age", "age"]},
        {"low": [90.0, 0.0]},
        {"low": [18.0]},
        {"channels": []},
        {"columns": [], "low": [], "high": []},
        {"response": "age"},
        {"two_valued": [2]},
    ],
    ids=str,
)
def test_terms_that_are_none_are_refused(other: dict[str, Any]) -> None:
    given = json.loads(KEPT[0]["card"])
    given["regression"] |= other
    with pytest.raises(BadInput, match="do not make a regression"):
        read_card(_text(given))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("upto", [0.5]),
        ("upto", [1.0, 1.0]),
        ("bit", ["0", "0", "0"]),
        ("bit", ["-1", "1", "0"]),
        ("bit", ["1e3", "1", "0"]),
        ("taus", [0.25]),
    ],
)
def test_a_channel_that_is_none_is_refused(where: str, value: Any) -> None:
    given = json.loads(KEPT[0]["card"])
    given["regression"]["channels"][0][where] = value
    with pytest.raises(BadInput, match="do not make a regression"):
        read_card(_text(given))


def _text(given: dict[str, Any]) -> str:
    return json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def test_a_card_of_a_quantile_says_nothing_of_a_regression() -> None:
    quantile = json.loads((HERE / "device_vectors.json").read_text())["card"]
    assert "regression" not in quantile
    assert card_text(read_card(quantile)) == quantile


@needs_node
def test_javascript_moves_declared_columns_to_the_nearer_value() -> None:
    script = Path(str(files("sottovoce.collector"))) / "web" / "device.js"
    terms = "{low: [18, 0], high: [90, 1], two_valued: [1]}"
    says = f"import {{ scaled }} from '{script.as_uri()}';"
    says += f"console.log(JSON.stringify([[54, 0.3], [54, 0.5], [36, 7]].map((row) => scaled({terms}, row))))"
    words = ["node", "--no-warnings", "--input-type=module", "-e", says]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [[0, -1], [0, 1], [-0.5, 1]]


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no column of two values": lambda terms: terms.update(two_valued=[7]),
    "two values in words": lambda terms: terms.update(two_valued="0"),
    "columns in words": lambda terms: terms.update(columns="ab"),
    "a column that is a number": lambda terms: terms.update(columns=[1, "b"]),
    "the response among them": lambda terms: terms.update(response=terms["columns"][0]),
    "two rows of a box": lambda terms: terms["channels"][0]["blocks"][0].update(
        box=[1, 1, 2, 1], weights=[terms["channels"][0]["bit"]] * 2
    ),
    "a box of five": lambda terms: terms["channels"][0]["blocks"][0].update(
        box=[1, 1, 2, 1, 1], weights=[terms["channels"][0]["bit"]]
    ),
    "a bit of four": lambda terms: terms["channels"][0]["bit"].append("0"),
    "a block without slopes": lambda terms: terms["channels"][0]["blocks"][0].pop("slopes"),
}


@needs_node
def test_what_python_refuses_javascript_refuses_too() -> None:
    script = Path(str(files("sottovoce.collector"))) / "web" / "device.js"
    given = json.loads(KEPT[0]["card"])
    found = [given["regression"]]
    for change in WRONG.values():
        terms = json.loads(KEPT[0]["card"])["regression"]
        change(terms)
        found.append(terms)
        with pytest.raises(BadInput):
            read_card(_text(given | {"regression": terms}))
    says = f"import {{ checkTerms }} from '{script.as_uri()}';"
    says += f"for (const terms of {json.dumps(found)}) "
    says += f"try {{ checkTerms(terms, {given['taus']}, 24); console.log('taken'); }}"
    says += "catch (error) { console.log(error instanceof TypeError ? 'crashed' : 'refused'); }"
    words = ["node", "--no-warnings", "--input-type=module", "-e", says]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["taken", *["refused"] * len(WRONG)]


@needs_node
def test_javascript_answers_no_question_that_overflows() -> None:
    script = Path(str(files("sottovoce.collector"))) / "web" / "device.js"
    kept = KEPT[0]
    asked = kept["asked"][0]
    far = [
        asked,
        asked | {"steps": [[0.1, 1e308, 1.5e308], *asked["steps"][1:]]},
        asked | {"ranges": [[-1.5e308, -1e308], *asked["ranges"][1:]]},
        asked | {"point": [[1e308] * 3]},
    ]
    says = f"import {{ makeRowReport, readCard }} from '{script.as_uri()}';"
    says += f"const known = await readCard({json.dumps(kept['card'])}, 24), row = {{ wait: 1, age: 2, distance: 3 }};"
    says += f"const query = {{ study: '{kept['identity']}', round: 9, group: 0, needs: [3] }};"
    says += f"for (const asked of {json.dumps(far)}) "
    says += "console.log(await makeRowReport(known, { ...query, channels: [asked] }, row)"
    says += ".then(() => 'taken', () => 'refused'));"
    words = ["node", "--no-warnings", "--input-type=module", "-e", says]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["taken", "refused", "refused", "refused"]


def test_the_bounds_of_a_question_are_the_same_everywhere() -> None:
    script = (Path(str(files("sottovoce.collector"))) / "web" / "device.js").read_text()
    for name in ("LARGEST", "FARTHEST"):
        assert getattr(device_regression, name) == getattr(questions, name)
        assert f"const {name} = {getattr(questions, name):.0e};".replace("e+", "e") in script
