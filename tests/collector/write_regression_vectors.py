"""Write the questions and letters of the regression's vectors anew, under the cards that are there: run by hand.

The letters are those of the Python device, which the tests compare with the compiled loop; the same file is then asked
of the JavaScript device.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sottovoce.protocol.device import read_card
from sottovoce.protocol.device_regression import Asked, channel_of_word, row_letter, word_of
from sottovoce.sim.randomness import dice

HERE = Path(__file__).parent / "regression_vectors.json"


def anew(kept: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return a vector with fresh designs and the letters that follow from them."""
    card, source = read_card(kept["card"]), dice(seed).generator()
    assert card.regression is not None
    terms, channels = card.regression, []
    d = len(terms.columns) + 1
    for mine, asked in zip(terms.channels, kept["asked"], strict=True):
        levels, pairs = len(mine.taus), len(asked["pairs"])
        ways = 3 * levels
        low, step = -source.uniform(0.1, 2, ways), source.uniform(0.5, 9, ways)
        steps = np.column_stack([step, low, low + source.uniform(0.5, 3, ways)])
        fresh = {
            "ways": source.normal(0, 1, (ways, 2, d)),
            "steps": steps,
            "upto": np.linspace(0.04, 0.8, 1 + 2 * pairs + ways),
        }
        whole = {key: asked[key] for key in ("point", "pairs", "ranges")}
        channels.append(whole | {key: np.round(part, 9).tolist() for key, part in fresh.items()})
    designs, letters = [msgspec.convert(each, Asked) for each in channels], []
    for round, id, _, _, row, words, _ in kept["letters"]:
        word = word_of(card.nonce, round, bytes.fromhex(id))
        which = channel_of_word(word, len(channels))
        throws = [int(each) for each in words]
        letter = row_letter(terms.channels[which], designs[which], terms.scaled(row[1:]), row[0], word, throws)
        letters.append([round, id, str(word), which, row, words, letter])
    return kept | {"asked": channels, "letters": letters}


if __name__ == "__main__":
    found = [anew(kept, seed) for seed, kept in enumerate(json.loads(HERE.read_text()))]
    HERE.write_text(json.dumps(found, indent=None, separators=(", ", ": ")) + "\n")
