"""TileDB: dense arrays; a write is a fragment, which is its commit. It does not sync."""

from __future__ import annotations

from typing import Any

import numpy as np
import tiledb

from peers.base import ZSTD_LEVEL, ArrayPeer, CommitPeer, Key
from peers.data import Data


def create(
    path: str,
    shape: tuple[int, ...],
    tile: tuple[int, ...],
    dtype: np.dtype,
    filters: list[Any],
) -> None:
    dimensions = [
        tiledb.Dim(f"d{at}", domain=(0, size - 1), tile=extent, dtype=np.uint64)
        for at, (size, extent) in enumerate(zip(shape, tile, strict=True))
    ]
    value = tiledb.Attr("", dtype=dtype, filters=tiledb.FilterList(filters))
    tiledb.Array.create(path, tiledb.ArraySchema(tiledb.Domain(*dimensions), [value]))


class Arrays(ArrayPeer):
    def create(self, data: Data) -> None:
        shuffle = [] if data.codec == "zstd" else [tiledb.ByteShuffleFilter()]
        filters = [*shuffle, tiledb.ZstdFilter(level=ZSTD_LEVEL)]
        create(str(self.path / "a"), data.values.shape, data.chunk, data.values.dtype, filters)
        self.array = tiledb.open(str(self.path / "a"), "w")

    def open(self) -> None:
        self.array = tiledb.open(str(self.path / "a"))

    def write(self, values: np.ndarray) -> None:
        self.array[:] = values

    def finish(self) -> None:
        self.array.close()

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])


class Commits(CommitPeer):
    """An array of (n, 1000, 1000) in tiles of 1,000 bytes; all written at first in one fragment."""

    def create(self) -> None:
        planes = -(-self.refs // 1000)
        create(str(self.path), (planes, 1000, 1000), (1, 1, 1000), np.dtype("uint8"), [])

    def bulk(self) -> None:
        # It has no references: the chunks themselves are written, compressed to nothing.
        with tiledb.open(str(self.path), "w") as array:
            array[:] = np.zeros((-(-self.refs // 1000), 1000, 1000), "uint8")

    def open(self) -> None:
        return

    def change(self, targets: list[int], value: int) -> None:
        with tiledb.open(str(self.path), "w") as array:
            for n in targets:
                array[n // 1000, n % 1000, :] = np.full(1000, value, "uint8")

    def open_chunk(self, target: int) -> Any:
        with tiledb.open(str(self.path)) as array:
            return array[target // 1000, target % 1000, :][0]

    def create_tiny(self, chunks: int) -> None:
        create(str(self.path), (chunks * 4096,), (4096,), np.dtype("uint8"), [])

    def tiny(self, data: np.ndarray) -> None:
        with tiledb.open(str(self.path), "w") as array:
            array[:] = data

    def read_tiny(self) -> np.ndarray:
        with tiledb.open(str(self.path)) as array:
            return np.asarray(array[:])
