"""Mutated messages for fuzz tests: what a broken or hostile party could send instead of a whole envelope.

    for mutant in mutants(good, 2_000, seed=1):
        try:
            door.answer(mutant.data)
        except BadInput:
            continue
        assert ...  # accepted: it must be a valid message that means what it says

``good`` are sealed envelopes (`protocol.wire.seal`). Half of the mutants leave the envelope whole and change the body
alone, so that they reach the checks of a site or a method; the rest attack the bytes or the envelope. What a mutant
says, if it can be read at all, is given by `read`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from sottovoce.sim.randomness import dice

INTEGERS = (0, 1, -1, 2, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63))
FLOATS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -1.0, 1e-320, 1e16, 1.7e308, -1.7e308)
TEXTS = ("", "x", "nan", "0", "\x00", "é" * 40, "query", "a" * 5_000)
DEEP = b"\x91" * 3_000  # arrays in arrays, as deep as a recursive reader can be led
Generator = Any  # of numpy


class Mutant(NamedTuple):
    """Bytes, and what was done to make them."""

    data: bytes
    how: str


def mutants(good: Sequence[bytes], n: int, seed: int, kinds: Sequence[str] = ()) -> Iterator[Mutant]:
    """Yield ``n`` mutated messages of good ones.

    Parameters
    ----------
    good
        Sealed messages; pieces of one are also put into another.
    n
        How many.
    seed
        Of the mutations.
    kinds
        Names of further kinds of message, to be claimed wrongly.
    """
    source = dice(seed).generator()
    named = sorted({str(read(data)["kind"]) for data in good} | set(kinds))
    for _ in range(n):
        data, other = (good[int(source.integers(len(good)))] for _ in range(2))
        share = source.random()
        if share < 0.5:
            yield _of_body(data, source)
        elif share < 0.75:
            yield _of_bytes(data, other, source)
        else:
            yield _of_envelope(data, other, named, source)


def read(data: bytes) -> dict[str, Any]:
    """Return what bytes say, as plain values; an empty mapping if they are not one."""
    try:
        plain = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return plain if isinstance(plain, dict) and all(isinstance(key, str) for key in plain) else {}


def _of_bytes(data: bytes, other: bytes, source: Generator) -> Mutant:
    """Flip, replace, cut, repeat, insert or join bytes."""
    place = int(source.integers(len(data)))
    junk = source.bytes(int(source.integers(1, 9)))
    ways: dict[str, Callable[[], bytes]] = {
        "flip a bit": lambda: data[:place] + bytes([data[place] ^ 1 << int(source.integers(8))]) + data[place + 1 :],
        "replace bytes": lambda: data[:place] + junk + data[place + len(junk) :],
        "insert bytes": lambda: data[:place] + junk + data[place:],
        "leave out bytes": lambda: data[:place] + data[place + int(source.integers(1, 9)) :],
        "truncate": lambda: data[:place],
        "extend": lambda: data + junk,
        "twice": lambda: data + data,
        "join two": lambda: data[:place] + other[min(place, len(other)) :],
        "nest deeply": lambda: data[:place] + DEEP + data[place:],
        "junk": lambda: source.bytes(int(source.integers(200))),
    }
    how = _one(tuple(ways), source)
    return Mutant(ways[how](), how)


def _of_envelope(data: bytes, other: bytes, kinds: Sequence[str], source: Generator) -> Mutant:
    """Change what an envelope says of its body, or take the body of another."""
    plain, second = read(data), read(other)
    name = _one(tuple(plain), source)
    how = f"envelope: another {name}"
    if source.random() < 0.3:
        plain[name], how = _value(source), f"envelope: {name} of another type"
    elif name == "version":
        plain[name] += int(source.choice([-1, 1, 2, 1 << 40]))
    elif name == "study":
        plain[name] = source.bytes(16) if source.random() < 0.7 else plain[name][: int(source.integers(16))]
    elif name == "round":
        plain[name] = int(source.choice([0, -1, plain[name] + 1, plain[name] + 7, 2**60]))
    elif name == "kind":
        plain[name] = _one(tuple(kinds), source)
    else:
        plain[name] = second["body"]
    share = source.random()
    if share < 0.1:
        plain.pop(name)
        how = f"envelope: {name} left out"
    elif share < 0.2:
        plain[_one(("score", "note", "Body", ""), source)], how = _value(source), "envelope: a field more"
    return Mutant(msgspec.msgpack.encode(plain), how)


def _of_body(data: bytes, source: Generator) -> Mutant:
    """Change one to three things inside the body."""
    plain, hows = read(data), []
    for _ in range(int(source.choice([1, 1, 1, 2, 3]))):
        plain["body"], how = _changed(plain["body"], source)
        hows.append(how)
    return Mutant(msgspec.msgpack.encode(plain), "body: " + ", ".join(hows))


def _changed(value: Any, source: Generator) -> tuple[Any, str]:
    """Return a value with one change somewhere inside, and what it was."""
    if isinstance(value, dict) and value:
        return _changed_fields(value, source)
    if isinstance(value, list) and value and source.random() < 0.9:
        return _changed_items(value, source)
    if source.random() < 0.35:
        return _value(source), "another type"
    if isinstance(value, bytes):
        made = _of_bytes(value or b"\x00", value, source)
        return made.data, f"bytes: {made.how}"
    if isinstance(value, int) and not isinstance(value, bool):
        near = min(max(value + int(source.choice([-1, 1, 2, -2])), -(2**63)), 2**64 - 1)
        return (near, "a near integer") if source.random() < 0.4 else (_one(INTEGERS, source), "integer")
    if isinstance(value, float):
        near_float = value * float(source.choice([-1.0, 1 + 1e-12, 2.0]))
        return (near_float, "a near number") if source.random() < 0.3 else (_one(FLOATS, source), "number")
    return (_one(TEXTS, source), "text") if isinstance(value, str) else (_value(source), "value")


def _changed_fields(fields: dict[str, Any], source: Generator) -> tuple[Any, str]:
    """Change, drop, add or rename a field."""
    name, share = _one(tuple(fields), source), source.random()
    if share < 0.08:
        return {key: item for key, item in fields.items() if key != name}, f"{name} left out"
    if share < 0.16:
        return {**fields, _one(("score", "note", "seed", "epsilon", "round"), source): _value(source)}, "a field more"
    if share < 0.2:
        return {(key.upper() if key == name else key): item for key, item in fields.items()}, f"{name} renamed"
    if share < 0.23:
        return [*fields.values()], "fields as a list"
    item, how = _changed(fields[name], source)
    return {**fields, name: item}, f"{name}: {how}"


def _changed_items(items: list[Any], source: Generator) -> tuple[Any, str]:
    """Change, drop, repeat, swap, lengthen or empty a list."""
    place, share = int(source.integers(len(items))), source.random()
    if share < 0.1:
        return items[:place] + items[place + 1 :], "an item less"
    if share < 0.2:
        return [*items[:place], items[place], *items[place:]], "an item twice"
    if share < 0.25:
        return items * int(source.choice([2, 50, 500])), "many times"
    if share < 0.3:
        return [], "no items"
    if share < 0.38:
        return items[::-1], "turned round"
    if share < 0.44:
        return [items], "nested"
    item, how = _changed(items[place], source)
    return [*items[:place], item, *items[place + 1 :]], f"item {how}"


def _value(source: Generator) -> Any:
    """Return a value of any type."""
    ways: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: bool(source.integers(2)),
        lambda: _one(INTEGERS, source),
        lambda: _one(FLOATS, source),
        lambda: _one(TEXTS, source),
        lambda: source.bytes(int(source.integers(40))),
        list,
        lambda: [_one(INTEGERS, source) for _ in range(int(source.integers(1, 6)))],
        lambda: [_one(FLOATS, source) for _ in range(int(source.integers(1, 6)))],
        dict,
        lambda: {_one(TEXTS, source): 1},
        lambda: msgspec.msgpack.Ext(int(source.integers(100)), b"\x01"),
        lambda: [0.0] * 20_000,
    )
    return ways[int(source.integers(len(ways)))]()


def _one(items: Sequence[Any], source: Generator) -> Any:
    """Return one of some items."""
    return items[int(source.integers(len(items)))]
