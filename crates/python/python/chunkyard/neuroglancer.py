"""Chunks of labels for Neuroglancer: label blocks of DVID as `compressed_segmentation`, and back.

Both forms list the labels of small cells, so one is made from the other cell by cell, without decoding
the voxels. The chunks have one channel of 64-bit labels and a `compressed_segmentation_block_size` of
8, 8, 8; TensorStore writes the same bytes.

>>> import numpy as np
>>> block = np.array([8, 8, 8, 1, 7, 0], "<u4").tobytes()  # 64 × 64 × 64 voxels of label 7
>>> chunk = to_compressed_segmentation(block)
>>> from_compressed_segmentation(chunk, (64, 64, 64)) == block
True
"""

from __future__ import annotations

from collections.abc import Sequence

from chunkyard import _engine

__all__ = ["from_compressed_segmentation", "to_compressed_segmentation"]


def to_compressed_segmentation(block: bytes | bytearray | memoryview, shape: Sequence[int] | None = None) -> bytes:
    """The chunk of a label block: all of it, or the voxels of `shape`, with axes z, y, x, from its first
    one on. A chunk at the upper edge of a volume ends with the volume; its block does not."""
    return _engine.to_segmentation(block, shape)


def from_compressed_segmentation(chunk: bytes | bytearray | memoryview, shape: Sequence[int]) -> bytes:
    """The canonical label block of a chunk of `shape` voxels, with axes z, y, x. Where an extent is no
    multiple of 8 the block is larger, and the voxels outside have label 0."""
    return _engine.from_segmentation(chunk, shape)
