"""The interface of a rival for one long column that grows.

A rival does not override methods that it lacks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from peers.clock import Cannot

# Rows of a chunk: 1 MiB of rows of 8 bytes.
CHUNK = 1 << 17
# Blosc's level of each codec, with a byte shuffle. Level 2 is zstd level 3.
LEVELS = {"lz4": 5, "zstd": 2}


class Column:
    """A column on disk, in chunks of 1 MiB. `options` come from the command line."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.path, self.options = path, options
        self.codec = options.get("codec", "lz4")
        self.level = LEVELS[self.codec]

    def write(self, values: np.ndarray) -> None:
        """A new column of these rows, in a directory that exists and is empty."""
        raise Cannot("not for this workload")

    def open(self) -> None:
        """Opens it for reading."""
        raise Cannot("not for this workload")

    def read(self) -> np.ndarray:
        """All rows, in fresh memory."""
        raise Cannot("not for this workload")

    def read_into(self, out: np.ndarray) -> None:
        """All rows, into memory of the caller."""
        raise Cannot("no reads into given memory")

    def part(self, start: int, stop: int) -> np.ndarray:
        """Some rows."""
        raise Cannot("not for this workload")

    def begin(self, dtype: np.dtype, expected: int) -> None:
        """A new, empty column that will have about this many rows."""
        raise Cannot("not for this workload")

    def append(self, values: np.ndarray) -> None:
        """Adds rows at its end."""
        raise Cannot("not for this workload")

    def flush(self) -> None:
        """Puts all appended rows into files; the harness syncs them."""
        return

    def fill(self, rows: int, value: float) -> None:
        """A new column of equal float64, with the rival's default chunks."""
        raise Cannot("not for this workload")
