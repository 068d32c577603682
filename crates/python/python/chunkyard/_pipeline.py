"""zarr-python's reads and writes, handed to the engine as a whole.

zarr-python cuts a selection along the chunk grid and asks the pipeline for chunk after chunk: get the
bytes, decode, copy. If the chunks are in one of our stores, this pipeline puts the selection together
again and the engine does the rest: it locates the chunks in one go and decodes on all cores, straight
into zarr's output.

A slice or an integer per axis can be put together from the first and the last chunk alone. All other
selections (lists, masks, points), and arrays whose codecs the engine does not know, go to zarr-python's
own pipeline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline
from zarr.storage import StorePath

from chunkyard import _engine
from chunkyard._array import bytes_of, numpy_dtype
from chunkyard.exceptions import InvalidError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer

    from chunkyard.zarr import Store

__all__ = ["CodecPipeline"]


class CodecPipeline(BatchedCodecPipeline):
    """Makes zarr-python as fast as `chunkyard.open`, for arrays in a `chunkyard.zarr.Store`.

    Other stores, and selections by lists or masks, are read by zarr-python as before. To use it:

    >>> import chunkyard.zarr, zarr
    >>> _ = zarr.config.set({"codec_pipeline.path": "chunkyard.zarr.CodecPipeline"})
    """

    async def read(
        self,
        batch_info: Iterable[tuple[Any, ArraySpec, Any, Any, bool]],
        out: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> None:
        """Reads chunks into `out`."""
        batch = list(batch_info)
        whole = _whole(batch)
        memory: Any = out.as_ndarray_like()
        if whole is not None and whole.fits(memory) and memory.flags.writeable:
            await _done(whole.array.read_async(whole.axes, bytes_of(memory)))
        else:
            await super().read(batch, out, drop_axes)

    async def write(
        self,
        batch_info: Iterable[tuple[Any, ArraySpec, Any, Any, bool]],
        value: NDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> None:
        """Writes chunks from `value`."""
        batch = list(batch_info)
        whole = _whole(batch)
        elements: Any = value.as_ndarray_like()
        # The engine does not store chunks that hold nothing but the fill value.
        keeps_empty = bool(batch) and batch[0][1].config.write_empty_chunks
        if whole is not None and not keeps_empty and elements.dtype == whole.dtype:
            if elements.shape == ():
                whole.store._check_writable()
                return await _done(whole.array.fill_async(whole.axes, elements.tobytes()))
            elements = np.ascontiguousarray(elements)
            if whole.fits(elements):
                whole.store._check_writable()
                return await _done(whole.array.write_async(whole.axes, bytes_of(elements)))
        return await super().write(batch, value, drop_axes)


CodecPipeline.__module__ = "chunkyard.zarr"
register_pipeline(CodecPipeline)


class _Whole(NamedTuple):
    """A selection, put together again."""

    store: Store
    array: _engine.Array
    dtype: np.dtype[Any]
    axes: list[tuple[int, int, int]]
    """Start, step and count."""
    shape: tuple[int, ...]
    """Of the elements: without the axes that an integer selects."""

    def fits(self, memory: Any) -> bool:
        """Whether this is memory that the engine can read into or write from."""
        return (
            isinstance(memory, np.ndarray)
            and memory.dtype == self.dtype
            and memory.shape == self.shape
            and memory.flags.c_contiguous
        )


def _whole(batch: list[tuple[Any, ArraySpec, Any, Any, bool]]) -> _Whole | None:
    """The selection that a batch of chunks was cut from; `None` if zarr-python must read it."""
    from chunkyard.zarr import Store

    if not batch:
        return None
    (first, spec, from_first, *_), (last, _, from_last, *_) = batch[0], batch[-1]
    if not (isinstance(first, StorePath) and isinstance(first.store, Store)):
        return None
    store = first.store
    head_chunk, tail_chunk = store._keys.chunk(first.path), store._keys.chunk(last.path)
    if head_chunk is None or tail_chunk is None:
        return None
    (path, first_index), (_, last_index) = head_chunk, tail_chunk
    try:
        array = store.session._native.array(path)
    except (InvalidError, NotFoundError, UnsupportedError):
        return None  # codecs that only zarr-python knows
    chunks = array.chunks
    if array.numpy_dtype is None or tuple(chunks) != spec.shape:
        return None
    if not (len(from_first) == len(from_last) == len(chunks)):
        return None
    axes, shape = [], []
    for extent, first_at, last_at, head, tail in zip(
        chunks, first_index, last_index, from_first, from_last, strict=True
    ):
        if isinstance(head, int | np.integer):
            axes.append((first_at * extent + int(head), 1, 1))
        elif isinstance(head, slice) and isinstance(tail, slice):
            axis = _axis(head, first_at * extent, tail, last_at * extent, extent)
            if axis is None:
                return None
            axes.append(axis)
            shape.append(axis[2])
        else:
            return None
    return _Whole(store, array, numpy_dtype(array), axes, tuple(shape))


def _axis(
    head: slice, first: int, tail: slice, last: int, extent: int
) -> tuple[int, int, int] | None:
    """Start, step and count of a slice, from its parts in the first and in the last chunk."""
    start, stop, step = head.indices(extent)
    if step < 1 or stop <= start:
        return None
    begin, end, last_step = tail.indices(extent)
    if last_step != step or end <= begin:
        return None
    span = last + begin + (end - 1 - begin) // step * step - (first + start)
    if span < 0 or span % step:
        return None
    return first + start, step, span // step + 1


async def _done(answer: Any) -> None:
    if asyncio.isfuture(answer):
        await answer
