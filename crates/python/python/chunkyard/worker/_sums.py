"""What came over the network, compared with what was sent: rows, bytes, checksums, order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chunkyard import _engine
from chunkyard.worker._errors import FailedTaskError

BLOCKS = {
    "scale": pa.uint8(),
    "shard_id": pa.uint64(),
    "morton": pa.uint64(),
    "x": pa.int32(),
    "y": pa.int32(),
    "z": pa.int32(),
    "labels": pa.list_(pa.uint64()),
    "supervoxels": pa.list_(pa.uint64()),
    "data": pa.binary(),
    "nbytes": pa.uint32(),
    "raw_nbytes": pa.uint32(),
    "codec": pa.utf8(),
    "crc32c": pa.uint32(),
}
INDEX = {
    "body": pa.uint64(),
    "x": pa.int32(),
    "y": pa.int32(),
    "z": pa.int32(),
    "supervoxels": pa.list_(pa.uint64()),
    "counts": pa.list_(pa.uint32()),
}


def check_schema(schema: Any, stream: str) -> None:
    """Refuses a stream with other columns."""
    for name, kind in (BLOCKS if stream == "blocks" else INDEX).items():
        at = schema.get_field_index(name)
        found = None if at < 0 else schema.field(at).type
        if found != kind:
            raise FailedTaskError(f"column {name} of the stream of {stream}: {kind} is expected, and {found} came")


@dataclass
class Sums:
    """The sums of a shard, as far as it has come."""

    shard: dict[str, Any]
    rows: int = 0
    bytes: int = 0
    crc32c: int = 0
    _last: int = -1

    def add(self, batch: Any) -> None:
        """Adds rows, and compares what each says of itself."""
        if not batch.num_rows:
            return
        for column in batch.columns:
            if column.null_count:
                raise self._wrong("nulls", 0, column.null_count)
        if self.shard["stream"] == "blocks":
            self._add_blocks(batch)
        else:
            self._add_index(batch)
        self.rows += batch.num_rows

    def compare(self, marker: dict[str, Any]) -> None:
        """Compares the sums with the marker at the end of the shard."""
        for name, found in (("rows", self.rows), ("bytes", self.bytes), ("crc32c", self.crc32c)):
            if marker.get(name) != found:
                raise self._wrong(name, marker.get(name), found)

    def _add_blocks(self, batch: Any) -> None:
        for name in ("scale", "shard"):
            column = batch["shard_id" if name == "shard" else name].to_numpy()
            if (column != self.shard[name]).any():
                raise self._wrong(name, self.shard[name], column[column != self.shard[name]][0])
        mortons = batch["morton"].to_numpy()
        if int(mortons[0]) <= self._last or (mortons[1:] <= mortons[:-1]).any():
            raise self._wrong("order of morton", "ascending", "another one")
        self._last = int(mortons[-1])
        data = batch["data"]
        values, offsets = _values(data)
        sizes = np.diff(offsets)
        if (sizes != batch["nbytes"].to_numpy()).any():
            raise self._wrong("nbytes", "the bytes of data", "others")
        if (np.array(_engine.crc32c_pieces(values, offsets.view(np.uint8)), np.uint32) != batch["crc32c"].to_numpy()).any():
            raise self._wrong("crc32c of a row", "that of its data", "another one")
        labels, supervoxels = (pc.list_value_length(batch[name]).to_numpy() for name in ("labels", "supervoxels"))
        if (labels != supervoxels).any():
            raise self._wrong("labels", "as many as supervoxels", "others")
        whole = values[int(offsets[0]) : int(offsets[-1])]
        self.bytes += len(whole)
        self.crc32c = _engine.crc32c(whole, self.crc32c)

    def _add_index(self, batch: Any) -> None:
        whole = _index_bytes(batch)
        self.bytes += len(whole)
        self.crc32c = _engine.crc32c(whole, self.crc32c)

    def _wrong(self, what: str, expected: object, found: object) -> FailedTaskError:
        return FailedTaskError(f"{name_of(self.shard)}: {what}: {expected} is expected, and {found} came")


def name_of(shard: dict[str, Any]) -> str:
    """How a message calls a shard."""
    if shard.get("stream") == "blocks":
        return f"shard {shard.get('shard')} of scale {shard.get('scale')}"
    return f"part {shard.get('part')} of the index"


def _values(column: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The bytes of a binary column and where each value ends, without a copy."""
    _, offsets, values = column.buffers()
    places = np.frombuffer(offsets, "<i4", len(column) + 1, 4 * column.offset)
    return (np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)), places


def _index_bytes(batch: Any) -> npt.NDArray[np.uint8]:
    """The rows of the index as bytes: body, x, y, z, supervoxels, counts."""
    lengths = pc.list_value_length(batch["supervoxels"]).to_numpy().astype(np.int64)
    sizes = 20 + 12 * lengths
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)

    def put(places: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        width = values.dtype.itemsize
        out[places[:, None] + np.arange(width)] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)

    put(starts, batch["body"].to_numpy().astype("<u8"))
    for number, axis in enumerate("xyz"):
        put(starts + 8 + 4 * number, batch[axis].to_numpy().astype("<i4"))
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = np.repeat(starts + 20, lengths)
    put(at + 8 * within, batch["supervoxels"].flatten().to_numpy().astype("<u8"))
    put(at + 8 * np.repeat(lengths, lengths) + 4 * within, batch["counts"].flatten().to_numpy().astype("<u4"))
    return out
