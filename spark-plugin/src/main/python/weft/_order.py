"""The order of batches in an epoch: the same as in Spark's own ranks."""

from __future__ import annotations

from typing import List, Optional

_BITS_64 = (1 << 64) - 1
_GOLDEN_GAMMA = 0x9E3779B97F4A7C15


def file_positions(
    seed: Optional[int], rank: int, epoch: int, batches: int, full: int
) -> List[int]:
    """The positions in the file, which has the order of epoch 0.

    :param seed: None for the order of the file in every epoch
    :param full: batches with all rows; the others stay at the end
    """
    if seed is None or epoch == 0:
        return list(range(batches))
    position = {batch: at for at, batch in enumerate(_order(seed, rank, 0, full))}
    order = [position[batch] for batch in _order(seed, rank, epoch, full)]
    return order + list(range(full, batches))


def _order(seed: int, rank: int, epoch: int, full: int) -> List[int]:
    order = list(range(full))
    random = _JavaRandom(_mixed(seed, epoch, rank))
    for i in range(full, 1, -1):
        j = random.below(i)
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def _mixed(seed: int, *parts: int) -> int:
    mixed = _mix(seed & _BITS_64)
    for part in parts:
        mixed = _mix((mixed + _GOLDEN_GAMMA * (part + 1)) & _BITS_64)
    return mixed


def _mix(value: int) -> int:
    """The finalizer of SplitMix64."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _BITS_64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _BITS_64
    return value ^ (value >> 31)


class _JavaRandom:
    """The generator that the documentation of java.util.Random specifies."""

    _MASK = (1 << 48) - 1

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & self._MASK

    def _next31(self) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & self._MASK
        return self._state >> 17

    def below(self, bound: int) -> int:
        bits = self._next31()
        if bound & (bound - 1) == 0:
            return bound * bits >> 31
        # A last, incomplete range of values would make some of them more likely.
        while bits - bits % bound + bound - 1 >= 1 << 31:
            bits = self._next31()
        return bits % bound
