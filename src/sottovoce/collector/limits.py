"""How often one sender may come: a bucket a network address, in memory, under a number that cannot be turned back.

A bucket holds requests, fills at a steady rate, and an upload costs more the larger it is. Addresses are neither kept
nor logged: a bucket is found by a keyed hash that changes with every start, IPv6 by the first 64 bits.
"""

import hashlib
import ipaddress
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
        sender = hashlib.blake2b(network_of(address).encode(), key=self._key, digest_size=8).digest()
        left, at = self._buckets.pop(sender, (most, now))
        left = min(left + (now - at) * self._rate, most)
        short = cost - left
        self._buckets[sender] = (left if short > 0 else left - cost, now)
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return max(short / self._rate, 0.0)


def network_of(address: str) -> str:
    """Return the part of an address that one sender has: all of IPv4, however it is written, 64 bits of IPv6.

    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8:0:1:aaaa::1"), network_of("x")
    ('192.0.2.7', '192.0.2.7', '2001:db8:0:1::', 'x')
    """
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    whole = found.ipv4_mapped or ipaddress.IPv6Address(int(found) >> 64 << 64)
    return str(whole)
