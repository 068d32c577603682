"""What a rival must be able to do with one long column that grows.

What it lacks, it leaves as here.
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
    """A column on disk, in chunks of 1 MiB. `options` are those of the command line."""

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
        """A new, empty column that is going to have about so many rows."""
        raise Cannot("not for this workload")

    def append(self, values: np.ndarray) -> None:
        """Adds rows at its end."""
        raise Cannot("not for this workload")

    def flush(self) -> None:
        """Everything that was appended is in files; the harness syncs them."""
        return

    def fill(self, rows: int, value: float) -> None:
        """A new column of so many equal float64, in chunks as the rival chooses them."""
        raise Cannot("not for this workload")
