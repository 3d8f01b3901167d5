"""Random splits that every engine makes alike: hash an integer key, never the order of rows."""

import narwhals as nw
import numpy as np

from equipoise._typing import AnyArray, IntArray

__all__ = ["PRIME", "hashed", "hashed_numpy"]

PRIME = 2_147_483_647


def hashed(key: nw.Expr, seed: int) -> nw.Expr:
    """Return a pseudo-random integer in [0, 2^31 - 1) for a non-negative integer key.

    Three rounds of a quadratic congruence in 64-bit integers: products stay below 2^62, so pandas,
    polars, Arrow, DuckDB and Spark give the same number. A share of the rows is the rows whose hash
    lies below that share of the range; a block is the hash modulo the number of blocks.
    """
    state = key % PRIME
    for a, b in _rounds(seed):
        state = (((state * a + b) % PRIME) * ((state + a) % PRIME) + b) % PRIME
    return state


def hashed_numpy(key: AnyArray, seed: int) -> IntArray:
    """Return what `hashed` returns, for an array."""
    state = np.asarray(key, dtype=np.int64) % PRIME
    for a, b in _rounds(seed):
        state = (((state * a + b) % PRIME) * ((state + a) % PRIME) + b) % PRIME
    return state


def _rounds(seed: int) -> list[tuple[int, int]]:
    draws = np.random.default_rng(seed).integers(1, PRIME, size=(3, 2))
    return [(int(a), int(b)) for a, b in draws]
