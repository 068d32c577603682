"""The interface of a rival, so that the workers need not know which one it is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peers.clock import Cannot
from peers.data import Data

# blosc level 2 is zstd level 3.
BLOSC: dict[str, Any] = {
    "cname": "zstd",
    "clevel": 2,
    "shuffle": "shuffle",
    "typesize": 4,
    "blocksize": 0,
}
ZSTD_LEVEL = 3
LZ4: dict[str, Any] = {**BLOSC, "cname": "lz4", "clevel": 5}

Key = tuple[slice | int, ...]
EVERYTHING: Key = (slice(None), slice(None), slice(None))


@dataclass(frozen=True)
class Change:
    """The changes of a conversion to an array in plain Zarr; everything else stays as it is."""

    chunk: tuple[int, int, int] | None = None
    # Settings of blosc.
    codec: dict[str, Any] | None = None


class ArrayPeer(ABC):
    """An array on disk. `options` come from the command line."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.path, self.options = path, options
        self.sharded = options.get("sharded") == "yes"

    @abstractmethod
    def create(self, data: Data) -> None:
        """A new, empty array for `data`, in a directory that exists and is empty."""

    @abstractmethod
    def open(self) -> None:
        """Opens the array for reading."""

    @abstractmethod
    def write(self, values: np.ndarray) -> None:
        """Writes everything."""

    def finish(self) -> None:
        """Completes a write; the harness syncs the files itself."""
        return

    @abstractmethod
    def select(self, key: Key) -> np.ndarray:
        """A part, in fresh memory."""

    def select_into(self, key: Key, out: np.ndarray) -> None:
        """A part, into memory of the caller."""
        raise Cannot("no reads into given memory")

    def convert(self, source: Path, change: Change) -> None:
        """Writes the array `a` of the Zarr hierarchy `source` anew, with the change."""
        raise Cannot("not for this workload")

    def read(self) -> np.ndarray:
        return self.select(EVERYTHING)

    def read_into(self, out: np.ndarray) -> None:
        self.select_into(EVERYTHING, out)

    def read_chunk(self, plane: int, out: np.ndarray) -> np.ndarray:
        """One chunk of the field, into `out` if the rival can."""
        key: Key = (slice(plane, plane + 1), slice(None), slice(None))
        try:
            self.select_into(key, out)
        except Cannot:
            return self.select(key)
        return out

    def read_series(self, y: int, x: int) -> np.ndarray:
        return self.select((slice(None), y, x)).reshape(-1)


def slabs(planes: int, *chunks: tuple[int, ...]) -> Iterator[slice]:
    """Slabs of whole planes that hold whole chunks of all grids, of 64 planes at least."""
    step = math.lcm(*(chunk[0] for chunk in chunks))
    step *= max(1, 64 // step)
    for start in range(0, planes, step):
        yield slice(start, min(start + step, planes))


class CommitPeer:
    """A versioned array of many chunks of 1,000 bytes. A rival does not override what it lacks."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.path, self.options = path, options
        self.refs = int(options.get("refs", "0"))

    def create(self) -> None:
        """A new, empty array in a directory that does not exist."""
        raise Cannot("not for this workload")

    def bulk(self) -> None:
        """Stages all references of a new array and commits them."""
        raise Cannot("no references to stage")

    def open(self) -> None:
        """Opens the array of `create` and `bulk`, for commits."""
        raise Cannot("not for this workload")

    def change(self, targets: list[int], value: int) -> None:
        """Changes these chunks to `value` in one commit."""
        raise Cannot("not for this workload")

    def open_chunk(self, target: int) -> Any:
        """A fresh open, and the first byte of a chunk."""
        raise Cannot("not for this workload")

    def create_tiny(self, chunks: int) -> None:
        """A new, empty array of chunks of 4 KiB."""
        raise Cannot("not for this workload")

    def tiny(self, data: np.ndarray) -> None:
        """Writes all of them and commits."""
        raise Cannot("not for this workload")

    def read_tiny(self) -> np.ndarray:
        """All of them, from a fresh open."""
        raise Cannot("not for this workload")
