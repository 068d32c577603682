"""docs/formats/label-block.md as a reader of its own; it shares no code with Chunkyard."""

from __future__ import annotations

import struct

import numpy as np


def block_voxels(block: bytes) -> np.ndarray:
    """The voxels of a block, z first, as the page says; it shares no code with Chunkyard."""
    gx, gy, gz, count = struct.unpack_from("<4I", block)
    table = np.frombuffer(block, "<u8", count, 16)
    cells = gx * gy * gz
    if count == 1:
        return np.full((8 * gz, 8 * gy, 8 * gx), table[0])
    at = 16 + 8 * count
    counts = np.frombuffer(block, "<u2", cells, at)
    at += 2 * cells
    indices = np.frombuffer(block, "<u4", counts.sum(dtype=int), at)
    at += indices.nbytes
    out, first = np.zeros((cells, 512), "u8"), 0
    for cell, n in enumerate(counts.tolist()):
        width = (n - 1).bit_length() if n > 1 else 0
        bits = np.unpackbits(np.frombuffer(block, "u1", 64 * width, at)).reshape(512, width)
        values = bits.astype(int) @ (1 << np.arange(width))[::-1]
        out[cell] = table[indices[first : first + n]][values] if n else 0
        first += n
        at += 64 * width
    assert at == len(block)
    cube = out.reshape(gz, gy, gx, 8, 8, 8).transpose(0, 3, 1, 4, 2, 5)
    return cube.reshape(8 * gz, 8 * gy, 8 * gx)
