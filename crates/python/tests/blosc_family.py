"""The older programs of the family, and how they read files: blosc, blosc2, bloscpack, bcolz."""

from __future__ import annotations

import collections
import collections.abc
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

# The last bloscpack is from 2018, and looks for this in its old module.
collections.MutableMapping = collections.abc.MutableMapping  # type: ignore[attr-defined]

import bcolz
import blosc
import blosc2
import bloscpack

__all__ = ["all_chunks", "bcolz", "bloscpack", "decoded", "rows_by_tool", "sizes"]

# Bytes of a digest, by its number in the header.
DIGESTS = (0, 4, 4, 16, 20, 28, 32, 48, 64)


def numbered(directory: Path) -> list[Path]:
    """The files `__1__.bin`, `__2__.bin` …, by their numbers."""
    return sorted(directory.glob("__*__.bin"), key=lambda path: int(path.name.strip("_bin.")))


def sizes(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "meta" / "sizes").read_text())
    return found


def rows_by_tool(
    root: Path, dtype: Any, chunklen: int, row_shape: tuple[int, ...] = (), column: str = ""
) -> np.ndarray:
    """The rows of a column: every file unpacked by bloscpack, and put where its metadata says."""
    length = sizes(root)["shape"][0]
    row_bytes = np.dtype(dtype).itemsize * int(np.prod(row_shape))
    rows, seen = bytearray(length * row_bytes), bytearray(length * row_bytes)
    for file in numbered(root / "data" / column):
        content, metadata = bloscpack.unpack_bytes_from_file(str(file))
        assert metadata["shape"] == [chunklen, *row_shape], file
        start = metadata["first_chunk"] * chunklen * row_bytes
        stop = min(start + len(content), len(rows))
        rows[start:stop] = content[: stop - start]
        seen[start:stop] = b"\x01" * (stop - start)
    assert all(seen), "rows that are in no file"
    return np.frombuffer(rows, dtype).reshape(length, *row_shape)


def chunks(file: Path) -> Iterator[bytes]:
    """The chunks of a Bloscpack file of version 3, by its offsets."""
    content = file.read_bytes()
    magic, version, options, checksum = struct.unpack_from("<4sBBB", content)
    count, room = struct.unpack_from("<qq", content, 16)
    assert (magic, version, options) == (b"blpk", 3, 3)
    reserved = struct.unpack_from("<I", content, 32 + 16)[0]
    at = 32 + 32 + reserved + DIGESTS[content[32 + 9]]
    offsets = struct.unpack_from(f"<{count + room}q", content, at)
    assert offsets[count:] == (-1,) * room
    for offset, following in zip(offsets, [*offsets[1:count], len(content)], strict=False):
        stored = struct.unpack_from("<I", content, offset + 12)[0]
        if following != -1:
            assert following == offset + stored + DIGESTS[checksum], "a gap between chunks"
        yield content[offset : offset + stored]


def all_chunks(root: Path) -> list[bytes]:
    """The chunks of a dataset, in the order of files."""
    return [chunk for file in numbered(root / "data") for chunk in chunks(file)]


def decoded(root: Path) -> tuple[bytes, bytes]:
    """All chunks of a dataset, decoded by C-Blosc and by C-Blosc2."""
    found = all_chunks(root)
    by_blosc = b"".join(blosc.decompress(chunk) for chunk in found)
    by_blosc2 = b"".join(blosc2.decompress(chunk) for chunk in found)
    return by_blosc, by_blosc2
