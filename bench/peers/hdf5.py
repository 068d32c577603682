"""h5py: one file. HDF5's own fastest common filter chain, since zstd is not built in; with
`filters=plugin` the filters of hdf5plugin, which are the codecs of all other sides."""

from __future__ import annotations

from typing import Any

import h5py
import hdf5plugin
import numpy as np

from peers.base import BLOSC, ZSTD_LEVEL, ArrayPeer, Key
from peers.data import Data

# Room for a few chunks; by default there is room for one of the field and none of the labels.
CACHE_BYTES = 8 << 20


class Arrays(ArrayPeer):
    def filters(self, data: Data) -> dict[str, Any]:
        if data.codec == "none":
            return {}
        if self.options.get("filters") == "plugin":
            blosc = hdf5plugin.Blosc(cname=BLOSC["cname"], clevel=BLOSC["clevel"], shuffle=1)
            zstd = hdf5plugin.Zstd(clevel=ZSTD_LEVEL)
            return {"compression": {"blosc": blosc, "zstd": zstd}[data.codec]}
        return {"compression": "gzip", "compression_opts": 1, "shuffle": data.codec == "blosc"}

    def create(self, data: Data) -> None:
        self.file = h5py.File(self.path / "a.h5", "w")
        shape, dtype = data.values.shape, data.values.dtype
        self.array = self.file.create_dataset(
            "a", shape, dtype, chunks=data.chunk, **self.filters(data)
        )

    def open(self) -> None:
        self.file = h5py.File(self.path / "a.h5", "r", rdcc_nbytes=CACHE_BYTES)
        self.array = self.file["a"]

    def write(self, values: np.ndarray) -> None:
        self.array[...] = values

    def finish(self) -> None:
        self.file.close()

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])

    def select_into(self, key: Key, out: np.ndarray) -> None:
        self.array.read_direct(out, source_sel=key)
