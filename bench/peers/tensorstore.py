"""TensorStore: Zarr v3 in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts

from peers.base import BLOSC, ZSTD_LEVEL, ArrayPeer, Change, Key
from peers.data import Data

BYTES: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "little"}}


def spec(path: Path) -> dict[str, Any]:
    return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}


def grid(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def blosc(settings: dict[str, Any]) -> dict[str, Any]:
    return {"name": "blosc", "configuration": settings}


class Arrays(ArrayPeer):
    def create(self, data: Data) -> None:
        zstd = {"name": "zstd", "configuration": {"level": ZSTD_LEVEL}}
        codecs = [BYTES, *{"blosc": [blosc(BLOSC)], "zstd": [zstd], "none": []}[data.codec]]
        chunk = data.chunk
        if self.sharded:
            inner = {
                "chunk_shape": list(chunk),
                "codecs": codecs,
                "index_codecs": [BYTES, {"name": "crc32c"}],
                "index_location": "end",
            }
            codecs = [{"name": "sharding_indexed", "configuration": inner}]
            chunk = data.shard
        metadata = {
            "shape": list(data.values.shape),
            "data_type": str(data.values.dtype),
            "chunk_grid": grid(chunk),
            "codecs": codecs,
        }
        # Usually it syncs each file; with `sync=no` that is left to the harness.
        context = ts.Context({"file_io_sync": self.options.get("sync") != "no"})
        wanted = {**spec(self.path), "metadata": metadata, "create": True}
        self.array = ts.open(wanted, context=context).result()

    def open(self) -> None:
        self.array = ts.open(spec(self.path), read=True).result()

    def write(self, values: np.ndarray) -> None:
        self.array.write(values).result()

    def select(self, key: Key) -> np.ndarray:
        return np.asarray(self.array[key].read().result())

    def select_into(self, key: Key, out: np.ndarray) -> None:
        target = ts.array(out, copy=False)
        target.write(self.array[key][ts.d[:].translate_to[0]]).result()

    def convert(self, source: Path, change: Change) -> None:
        """By one write of the opened source, with `way=transaction` in a transaction, which writes
        chunks once all of them are complete. Slab by slab, and with a cache, it takes longer."""
        array = ts.open(spec(source / "a"), read=True).result()
        old = array.spec().to_json()["metadata"]
        metadata = {key: old[key] for key in ("shape", "data_type", "chunk_grid", "codecs")}
        if change.chunk:
            metadata["chunk_grid"] = grid(change.chunk)
        if change.codec:
            metadata["codecs"] = [BYTES, blosc(change.codec)]
        target = ts.open({**spec(self.path), "metadata": metadata, "create": True}).result()
        if self.options.get("way") != "transaction":
            target.write(array).result()
            return
        with ts.Transaction() as transaction:
            target.with_transaction(transaction).write(array).result()
