"""Readers of Arrow shards: ours, and the example in the description of the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa


class Shards:
    """A shard is named by its first voxel, and opened when a chunk of it is asked for."""

    def __init__(self, _path: Path, options: dict[str, str]) -> None:
        self.edge = 64 * int(options["shard"])
        self.readers: dict[tuple[int, ...], Any] = {}

    def open(self, shards: list[Path]) -> None:
        self.files = {tuple(map(int, file.stem.split("_"))): file for file in shards}

    def chunk(self, x: int, y: int, z: int) -> dict[str, Any]:
        origin = tuple(at // self.edge * self.edge for at in (x, y, z))
        reader = self.readers.get(origin)
        if reader is None:
            reader = self.readers[origin] = self.reader(self.files[origin])
        found: dict[str, Any] = reader.get_chunk(x, y, z)
        return found

    def reader(self, file: Path) -> Any:
        raise NotImplementedError


class Ours(Shards):
    def reader(self, file: Path) -> Any:
        from chunkyard.shards import ArrowShardReader  # noqa: PLC0415

        return ArrowShardReader(file)


class Document(Shards):
    """Loads the table of a shard, all of it, and picks rows."""

    def reader(self, file: Path) -> Any:
        return WholeTable(file)


class WholeTable:
    def __init__(self, file: Path) -> None:
        with pa.ipc.open_file(str(file)) as reader:
            self.table = reader.read_all()
        self.index: dict[str, int] = json.loads(file.with_suffix(".json").read_text())

    def get_chunk(self, x: int, y: int, z: int) -> dict[str, Any]:
        row = self.index[f"{x}_{y}_{z}"]
        return {
            "coordinates": (x, y, z),
            "labels": self.table["labels"][row].as_py(),
            "supervoxels": self.table["supervoxels"][row].as_py(),
            "compressed_data": self.table["dvid_compressed_block"][row].as_py(),
        }
