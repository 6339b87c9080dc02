"""What a person is asked, drawn in public: both sides derive it from the person's public word, and from nothing else.

A public word is a keyed hash of the person's number (BLAKE2b, RFC 7693), so that whoever knows the study's public key
can check every draw. Of the word come what a person is asked about (`which_cell`), the block and its slopes
(`choose`), to which side of the point a bit is asked (`is_up`), and the product of covariates (`which_product`).
"""

import hashlib
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import njit, uint64
from sottovoce.protocol.regression.blocks import FIXED, SLOPES

WORD = 2.0**-53
LARGEST = 1e100  # of a pair's coefficients: products of combinations stay finite
FARTHEST = 1e200  # of points and steps, and of the ends of ranges: sums and twice of them stay finite
KEY = 16  # bytes of a study's public key
TIGHT = -1  # the cell of whoever is asked at the point
PRODUCT = 0  # of a bit about a product of two covariates; then come pairs, within each of their ranges, and ways
STEP, LEAST, MOST = range(3)  # columns of the steps
KIND, PRODUCT_OF, SIGN = 1 << 20, 1 << 21, 1 << 22  # public draws beyond those that choose a block


class QueryDesign(NamedTuple):
    """How the next people are asked: how often one bit about moments or beside the point, about what and how far.

    ``upto`` are the cumulative probabilities of the cells, each of which asks one bit: about a product of two
    covariates, drawn at random; about each pair within its first range, and within its second; beside the point of one
    level along each way. Whoever is in none is asked at the point, and answers through a block.
    """

    pairs: Floats  # (pairs, 2, d): two combinations of (1, z), a bit about whose product is asked
    ranges: Floats  # (2 pairs, 2): to which that product is moved: the pairs' first ranges, then their second ones
    ways: Floats  # (ways, 2, d): two combinations, whose product a bit is about, turned by the side of the response
    # beside the point; as many ways for each level, level by level
    steps: Floats  # (ways, 3): how far beside the point's intercept, to either side, and the product's range
    upto: Floats  # (1 + 2 pairs + ways,)


def public_words(key: bytes, first: int, count: int) -> Words:
    """Return the public words of the people from ``first`` on.

    >>> words = public_words(bytes(16), 0, 3)
    >>> hex(words[2]), bool(words[2] == public_words(bytes(16), 2, 1)[0])
    ('0x77269b921c8de0e6', True)
    """
    digests = (
        hashlib.blake2b(person.to_bytes(8, "little"), digest_size=8, key=key).digest()
        for person in range(first, first + count)
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def public(word: np.uint64, k: int) -> np.uint64:
    """Return the k-th draw of a public word (the finaliser of splitmix64, Steele et al. 2014)."""
    z = word + uint64(k) * uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def uniform(word: np.uint64, k: int) -> float:
    """Return the k-th draw of a public word as a number in [0, 1)."""
    return float(public(word, k) >> uint64(11)) * WORD


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def choose(upto: Floats, plan: Ints, p: int, word: np.uint64, chosen: Ints) -> int:
    """Draw the block that a person is asked, and fill ``chosen`` with its slopes (from 1)."""
    block = 0
    if len(upto) > 1:
        u = uniform(word, 1)
        while u >= upto[block]:
            block += 1
    slopes = plan[block, SLOPES]
    if slopes == 0:
        return block
    if plan[block, FIXED] > 0:
        for k in range(slopes):
            chosen[k] = plan[block, FIXED + k]
    elif slopes == p:
        for k in range(slopes):
            chosen[k] = k + 1
    elif slopes == 1:
        chosen[0] = 1 + int(uniform(word, 2) * p)
    else:  # a random subset, ascending: keep each slope with the probability that the rest still needs
        found = 0
        for j in range(p):
            if uniform(word, 2 + j) * (p - j) < slopes - found:
                chosen[found] = j + 1
                found += 1
                if found == slopes:
                    break
    return block


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def which_cell(upto: Floats, word: np.uint64) -> int:
    """Return the cell that a person is in."""
    u, cell = uniform(word, KIND), len(upto) - 1
    if u >= upto[cell]:
        return TIGHT
    while cell > 0 and u < upto[cell - 1]:
        cell -= 1
    return cell


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def is_up(word: np.uint64) -> bool:
    """Tell to which side of the point a person is asked."""
    return bool(public(word, SIGN) & uint64(1))


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def which_product(d: int, word: np.uint64) -> tuple[int, int]:
    """Draw the product of covariates that a person is asked about, the constant alone left out."""
    rest, first = 1 + int(uniform(word, PRODUCT_OF) * (d * (d + 1) // 2 - 1)), 0
    while rest >= d - first:
        rest -= d - first
        first += 1
    return first, first + rest
