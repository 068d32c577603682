"""The blocks of a table, whole again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from chunkyard import _engine
from chunkyard.exceptions import CorruptError, UnsupportedError
from chunkyard.worker._cells import CELL_BYTES, CELLS, ROW_BYTES

Path: TypeAlias = str | os.PathLike[str]

LABELS_KEY = b"chunkyard.labels"
"""What the metadata of a table says about label lists: `inside` of blocks as well, or `apart` from them."""

_HEAD_BYTES = 16


@dataclass(frozen=True, eq=False)
class Block:
    """A block of a table."""

    shard_id: int
    morton: int
    scale: int
    position: tuple[int, int, int]
    """Its first voxel: x, y, z."""
    labels: npt.NDArray[np.uint64] = field(repr=False)
    supervoxels: npt.NDArray[np.uint64] = field(repr=False)
    data: bytes = field(repr=False)
    """The payload as it is stored."""
    codec: str
    raw_nbytes: int
    stripped: bool
    """Whether its label list is not in it."""


def read_blocks(table: Path | Any) -> Iterator[Block]:
    """The blocks of a Parquet file, or of a `pyarrow.Table` with the rows of one shard, in the order of their numbers.

    Rows that are missing, doubled or damaged are a `CorruptError`.
    """
    if isinstance(table, pa.Table):
        yield from _joined("table", table)
        return
    file = pq.ParquetFile(os.fspath(table))
    yield from _joined(os.fspath(table), file.read())


def label_block(block: Block, *, supervoxels: bool = False) -> bytes:
    """The label block (docs/formats/label-block.md) of a row, with labels or with supervoxels in it."""
    if block.codec == "zstd":
        raw = pa.decompress(block.data, block.raw_nbytes, codec="zstd", asbytes=True)
    elif block.codec == "gzip":
        raw = pa.decompress(block.data, block.raw_nbytes, codec="gzip", asbytes=True)
    elif block.codec == "none":
        raw = block.data
    else:
        raise UnsupportedError(f"blocks compressed by {block.codec!r}")
    numbers = (block.supervoxels if supervoxels else block.labels).astype("<u8").tobytes()
    skipped = 0 if block.stripped else len(numbers)
    count = int.from_bytes(raw[_HEAD_BYTES - 4 : _HEAD_BYTES], "little")
    if len(raw) != block.raw_nbytes or 8 * count != len(numbers):
        raise CorruptError(
            f"block {block.morton} of shard {block.shard_id}: {block.raw_nbytes} bytes with {len(numbers) // 8} labels are expected, "
            f"and {len(raw)} with {count} found"
        )
    return bytes(raw[:_HEAD_BYTES] + numbers + raw[_HEAD_BYTES + skipped :])


def _joined(place: str, table: Any) -> Iterator[Block]:
    known = (table.schema.metadata or {}).get(LABELS_KEY)
    rows = table.sort_by([("morton", "ascending"), ("part", "ascending")]).combine_chunks()
    mortons = rows["morton"].to_numpy()
    if not len(mortons):
        return
    starts = np.flatnonzero(np.append(True, mortons[1:] != mortons[:-1]))
    for start, end in zip(starts, [*starts[1:], len(mortons)], strict=True):
        yield _block(place, rows.slice(int(start), int(end - start)), known)


def _block(place: str, rows: Any, known: bytes | None) -> Block:
    first = rows.slice(0, 1).to_pylist()[0]
    where = f"{place}, block {first['morton']} of shard {first['shard_id']}"

    def check(what: str, expected: object, found: object) -> None:
        if expected != found:
            raise CorruptError(f"{where}: {what}: {expected} is expected, and {found} found")

    check("rows", list(range(first["parts"])), rows["part"].to_pylist())
    for name in ("shard_id", "parts", "scale", "x", "y", "z", "nbytes", "raw_nbytes", "codec", "crc32c"):
        check(f"{name} of all rows", 1, len(set(rows[name].to_pylist())))
    cells = [rows[f"bin{number + 1}"].to_pylist() for number in range(CELLS)]
    payload = bytearray()
    for part in range(rows.num_rows):
        for number in range(CELLS):
            cell = cells[number][part]
            at = part * ROW_BYTES + number * CELL_BYTES
            length = min(max(first["nbytes"] - at, 0), CELL_BYTES)
            expected = None if length == 0 and at else length
            check(f"bytes of bin{number + 1} of row {part}", expected, None if cell is None else len(cell))
            payload += cell or b""
    check("CRC-32C", first["crc32c"], _engine.crc32c(payload))
    labels, supervoxels = (np.concatenate([np.asarray(part.values) for part in rows[name]]) for name in ("labels", "supervoxels"))
    check("labels", len(supervoxels), len(labels))
    return Block(
        shard_id=first["shard_id"],
        morton=first["morton"],
        scale=first["scale"],
        position=(first["x"], first["y"], first["z"]),
        labels=labels.astype(np.uint64),
        supervoxels=supervoxels.astype(np.uint64),
        data=bytes(payload),
        codec=first["codec"],
        raw_nbytes=first["raw_nbytes"],
        stripped=known == b"apart",
    )
