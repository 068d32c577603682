"""compressed-segmentation: Neuroglancer's form of a block of labels, in C++."""

from __future__ import annotations

from pathlib import Path

import compressed_segmentation as rival
import numpy as np

from peers.supervoxels import EDGE

CELL = (8, 8, 8)


class Blocks:
    """It takes axes as x, y, z, of which the first runs fastest: blocks are transposed."""

    def __init__(self, _path: Path, _options: dict[str, str]) -> None:
        pass

    def encode(self, block: np.ndarray) -> bytes:
        encoded: bytes = rival.compress(block.T, block_size=CELL, order="F")
        return encoded

    def decode(self, encoded: bytes) -> np.ndarray:
        size = (EDGE, EDGE, EDGE)
        block = rival.decompress(encoded, size, np.uint64, block_size=CELL, order="F")
        return np.asarray(block).T
