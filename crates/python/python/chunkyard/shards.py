"""Arrow shards of a segmentation: label blocks by their position, with the labels in them.

A shard is an Arrow file, or a stream as DVID writes it, with an index beside it (`.json` or `.csv`). A reader loads neither: it
reads the end of the file and then one record batch per request, from a disk through a map of the file, from an object store by ranges.

    reader = ArrowShardReader("s3://lab/export/s0/0_0_0.arrow", region="us-east-1")
    for x, y, z in reader.list_chunks():
        labels = reader.get_labels_for_chunk(x, y, z)
        voxels = reader.get_voxels(x, y, z)          # bodies, axes z, y, x

Positions are those of a chunk's first voxel. It needs pyarrow: `pip install 'chunkyard[arrow]'`.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from chunkyard import _engine
from chunkyard._extras import extra
from chunkyard._options import Options, Url, url_of
from chunkyard.exceptions import CorruptError, NotFoundError, UnsupportedError

with extra("arrow", "reading Arrow shards"):
    import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ArrowShardReader", "read_shard_with_index"]

_MAGIC = b"ARROW1"
_INDEX_BYTES_MAX = 1 << 30


def read_shard_with_index(arrow_filename: Url, **storage: object) -> tuple[Any, dict[str, int]]:
    """All of a shard as a `pyarrow.Table`, and the record of each chunk by `"{x}_{y}_{z}"`.

    To read some chunks only, `ArrowShardReader` is faster.
    """
    options: dict[str, Any] = storage
    reader = ArrowShardReader(arrow_filename, **options)
    return reader.table, reader.chunk_index


class ArrowShardReader:
    """The chunks of a shard, one by one."""

    def __init__(
        self,
        arrow_filename: Url,
        *,
        chunk_size: tuple[int, int, int] = (64, 64, 64),
        **storage: object,
    ) -> None:
        """Opens a shard on a disk or an object store. `chunk_size`, in x, y and z, is needed for an index in CSV, which counts
        in chunks."""
        self.arrow_filename = url_of(arrow_filename)
        self._bytes = _bytes_of(self.arrow_filename, Options(storage))
        self._table: Any = None
        is_file = self._bytes.read(0, len(_MAGIC)) == _MAGIC
        stem = os.path.splitext(self.arrow_filename)[0]
        self._records: _Records
        if is_file:
            self._records = _FileRecords(self.arrow_filename, self._bytes)
        else:
            self._records = _StreamRecords(self.arrow_filename, self._bytes)
        index = _optional(f"{stem}.json", storage)
        if index is not None:
            self.chunk_index = _json_index(f"{stem}.json", index)
        else:
            index = _optional(f"{stem}.csv", storage)
            rows = [] if index is None else _csv_index(f"{stem}.csv", index)
            self.chunk_index = {
                "_".join(str(at * n) for at, n in zip(row[:3], chunk_size, strict=True)): number
                for number, row in enumerate(rows)
            }
            self._records.locate([(row[3], row[4], row[5]) for row in rows])
        self._records.expect(len(self.chunk_index))

    @property
    def table(self) -> Any:
        """All records, as a `pyarrow.Table`."""
        if self._table is None:
            self._table = self._records.table()
        return self._table

    @property
    def schema(self) -> Any:
        """The columns, as a `pyarrow.Schema`."""
        return self._records.schema

    def get_record(self, x: int, y: int, z: int) -> Any:
        """The record of a chunk, as a `pyarrow.RecordBatch` of one row; `None` if there is no such chunk. On a disk nothing is
        copied: the columns are a view of the file."""
        number = self.chunk_index.get(f"{x}_{y}_{z}")
        if number is None:
            return None
        batch, row = self._records.get(number)
        return batch.slice(row, 1)

    def get_chunk(self, x: int, y: int, z: int) -> dict[str, Any] | None:
        """Get chunk data by coordinates."""
        record = self.get_record(x, y, z)
        if record is None:
            return None
        return {
            "coordinates": (x, y, z),
            "labels": record["labels"][0].as_py(),
            "supervoxels": record["supervoxels"][0].as_py(),
            "compressed_data": record["dvid_compressed_block"][0].as_py(),
        }

    def list_chunks(self) -> list[tuple[int, int, int]]:
        """List all available chunk coordinates."""
        chunks = []
        for key in self.chunk_index:
            x, y, z = key.split("_")
            chunks.append((int(x), int(y), int(z)))
        return chunks

    def get_labels_for_chunk(self, x: int, y: int, z: int) -> list[int] | None:
        """Get just the labels for a specific chunk."""
        record = self.get_record(x, y, z)
        return None if record is None else record["labels"][0].as_py()

    def get_voxels(
        self, x: int, y: int, z: int, supervoxels: bool = False
    ) -> npt.NDArray[np.uint64] | None:
        """The voxels of a chunk, with axes z, y, x: the agglomerated labels, or the supervoxels as stored. `None` if there is no
        such chunk."""
        record = self.get_record(x, y, z)
        if record is None:
            return None
        about = record.schema.field("dvid_compressed_block").metadata or {}
        stored = _view(record["dvid_compressed_block"][0].as_buffer())
        names = record.schema.names
        size = record["uncompressed_size"][0].as_py() if "uncompressed_size" in names else None
        codec = about.get(b"codec", b"zstd").decode()
        if codec == "gzip":
            stored, codec = _gunzip(self.arrow_filename, stored, size), "none"
        table = _words(record["supervoxels"]) if about.get(b"labels") == b"stripped" else None
        labels = None if supervoxels else _words(record["labels"])
        block, shape = _engine.shard_block(stored, codec, size, table, labels)
        decoded = _engine.LabelBlocks("uint64", shape).decode(np.frombuffer(block, "u1"))
        return np.frombuffer(decoded, "<u8").reshape(shape)

    def __len__(self) -> int:
        return len(self.chunk_index)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return iter(self.list_chunks())

    def __repr__(self) -> str:
        return f"<ArrowShardReader {self.arrow_filename!r}: {len(self)} chunks>"


def _words(column: Any) -> npt.NDArray[np.uint8]:
    """The elements of a list as little-endian words, as they lie in memory."""
    values = column[0].values
    return np.asarray(values.to_numpy(zero_copy_only=True), "<u8").view("u1")


def _view(buffer: Any) -> npt.NDArray[np.uint8]:
    return np.frombuffer(buffer, "u1")


def _gunzip(name: str, stored: npt.NDArray[np.uint8], size: int | None) -> npt.NDArray[np.uint8]:
    if size is None:
        raise UnsupportedError(f"{name}: gzip blocks without the column uncompressed_size")
    stream = zlib.decompressobj(wbits=31)
    try:
        plain = stream.decompress(stored.tobytes(), size + 1)
    except zlib.error as error:
        raise CorruptError(f"{name}: a block: {error}") from error
    return np.frombuffer(plain, "u1")


class _Mapped:
    """A file on a disk, mapped."""

    def __init__(self, name: str) -> None:
        with pa.memory_map(name) as file:
            # The buffer keeps the map.
            self.buffer = file.read_buffer() if file.size() else pa.py_buffer(b"")
        self.size = self.buffer.size

    def read(self, start: int, end: int) -> Any:
        return self.slice(start, min(end, self.size)).to_pybytes()

    def slice(self, start: int, end: int) -> Any:
        return self.buffer.slice(start, end - start)

    def file(self) -> Any:
        return pa.BufferReader(self.buffer)


class _Remote:
    """An object elsewhere, read by ranges."""

    def __init__(self, url: str, options: Options) -> None:
        self.object = _engine.StoredObject.open(url, options.native())
        self.size = self.object.size

    def read(self, start: int, end: int) -> bytes:
        return self.object.read(start, min(end, self.size))

    def slice(self, start: int, end: int) -> Any:
        return pa.py_buffer(self.read(start, end))

    def file(self) -> Any:
        return pa.PythonFile(_Ranges(self), mode="r")


class _Ranges(io.RawIOBase):
    """An object as a file of Python, each read one request."""

    def __init__(self, remote: _Remote) -> None:
        self._remote = remote
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._remote.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._remote.size if size is None or size < 0 else self._at + size
        end = min(end, self._remote.size)
        data = self._remote.read(self._at, end) if self._at < end else b""
        self._at += len(data)
        return data


def _bytes_of(name: str, options: Options) -> _Mapped | _Remote:
    if "://" in name:
        return _Remote(name, options)
    try:
        return _Mapped(name)
    except FileNotFoundError:
        raise NotFoundError(f"object not found: {name}") from None


def _optional(name: str, storage: dict[str, object]) -> bytes | None:
    """The content of a small object, if it is there."""
    try:
        found = _bytes_of(name, Options(storage))
    except NotFoundError:
        return None
    if found.size > _INDEX_BYTES_MAX:
        raise CorruptError(f"{name}: an index of {found.size} bytes")
    return bytes(found.read(0, found.size))


def _json_index(name: str, content: bytes) -> dict[str, int]:
    try:
        index = json.loads(content)
    except ValueError as error:
        raise CorruptError(f"{name}: {error}") from error
    whole = isinstance(index, dict) and all(type(number) is int for number in index.values())
    if not whole:
        raise CorruptError(f"{name}: expected the numbers of records by the positions of chunks")
    return dict(index)


def _csv_index(name: str, content: bytes) -> list[list[int]]:
    """The rows `x, y, z, offset, size, batch_idx` of an index."""
    rows = []
    for line in content.decode("ascii", "replace").splitlines():
        if not line or line.startswith(("#", "x,")):
            continue
        try:
            row = [int(field) for field in line.split(",")]
        except ValueError:
            row = []
        if len(row) != 6:
            raise CorruptError(f"{name}: expected x,y,z,offset,size,batch_idx, found {line!r}")
        rows.append(row)
    return rows


class _Records:
    """Where the records of a shard are."""

    schema: Any

    def locate(self, places: list[tuple[int, int, int]]) -> None:
        """Offset and size of the batch of each record, and its number in the batch, from an index."""

    def expect(self, count: int) -> None:
        """The number of records that the index has."""

    def get(self, number: int) -> tuple[Any, int]:
        """The batch of a record, and its number there."""
        raise NotImplementedError

    def table(self) -> Any:
        raise NotImplementedError


class _FileRecords(_Records):
    """Arrow's file format, which ends with a list of its batches."""

    def __init__(self, name: str, source: _Mapped | _Remote) -> None:
        self._name = name
        try:
            self._reader = pa.ipc.open_file(source.file())
        except pa.ArrowInvalid as error:
            raise CorruptError(f"{name}: {error}") from error
        self.schema = self._reader.schema
        self._count = 0
        # The number of the first record of each batch that has been read, and of the one after them.
        self._starts = [0]

    def expect(self, count: int) -> None:
        self._count = count

    def get(self, number: int) -> tuple[Any, int]:
        batches = self._reader.num_record_batches
        if batches == self._count:
            return self._batch(number), 0
        while self._starts[-1] <= number and len(self._starts) <= batches:
            rows = self._batch(len(self._starts) - 1).num_rows
            self._starts.append(self._starts[-1] + rows)
        batch = bisect_right(self._starts, number) - 1
        return self._batch(batch), number - self._starts[batch]

    def _batch(self, number: int) -> Any:
        try:
            return self._reader.get_batch(number)
        except (pa.ArrowInvalid, ValueError, IndexError) as error:
            raise CorruptError(f"{self._name}: batch {number}: {error}") from error

    def table(self) -> Any:
        return self._reader.read_all()


class _StreamRecords(_Records):
    """Arrow's stream format, whose batches only an index finds."""

    def __init__(self, name: str, source: _Mapped | _Remote) -> None:
        self._name = name
        self._source = source
        # The schema is the first message: its length is in its first eight bytes.
        head = source.read(0, 8)
        length = int.from_bytes(head[4:8], "little", signed=True) if len(head) == 8 else -1
        end = 8 + length
        if head[:4] != b"\xff\xff\xff\xff" or not 0 < length <= source.size - 8:
            raise CorruptError(f"{name} is neither an Arrow file nor an Arrow stream")
        try:
            self.schema = pa.ipc.read_schema(source.slice(0, end))
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptError(f"{name}: {error}") from error
        self._after_schema = end
        self._places: list[tuple[int, int, int]] = []

    def locate(self, places: list[tuple[int, int, int]]) -> None:
        self._places = places

    def get(self, number: int) -> tuple[Any, int]:
        if not 0 <= number < len(self._places):
            raise UnsupportedError(f"{self._name} is a stream, and no .csv says where record {number} is")
        offset, size, row = self._places[number]
        end = offset + size
        # DVID counts the schema as a part of the first batch.
        offset = max(offset, self._after_schema)
        if not offset <= end <= self._source.size:
            raise CorruptError(f"{self._name}: record {number}: bytes {offset} to {end} of {self._source.size}")
        try:
            message = pa.ipc.read_message(self._source.slice(offset, end))
            batch = pa.ipc.read_record_batch(message, self.schema)
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            raise CorruptError(f"{self._name}: record {number}: {error}") from error
        if not 0 <= row < batch.num_rows:
            raise CorruptError(f"{self._name}: record {number}: row {row} of {batch.num_rows}")
        return batch, row

    def table(self) -> Any:
        with pa.ipc.open_stream(self._source.file()) as reader:
            return reader.read_all()
