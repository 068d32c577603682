"""Ours, as somebody who writes Python uses it: arrays of a repository, plain Zarr, and zarr-python
on `session.store` or with our codec pipeline."""

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


class Reads(ArrayPeer):
    """What `chunkyard.open` gives."""

    array: Any

    def open(self) -> None:
        self.array = chunkyard.open(self.path, "a")

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key])

    def select_into(self, key: Key, out: np.ndarray) -> None:
        self.array.read(key, out=out)


class Arrays(Reads):
    """A repository. With `codec=own` chunks are shards of 32 KiB, of which a point needs one."""

    def create(self, data: Data) -> None:
        self.session = chunkyard.Repository.create(self.path).writable_session("main")
        spec: dict[str, Any] = {"chunks": data.chunk, "codecs": CODECS[data.codec]}
        if self.options.get("codec") == "own":
            inner = [{"name": "blosc", "configuration": BLOSC}, {"name": "crc32c"}]
            bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
            spec = {"shards": data.chunk, "chunks": (1, 64, 128), "codecs": [bytes_codec, *inner]}
        values = data.values
        self.array = self.session.create_array("a", shape=values.shape, dtype=values.dtype, **spec)

    def write(self, values: np.ndarray) -> None:
        self.array[...] = values

    def finish(self) -> None:
        self.session.commit("all")


class PlainArrays(Reads, ZarrArrays):
    """A directory of Zarr that zarr-python wrote."""


class CodecArrays(ZarrArrays):
    """The same through zarr-python, decoded and encoded by us."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        zarr.config.set({"codec_pipeline.path": "chunkyard.zarr.CodecPipeline"})


class StoreArrays(ZarrArrays):
    """zarr-python on the store of a session, with zarr's own codecs."""

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


class StoreAndCodecArrays(StoreArrays, CodecArrays):
    """The same with our codec pipeline."""
