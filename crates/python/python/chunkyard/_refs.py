"""References to chunks as a table of pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chunkyard._extras import extra

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""The number for "not known" in the columns of the native module."""


def refs_table(columns: dict[str, Any], rank: int) -> pa.Table:
    """The table that the columns of the native module describe."""
    with extra("arrow", "a table of references"):
        import pyarrow as pa

    def numbers(key: str, kind: pa.DataType) -> pa.Array:
        values = np.frombuffer(columns[key], dtype="<u8")
        return pa.array(values, mask=values == MISSING).cast(kind)

    def names(key: str) -> pa.Array:
        different, rows = columns[key]
        numbers = np.frombuffer(rows, dtype="<u8")
        return pa.array(different, pa.string()).take(pa.array(numbers, mask=numbers == MISSING))

    index = pa.array(np.frombuffer(columns["index"], dtype="<u8"))
    if rank == 0:
        count = len(np.frombuffer(columns["length"], dtype="<u8"))
        indices = pa.array([[]] * count, pa.list_(pa.uint64(), 0))
    else:
        indices = pa.FixedSizeListArray.from_arrays(index, rank)
    return pa.table(
        {
            "index": indices,
            "kind": names("kind"),
            "url": names("url"),
            "offset": numbers("offset", pa.uint64()),
            "length": numbers("length", pa.uint64()),
            "etag": names("etag"),
            "last_modified_ms": numbers("last_modified_ms", pa.int64()),
            "crc32c": numbers("crc32c", pa.uint32()),
        }
    )
