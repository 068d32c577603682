"""bcolz: a directory with a file for each chunk."""

from __future__ import annotations

import bcolz
import numpy as np

from peers.superchunk import CHUNK, Column


class Columns(Column):
    def rootdir(self) -> str:
        return str(self.path / "a")

    def params(self) -> bcolz.cparams:
        return bcolz.cparams(clevel=self.level, shuffle=bcolz.SHUFFLE, cname=self.codec)

    def write(self, values: np.ndarray) -> None:
        array = bcolz.carray(
            values, cparams=self.params(), chunklen=CHUNK, rootdir=self.rootdir(), mode="w"
        )
        array.flush()

    def open(self) -> None:
        self.array = bcolz.open(self.rootdir(), mode="r")

    def read(self) -> np.ndarray:
        return self.array[:]

    def part(self, start: int, stop: int) -> np.ndarray:
        return self.array[start:stop]

    def begin(self, dtype: np.dtype, expected: int) -> None:
        self.array = bcolz.carray(
            np.empty(0, dtype),
            cparams=self.params(),
            chunklen=CHUNK,
            expectedlen=expected,
            rootdir=self.rootdir(),
            mode="w",
        )

    def append(self, values: np.ndarray) -> None:
        self.array.append(values)

    def flush(self) -> None:
        self.array.flush()

    def fill(self, rows: int, value: float) -> None:
        bcolz.fill((rows,), value, np.float64, expectedlen=rows, rootdir=self.rootdir()).flush()
