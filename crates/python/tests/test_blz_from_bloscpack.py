"""Bloscpack files of every option, written and appended to by the tool, as the data of a BLZ directory."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chunkyard
from blosc_family import bloscpack
from bloscpack.append import append_fp
from bloscpack.args import BloscArgs, BloscpackArgs, MetadataArgs
from bloscpack.checksums import CHECKSUMS_AVAIL

WALK = np.cumsum(np.random.default_rng(5).integers(-50, 51, 1050))
CHUNKLEN = 100
# Bytes of each digest.
DIGESTS = {
    "adler32": 4,
    "crc32": 4,
    "md5": 16,
    "sha1": 20,
    "sha224": 28,
    "sha256": 32,
    "sha384": 48,
    "sha512": 64,
}


def packed(values: np.ndarray = WALK, **options: Any) -> bytes:
    """The rows in chunks of 100, by the tool."""
    codec = options.pop("codec", {})
    metadata = options.pop("metadata", {"by": "the tool"})
    about = MetadataArgs(**options.pop("metadata_args", {}))
    arguments = BloscpackArgs(**options)
    content: bytes = bloscpack.pack_bytes_to_bytes(
        values.tobytes(),
        chunk_size=CHUNKLEN * values.itemsize,
        metadata=metadata,
        blosc_args=BloscArgs(typesize=values.itemsize, **codec),
        bloscpack_args=arguments,
        metadata_args=about,
    )
    return content


def place(root: Path, dtype: np.dtype, rows: int, *files: bytes) -> Path:
    """A directory as the document describes it, around such files."""
    storage = {
        "dtype": dtype.name,
        "cparams": {"shuffle": True, "clevel": 5},
        "chunklen": CHUNKLEN,
        "dflt": 0,
        "expectedlen": rows,
    }
    sizes = {"shape": [rows], "nbytes": rows * dtype.itemsize, "cbytes": sum(map(len, files))}
    (root / "meta").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "meta" / "storage").write_text(json.dumps(storage))
    (root / "meta" / "sizes").write_text(json.dumps(sizes))
    (root / "meta" / "attributes").write_text("{}")
    for number, content in enumerate(files, 1):
        (root / "data" / f"__{number}__.bin").write_bytes(content)
    return root


def check(root: Path, *files: bytes, rows: np.ndarray = WALK) -> None:
    opened: Any = chunkyard.open(place(root / "a", rows.dtype, len(rows), *files))
    np.testing.assert_array_equal(opened[:], rows)
    np.testing.assert_array_equal(opened[95:205], rows[95:205])
    np.testing.assert_array_equal(opened[::90], rows[::90])


@pytest.mark.parametrize("checksum", CHECKSUMS_AVAIL)
def test_every_checksum_is_read(checksum: str, tmp_path: Path) -> None:
    check(tmp_path, packed(checksum=checksum))


@pytest.mark.parametrize("checksum", DIGESTS)
def test_every_checksum_finds_a_changed_byte(checksum: str, tmp_path: Path) -> None:
    content = bytearray(packed(checksum=checksum))
    content[-DIGESTS[checksum] - 9] ^= 1
    with pytest.raises(chunkyard.CorruptError):
        check(tmp_path, bytes(content))


@pytest.mark.parametrize("codec", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_every_codec_and_filter_is_read(codec: str, shuffle: int, tmp_path: Path) -> None:
    for level in (0, 1, 5, 9):
        content = packed(codec={"cname": codec, "shuffle": shuffle, "clevel": level})
        check(tmp_path / str(level), content)


def test_files_without_offsets_are_read(tmp_path: Path) -> None:
    check(tmp_path, packed(offsets=False, max_app_chunks=0))


def test_files_without_metadata_are_read(tmp_path: Path) -> None:
    check(tmp_path, packed(metadata=None))


def test_files_with_neither_are_read(tmp_path: Path) -> None:
    check(tmp_path, packed(metadata=None, offsets=False, checksum="None", max_app_chunks=0))


@pytest.mark.parametrize("checksum", CHECKSUMS_AVAIL)
@pytest.mark.parametrize("codec", ["None", "zlib"])
def test_metadata_of_every_form_are_read_past(checksum: str, codec: str, tmp_path: Path) -> None:
    about = {"meta_checksum": checksum, "meta_codec": codec, "max_meta_size": 5000}
    check(tmp_path, packed(metadata={"long": "x" * 3000}, metadata_args=about))


def test_an_empty_file_is_read(tmp_path: Path) -> None:
    check(tmp_path, packed(WALK[:0]), rows=WALK[:0])


@pytest.mark.parametrize("count", [1, 50, 51, 350, 1000])
def test_files_that_the_tool_appended_to_are_read(count: int, tmp_path: Path) -> None:
    file = io.BytesIO(packed())
    codec = {"typesize": 8, "clevel": 7, "shuffle": True, "cname": "zstd"}
    append_fp(file, io.BytesIO(WALK[:count].tobytes()), 8 * count, codec)
    check(tmp_path, file.getvalue(), rows=np.concatenate([WALK, WALK[:count]]))


def test_several_files_are_read_as_one_dataset(tmp_path: Path) -> None:
    check(tmp_path, *(packed(WALK[start : start + 300]) for start in range(0, len(WALK), 300)))
