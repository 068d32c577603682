"""zarr-python on a directory, with its own codec pipeline or the pipeline of zarrs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, ZstdCodec
from zarr.core.buffer.cpu import NDBuffer

from peers.base import BLOSC, ZSTD_LEVEL, ArrayPeer, Change, Key, slabs
from peers.data import Data


class Arrays(ArrayPeer):
    def store(self) -> Any:
        return str(self.path)

    def create(self, data: Data) -> None:
        zstd = ZstdCodec(level=ZSTD_LEVEL)
        codecs: dict[str, list[Any]] = {"blosc": [BloscCodec(**BLOSC)], "zstd": [zstd], "none": []}
        self.array = zarr.create_array(
            self.store(),
            name="a",
            shape=data.values.shape,
            chunks=data.chunk,
            shards=data.shard if self.sharded else None,
            dtype=data.values.dtype,
            compressors=codecs[data.codec],
            filters=None,
        )

    def open(self) -> None:
        self.array = zarr.open_array(self.store(), path="a", mode="r")

    def write(self, values: np.ndarray) -> None:
        self.array[...] = values

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])

    def select_into(self, key: Key, out: np.ndarray) -> None:
        self.array.get_basic_selection(key, out=NDBuffer.from_numpy_array(out))

    def convert(self, source: Path, change: Change) -> None:
        """Slab by slab: it has no virtual copy."""
        array = zarr.open_array(str(source), path="a", mode="r")
        target = zarr.create_array(
            self.store(),
            name="a",
            shape=array.shape,
            chunks=change.chunk or array.chunks,
            dtype=array.dtype,
            compressors=[BloscCodec(**change.codec)] if change.codec else array.compressors,
            filters=None,
        )
        for slab in slabs(array.shape[0], array.chunks, target.chunks):
            target[slab] = array[slab]


class ZarrsArrays(Arrays):
    """The same, decoded and encoded by zarrs."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
