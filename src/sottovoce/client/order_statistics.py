"""Order statistics of a column: in memory by a partition, of a mapped column by counting, digit by digit.

The bits of floats, turned so that they ascend as the values do, are four digits of 16 bits: a pass through the file
counts the values of each digit, and finds the next digit of every rank.
"""

from collections.abc import Sequence

import numpy as np

from sottovoce.client.mapped import blocks, is_mapped
from sottovoce.core.arrays import Floats, Ints, Words

_SIGN = np.uint64(1 << 63)
_DIGIT = 16


def order_statistics(values: Floats, ranks: Sequence[int]) -> dict[int, float]:
    """Return the values of some ranks, from 1; the memory of a mapped column is not needed.

    >>> order_statistics(np.array([3.0, 1.0, 2.0]), [1, 3])
    {1: 1.0, 3: 3.0}
    """
    if not is_mapped(values) or not ranks:
        held = sorted({rank - 1 for rank in ranks})
        parted = np.partition(values, held) if held else values
        return {rank: float(parted[rank - 1]) for rank in ranks}
    found = {rank: (0, rank - 1) for rank in ranks}  # the digits so far, and the rank among those that begin like them
    for shift in range(64 - _DIGIT, -1, -_DIGIT):
        counts = _count(values, {digits for digits, _ in found.values()}, shift)
        for rank, (digits, left) in found.items():
            up_to = np.cumsum(counts[digits])
            digit = int(np.searchsorted(up_to, left, side="right"))
            found[rank] = digits << _DIGIT | digit, left - int(up_to[digit - 1] if digit else 0)
    turned = np.array([digits for digits, _ in found.values()], dtype=np.uint64)
    bits = np.where(turned & _SIGN, turned ^ _SIGN, ~turned)
    return dict(zip(found, bits.view(np.float64).tolist(), strict=True))


def count_equal(values: Floats, value: float) -> int:
    """Count how often a value occurs."""
    return sum(int(np.count_nonzero(block == value)) for block in blocks(values))


def _count(values: Floats, beginnings: set[int], shift: int) -> dict[int, Ints]:
    """Count, for each beginning, the values of the next digit."""
    counts = {each: np.zeros(1 << _DIGIT, dtype=np.int64) for each in beginnings}
    for block in blocks(values):
        digits = _ascending(block) >> np.uint64(shift)
        for each, count in counts.items():
            alike = digits[digits >> np.uint64(_DIGIT) == np.uint64(each)] if shift < 64 - _DIGIT else digits
            count += np.bincount((alike & np.uint64((1 << _DIGIT) - 1)).view(np.int64), minlength=len(count))
    return counts


def _ascending(values: Floats) -> Words:
    """Return words that ascend as the values do; both zeros are one."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)
