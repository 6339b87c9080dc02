"""How often one sender may come: a bucket a network address, in memory, under a number that cannot be turned back.

A bucket holds requests, fills at a steady rate, and an upload costs more the larger it is. Addresses are neither kept
nor logged: a bucket is found by a keyed hash that changes with every start, IPv6 by the first 64 bits.
"""

import hashlib
import time
from collections.abc import Callable

from sottovoce.core.random_source import SystemEntropy

BURST = 10.0  # seconds of the rate that may come at once
MOST = 1 << 16  # buckets: 13 MB; where more senders come, those who came least lately begin anew
EACH = 2500  # bytes of an upload that cost as much as a request: a hundred reports


class RateLimit:
    """So many requests a second from each sender; 0 is no limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._rate, self._clock, self._most = rate, clock, most
        self._key = SystemEntropy().words(4).tobytes()
        self._buckets: dict[bytes, tuple[float, float]] = {}

    def wait(self, address: str, size: int = 0) -> float:
        """Take what a request costs from its sender's bucket; return 0, or the seconds after which it may come."""
        if self._rate <= 0:
            return 0.0
        now, cost = self._clock(), 1.0 + size // EACH
        most = max(self._rate * BURST, cost)
        sender = hashlib.blake2b(_network(address).encode(), key=self._key, digest_size=8).digest()
        left, at = self._buckets.pop(sender, (most, now))
        left = min(left + (now - at) * self._rate, most)
        short = cost - left
        self._buckets[sender] = (left if short > 0 else left - cost, now)
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return max(short / self._rate, 0.0)


def _network(address: str) -> str:
    """Return the part of an address that one sender has: all of IPv4, the first 64 bits of IPv6.

    >>> _network("192.0.2.7"), _network("2001:db8:0:1:aaaa::1"), _network("::1")
    ('192.0.2.7', '2001:db8:0:1', '0:0:0:0')
    """
    if ":" not in address:
        return address
    head, _, tail = address.partition("::")
    first, last = [part for part in head.split(":") if part], [part for part in tail.split(":") if part]
    whole = first + ["0"] * (8 - len(first) - len(last)) + last if "::" in address else first
    return ":".join(whole[:4])
