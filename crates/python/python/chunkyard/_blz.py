"""BLZ: compressed arrays and tables that grow and shrink at their end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib import recfunctions

from chunkyard import _engine
from chunkyard._array import bytes_of
from chunkyard._group import Attributes
from chunkyard._options import Options, Url, url_of
from chunkyard._rows import Column, NDArray, Rows
from chunkyard._values import convert
from chunkyard.exceptions import UnsupportedError

Mode = Literal["r", "r+", "a"]


class Blz(Rows):
    """A compressed array or table whose rows are added and cut off at its end.

    This object sees added rows at once; other readers see them after `flush`, which makes all of them
    durable and visible in one step. A `with` statement flushes at its end; an exception discards the
    rows.

    >>> import chunkyard, numpy
    >>> with chunkyard.create_blz("memory://rows/x.blz", "f8", expected_rows=10**6) as rows:
    ...     rows.append(numpy.arange(1000.0))
    ...     rows.attrs["unit"] = "m"
    >>> rows = chunkyard.open("memory://rows/x.blz")
    >>> rows[::250]
    array([  0., 250., 500., 750.])
    """

    def __init__(
        self, native: _engine.Blz, mode: Mode, reopen: tuple[str, Options] | None = None
    ) -> None:
        columns = [Column.of(document) for document in native.columns()]
        super().__init__(native, columns)
        self._mode, self._reopen = mode, reopen

    @property
    def cbytes(self) -> int:
        """Bytes of all chunks that are flushed, as they are stored."""
        return self._native.cbytes

    @property
    def style(self) -> str:
        """The layout of its directory: `superchunk`, `document` or `bcolz`."""
        return self._native.style

    @property
    def attrs(self) -> Attributes:
        """The attributes; an assignment is stored at once."""
        return _Attributes(self)

    def cautions(self) -> list[str]:
        """What a reader should know: columns of different lengths, for instance."""
        return self._native.cautions()

    @property
    def _writable(self) -> _engine.Blz:
        if self._mode == "r":
            raise UnsupportedError(
                "this was opened for reading only; with the mode 'a' rows are added and cut off, "
                "with 'r+' they are changed too"
            )
        return self._native

    def append(self, rows: Any) -> None:
        """Adds rows.

        Takes an array, anything that NumPy turns into one, or an iterator of single rows, which needs
        bounded memory. A table also takes columns by name, as a dictionary.
        """
        native = self._writable
        if isinstance(rows, Iterator):
            step = native.rows_of_bytes([column.path for column in self._columns], 8 << 20)
            while batch := list(islice(rows, step)):
                native.append(self._parts(batch))
            return
        native.append(self._parts(rows))

    def _parts(self, rows: Any) -> list[NDArray]:
        """The bytes of each column."""
        if self._plain is not None:
            columns = [(self._plain, rows)]
        elif isinstance(rows, Mapping):
            columns = [(column, _taken(rows, column)) for column in self._columns]
        else:
            table = _structured(rows, self._dtype)
            columns = [(column, _taken(table, column)) for column in self._columns]
        return [bytes_of(_elements(values, column)) for column, values in columns]

    def trim(self, rows: int) -> None:
        """Cuts rows off the end, for all readers. Flushes added rows first."""
        self._writable.trim(rows)

    def resize(self, rows: int) -> None:
        """Sets the number of rows: cuts some off, or adds default rows, which a flush makes visible."""
        self._writable.resize(rows)

    def flush(self) -> None:
        """Makes all added and changed rows durable, and visible to all readers."""
        self._writable.flush()

    def discard(self) -> None:
        """Drops all added and changed rows that are not flushed."""
        self._writable.discard()

    def refresh(self) -> None:
        """Looks for rows that other writers have flushed. Does nothing while own rows wait."""
        self._native.refresh()

    def __setitem__(self, key: Any, values: Any) -> None:
        self._writable
        super().__setitem__(key, values)

    def __enter__(self) -> Blz:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mode == "r":
            return
        if kind is None:
            self.flush()
        else:
            self.discard()

    def __reduce__(self) -> Any:
        if self._reopen is None:
            raise TypeError("rows in memory without a name are not seen by other processes")
        if self._mode != "r":
            raise TypeError("what is open for writing stays in its process")
        return (open_blz, (*self._reopen, self._mode))

    def __repr__(self) -> str:
        place = "in memory" if self._reopen is None else repr(self._reopen[0])
        return (
            f"<chunkyard.Blz {place} shape={self.shape} dtype={self._dtype} "
            f"chunklen={self.chunklen} style={self.style}>"
        )


class _Attributes(Attributes):
    def __init__(self, blz: Blz) -> None:
        self._blz = blz

    def _document(self) -> dict[str, Any]:
        return {"attributes": self._blz._native.attributes()}

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replaces all of them in one step."""
        self._blz._writable.set_attributes(dict(attributes))


def open_blz(place: str, options: Options, mode: Mode) -> Blz:
    """The dataset at a place."""
    native = _engine.open_blz(place, options.native(), mode == "r+")
    return Blz(native, mode, (place, options))


def create_blz(
    place: Url | None,
    dtype: npt.DTypeLike,
    row_shape: int | Iterable[int] = (),
    *,
    data: Any = None,
    expected_rows: int | None = None,
    chunklen: int | None = None,
    superchunk: int | None = None,
    codec: str | None = None,
    level: int | None = None,
    shuffle: Literal["none", "byte", "bit"] | None = None,
    checksum: str | None = None,
    slack: int = 0,
    default: Any = None,
    style: Literal["superchunk", "document", "bcolz"] = "superchunk",
    attributes: Mapping[str, Any] | None = None,
    mutable: bool = False,
    durable: bool = True,
    memory_bytes: int | None = None,
    requests: int | None = None,
    **storage: object,
) -> Blz:
    """Creates a BLZ array, or a table if `dtype` is structured, and gives it open for writing.

    `place` is a path or URL; `None` is memory that lives as long as the result. `expected_rows` helps to
    choose how many rows a chunk has (`chunklen`), and how many chunks a file (`superchunk`). Without
    `codec`, `level` and `shuffle` the first chunk is compressed in several ways, and the best one stays.
    `default` is the row that `resize` adds; of a table one value per field, or columns by name. With
    `mutable` rows can be changed; `slack` leaves this many bytes of room for that in each chunk.
    `data` are the first rows, and are flushed.
    """
    described, shape = _described(dtype, row_shape)
    wanted = {
        "dtype": _text_of(described),
        "row_shape": shape,
        "expected_rows": len(data) if expected_rows is None and data is not None else expected_rows,
        "chunklen": chunklen,
        "superchunk": superchunk,
        "codec": codec,
        "level": level,
        "shuffle": shuffle,
        "checksum": checksum,
        "slack": slack,
        "default": None if default is None else _default(default, described),
        "style": style,
        "attributes": dict(attributes or {}),
    }
    options = Options(storage, durable=durable, memory_bytes=memory_bytes, requests=requests)
    url = None if place is None else url_of(place)
    native = _engine.create_blz(url, options.native(), wanted, mutable)
    blz = Blz(native, "r+" if mutable else "a", None if url is None else (url, options))
    if data is not None:
        blz.append(data)
        blz.flush()
    return blz


def _described(
    dtype: npt.DTypeLike, row_shape: int | Iterable[int]
) -> tuple[np.dtype[Any], list[int]]:
    """The type of elements and the shape of a row."""
    found = np.dtype(dtype)
    given = [row_shape] if isinstance(row_shape, (int, np.integer)) else row_shape
    return found.base, [int(extent) for extent in (*given, *found.shape)]


def _text_of(dtype: np.dtype[Any]) -> str:
    """NumPy's text for a type. Gaps between fields are not stored."""
    if dtype.names is None:
        return dtype.str
    return repr(recfunctions.repack_fields(dtype, recurse=True).descr)


def _default(value: Any, dtype: np.dtype[Any]) -> Any:
    """A default row as the engine takes it."""
    if isinstance(value, Mapping):
        return {
            name: _default(inner, dtype[name] if name in (dtype.names or ()) else np.dtype(object))
            for name, inner in value.items()
        }
    if dtype.names is not None:
        parts = [(dtype[name], inner) for name, inner in zip(dtype.names, value, strict=True)]
        return [_default(inner, part) for part, inner in parts]
    if dtype == object:
        return value
    array = np.asarray(value, dtype=dtype.base)
    if dtype.base.kind in "mM":
        array = array.view("i8")
    return _json(array.tolist())


def _json(value: Any) -> Any:
    """A NumPy value in JSON, as BLZ stores it."""
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, complex):
        return [_json(value.real), _json(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _structured(rows: Any, dtype: np.dtype[Any]) -> NDArray:
    """Rows of a table, as an array with its names."""
    if isinstance(rows, Rows):
        rows = rows[:]
    if isinstance(rows, np.ndarray | np.void) and rows.dtype.names is not None:
        if set(rows.dtype.names) != set(dtype.names or ()):
            raise ValueError(f"rows of {rows.dtype.names}, where the columns are {dtype.names}")
        return np.atleast_1d(rows)
    # A row is a tuple to NumPy; an iterator may give lists.
    listed = [rows] if isinstance(rows, tuple) else rows
    return np.array([tuple(row) for row in listed], dtype=dtype)


def _taken(rows: Any, column: Column) -> Any:
    """The values of a column, from rows or from columns by name."""
    whole = "/".join(column.names)
    if isinstance(rows, Mapping) and whole in rows:
        return rows[whole]
    for name in column.names:
        try:
            rows = rows[name]
        except (KeyError, ValueError):
            raise ValueError(f"there is nothing for the column {whole}") from None
    return rows


def _elements(rows: Any, column: Column) -> NDArray:
    """Rows of a column, contiguous; a single value counts as one row."""
    values = rows[:] if isinstance(rows, Rows) else rows
    elements = convert(values, column.dtype)
    if elements.shape == column.row_shape:
        elements = elements[np.newaxis]
    if elements.shape[1:] != column.row_shape:
        raise ValueError(
            f"rows of shape {elements.shape[1:]}, where they have {column.row_shape}"
        )
    return np.ascontiguousarray(elements)
