"""What a method of Cai, Hu and Wu costs in messages, beside what it gains: rounds, messages and error.

Setting as of `walk` (or ``method`` default). A round is one message of every site that answers and one back; divide and
conquer merges once, and one device not at all. Seconds are left out: they say more of the machine.
"""

from pathlib import Path

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, exact
from sottovoce_papers.recipes.federated import staged, walk
from sottovoce_papers.simulation.federated.scene import SITES

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Replicate a method and count its rounds."""
    if setting["method"] == "default":
        ((_, measures, _),) = staged.run(setting, replications, seed, data)
        rounds = measures["rounds"]
    else:
        ((_, measures, _),) = walk.run(setting, replications, seed, data)
        rounds = exact({"DC": 1, "Single": 0}.get(str(setting["method"]), len(walk.rounds_of(setting))))
    each = 2.0 * SITES
    messages = Measure(each * rounds.value, each * rounds.error, rounds.n)
    return [Row({"talk": round(messages.value)}, {**measures, "rounds": rounds, "messages": messages})]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    return staged.cost(setting, replications) if setting["method"] == "default" else walk.cost(setting, replications)
