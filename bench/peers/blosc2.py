"""python-blosc2: one file, chunks made of blocks that decode one by one. `mapped=yes` maps it."""

from __future__ import annotations

import blosc2
import numpy as np

from peers.base import ArrayPeer, Key
from peers.clock import Cannot
from peers.data import Data
from peers.superchunk import CHUNK, Column


class Arrays(ArrayPeer):
    def file(self) -> str:
        return str(self.path / "a.b2nd")

    def create(self, data: Data) -> None:
        self.data = data

    def open(self) -> None:
        mapped = "r" if self.options.get("mapped") == "yes" else None
        self.array = blosc2.open(self.file(), mode="r", mmap_mode=mapped)

    def write(self, values: np.ndarray) -> None:
        shuffled = self.data.codec == "blosc"
        filters = [blosc2.Filter.SHUFFLE if shuffled else blosc2.Filter.NOFILTER]
        # Level 2 is zstd level 3, here too; level 0 copies.
        level = 0 if self.data.codec == "none" else 2
        params = blosc2.CParams(codec=blosc2.Codec.ZSTD, clevel=level, filters=filters)
        chunks = self.data.chunk
        blosc2.asarray(values, chunks=chunks, urlpath=self.file(), mode="w", cparams=params)

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])

    def select_into(self, key: Key, out: np.ndarray) -> None:
        parts = [part for part in key if isinstance(part, slice)]
        if len(parts) < len(key):
            raise Cannot("points only into fresh memory")
        bounds = [part.indices(size) for part, size in zip(parts, self.array.shape, strict=True)]
        start, stop = [low for low, _, _ in bounds], [high for _, high, _ in bounds]
        self.array.get_slice_numpy(out, (start, stop))


class Columns(Column):
    """A column: the same file, one-dimensional."""

    def file(self) -> str:
        return str(self.path / "a.b2nd")

    def params(self) -> blosc2.CParams:
        codec = {"lz4": blosc2.Codec.LZ4, "zstd": blosc2.Codec.ZSTD}[self.codec]
        return blosc2.CParams(codec=codec, clevel=self.level, filters=[blosc2.Filter.SHUFFLE])

    def write(self, values: np.ndarray) -> None:
        blosc2.asarray(
            values, chunks=(CHUNK,), urlpath=self.file(), mode="w", cparams=self.params()
        )

    def open(self) -> None:
        self.array = blosc2.open(self.file(), mode="r")

    def read(self) -> np.ndarray:
        return np.asarray(self.array[:])

    def read_into(self, out: np.ndarray) -> None:
        self.array.get_slice_numpy(out, ([0], [len(out)]))

    def part(self, start: int, stop: int) -> np.ndarray:
        return np.asarray(self.array[start:stop])

    def begin(self, dtype: np.dtype, expected: int) -> None:
        self.array = blosc2.empty(
            (0,), dtype, chunks=(CHUNK,), urlpath=self.file(), mode="w", cparams=self.params()
        )

    def append(self, values: np.ndarray) -> None:
        rows = self.array.shape[0]
        self.array.resize((rows + len(values),))
        self.array[rows:] = values

    def fill(self, rows: int, value: float) -> None:
        blosc2.full((rows,), value, np.float64, urlpath=self.file(), mode="w")
