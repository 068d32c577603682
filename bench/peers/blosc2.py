"""python-blosc2: one file, chunks made of blocks that decode one by one. `mapped=yes` maps it."""

from __future__ import annotations

import blosc2
import numpy as np

from peers.base import ArrayPeer, Key
from peers.clock import Cannot
from peers.data import Data


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
