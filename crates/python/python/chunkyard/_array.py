"""Arrays: NumPy in and out, chunk by chunk underneath."""

from __future__ import annotations

import json
import math
import operator
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chunkyard import _engine
from chunkyard._extras import extra
from chunkyard._group import Codecs, Node, Tree, writable
from chunkyard._html import array_html
from chunkyard._indexing import Selected, parse, parse_orthogonal, parse_points
from chunkyard._lists import decoded, encoded, gathered, list_type
from chunkyard._refs import MISSING as _MISSING
from chunkyard._refs import refs_table
from chunkyard._values import convert, spread

if TYPE_CHECKING:
    import dask.array as da
    import pyarrow as pa

    from chunkyard._session import Session

NDArray = npt.NDArray[Any]


class Array(Node):
    """A chunked n-dimensional array. Index it like a NumPy array; the result is one.

    All cores decode chunks, straight into the result; `read(..., out=)` decodes into existing memory.
    The array is writable if it belongs to a writable session.
    """

    def __init__(self, tree: Tree, path: str, session: Session | None = None) -> None:
        super().__init__(tree, path, session)
        self._open()

    def _open(self) -> None:
        native = self._native = self._tree.array(self._path)
        self._shape = tuple(native.shape)
        self._dtype = numpy_dtype(native)
        self._variable = native.item_size is None
        # Other elements of any length are text.
        self._list = list_type(self.attrs) if self._variable and native.data_type != "string" else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extent along each axis."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, stored or not."""
        return self.size * self._dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a chunk, which is always decoded as a whole."""
        return tuple(self._native.chunks)

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        return tuple(-(-n // c) for n, c in zip(self._shape, self.chunks, strict=True))

    @property
    def nchunks(self) -> int:
        """The number of chunks, stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def metadata(self) -> dict[str, Any]:
        """The Zarr document that describes it."""
        document: dict[str, Any] = json.loads(self._tree.document(self._path))
        return document

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the axes, if there are any."""
        names = self.metadata.get("dimension_names")
        return None if names is None else tuple(names)

    @property
    def fill_value(self) -> Any:
        """The value of an element that was never written."""
        element = self._native.fill_element
        if self._variable:
            return element.decode() if self._native.data_type == "string" else element
        return np.frombuffer(element, dtype=self._dtype)[0]

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of an array without axes")
        return self._shape[0]

    def read(self, selection: Any = ..., *, out: NDArray | None = None) -> Any:
        """Gives `self[selection]`, in `out` if that is given.

        Elements are decoded straight into an `out` of the same shape and data type that is contiguous;
        into any other `out` they are copied.
        """
        return self._read(parse(selection, self._shape), out)

    def __getitem__(self, selection: Any) -> Any:
        return self._read(parse(selection, self._shape))

    def __setitem__(self, selection: Any, values: Any) -> None:
        self._write(parse(selection, self._shape), values)

    @property
    def oindex(self) -> Indexer:
        """Orthogonal indexing: along each axis an integer, a slice, indices or a mask."""
        return Indexer(self, parse_orthogonal)

    @property
    def vindex(self) -> Indexer:
        """Indexing of points: coordinates along each axis, or a mask of all axes."""
        return Indexer(self, parse_points)

    def _read(self, selected: Selected, out: NDArray | None = None) -> Any:
        if self._variable:
            listed = self._native.read_elements(selected.axes, selected.pointwise)
            elements = np.empty(len(listed), dtype=self._dtype)
            if self._list is not None:
                # One by one: NumPy would take lists of equal length for an axis.
                for at, element in enumerate(decoded(self._list, listed)):
                    elements[at] = element
            else:
                elements[...] = listed
            elements = elements.reshape(selected.shape)
        elif out is not None and selected.writes_to(out, self._dtype):
            self._native.read(selected.axes, selected.pointwise, bytes_of(out))
            return out
        else:
            elements = np.empty(selected.shape, dtype=self._dtype)
            self._native.read(selected.axes, selected.pointwise, bytes_of(elements))
        result = selected.arrange(elements)
        if out is None:
            return result[()] if selected.scalar else result
        if out.shape != result.shape:
            raise ValueError(f"out has the shape {out.shape}, what is read has {result.shape}")
        np.copyto(out, result)
        return out

    def _write(self, selected: Selected, values: Any) -> None:
        axes, pointwise = selected.axes, selected.pointwise
        if self._list is not None:
            lists = selected.rearrange(gathered(values, selected.result_shape))
            self._native.write_elements(axes, pointwise, encoded(self._list, lists))
            return
        elements = convert(values, self._dtype)
        if elements.size == 1 and not self._variable:
            spread(elements, selected.result_shape)
            self._native.fill(axes, pointwise, elements.tobytes())
            return
        elements = selected.rearrange(spread(elements, selected.result_shape))
        if self._variable:
            self._native.write_elements(axes, pointwise, elements.reshape(-1).tolist())
        else:
            self._native.write(axes, pointwise, bytes_of(np.ascontiguousarray(elements)))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("an array in chunks cannot become a NumPy array without a copy")
        values: NDArray = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype, copy=False)

    def resize(self, shape: int | Sequence[int]) -> None:
        """Changes the shape. Elements inside both shapes stay; all others are gone."""
        writable(self._tree).resize(self._path, _shape_of(shape))
        self._open()

    def append(self, data: npt.ArrayLike, axis: int = 0) -> tuple[int, ...]:
        """Grows the array along an axis by `data`; gives the new shape."""
        values = np.asarray(data)
        if values.ndim != self.ndim:
            raise ValueError(f"data has {values.ndim} axes, the array {self.ndim}")
        axis = range(self.ndim)[axis]
        rest = [n for at, n in enumerate(self._shape) if at != axis]
        if rest != [n for at, n in enumerate(values.shape) if at != axis]:
            raise ValueError(f"data of shape {values.shape} does not continue {self._shape}")
        start = self._shape[axis]
        grown = list(self._shape)
        grown[axis] += values.shape[axis]
        self.resize(grown)
        where = tuple(
            slice(start, None) if at == axis else slice(None) for at in range(self.ndim)
        )
        self[where] = values
        return self._shape

    def chunk_regions(self) -> Iterator[tuple[slice, ...]]:
        """The part that each chunk covers, as slices, in the order of the grid."""
        for index in np.ndindex(*self.cdata_shape):
            yield tuple(
                slice(at * chunk, min((at + 1) * chunk, extent))
                for at, chunk, extent in zip(index, self.chunks, self._shape, strict=True)
            )

    def iter_chunks(self) -> Iterator[tuple[tuple[slice, ...], NDArray]]:
        """The array chunk by chunk: where each is, and its values."""
        for region in self.chunk_regions():
            yield region, self[region]

    @property
    def nbytes_stored(self) -> int:
        """Bytes of all encoded chunks. Looks for every chunk, which may list many objects."""
        columns = self._tree.chunk_refs(self._path)
        lengths = np.frombuffer(columns["length"], dtype="<u8")
        return int(lengths[lengths != _MISSING].sum())

    def chunk_refs(self) -> pa.Table:
        """Where every stored chunk is, as a table of pyarrow.

        Columns: `index` in the chunk grid; `kind`: `object`, `virtual` (an object elsewhere),
        `packed` (part of a block that is compressed as a whole, which starts at `offset`) or
        `inline`; `url`, `offset`, `length`; `etag` and `last_modified_ms`, by which a change is
        noticed; `crc32c`.
        """
        return refs_table(self._tree.chunk_refs(self._path), self.ndim)

    def to_dask(self, chunks: str | int | Sequence[int] | None = None) -> da.Array:
        """A Dask array that reads this one; see `chunkyard.dask.from_array`."""
        with extra("dask", "to_dask"):
            from chunkyard.dask import from_array

        return from_array(self, chunks=chunks)

    def __reduce__(self) -> Any:
        if self._session is not None:
            return (_reopened, (self._session, self._path))
        return (Array, (self._tree, self._path))

    def __dask_tokenize__(self) -> Any:
        if self._session is None:
            return (type(self).__name__, getattr(self._tree, "identity", None), self._path)
        if not self._session.read_only:
            # The array may change at any time, so its name is new each time.
            return (type(self).__name__, uuid.uuid4().hex)
        session = self._session
        return (type(self).__name__, session.repository.url, session.snapshot_id, self._path)

    def _summary(self) -> str:
        return f"  {self._dtype} {self._shape} in chunks of {self.chunks}"

    def __repr__(self) -> str:
        return (
            f"<chunkyard.Array {self._path!r} shape={self._shape} dtype={self._dtype} "
            f"chunks={self.chunks}>"
        )

    def _repr_html_(self) -> str:
        return array_html(self)


def _reopened(session: Session, path: str) -> Array:
    return Array(session._native, path, session=session)


class Indexer:
    """Another way to index an array; see `Array.oindex` and `Array.vindex`."""

    def __init__(self, array: Array, parse: Callable[[Any, tuple[int, ...]], Selected]) -> None:
        self._array, self._parse = array, parse

    def __getitem__(self, selection: Any) -> Any:
        return self._array._read(self._parse(selection, self._array.shape))

    def __setitem__(self, selection: Any, values: Any) -> None:
        self._array._write(self._parse(selection, self._array.shape), values)


def describe(
    *,
    shape: int | Sequence[int],
    dtype: npt.DTypeLike | str | Mapping[str, Any],
    chunks: int | Sequence[int] | None,
    shards: int | Sequence[int] | None,
    codecs: Codecs | None,
    fill_value: Any,
    attributes: Mapping[str, Any] | None,
    dimension_names: Sequence[str | None] | None,
) -> str:
    """The Zarr document of a new array."""
    extent = _shape_of(shape)
    zarr_dtype, numpy_dtype = _zarr_dtype(dtype)
    wanted = {
        "shape": extent,
        "chunks": None if chunks is None else _shape_of(chunks, len(extent)),
        "shards": None if shards is None else _shape_of(shards, len(extent)),
        "dtype": zarr_dtype,
        "codecs": codecs if codecs is None or isinstance(codecs, str) else list(codecs),
        "fill": None if fill_value is None else _fill_bytes(fill_value, numpy_dtype),
        "attributes": dict(attributes or {}),
        "dimension_names": None if dimension_names is None else list(dimension_names),
    }
    return _engine.array_document(wanted)


def _shape_of(shape: int | Sequence[int], rank: int = 1) -> list[int]:
    if isinstance(shape, (int, np.integer)):
        shape = [int(shape)] * rank
    extents = [operator.index(extent) for extent in shape]
    if any(extent < 0 for extent in extents):
        raise ValueError(f"no axis has a length below zero: {extents}")
    return extents


def _zarr_dtype(
    dtype: npt.DTypeLike | str | Mapping[str, Any],
) -> tuple[str | dict[str, Any], np.dtype[Any] | None]:
    """The data type as the engine takes it, and as NumPy has it, if NumPy does."""
    if isinstance(dtype, Mapping):
        return dict(dtype), None
    if dtype is str or dtype == "string":
        return "string", None
    if dtype is bytes or dtype == "bytes":
        return "bytes", None
    try:
        numpy_dtype = np.dtype(dtype)
    except TypeError:
        # A name of Zarr that NumPy does not know, such as bfloat16.
        return str(dtype), None
    if isinstance(numpy_dtype, np.dtypes.StringDType) or numpy_dtype.kind == "O":
        return "string", None
    return numpy_dtype.str, numpy_dtype


def numpy_dtype(native: _engine.Array) -> np.dtype[Any]:
    """The data type of the elements that come out."""
    if native.numpy_dtype is not None:
        return np.dtype(native.numpy_dtype)
    if native.item_size is not None:
        return np.dtype(f"V{native.item_size}")
    return np.dtypes.StringDType() if native.data_type == "string" else np.dtype(object)


def _fill_bytes(value: Any, dtype: np.dtype[Any] | None) -> bytes:
    if isinstance(value, str) and dtype is None:
        return value.encode()
    if isinstance(value, bytes) and dtype is None:
        return value
    if dtype is None:
        raise TypeError(f"a fill value of this data type is text or bytes, not {value!r}")
    element = _element(value, dtype.newbyteorder("="))
    if not _holds(element, value):
        raise ValueError(f"the fill value {value!r} does not fit {dtype}, which makes {element} of it")
    return element.tobytes()


def _element(value: Any, dtype: np.dtype[Any]) -> NDArray:
    with np.errstate(all="ignore"):
        return np.asarray(value, dtype=dtype)


def _holds(element: NDArray, value: Any) -> bool:
    """Whether a number or text is still itself; numbers with a point may be rounded."""
    if element.dtype.kind in "fc":
        return bool(np.isfinite(element).all() or not np.isfinite(np.asarray(value, complex)).all())
    if element.dtype.kind in "biuSU":
        given = np.asarray(value)
        same_kind = (given.dtype.kind in "SU") == (element.dtype.kind in "SU")
        return same_kind and _same(given, element)
    return True


def _same(given: NDArray, element: NDArray) -> bool:
    if given.dtype.kind == element.dtype.kind or given.dtype.kind not in "SU":
        return bool((given == element).all())
    return bool((given.astype(element.dtype.kind) == element).all())


def bytes_of(values: NDArray) -> NDArray:
    """The same memory as unsigned bytes."""
    return values.reshape(-1).view(np.uint8)
