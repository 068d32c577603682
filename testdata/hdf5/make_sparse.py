#!/usr/bin/env python3
"""Writes sparse_earliest.h5 and sparse_latest.h5 beside it: arrays with room for 2**38 chunks that store three.

    pip install h5py==3.16.0 numpy==2.4.6
"""

from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent


def fill(array: h5py.Dataset) -> None:
    """Stores a chunk at the beginning, one somewhere and one at the end: 1 to 4, 5 to 8, 9 to 12."""
    places = [(0, 0), (10, 154), (2**20 - 2, 2**20 - 2)]
    for number, (y, x) in enumerate(places):
        first = 4 * number + 1
        array[y : y + 2, x : x + 2] = np.arange(first, first + 4).reshape(2, 2)


def main() -> None:
    # A B-tree of version 1, and one of version 2.
    for libver, maxshape in [("earliest", None), ("latest", (None, None))]:
        with h5py.File(HERE / f"sparse_{libver}.h5", "w", libver=libver) as file:
            fill(
                file.create_dataset(
                    "t", (2**20, 2**20), dtype="<i4", chunks=(2, 2), maxshape=maxshape, track_times=False
                )
            )


if __name__ == "__main__":
    main()
