"""Errors of conversions to Neuroglancer's chunks; tests/python/test_segmentation.py has their results."""

from __future__ import annotations

import numpy as np
import pytest

from chunkyard.exceptions import CorruptError
from chunkyard.neuroglancer import from_compressed_segmentation, to_compressed_segmentation

SOLID = np.array([2, 3, 4, 1, 7, 0], "<u4").tobytes()  # 32 × 24 × 16 voxels of label 7, z first


def test_a_part_of_a_block_has_its_own_shape() -> None:
    chunk = to_compressed_segmentation(memoryview(SOLID), (30, 24, 9))
    assert chunk == to_compressed_segmentation(SOLID)
    clipped = from_compressed_segmentation(bytearray(chunk), (30, 24, 9))
    assert clipped[:12] == SOLID[:12]
    assert to_compressed_segmentation(clipped, (30, 24, 9)) == chunk


@pytest.mark.parametrize("shape", [(32, 24, 17), (33, 24, 16), (0, 24, 16), (32, 24)])
def test_a_shape_that_is_no_part_of_the_block_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        to_compressed_segmentation(SOLID, shape)


def test_damaged_bytes_are_errors() -> None:
    with pytest.raises(CorruptError, match="label block"):
        to_compressed_segmentation(SOLID[:-1])
    chunk = to_compressed_segmentation(SOLID)
    with pytest.raises(CorruptError, match="compressed segmentation"):
        from_compressed_segmentation(chunk[:-4], (32, 24, 16))
    with pytest.raises(CorruptError, match="compressed segmentation"):
        from_compressed_segmentation(chunk, (64, 64, 64))
