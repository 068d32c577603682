"""TensorStore: a sharded Neuroglancer volume, from a directory of Zarr v3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts

from peers.tensorstore import spec

CHUNK = [64, 64, 64]
# Bits of the number of a chunk within a shard: shards of 256 voxels along each axis, as ours.
WITHIN, SHARD_EDGE = 6, 256
RESOLUTION = [8, 8, 8]


class Volumes:
    """`way=transaction`: by one write in one transaction, so that each shard is written once.
    `way=layers`: a transaction for each layer of shards, which takes less memory. Without any, each
    chunk would write its shard anew."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.path, self.options = path, options

    def spec(self) -> dict[str, Any]:
        kvstore = {"driver": "file", "path": str(self.path)}
        return {"driver": "neuroglancer_precomputed", "kvstore": kvstore}

    def export(self, source: Path) -> None:
        array = ts.open(spec(source / "a"), read=True).result()
        z, y, x = array.shape
        bits = sum((extent // 64 - 1).bit_length() for extent in (z, y, x))
        within = min(WITHIN, bits)
        scale = {
            "key": "s0",
            "size": [x, y, z],
            "resolution": RESOLUTION,
            "chunk_size": CHUNK,
            "encoding": "compressed_segmentation",
            "compressed_segmentation_block_size": [8, 8, 8],
            "sharding": {
                "@type": "neuroglancer_uint64_sharded_v1",
                "hash": "identity",
                "preshift_bits": within,
                "minishard_bits": 0,
                "shard_bits": bits - within,
                "minishard_index_encoding": "gzip",
                "data_encoding": "gzip",
            },
        }
        volume = {"data_type": "uint64", "num_channels": 1, "type": "segmentation"}
        wanted = {**self.spec(), "multiscale_metadata": volume, "scale_metadata": scale}
        # Syncing is left to the harness.
        context = ts.Context({"file_io_sync": False})
        target = ts.open({**wanted, "create": True}, context=context).result()
        target = target[ts.d["channel"][0]].transpose([2, 1, 0])
        edge = z if self.options["way"] == "transaction" else SHARD_EDGE
        for from_z in range(0, z, edge):
            planes = slice(from_z, from_z + edge)
            with ts.Transaction() as transaction:
                target.with_transaction(transaction)[planes].write(array[planes]).result()

    def open(self) -> Callable[[slice], np.ndarray]:
        array = ts.open(self.spec(), read=True).result()[ts.d["channel"][0]].transpose([2, 1, 0])
        return lambda planes: np.asarray(array[planes].read().result())
