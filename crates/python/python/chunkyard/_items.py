"""The items of an index expression: integers, slices, arrays and masks, checked one by one.

The messages are NumPy's.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]

SIMPLE = frozenset({int, slice})
"""Types of items that need no check."""

_INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
    "boolean arrays are valid indices"
)


def complete(items: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """One item per axis, besides `None`: masks as indices, `...` and missing items as slices."""
    if sum(1 for item in items if item is Ellipsis) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(
        item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1
        for item in items
        if item is not None and item is not Ellipsis
    )
    if used > len(shape):
        raise too_many(items, shape, used)
    rest = (slice(None),) * (len(shape) - used)
    found: list[Any] = []
    axis = 0
    for item in items:
        if item is Ellipsis:
            found.extend(rest)
            axis += len(rest)
            rest = ()
        elif isinstance(item, np.ndarray) and item.dtype == bool:
            for offset, extent in enumerate(item.shape):
                if extent != shape[axis + offset]:
                    raise IndexError(
                        "boolean index did not match indexed array along axis "
                        f"{axis + offset}; size of axis is {shape[axis + offset]} but size of "
                        f"corresponding boolean axis is {extent}"
                    )
            found.extend(item.nonzero())
            axis += item.ndim
        else:
            found.append(item)
            axis += item is not None
    return (*found, *rest)


def plain(item: Any) -> Any:
    """An integer, a slice, `None`, `...`, or an array of integers or booleans."""
    if item is None or item is Ellipsis or type(item) in SIMPLE:
        return item
    if isinstance(item, (bool, np.bool_)):
        raise IndexError("a single boolean is no index of an array in chunks")
    if not isinstance(item, (np.ndarray, list)):
        try:
            return operator.index(item)
        except TypeError:
            pass
    try:
        array = np.asarray(item)
    except ValueError:
        raise IndexError(_INVALID) from None
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype.kind not in "iub":
        raise IndexError(
            "arrays used as indices must be of integer (or boolean) type"
            if isinstance(item, np.ndarray)
            else _INVALID
        )
    if array.ndim == 0:
        return plain(array[()])
    return array


def index_of(item: Any, extent: int, axis: int) -> int:
    at = operator.index(item)
    if -extent <= at < extent:
        return at if at >= 0 else at + extent
    raise IndexError(f"index {at} is out of bounds for axis {axis} with size {extent}")


def indices_of(indices: NDArray, extent: int, axis: int) -> npt.NDArray[np.uint64]:
    """Indices from zero on, checked."""
    if indices.size:
        low, high = indices.min(), indices.max()
        if low < -extent or high >= extent:
            wrong = low if low < -extent else high
            raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {extent}")
        if low < 0:
            indices = np.where(indices < 0, indices + extent, indices)
    return np.ascontiguousarray(indices, dtype=np.uint64)


def range_of(item: slice, extent: int) -> tuple[tuple[int, int, int], bool]:
    """Start, step and count in ascending order, and whether they were descending."""
    start, stop, step = item.indices(extent)
    if step > 0:
        if stop <= start:
            return (0, 1, 0), False
        count = (stop - start + step - 1) // step
        # An unused step may be larger than the engine's largest number.
        return (start, step if count > 1 else 1, count), False
    if start <= stop:
        return (0, 1, 0), False
    count = (start - stop - step - 1) // -step
    if count == 1:
        return (start, 1, 1), False
    return (start + (count - 1) * step, -step, count), True


def broadcast(arrays: list[NDArray]) -> tuple[NDArray, ...]:
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = " ".join(str(array.shape) for array in arrays)
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes " + shapes
        ) from None


def too_many(items: tuple[Any, ...], shape: tuple[int, ...], used: int | None = None) -> IndexError:
    if sum(1 for item in items if item is Ellipsis) > 1:
        return IndexError("an index can only have a single ellipsis ('...')")
    if used is None:
        used = sum(1 for item in items if item is not None and item is not Ellipsis)
    return IndexError(
        f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed"
    )
