"""A store that a real DVID wrote, for rows about reading it; seeded, made once.

A few hundred distinct blocks are repeated over a grid. They are posted in tiles of 8³ blocks, tiles
in random order, so that values lie in another order than their keys, as in a store that grew over
years: scale 0 alone, no indices. `expected.json` beside the store says what is in it.

    python -m peers.dvid_store DIRECTORY GRID     GRID: blocks along z,y,x; needs Go for the server
"""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
MAKE = ROOT / "testdata" / "dvid" / "make"
DISTINCT, PITCH, SEED = 400, 40, 7
TILE, POSTED = 8, 4000


def driver() -> Any:
    """The script that drives DVID for the golden files."""
    sys.path.insert(0, str(MAKE))
    import drive_dvid  # noqa: PLC0415

    return drive_dvid


def pool(dvid: Any, random: np.random.Generator) -> list[tuple[bytes, int]]:
    """Blocks as they are posted, each with the sum of its list of labels."""
    volume = dvid.Volume(SEED, pitch=PITCH)
    made = []
    for i in range(DISTINCT):
        block = volume.block(7 * i, 3 * i, 5 * i)
        if i % 5 == 0:  # a fifth of the blocks are partly background
            block[:, :, : int(random.integers(8, 56))] = 0
        plain = dvid.encode_block(block)
        (count,) = struct.unpack_from("<I", plain, 12)
        labels = sum(struct.unpack_from(f"<{count}Q", plain, 16)) % 2**64
        made.append((gzip.compress(plain, 6, mtime=0), labels))
    return made


def tiles(
    grid: tuple[int, int, int], count: int, random: np.random.Generator
) -> Iterator[list[tuple[tuple[int, int, int], int]]]:
    """Tile by tile, positions x, y, z and which of the distinct blocks is there."""
    nz, ny, nx = grid
    starts = [
        (x, y, z)
        for z in range(0, nz, TILE)
        for y in range(0, ny, TILE)
        for x in range(0, nx, TILE)
    ]
    random.shuffle(starts)
    for tx, ty, tz in starts:
        yield [
            ((x, y, z), int(random.integers(count)))
            for z in range(tz, min(tz + TILE, nz))
            for y in range(ty, min(ty + TILE, ny))
            for x in range(tx, min(tx + TILE, nx))
        ]


def make_store(directory: Path, grid: tuple[int, int, int]) -> None:
    """Posts all blocks to a server of its own, which leaves its store in `data/badger`."""
    file = directory / "expected.json"
    if file.exists() and json.loads(file.read_text())["grid"] == list(grid):
        return
    built = subprocess.run([MAKE / "dvid-server"], check=True, capture_output=True, text=True)
    shutil.rmtree(directory, ignore_errors=True)
    dvid, random = driver(), np.random.default_rng(SEED)
    blocks = pool(dvid, random)
    server = dvid.Server(built.stdout.strip(), str(directory))
    created = server.post("repos", {"alias": "big", "description": "benchmark"})
    root = json.loads(created)["root"]
    instance = {"typename": "labelmap", "dataname": "seg", "BlockSize": "64,64,64"}
    server.post(f"repo/{root}/instance", {**instance, "MaxDownresLevel": "2"})
    total, stored, labels = 0, 0, 0
    body: list[bytes] = []

    def post() -> None:
        server.post(f"node/{root}/seg/ingest-supervoxels", b"".join(body))
        body.clear()

    for tile in tiles(grid, len(blocks), random):
        for at, which in tile:
            packed, sum_of_labels = blocks[which]
            body.append(struct.pack("<3iI", *at, len(packed)) + packed)
            # The store puts a byte in front of each.
            total, stored = total + 1, stored + len(packed) + 1
            labels = (labels + sum_of_labels) % 2**64
        if len(body) >= POSTED:
            post()
    if body:
        post()
    server.stop()
    # The only instance of a new server.
    found = {"instance": 1, "grid": grid, "planes": grid[0], "blocks": total}
    file.write_text(json.dumps({**found, "value_bytes": stored, "label_sum": labels}))


if __name__ == "__main__":
    z, y, x = map(int, sys.argv[2].split(","))
    make_store(Path(sys.argv[1]), (z, y, x))
