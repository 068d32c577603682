"""The data that every side writes and reads, made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

LABELS_CHUNK = (64, 64, 64)
FIELD_CHUNK = (1, 512, 512)
# 64 chunks each.
LABELS_SHARD = (256, 256, 256)
FIELD_SHARD = (64, 512, 512)


@dataclass(frozen=True)
class Data:
    """An array of the workloads: `field` (float32) or `labels` (uint64)."""

    name: str
    values: np.ndarray

    @property
    def chunk(self) -> tuple[int, int, int]:
        return LABELS_CHUNK if self.name == "labels" else FIELD_CHUNK

    @property
    def shard(self) -> tuple[int, int, int]:
        return LABELS_SHARD if self.name == "labels" else FIELD_SHARD

    @classmethod
    def load(cls, directory: Path, name: str) -> Data:
        dtype = "<u8" if name == "labels" else "<f4"
        return cls(name, np.fromfile(directory / name, dtype=dtype).reshape(-1, 512, 512))


def make(directory: Path, field_planes: int, labels_planes: int) -> None:
    """Makes both files, unless they are there in that size."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {"field": field_planes << 20, "labels": labels_planes << 21}
    makers = {"field": make_field, "labels": make_labels}
    for name, size in wanted.items():
        file = directory / name
        if not file.exists() or file.stat().st_size != size:
            makers[name](file, size >> (20 if name == "field" else 21))


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


def series_point(repeat: int) -> tuple[int, int]:
    """The point of the `repeat`-th series: never twice in the same block of a chunk."""
    return (100 + repeat * 131) % 512, (200 + repeat * 71) % 512
