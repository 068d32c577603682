"""Ours, as a Python program uses it: arrays of a repository, plain Zarr, and zarr-python on
`session.store`."""

from __future__ import annotations

from typing import Any

import chunkyard
import numpy as np
import zarr

from peers.base import BLOSC, ZSTD_LEVEL, ArrayPeer, Key
from peers.data import Data
from peers.zarr_python import Arrays as ZarrArrays

CODECS = {
    "blosc": f"blosc:{BLOSC['cname']}:{BLOSC['clevel']}:{BLOSC['shuffle']}",
    "zstd": f"zstd:{ZSTD_LEVEL}",
    "none": "none",
}


class Arrays(ArrayPeer):
    """A repository. With `codec=own` chunks are shards of 32 KiB, of which a point needs one."""

    array: Any

    def create(self, data: Data) -> None:
        self.session = chunkyard.Repository.create(self.path).writable_session("main")
        self.array = self.session.create_array("a", **self.spec(data))

    def spec(self, data: Data) -> dict[str, Any]:
        values = data.values
        spec: dict[str, Any] = {"shape": values.shape, "dtype": values.dtype}
        if self.options.get("codec") != "own":
            return {**spec, "chunks": data.chunk, "codecs": CODECS[data.codec]}
        inner = [{"name": "blosc", "configuration": BLOSC}, {"name": "crc32c"}]
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *inner]
        return {**spec, "shards": data.chunk, "chunks": (1, 64, 128), "codecs": codecs}

    def open(self) -> None:
        self.array = chunkyard.open(self.path, "a")

    def write(self, values: np.ndarray) -> None:
        self.array[...] = values

    def finish(self) -> None:
        self.session.commit("all")

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])

    def select_into(self, key: Key, out: np.ndarray) -> None:
        self.array.read(key, out=out)


class PlainArrays(Arrays):
    """A directory of Zarr. With `durable=no` only the harness syncs files."""

    def create(self, data: Data) -> None:
        durable = self.options.get("durable") != "no"
        root: Any = chunkyard.open(self.path, mode="a", durable=durable)
        self.array = root.create_array("a", **self.spec(data))

    def finish(self) -> None:
        return


class StoreArrays(ZarrArrays):
    """zarr-python on the store of a session; with `pipeline=ours` also with our codec pipeline."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.options.get("pipeline") == "ours":
            zarr.config.set({"codec_pipeline.path": "chunkyard.zarr.CodecPipeline"})

    def store(self) -> Any:
        return self.session.store

    def create(self, data: Data) -> None:
        self.session = chunkyard.Repository.create(self.path).writable_session("main")
        super().create(data)

    def open(self) -> None:
        self.session = chunkyard.Repository.open(self.path).readonly_session("main")
        super().open()

    def finish(self) -> None:
        self.session.commit("all")
