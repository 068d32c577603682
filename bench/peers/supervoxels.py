"""Supervoxels: cells with crooked borders, in blocks of 64³ and in a volume; seeded, made once.

A cell belongs to the nearest of some seeds, one in each box of a grid, after the space has been
warped; then border voxels take the label of a neighbour here and there, as noisy images make them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

EDGE = 64
# Boxes of seeds along an edge of two blocks: about 60, 450 and 2,400 labels meet a block.
DENSITIES = {"tens": 4, "hundreds": 12, "thousands": 24}
# As at a coarse scale, where a block has about 6,000 labels.
COARSE = {"coarse": 34}
# The volume is made of such cubes, each with ids of its own.
CUBE, CUBE_BOXES = 256, 16


def cells(edge: int, boxes: int, seed: int) -> np.ndarray:
    """A cube of labels, x fastest."""
    random = np.random.default_rng(seed)
    width = edge / boxes
    points = random.random((boxes + 2, boxes + 2, boxes + 2, 3))
    ids = random.integers(1, 1 << 40, (boxes + 2,) * 3, dtype=np.uint64)
    out = np.empty((edge,) * 3, np.uint64)
    phase = random.random(6) * 6
    y, x = np.meshgrid(np.arange(edge), np.arange(edge), indexing="ij")
    for z in range(edge):
        bend = 2 * np.pi / edge * 3
        place = np.stack(
            [
                z + width * 0.3 * (np.sin(y * bend + phase[0]) + np.sin(x * bend + phase[1])),
                y + width * 0.3 * (np.sin(x * bend + phase[2]) + np.sin(z * bend + phase[3])),
                x + width * 0.3 * (np.sin(z * bend + phase[4]) + np.sin(y * bend + phase[5])),
            ]
        )
        place = np.clip(place / width, 0, boxes - 1e-6)
        box = place.astype(int)
        nearest = np.full((edge, edge), np.inf)
        plane = out[z]
        for dz, dy, dx in np.ndindex(3, 3, 3):
            at = (box[0] + dz, box[1] + dy, box[2] + dx)
            # The boxes of the grid begin at 1, those around it at 0.
            seeds = points[at] + np.stack(at, axis=-1) - 1
            distance = ((seeds - np.moveaxis(place, 0, -1)) ** 2).sum(axis=-1)
            closer = distance < nearest
            nearest[closer] = distance[closer]
            plane[closer] = ids[at][closer]
    return roughen(out, random)


def roughen(labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One voxel of eight takes the label of the voxel before it: only borders change."""
    moved = random.random(labels.shape) < 1 / 8
    for axis in range(3):
        before = np.roll(labels, 1, axis=axis)
        some = moved & (random.integers(0, 3, labels.shape) == axis)
        labels = np.where(some, before, labels)
    return labels


def make_blocks(directory: Path, densities: Mapping[str, int] = DENSITIES) -> None:
    """For each density a file of eight blocks that make a cube, in the order z, y, x."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, boxes in densities.items():
        file = directory / f"blocks-{name}"
        if not file.exists():
            cube = cells(2 * EDGE, boxes, seed=boxes).reshape(2, EDGE, 2, EDGE, 2, EDGE)
            blocks = cube.transpose(0, 2, 4, 1, 3, 5)
            file.write_bytes(np.ascontiguousarray(blocks, "<u8").tobytes())


def make_volume(directory: Path, shape: tuple[int, int, int]) -> None:
    """A volume of whole cubes, plane by plane; `supervoxels` in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "supervoxels"
    if file.exists() and file.stat().st_size == 8 * int(np.prod(shape)):
        return
    cube = cells(CUBE, CUBE_BOXES, seed=7)
    count = [extent // CUBE for extent in shape]
    with file.open("wb") as out:
        for z in range(shape[0]):
            rows = []
            for y in range(count[1]):
                number = (z // CUBE * count[1] + y) * count[2]
                parts = [
                    cube[z % CUBE] + (np.uint64(number + x) << np.uint64(41))
                    for x in range(count[2])
                ]
                rows.append(np.concatenate(parts, axis=1))
            out.write(np.concatenate(rows).astype("<u8").tobytes())


def load_blocks(directory: Path, name: str) -> np.ndarray:
    return np.fromfile(directory / f"blocks-{name}", "<u8").reshape(-1, EDGE, EDGE, EDGE)


def load_volume(directory: Path, shape: tuple[int, ...]) -> np.ndarray:
    return np.fromfile(directory / "supervoxels", "<u8").reshape(shape)
