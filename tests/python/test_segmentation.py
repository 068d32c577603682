"""docs/formats/label-block.md: label blocks as `compressed_segmentation`, for programs that know nothing of blocks."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path

import compressed_segmentation
import numpy as np
import pytest
import tensorstore as ts
from chunkyard.neuroglancer import from_compressed_segmentation, to_compressed_segmentation

from conftest import ROOT
from label_blocks import block_voxels

GOLDEN = ROOT / "testdata" / "label_block"
BEYOND_DOUBLES = (1 << 63) + 1


def peer_encode(labels: np.ndarray) -> bytes:
    return compressed_segmentation.compress(labels.T, order="F")


def peer_decode(chunk: bytes, shape: tuple[int, ...]) -> np.ndarray:
    return compressed_segmentation.decompress(chunk, shape[::-1], np.uint64, order="F").T.reshape(shape)


class Volume:
    """A precomputed volume of one chunk, in TensorStore's hands."""

    def __init__(self, root: Path, shape: tuple[int, ...]) -> None:
        size = list(shape[::-1])
        scale = {"size": size, "chunk_size": size, "resolution": [8, 8, 8], "encoding": "compressed_segmentation"}
        self.shape = shape
        self.spec = {
            "driver": "neuroglancer_precomputed",
            "kvstore": {"driver": "file", "path": f"{root}/"},
            "multiscale_metadata": {"type": "segmentation", "data_type": "uint64", "num_channels": 1},
            "scale_metadata": {**scale, "compressed_segmentation_block_size": [8, 8, 8]},
        }
        ts.open(self.spec, create=True).result()
        [key] = [scale["key"] for scale in json.loads((root / "info").read_text())["scales"]]
        self.chunk = root / key / "_".join(f"0-{n}" for n in size)

    def read(self, chunk: bytes) -> np.ndarray:
        self.chunk.parent.mkdir(exist_ok=True)
        self.chunk.write_bytes(chunk)
        return ts.open(self.spec).result().read().result()[..., 0].T

    def write(self, labels: np.ndarray) -> bytes:
        """TensorStore's own bytes, none if all labels are 0."""
        self.chunk.unlink(missing_ok=True)
        ts.open(self.spec).result().write(labels.T[..., None]).result()
        return self.chunk.read_bytes() if self.chunk.exists() else b""


def supervoxels(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Voxels with the label of the nearest of `count` points, whose labels have 64 bits."""
    random = np.random.default_rng(count)
    points = random.integers(0, shape, (count, 3))
    labels = random.choice(1 << 40, count, replace=False).astype("u8") * np.uint64(1 << 23) + np.uint64(1)
    nearest = np.zeros(shape, dtype=int)
    distance = np.full(shape, np.inf)
    z, y, x = np.ogrid[tuple(slice(n) for n in shape)]
    for at, point in enumerate(points):
        found = (z - point[0]) ** 2 + (y - point[1]) ** 2 + (x - point[2]) ** 2
        closer = found < distance
        nearest[closer], distance[closer] = at, found[closer]
    return labels[nearest]


def noise(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Any of `count` labels in any voxel: cells of hundreds of labels."""
    random = np.random.default_rng(count)
    return random.integers(BEYOND_DOUBLES, BEYOND_DOUBLES + count, shape, dtype="u8")


WHOLE, BRICK, CLIPPED = (64, 64, 64), (40, 24, 16), (37, 24, 13)
SAMPLES = {
    "zero": np.zeros(WHOLE, "u8"),
    "solid": np.full(WHOLE, BEYOND_DOUBLES, "u8"),
    "solid brick": np.full(BRICK, 3, "u8"),
    "one voxel": np.where(np.arange(64**3).reshape(WHOLE) == 77777, np.uint64(BEYOND_DOUBLES), np.uint64(0)),
    "supervoxels": supervoxels(WHOLE, 60),
    "supervoxels, brick": supervoxels(BRICK, 40),
    "supervoxels, clipped": supervoxels(CLIPPED, 40),
    "1500 supervoxels": supervoxels(WHOLE, 1500),
    "two labels": noise(BRICK, 2),
    "16 labels": noise(BRICK, 16),
    "300 labels": noise(CLIPPED, 300),
    "a label per voxel": np.arange(BEYOND_DOUBLES, BEYOND_DOUBLES + 40 * 24 * 16, dtype="u8").reshape(BRICK),
}


@pytest.mark.parametrize("labels", SAMPLES.values(), ids=SAMPLES)
def test_chunks_go_from_other_programs_to_blocks_and_back(tmp_path: Path, labels: np.ndarray) -> None:
    shape = labels.shape
    block = from_compressed_segmentation(peer_encode(labels), shape)
    voxels = block_voxels(block)
    np.testing.assert_array_equal(voxels[tuple(map(slice, shape))], labels)
    assert np.count_nonzero(voxels) == np.count_nonzero(labels)

    chunk = to_compressed_segmentation(block, shape)
    np.testing.assert_array_equal(peer_decode(chunk, shape), labels)
    volume = Volume(tmp_path, shape)
    np.testing.assert_array_equal(volume.read(chunk), labels)
    written = volume.write(labels)
    assert written == (chunk if labels.any() else b"")
    if written:
        assert from_compressed_segmentation(written, shape) == block


def dvid_blocks() -> dict[str, tuple[bytes, int]]:
    """Blocks of DVID, and the CRC-32 of the voxels that DVID answered."""
    found = {}
    for name, blocks in json.loads((GOLDEN / "expected.json").read_text()).items():
        data, at = (GOLDEN / name).read_bytes(), 0
        while at < len(data):
            *place, length = struct.unpack_from("<4i", data, at)
            place = ",".join(map(str, place))
            found[f"{name} {place}"] = gzip.decompress(data[at + 16 : at + 16 + length]), blocks[place]
            at += 16 + length
    sample = "fib19-64x64x64-sample1"
    block, voxels = (gzip.decompress((GOLDEN / f"{name}.gz").read_bytes()) for name in (f"{sample}-block", sample))
    return {**found, sample: (block, zlib.crc32(voxels))}


DVID = dvid_blocks()


def test_blocks_of_dvid_are_at_hand() -> None:
    assert len(DVID) == 20
    assert max(struct.unpack_from("<I", block, 12)[0] for block, _ in DVID.values()) > 1600


@pytest.mark.parametrize(("block", "expected"), DVID.values(), ids=DVID)
def test_other_programs_read_blocks_of_dvid(tmp_path: Path, block: bytes, expected: int) -> None:
    chunk = to_compressed_segmentation(block)
    read = [peer_decode(chunk, WHOLE), Volume(tmp_path, WHOLE).read(chunk)]
    for voxels in read:
        assert zlib.crc32(np.ascontiguousarray(voxels, "<u8")) == expected
    back = from_compressed_segmentation(peer_encode(read[0]), WHOLE)
    assert zlib.crc32(np.ascontiguousarray(block_voxels(back), "<u8")) == expected
    assert from_compressed_segmentation(chunk, WHOLE) == back
