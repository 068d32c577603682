"""What an index expression selects: NumPy's rules, told to the engine.

`parse` is what `a[...]` does, `parse_orthogonal` and `parse_points` what `a.oindex[...]` and
`a.vindex[...]` do. All give a `Selected`: axes for the engine, and how its elements become the array
that NumPy would have given.

- Integers, slices with any step, `...` and `None` are as in NumPy.
- One array of indices, or one mask along an axis, is selected in one go. Several arrays are points; if
  slices come with them, all points are listed one by one, which takes memory in proportion.
- Results are new arrays, never views.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]
Along = tuple[int, int, int] | NDArray
"""Along one axis: start, step and count, or indices."""

_INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
    "boolean arrays are valid indices"
)


class Selected(NamedTuple):
    """What is selected, in the engine's words, and what to make of it."""

    axes: list[Along]
    """Along each axis of the array; coordinates of points if `pointwise`."""
    pointwise: bool
    shape: tuple[int, ...]
    """Shape of the elements as the engine gives them, with axes dropped and added."""
    flips: tuple[slice, ...] | None = None
    """Which axes of that run backwards."""
    order: tuple[int, ...] | None = None
    """How its axes are then transposed."""
    scalar: bool = False
    """Whether it is one element rather than an array without axes."""

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape that NumPy would give."""
        if self.order is None:
            return self.shape
        return tuple(self.shape[axis] for axis in self.order)

    def writes_to(self, out: NDArray, dtype: np.dtype[Any]) -> bool:
        """Whether the engine can write its elements straight into an array."""
        return (
            self.flips is None
            and self.order is None
            and out.shape == self.shape
            and out.dtype == dtype
            and out.flags.c_contiguous
            and out.flags.writeable
        )

    def arrange(self, elements: NDArray) -> NDArray:
        """Makes the result of elements as the engine gave them. No copy."""
        if self.flips is not None:
            elements = elements[self.flips]
        return elements if self.order is None else elements.transpose(self.order)

    def rearrange(self, values: NDArray) -> NDArray:
        """The inverse: elements as the engine takes them, of a result."""
        if self.order is not None:
            values = values.transpose(np.argsort(self.order))
        return values if self.flips is None else values[self.flips]


def parse(key: Any, shape: tuple[int, ...]) -> Selected:
    """What `a[key]` selects of an array of a shape."""
    items = key if type(key) is tuple else (key,)
    for item in items:
        if not (type(item) in _SIMPLE or item is None or item is Ellipsis):
            break
    else:
        return _basic(items, shape)
    items = tuple(_plain(item) for item in items)
    if any(isinstance(item, np.ndarray) for item in items):
        return _advanced(items, shape)
    return _basic(items, shape)


def parse_orthogonal(key: Any, shape: tuple[int, ...]) -> Selected:
    """What `a.oindex[key]` selects: along each axis by itself."""
    items = tuple(_plain(item) for item in (key if type(key) is tuple else (key,)))
    items = _complete(items, shape)
    axes: list[Along] = []
    result: list[int] = []
    flips: list[slice] = []
    for axis, item in enumerate(items):
        extent = shape[axis]
        if item is None:
            raise IndexError("oindex takes no numpy.newaxis")
        if isinstance(item, np.ndarray):
            if item.ndim != 1:
                raise IndexError(f"oindex takes arrays with one axis, not {item.ndim}")
            indices = _indices(item, extent, axis)
            axes.append(indices)
            result.append(len(indices))
            flips.append(_FORWARD)
        elif isinstance(item, slice):
            along, backwards = _range(item, extent)
            axes.append(along)
            result.append(along[2])
            flips.append(_BACKWARD if backwards else _FORWARD)
        else:
            axes.append((_index(item, extent, axis), 1, 1))
    return Selected(axes, False, tuple(result), _flips(flips))


def parse_points(key: Any, shape: tuple[int, ...]) -> Selected:
    """What `a.vindex[key]` selects: points, by coordinates or a mask of all axes."""
    items = tuple(_plain(item) for item in (key if type(key) is tuple else (key,)))
    if any(item is None or item is Ellipsis or isinstance(item, slice) for item in items):
        raise IndexError("vindex takes integers, arrays of them or a mask along every axis")
    items = _complete(items, shape)
    if any(isinstance(item, slice) for item in items):
        raise IndexError(f"vindex takes an index along each of the {len(shape)} axes")
    arrays = [item if isinstance(item, np.ndarray) else np.asarray(item) for item in items]
    return _points(arrays, shape)


def _basic(items: tuple[Any, ...], shape: tuple[int, ...]) -> Selected:
    """Integers, slices, `...` and `None`."""
    rank = len(shape)
    axes: list[Along] = []
    result: list[int] = []
    flips: list[slice] | None = None
    scalar = True
    for item in items:
        axis = len(axes)
        if type(item) is slice:
            if axis >= rank:
                raise _too_many(items, shape)
            along, backwards = _range(item, shape[axis])
            if backwards:
                flips = flips or []
                flips.extend([_FORWARD] * (len(result) - len(flips)))
                flips.append(_BACKWARD)
            axes.append(along)
            result.append(along[2])
        elif item is Ellipsis:
            scalar = False
            rest = rank - len(axes)
            rest -= sum(1 for item in items if item is not None and item is not Ellipsis) - axis
            if rest < 0 or sum(1 for item in items if item is Ellipsis) > 1:
                raise _too_many(items, shape)
            for extent in shape[axis : axis + rest]:
                axes.append((0, 1, extent))
                result.append(extent)
        elif item is None:
            result.append(1)
        else:
            if axis >= rank:
                raise _too_many(items, shape)
            axes.append((_index(item, shape[axis], axis), 1, 1))
    for extent in shape[len(axes) :]:
        axes.append((0, 1, extent))
        result.append(extent)
    if flips is None:
        return Selected(axes, False, tuple(result), None, None, scalar and not result)
    flips.extend([_FORWARD] * (len(result) - len(flips)))
    return Selected(axes, False, tuple(result), tuple(flips))


def _advanced(items: tuple[Any, ...], shape: tuple[int, ...]) -> Selected:
    """Arrays of indices and masks, with anything else between."""
    items = _complete(items, shape)
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    # Where there is an array, integers count as arrays too; if others come between these, the axes of
    # the arrays come first in the result.
    places = [at for at, item in enumerate(items) if _is_advanced(item)]
    together = places[-1] - places[0] == len(places) - 1
    if len(arrays) == 1:
        return _one_array(items, shape, together)
    if len(places) == len(items):
        return _points([np.asarray(item) for item in items], shape)
    return _points_of_slices(items, shape, places, together)


def _one_array(items: tuple[Any, ...], shape: tuple[int, ...], together: bool) -> Selected:
    axes: list[Along] = []
    result: list[int] = []
    flips: list[slice] = []
    first, count = 0, 0
    for item in items:
        axis = len(axes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            along, backwards = _range(item, shape[axis])
            axes.append(along)
            result.append(along[2])
            flips.extend([_FORWARD] * (len(result) - len(flips) - 1))
            flips.append(_BACKWARD if backwards else _FORWARD)
        elif isinstance(item, np.ndarray):
            axes.append(_indices(item, shape[axis], axis).reshape(-1))
            first, count = len(result), item.ndim
            result.extend(item.shape)
        else:
            axes.append((_index(item, shape[axis], axis), 1, 1))
    flips.extend([_FORWARD] * (len(result) - len(flips)))
    order = None
    if not together and first > 0:
        moved = range(first, first + count)
        order = (*moved, *(axis for axis in range(len(result)) if axis not in moved))
    return Selected(axes, False, tuple(result), _flips(flips), order)


def _points(arrays: list[NDArray], shape: tuple[int, ...]) -> Selected:
    """Points by their coordinates, which are broadcast against each other."""
    if not arrays:
        return Selected([], True, (), None, None, True)
    checked = [
        _indices(item, extent, axis)
        for axis, (item, extent) in enumerate(zip(arrays, shape, strict=True))
    ]
    points = _broadcast(checked)
    axes: list[Along] = [np.ascontiguousarray(axis).reshape(-1) for axis in points]
    return Selected(axes, True, points[0].shape)


def _points_of_slices(
    items: tuple[Any, ...], shape: tuple[int, ...], places: list[int], together: bool
) -> Selected:
    """Several arrays with slices: every element by its coordinates."""
    axis_of = np.cumsum([item is not None for item in items]) - 1
    arrays = {
        at: _indices(np.asarray(items[at]), shape[axis_of[at]], int(axis_of[at])) for at in places
    }
    common = _broadcast(list(arrays.values()))[0].shape
    others = [at for at in range(len(items)) if at not in arrays]
    before = [at for at in others if together and at < places[0]]
    after = [at for at in others if at not in before]
    ranges = {
        at: np.arange(*items[at].indices(shape[axis_of[at]]), dtype=np.uint64)
        if items[at] is not None
        else np.zeros(1, np.uint64)
        for at in others
    }
    result = (
        *(len(ranges[at]) for at in before),
        *common,
        *(len(ranges[at]) for at in after),
    )
    axes: list[Along] = []
    for at, item in enumerate(items):
        if item is None:
            continue
        if at in arrays:
            values, behind = arrays[at], len(after)
        else:
            values = ranges[at]
            ahead = before.index(at) if at in before else len(before) + len(common) + after.index(at)
            behind = len(result) - ahead - 1
        placed = values.reshape(values.shape + (1,) * behind)
        axes.append(np.ascontiguousarray(np.broadcast_to(placed, result)).reshape(-1))
    return Selected(axes, True, result)


def _complete(items: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """One item per axis, beside `None`: masks as indices, `...` and what is missing as slices."""
    if sum(1 for item in items if item is Ellipsis) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(
        item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1
        for item in items
        if item is not None and item is not Ellipsis
    )
    if used > len(shape):
        raise _too_many(items, shape, used)
    rest = (slice(None),) * (len(shape) - used)
    complete: list[Any] = []
    axis = 0
    for item in items:
        if item is Ellipsis:
            complete.extend(rest)
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
            complete.extend(item.nonzero())
            axis += item.ndim
        else:
            complete.append(item)
            axis += item is not None
    return (*complete, *rest)


def _plain(item: Any) -> Any:
    """An integer, a slice, `None`, `...`, or an array of integers or booleans."""
    if item is None or item is Ellipsis or type(item) in _SIMPLE:
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
        return _plain(array[()])
    return array


def _is_advanced(item: Any) -> bool:
    return item is not None and not isinstance(item, slice)


def _index(item: Any, extent: int, axis: int) -> int:
    at = operator.index(item)
    if -extent <= at < extent:
        return at if at >= 0 else at + extent
    raise IndexError(f"index {at} is out of bounds for axis {axis} with size {extent}")


def _indices(indices: NDArray, extent: int, axis: int) -> npt.NDArray[np.uint64]:
    """Indices from zero on, checked."""
    if indices.size:
        low, high = indices.min(), indices.max()
        if low < -extent or high >= extent:
            wrong = low if low < -extent else high
            raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {extent}")
        if low < 0:
            indices = np.where(indices < 0, indices + extent, indices)
    return np.ascontiguousarray(indices, dtype=np.uint64)


def _range(item: slice, extent: int) -> tuple[tuple[int, int, int], bool]:
    """Start, step and count in ascending order, and whether they were descending."""
    start, stop, step = item.indices(extent)
    if step > 0:
        if stop <= start:
            return (0, 1, 0), False
        count = (stop - start + step - 1) // step
        # A step that is not taken may be larger than any that the engine knows.
        return (start, step if count > 1 else 1, count), False
    if start <= stop:
        return (0, 1, 0), False
    count = (start - stop - step - 1) // -step
    if count == 1:
        return (start, 1, 1), False
    return (start + (count - 1) * step, -step, count), True


def _broadcast(arrays: list[NDArray]) -> tuple[NDArray, ...]:
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = " ".join(str(array.shape) for array in arrays)
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes " + shapes
        ) from None


def _flips(flips: list[slice]) -> tuple[slice, ...] | None:
    return tuple(flips) if _BACKWARD in flips else None


def _too_many(items: tuple[Any, ...], shape: tuple[int, ...], used: int | None = None) -> IndexError:
    if sum(1 for item in items if item is Ellipsis) > 1:
        return IndexError("an index can only have a single ellipsis ('...')")
    if used is None:
        used = sum(1 for item in items if item is not None and item is not Ellipsis)
    return IndexError(
        f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed"
    )


def convert(values: Any, dtype: np.dtype[Any]) -> NDArray:
    """Values as elements of a data type, or an error where they would not be the same.

    NumPy's rule `same_kind`, except that integers go into any integer type that has them. So a float
    never loses its fraction in silence, and no integer wraps around.
    """
    if dtype.kind not in "biufcmMSU":
        return np.asarray(values, dtype=dtype)
    found = np.asarray(values)
    if found.dtype == dtype:
        return found
    if not isinstance(values, (np.ndarray, np.generic)) and found.dtype.kind == "O":
        # Python integers that fit in no type of NumPy by default.
        return np.asarray(values, dtype=dtype)
    if np.can_cast(found.dtype, dtype, "same_kind"):
        return found.astype(dtype)
    if found.dtype.kind in "biu" and dtype.kind in "biu":
        converted = found.astype(dtype)
        if bool((converted == found).all()):
            return converted
        raise OverflowError(f"integers of {found.dtype} that do not fit into {dtype}")
    raise TypeError(
        f"cannot cast from {found.dtype!r} to {dtype!r} according to the rule 'same_kind'; "
        "convert with astype() first if that is meant"
    )


def spread(values: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Values as they are assigned to a shape, by NumPy's broadcasting."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    if values.shape == shape:
        return values
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"could not broadcast input array from shape {values.shape} into shape {shape}"
        ) from None


_SIMPLE = frozenset({int, slice})
_FORWARD, _BACKWARD = slice(None), slice(None, None, -1)
