"""h5py: one file. HDF5's own fastest common filter chain, since zstd is not built in."""

from __future__ import annotations

import h5py
import numpy as np

from peers.base import ArrayPeer, Key
from peers.data import Data


class Arrays(ArrayPeer):
    def create(self, data: Data) -> None:
        self.file = h5py.File(self.path / "a.h5", "w")
        self.array = self.file.create_dataset(
            "a",
            data.values.shape,
            data.values.dtype,
            chunks=data.chunk,
            compression="gzip",
            compression_opts=1,
            shuffle=data.name == "field",
        )

    def open(self) -> None:
        self.file = h5py.File(self.path / "a.h5", "r")
        self.array = self.file["a"]

    def write(self, values: np.ndarray) -> None:
        self.array[...] = values

    def finish(self) -> None:
        self.file.close()

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])

    def select_into(self, key: Key, out: np.ndarray) -> None:
        self.array.read_direct(out, source_sel=key)
