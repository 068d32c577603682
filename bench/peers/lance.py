"""Lance: a table with a row per chunk. It does not sync.

A commit appends the row of the changed chunk, the cheapest commit that Lance has; a reader is told
the position of the newest row of a chunk.
"""

from __future__ import annotations

from typing import Any

import lance
import numpy as np
import pyarrow as pa

from peers.base import CommitPeer
from peers.clock import Cannot

SCHEMA = pa.schema(
    [
        ("chunk", pa.uint64()),
        ("url", pa.string()),
        ("offset", pa.uint64()),
        ("length", pa.uint64()),
        ("bytes", pa.binary()),
    ]
)


def rows(chunks: list[int], value: bytes | None) -> pa.Table:
    count = len(chunks)
    at = np.asarray(chunks, np.uint64)
    columns = [
        pa.array(at),
        pa.array(["s3://bucket/data/file.nc"] * count),
        pa.array(at * np.uint64(1000)),
        pa.array(np.full(count, 1000, np.uint64)),
        pa.array([value] * count, pa.binary()),
    ]
    return pa.table(columns, schema=SCHEMA)


class Commits(CommitPeer):
    def create(self) -> None:
        return

    def bulk(self) -> None:
        lance.write_dataset(rows(list(range(self.refs)), None), str(self.path))

    def open(self) -> None:
        self.table = lance.dataset(str(self.path))

    def change(self, targets: list[int], value: int) -> None:
        new = rows(targets, bytes([value]) * 1000)
        self.table = lance.write_dataset(new, self.table, mode="append")

    def open_chunk(self, target: int) -> Any:
        # The first row that a commit appended.
        table = lance.dataset(str(self.path))
        taken = table.take([self.refs + 1], columns=["chunk", "bytes"])
        if taken["chunk"][0].as_py() != target:
            raise Cannot("another chunk stands there")
        return taken["bytes"][0].as_py()[0]

    def create_tiny(self, chunks: int) -> None:
        raise Cannot("a table, not an array")
