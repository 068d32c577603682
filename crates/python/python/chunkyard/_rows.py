"""Rows of a growing array or table: all of its columns, or some."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chunkyard import _engine
from chunkyard._array import bytes_of
from chunkyard._indexing import Selected, parse
from chunkyard._values import convert, spread
from chunkyard.exceptions import NotFoundError

NDArray = npt.NDArray[Any]

_BLOCK_BYTES = 8 << 20
"""Bytes of a block that is read at a time, about."""


class Column(NamedTuple):
    """A column of the engine."""

    path: str
    names: tuple[str, ...]
    """Its name and the names of the fields around it, outermost first."""
    dtype: np.dtype[Any]
    row_shape: tuple[int, ...]
    chunklen: int
    superchunk: int

    @staticmethod
    def of(document: Mapping[str, Any]) -> Column:
        """The column of a document of the engine."""
        text = document["dtype"]
        # The engine gives numbers in one byte order; structs stored as a whole stay as they are.
        literal = text.startswith("[")
        dtype = np.dtype(ast.literal_eval(text)) if literal else np.dtype(text).newbyteorder("<")
        return Column(
            document["path"],
            tuple(document["names"]),
            dtype,
            tuple(document["row_shape"]),
            document["chunklen"],
            document["superchunk"],
        )


class Rows:
    """Rows, indexed like a NumPy array; the result is one.

    For a table it is a structured array. `rows["x"]` is a column and `rows["x", "y"]` are two; neither
    reads any data by itself.

    >>> import chunkyard
    >>> table = chunkyard.create_blz(None, [("x", "f8"), ("y", "i4")])
    >>> table.append([(0.5, 1), (1.5, 2), (2.5, 3)])
    >>> table["x"][1:]
    array([1.5, 2.5])
    >>> table.where("x > 1 and y < 3")
    array([(1.5, 2)], dtype=[('x', '<f8'), ('y', '<i4')])
    """

    def __init__(self, native: _engine.Blz, columns: list[Column]) -> None:
        self._native, self._columns = native, columns
        # Without names it is one column: an array.
        self._plain = columns[0] if len(columns) == 1 and not columns[0].names else None
        self._dtype = self._plain.dtype if self._plain else _table_dtype(columns)
        self._arrays: tuple[int, dict[str, _engine.Array]] = (0, {})

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a row, or of its elements if it is no table."""
        return self._dtype

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; none if it is no table."""
        return self._dtype.names or ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and the shape of one."""
        return (len(self), *(self._plain.row_shape if self._plain else ()))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._dtype.itemsize

    @property
    def chunklen(self) -> int:
        """Rows of a chunk; of the first column, if they differ."""
        return self._columns[0].chunklen

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, key: Any) -> Any:
        names, rest = _named(key)
        if names is not None:
            chosen = self._chosen(names)
            return chosen if rest is None else chosen[rest]
        return self._read(parse(key, self.shape))

    def __setitem__(self, key: Any, values: Any) -> None:
        names, rest = _named(key)
        if names is not None:
            self._chosen(names)[... if rest is None else rest] = values
            return
        self._write(parse(key, self.shape), values)

    def _chosen(self, names: list[str] | str) -> Rows:
        """Some columns; a single one without its name, as in NumPy."""
        if isinstance(names, str):
            parts = tuple(names.strip("/").split("/"))
            depth = len(parts)
            found = [c for c in self._columns if c.names[:depth] == parts or c.names == (names,)]
            if not found:
                raise self._no_column(names)
            return Rows(self._native, [c._replace(names=c.names[depth:]) for c in found])
        columns: list[Column] = []
        for name in names:
            parts = tuple(name.strip("/").split("/"))
            found = [c for c in self._columns if c.names[: len(parts)] == parts]
            if not found:
                raise self._no_column(name)
            columns.extend(found)
        return Rows(self._native, columns)

    def _no_column(self, name: str) -> NotFoundError:
        known = ", ".join(self.names) if self._plain is None else "its columns have no names"
        return NotFoundError(f"column not found: {name}; {known}")

    def _array(self, column: Column) -> _engine.Array:
        """A column with its current length."""
        length, arrays = self._arrays
        if length != len(self):
            arrays = {}
            self._arrays = (len(self), arrays)
        if column.path not in arrays:
            arrays[column.path] = self._native.array(column.path)
        return arrays[column.path]

    def _read(self, selected: Selected) -> Any:
        if self._plain is not None:
            elements = np.empty(selected.shape, self._dtype)
            self._array(self._plain).read(selected.axes, selected.pointwise, bytes_of(elements))
        else:
            elements = np.empty(selected.shape, self._dtype)
            for column in self._columns:
                field = _field(elements, column)
                part = np.empty(field.shape, column.dtype)
                self._array(column).read(_axes(selected, column), False, bytes_of(part))
                field[...] = part
        result = selected.arrange(elements)
        return result[()] if selected.scalar else result

    def _write(self, selected: Selected, values: Any) -> None:
        if self._plain is not None:
            elements = convert(values, self._dtype)
            elements = selected.rearrange(spread(elements, selected.result_shape))
            self._changed(self._plain, selected.axes, selected.pointwise, elements)
            return
        elements = np.asarray(values, dtype=self._dtype)
        elements = selected.rearrange(spread(elements, selected.result_shape))
        for column in self._columns:
            self._changed(column, _axes(selected, column), False, _field(elements, column))

    def _changed(self, column: Column, axes: list[Any], pointwise: bool, part: NDArray) -> None:
        array = self._native.mutable_array(column.path)
        array.write(axes, pointwise, bytes_of(np.ascontiguousarray(part)))

    def blocks(self, rows: int | None = None) -> Iterator[NDArray]:
        """All rows in order, in arrays of `rows` rows, or of a good size: at most one array is in
        memory."""
        for start, stop in self._ranges(rows):
            yield self[start:stop]

    def __iter__(self) -> Iterator[Any]:
        for block in self.blocks():
            yield from block

    def _ranges(self, rows: int | None = None) -> Iterator[tuple[int, int]]:
        if rows is not None and rows < 1:
            raise ValueError(f"blocks of {rows} rows")
        paths = [column.path for column in self._columns]
        step = rows or self._native.rows_of_bytes(paths, _BLOCK_BYTES)
        length = len(self)
        for start in range(0, length, step):
            yield start, min(start + step, length)

    def where(self, condition: str | npt.ArrayLike) -> NDArray:
        """The rows that fulfil a condition: comparisons of columns, or a mask.

        A text compares columns with values, `"x > 3 and name == 'abc'"`; the rows of an array are called
        `value`. To find rows, only the columns in the condition are read, block by block.
        """
        if not isinstance(condition, str):
            mask = np.asarray(condition)
            if mask.dtype != bool:
                raise TypeError(f"a condition is a text or a mask, not of {mask.dtype}")
            found: NDArray = self[mask]
            return found
        parts = [
            self._of_rows(self._matching(condition, start, stop))
            for start, stop in self._ranges()
        ]
        return np.concatenate(parts) if parts else self[:0]

    def nonzero(self, condition: str) -> npt.NDArray[np.int64]:
        """Numbers of the rows that fulfil a condition; see `where`."""
        parts = [self._matching(condition, start, stop) for start, stop in self._ranges()]
        if not parts:
            self._matching(condition, 0, 0)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _matching(self, condition: str, start: int, stop: int) -> npt.NDArray[np.int64]:
        found = self._native.matching(condition, start, stop)
        return np.frombuffer(found, "<u8").astype(np.int64)

    def _of_rows(self, rows: npt.NDArray[np.int64]) -> NDArray:
        """Rows by their numbers."""
        found: NDArray = self[:0] if not len(rows) else self[rows]
        return found

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("rows in chunks cannot become a NumPy array without a copy")
        values: NDArray = np.asarray(self[:])
        return values if dtype is None else values.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<chunkyard.{type(self).__name__} shape={self.shape} dtype={self._dtype}>"


def _named(key: Any) -> tuple[list[str] | str | None, Any]:
    """Names of columns among the items of an index, and the other items."""
    if isinstance(key, str):
        return key, None
    if isinstance(key, list) and key and all(isinstance(item, str) for item in key):
        return key, None
    if not isinstance(key, tuple) or not any(isinstance(item, str) for item in key):
        return None, key
    names = [item for item in key if isinstance(item, str)]
    rest = tuple(item for item in key if not isinstance(item, str))
    chosen: list[str] | str = names[0] if rest and len(names) == 1 else names
    return chosen, rest or None


def _axes(selected: Selected, column: Column) -> list[Any]:
    """Rows of a table that are selected, and all that is in each."""
    return [*selected.axes, *((0, 1, extent) for extent in column.row_shape)]


def _field(elements: NDArray, column: Column) -> NDArray:
    """The column as a part of structured elements."""
    for name in column.names:
        elements = elements[name]
    return elements


def _table_dtype(columns: Iterable[Column]) -> np.dtype[Any]:
    """The type of a row of columns, nested as their names are."""
    fields: dict[str, list[Column]] = {}
    for column in columns:
        fields.setdefault(column.names[0], []).append(column)
    described: list[Any] = []
    for name, inner in fields.items():
        if inner[0].names[1:]:
            nested = [column._replace(names=column.names[1:]) for column in inner]
            described.append((name, _table_dtype(nested)))
        else:
            described.append((name, inner[0].dtype, inner[0].row_shape))
    return np.dtype(described)
