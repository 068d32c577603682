"""Index expressions: NumPy's rules, translated for the engine.

`parse` is for `a[...]`, `parse_orthogonal` for `a.oindex[...]` and `parse_points` for `a.vindex[...]`.
All give a `Selected`: axes for the engine, and how its elements become the array that NumPy would
give.

- Integers, slices with any step, `...` and `None` are as in NumPy.
- One array of indices, or one mask along an axis, is selected in one go. Several arrays are points; if
  slices come with them, all points are listed one by one, which takes memory in proportion.
- Results are new arrays, never views.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chunkyard._items import (
    SIMPLE,
    broadcast,
    complete,
    index_of,
    indices_of,
    plain,
    range_of,
    too_many,
)

NDArray = npt.NDArray[Any]
Along = tuple[int, int, int] | NDArray
"""Along one axis: start, step and count, or indices."""


class Selected(NamedTuple):
    """A selection for the engine, and how its elements become the result."""

    axes: list[Along]
    """Along each axis of the array; coordinates of points if `pointwise`."""
    pointwise: bool
    shape: tuple[int, ...]
    """Shape of the elements as the engine gives them, with axes dropped and added."""
    flips: tuple[slice, ...] | None = None
    """Which of these axes run backwards."""
    order: tuple[int, ...] | None = None
    """How the axes are then transposed."""
    scalar: bool = False
    """Whether the result is one element rather than an array without axes."""

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
        """Turns the engine's elements into the result. No copy."""
        if self.flips is not None:
            elements = elements[self.flips]
        return elements if self.order is None else elements.transpose(self.order)

    def rearrange(self, values: NDArray) -> NDArray:
        """The inverse: turns a result into elements for the engine."""
        if self.order is not None:
            values = values.transpose(np.argsort(self.order))
        return values if self.flips is None else values[self.flips]


def parse(key: Any, shape: tuple[int, ...]) -> Selected:
    """What `a[key]` selects of an array of a shape."""
    items = key if type(key) is tuple else (key,)
    for item in items:
        if not (type(item) in SIMPLE or item is None or item is Ellipsis):
            break
    else:
        return _basic(items, shape)
    items = tuple(plain(item) for item in items)
    if any(isinstance(item, np.ndarray) for item in items):
        return _advanced(items, shape)
    return _basic(items, shape)


def parse_orthogonal(key: Any, shape: tuple[int, ...]) -> Selected:
    """What `a.oindex[key]` selects: along each axis by itself."""
    items = tuple(plain(item) for item in (key if type(key) is tuple else (key,)))
    for item in items:
        if isinstance(item, np.ndarray) and item.ndim != 1:
            raise IndexError(f"oindex takes arrays with one axis, not {item.ndim}")
    items = complete(items, shape)
    axes: list[Along] = []
    result: list[int] = []
    flips: list[slice] = []
    for axis, item in enumerate(items):
        extent = shape[axis]
        if item is None:
            raise IndexError("oindex takes no numpy.newaxis")
        if isinstance(item, np.ndarray):
            indices = indices_of(item, extent, axis)
            axes.append(indices)
            result.append(len(indices))
            flips.append(_FORWARD)
        elif isinstance(item, slice):
            along, backwards = range_of(item, extent)
            axes.append(along)
            result.append(along[2])
            flips.append(_BACKWARD if backwards else _FORWARD)
        else:
            axes.append((index_of(item, extent, axis), 1, 1))
    return Selected(axes, False, tuple(result), _flips(flips))


def parse_points(key: Any, shape: tuple[int, ...]) -> Selected:
    """What `a.vindex[key]` selects: points, by coordinates or a mask of all axes."""
    items = tuple(plain(item) for item in (key if type(key) is tuple else (key,)))
    if any(item is None or item is Ellipsis or isinstance(item, slice) for item in items):
        raise IndexError("vindex takes integers, arrays of them or a mask along every axis")
    items = complete(items, shape)
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
                raise too_many(items, shape)
            along, backwards = range_of(item, shape[axis])
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
                raise too_many(items, shape)
            for extent in shape[axis : axis + rest]:
                axes.append((0, 1, extent))
                result.append(extent)
        elif item is None:
            result.append(1)
        else:
            if axis >= rank:
                raise too_many(items, shape)
            axes.append((index_of(item, shape[axis], axis), 1, 1))
    for extent in shape[len(axes) :]:
        axes.append((0, 1, extent))
        result.append(extent)
    if flips is None:
        return Selected(axes, False, tuple(result), None, None, scalar and not result)
    flips.extend([_FORWARD] * (len(result) - len(flips)))
    return Selected(axes, False, tuple(result), tuple(flips))


def _advanced(items: tuple[Any, ...], shape: tuple[int, ...]) -> Selected:
    """Arrays of indices and masks, with anything else between."""
    # Beside an array, integers count as arrays too. If any other item comes between them, even an
    # ellipsis that stands for no axis, the axes of the arrays come first in the result.
    places = _advanced_places(items)
    together = places[-1] - places[0] == len(places) - 1
    items = complete(items, shape)
    places = _advanced_places(items)
    arrays = [item for item in items if isinstance(item, np.ndarray)]
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
            along, backwards = range_of(item, shape[axis])
            axes.append(along)
            result.append(along[2])
            flips.extend([_FORWARD] * (len(result) - len(flips) - 1))
            flips.append(_BACKWARD if backwards else _FORWARD)
        elif isinstance(item, np.ndarray):
            axes.append(indices_of(item, shape[axis], axis).reshape(-1))
            first, count = len(result), item.ndim
            result.extend(item.shape)
        else:
            axes.append((index_of(item, shape[axis], axis), 1, 1))
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
        indices_of(item, extent, axis)
        for axis, (item, extent) in enumerate(zip(arrays, shape, strict=True))
    ]
    points = broadcast(checked)
    axes: list[Along] = [np.ascontiguousarray(axis).reshape(-1) for axis in points]
    return Selected(axes, True, points[0].shape)


def _points_of_slices(
    items: tuple[Any, ...], shape: tuple[int, ...], places: list[int], together: bool
) -> Selected:
    """Several arrays with slices: every element by its coordinates."""
    axis_of = np.cumsum([item is not None for item in items]) - 1
    arrays = {
        at: indices_of(np.asarray(items[at]), shape[axis_of[at]], int(axis_of[at])) for at in places
    }
    common = broadcast(list(arrays.values()))[0].shape
    others = [at for at in range(len(items)) if at not in arrays]
    before = [at for at in others if together and at < places[0]]
    after = [at for at in others if at not in before]
    ranges = {
        at: np.arange(*items[at].indices(shape[axis_of[at]])).astype(np.uint64)
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


def _advanced_places(items: tuple[Any, ...]) -> list[int]:
    basic = (slice, type(None), type(Ellipsis))
    return [at for at, item in enumerate(items) if not isinstance(item, basic)]


def _flips(flips: list[slice]) -> tuple[slice, ...] | None:
    return tuple(flips) if _BACKWARD in flips else None


_FORWARD, _BACKWARD = slice(None), slice(None, None, -1)
