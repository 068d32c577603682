"""The data that every side writes and reads, made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Kind:
    """The shape and type of an array of the workloads, which is a row of planes."""

    dtype: str
    plane: tuple[int, int]
    chunk: Shape
    # `blosc`, `zstd` or `none`.
    codec: str
    # 64 chunks.
    shard: Shape

    def plane_bytes(self) -> int:
        return self.plane[0] * self.plane[1] * np.dtype(self.dtype).itemsize


KINDS = {
    "field": Kind("<f4", (512, 512), (1, 512, 512), "blosc", (64, 512, 512)),
    "labels": Kind("<u8", (512, 512), (64, 64, 64), "zstd", (256, 256, 256)),
    # One long column, by planes: a plane is two chunks.
    "linspace": Kind("<f8", (512, 512), (1, 512, 512), "blosc", (64, 512, 512)),
    "walk": Kind("<i8", (512, 512), (1, 512, 512), "blosc", (64, 512, 512)),
    # A chunk is a plane of 4 KiB, not compressed: only the overhead of a chunk remains.
    "tiny": Kind("|u1", (64, 64), (1, 64, 64), "none", (64, 64, 64)),
}


@dataclass(frozen=True)
class Data:
    """An array of the workloads: `field` (float32), `labels` (uint64), `tiny` (uint8), `linspace`
    (float64) or `walk` (int64)."""

    name: str
    values: np.ndarray

    @property
    def chunk(self) -> Shape:
        return KINDS[self.name].chunk

    @property
    def shard(self) -> Shape:
        return KINDS[self.name].shard

    @property
    def codec(self) -> str:
        return KINDS[self.name].codec

    @classmethod
    def load(cls, directory: Path, name: str) -> Data:
        kind = KINDS[name]
        return cls(name, np.fromfile(directory / name, kind.dtype).reshape(-1, *kind.plane))


def make(directory: Path, planes: Mapping[str, int]) -> None:
    """Makes a file of a number of planes for each name, unless it exists in that size."""
    directory.mkdir(parents=True, exist_ok=True)
    makers = {
        "field": make_field,
        "labels": make_labels,
        "linspace": make_linspace,
        "tiny": make_tiny,
        "walk": make_walk,
    }
    for name, count in planes.items():
        file = directory / name
        size = count * KINDS[name].plane_bytes()
        if not file.exists() or file.stat().st_size != size:
            makers[name](file, count)


def make_field(file: Path, planes: int) -> None:
    """A smooth field that moves, with noise in the low bits: like a model's temperature."""
    random = np.random.default_rng(7)
    yy, xx = np.meshgrid(np.linspace(0, 6, 512), np.linspace(0, 9, 512), indexing="ij")
    with file.open("wb") as out:
        for step in range(planes):
            smooth = 280 + 20 * np.sin(yy + step * 0.01) * np.cos(xx - step * 0.02)
            noise = random.normal(0, 0.02, yy.shape)
            out.write((smooth + noise).astype("<f4").tobytes())


def make_labels(file: Path, planes: int) -> None:
    """Cells with wavy borders, each with a large id that looks random."""
    yy, xx = np.ogrid[:512, :512]
    with file.open("wb") as out:
        for step in range(planes):
            cell = (step // 37) * 1_000_003 + ((yy + step // 5) // 41) * 10_007
            cell = cell + (xx + (yy // 3)) // 29
            out.write((cell.astype(np.uint64) * np.uint64(2654435761)).astype("<u8").tobytes())


def make_linspace(file: Path, planes: int) -> None:
    """The values of `np.linspace(0, 1, n)`, plane by plane."""
    rows = 512 * 512
    with file.open("wb") as out:
        for step in range(planes):
            at = np.arange(step * rows, (step + 1) * rows, dtype="<f8")
            out.write((at / (planes * rows - 1)).astype("<f8").tobytes())


def make_walk(file: Path, planes: int) -> None:
    """A random walk, as measured values often are."""
    random, last = np.random.default_rng(11), np.int64(0)
    with file.open("wb") as out:
        for _ in range(planes):
            walk = last + np.cumsum(random.integers(-100, 101, 512 * 512))
            last = walk[-1]
            out.write(walk.astype("<i8").tobytes())


def make_tiny(file: Path, planes: int) -> None:
    """No two planes alike, and none that is all zero."""
    at = np.arange(4096, dtype=np.uint64)
    with file.open("wb") as out:
        for step in range(planes):
            out.write(((at * (31 + step) + step // 7) & 255 | 1).astype("|u1").tobytes())


def series_point(repeat: int) -> tuple[int, int]:
    """The point of the `repeat`-th series: never twice in the same block of a chunk."""
    return (100 + repeat * 131) % 512, (200 + repeat * 71) % 512
