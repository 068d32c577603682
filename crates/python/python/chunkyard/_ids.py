"""Ids and positions: whole numbers, in and out of the native module."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint64]

_MAX = 2**64 - 1


def ids_of(values: npt.ArrayLike, what: str = "ids") -> Ids:
    """Whole numbers from 0 up, contiguous; without a copy if they are `uint64` already."""
    array = np.asarray(values)
    if array.size == 0:
        # An empty list has no type of its own.
        return np.zeros(array.shape, np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} are whole numbers from 0 to 2**64 - 1, not {array.dtype}")
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise ValueError(f"{what} are not below zero: {array.min()}")
    return np.require(array, np.uint64, ["C"])


def id_of(value: SupportsIndex, what: str = "an id") -> int:
    """One whole number."""
    number = operator.index(value)
    if not 0 <= number <= _MAX:
        raise ValueError(f"{what} is a whole number from 0 to 2**64 - 1, not {number}")
    return number


def maybe_id(value: SupportsIndex | None) -> int | None:
    """One whole number, or none."""
    return None if value is None else id_of(value)


def numbers(native: bytearray, *columns: int) -> Ids:
    """Numbers of the native module, in rows of so many columns. No copy."""
    found: Ids = np.frombuffer(native, dtype="<u8").astype(np.uint64, copy=False)
    return found.reshape(-1, *columns)


def three(value: Any | Sequence[Any], what: str) -> list[Any]:
    """A value along z, y and x: one for all, or one for each."""
    values = [value] * 3 if np.ndim(value) == 0 else list(value)
    if len(values) != 3:
        raise ValueError(f"{what} has one value, or one along each of z, y and x, not {values}")
    return values
