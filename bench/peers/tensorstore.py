"""TensorStore: Zarr v3 in a directory."""

from __future__ import annotations

import numpy as np
import tensorstore as ts

from peers.base import BLOSC, ZSTD_LEVEL, ArrayPeer, Key
from peers.data import Data


class Arrays(ArrayPeer):
    def spec(self) -> dict[str, object]:
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(self.path)}}

    def create(self, data: Data) -> None:
        zstd = {"name": "zstd", "configuration": {"level": ZSTD_LEVEL}}
        codec = zstd if data.name == "labels" else {"name": "blosc", "configuration": BLOSC}
        metadata = {
            "shape": list(data.values.shape),
            "data_type": str(data.values.dtype),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(data.chunk)}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, codec],
        }
        self.array = ts.open({**self.spec(), "metadata": metadata, "create": True}).result()

    def open(self) -> None:
        self.array = ts.open(self.spec(), read=True).result()

    def write(self, values: np.ndarray) -> None:
        self.array.write(values).result()

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key].read().result())

    def select_into(self, key: Key, out: np.ndarray) -> None:
        target = ts.array(out, copy=False)
        target.write(self.array[key][ts.d[:].translate_to[0]]).result()
