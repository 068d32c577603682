"""Bloscpack: one file, which is packed and unpacked as a whole, and can be appended to."""

from __future__ import annotations

import collections
import collections.abc
import io

import numpy as np

from peers.clock import Cannot
from peers.data import KINDS
from peers.superchunk import CHUNK, Column

# Its last release is from 2018 and looks for this in its old module.
collections.MutableMapping = collections.abc.MutableMapping  # type: ignore[attr-defined]

import bloscpack  # noqa: E402
from bloscpack.append import append_fp  # noqa: E402


class Columns(Column):
    def file(self) -> str:
        return str(self.path / "a.blp")

    def params(self) -> bloscpack.BloscArgs:
        return bloscpack.BloscArgs(typesize=8, clevel=self.level, shuffle=True, cname=self.codec)

    def write(self, values: np.ndarray) -> None:
        bloscpack.pack_ndarray_to_file(
            values, self.file(), chunk_size=8 * CHUNK, blosc_args=self.params()
        )

    def open(self) -> None:
        return

    def read(self) -> np.ndarray:
        if "batches" not in self.options:
            return bloscpack.unpack_ndarray_from_file(self.file())
        # A file that was appended to does not give the type of its rows.
        dtype = KINDS[self.options["name"]].dtype
        return np.frombuffer(bloscpack.unpack_bytes_from_file(self.file())[0], dtype)

    def part(self, start: int, stop: int) -> np.ndarray:
        raise Cannot("unpacks whole files")

    def begin(self, dtype: np.dtype, expected: int) -> None:
        self.started, self.expected = False, expected

    def append(self, values: np.ndarray) -> None:
        if not self.started:
            # Later chunks are never larger than the first, and room for them is made only here.
            room = bloscpack.BloscpackArgs(max_app_chunks=self.expected // len(values) + 1)
            bloscpack.pack_bytes_to_file(
                values.tobytes(),
                self.file(),
                chunk_size=8 * CHUNK,
                blosc_args=self.params(),
                bloscpack_args=room,
            )
            self.started = True
            return
        with open(self.file(), "r+b") as file:
            append_fp(file, io.BytesIO(values.tobytes()), values.nbytes, self.params())

    def fill(self, rows: int, value: float) -> None:
        raise Cannot("needs all rows in memory")
