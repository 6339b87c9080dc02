"""Audits the JavaScript device that browsers load: Node runs it, and all bytes that it sends are looked at."""

import json
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from sottovoce.auditing.bound import Transcript, noise_of
from sottovoce.auditing.devices import (
    LARGE,
    URL,
    letter_of_upload,
    row_card,
    row_query,
    row_told,
    value_card,
    value_query,
)
from sottovoce.auditing.parts import cost_of, parts_of
from sottovoce.auditing.subject import AuditSubject, InputPair, NotHere
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.device import card_text, identity
from sottovoce.protocol.regression.blocks import RegressionChannel

SECONDS = 120  # that Node may take for its trials
ABSENT = "Node is not installed, so the JavaScript device was not audited; install it, or audit on another machine."


def value_script(channel: Channel, asked: float, script: Path | None = None) -> AuditSubject:
    """Return the audit of JavaScript devices with one value each; ``script`` is the device (None: the collector's)."""
    text = card_text(value_card(channel, asked))
    flip = channel.weights[0][1] / channel.total
    pair = InputPair("one value below and above the point, sent twice", ((1 - flip, flip), (flip, 1 - flip)))
    [part] = parts_of(channel, asked)
    given = {"card": text, "epsilon": asked, "query": value_query(text)}

    def sample(_: int, side: int, trials: int) -> list[Transcript]:
        return said_by_node({**given, "value": (-LARGE, LARGE)[side]}, trials, script)

    assert pair.laws is not None
    name = "JavaScript device, one value"
    return AuditSubject(name, cost_of(part), (pair,), sample, letter_of_upload, noise_of(pair.laws))


def row_script(channel: RegressionChannel, asked: float, script: Path | None = None) -> AuditSubject:
    """Return the audit of JavaScript devices with one row each; the channel has one block."""
    told, values, cost = row_told(channel, asked)
    text = card_text(row_card(channel, asked))
    given = {"card": text, "epsilon": asked, "query": row_query(text, channel)}

    def sample(_: int, side: int, trials: int) -> list[Transcript]:
        return said_by_node({**given, "value": values[side]}, trials, script)

    pair = InputPair("two rows far apart, sent twice", told.laws)
    return AuditSubject("JavaScript device, one row", cost, (pair,), sample,
                        lambda said: told.read(letter_of_upload(said)), noise_of(told.laws))  # fmt: skip


def said_by_node(given: dict[str, Any], trials: int, script: Path | None = None) -> list[Transcript]:
    """Return what a device in JavaScript sends, in two processes: a seed that begins anew with each would repeat."""
    if shutil.which("node") is None:
        raise NotHere(ABSENT)
    url = URL + identity(given["card"]).hex()
    home = files("sottovoce")
    found: list[Transcript] = []
    with (
        as_file(home / "collector" / "web" / "device.js") as device,
        as_file(home / "auditing" / "trials.mjs") as runner,
    ):
        for count in (trials // 2, trials - trials // 2):
            words = ["node", "--no-warnings", str(runner), str(script or device)]
            asked = json.dumps({**given, "url": url, "trials": count})
            try:
                done = subprocess.run(words, input=asked, capture_output=True, text=True, check=False, timeout=SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                raise NotHere("Node did not end in time, so the JavaScript device was not audited.") from None
            if done.returncode:
                raise NotHere("the JavaScript device does not run in this Node, so it was not audited.")
            found += [tuple(bytes.fromhex(each) for each in line.split()) for line in done.stdout.splitlines()]
    return found
