"""Bloscpack files with every option, written and appended to by the tool, as data of a BLZ directory."""

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
def test_metadata_of_every_form_are_skipped(checksum: str, codec: str, tmp_path: Path) -> None:
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


def single(file: Path, values: np.ndarray, chunk_size: int = 800, **options: Any) -> Any:
    """A single file that the tool made from an array."""
    bloscpack.pack_ndarray_to_file(
        values, str(file), chunk_size=chunk_size, bloscpack_args=BloscpackArgs(**options)
    )
    return chunkyard.open(file)


@pytest.mark.parametrize("checksum", CHECKSUMS_AVAIL)
def test_a_single_file_of_the_tool_is_an_array(checksum: str, tmp_path: Path) -> None:
    opened = single(tmp_path / "x.blp", WALK, checksum=checksum)
    assert opened.dtype == WALK.dtype
    np.testing.assert_array_equal(opened[:], WALK)


@pytest.mark.parametrize("dtype", ["?", "i1", "<u2", ">i4", "<f4", "<f8", "<c16", "M8[ns]"])
def test_single_files_of_every_type_are_read(dtype: str, tmp_path: Path) -> None:
    values = WALK.astype(dtype)
    opened = single(tmp_path / "x.blp", values)
    np.testing.assert_array_equal(opened[:], values)
    np.testing.assert_array_equal(opened[40:60], values[40:60])


RECORDS = np.array(
    [(value, value / 2, b"ab") for value in WALK], [("a", "<i4"), ("b", "<f8"), ("s", "S3")]
)


@pytest.mark.parametrize(
    "values",
    [WALK.astype("S5"), WALK.astype("U5"), WALK[:0], RECORDS],
    ids=["bytes", "text", "nothing", "records"],
)
def test_single_files_of_other_types_than_numbers_are_read(values: np.ndarray, tmp_path: Path) -> None:
    opened = single(tmp_path / "x.blp", values, chunk_size=80 * values.itemsize)
    np.testing.assert_array_equal(np.asarray(opened[:]).view(values.dtype), values)


def test_a_single_file_without_offsets_is_read(tmp_path: Path) -> None:
    opened = single(tmp_path / "x.blp", WALK, offsets=False, max_app_chunks=0)
    np.testing.assert_array_equal(opened[:], WALK)


def test_a_single_file_whose_chunks_are_whole_rows_keeps_its_shape(tmp_path: Path) -> None:
    matrix = WALK.reshape(105, 10)
    np.testing.assert_array_equal(single(tmp_path / "x.blp", matrix)[:], matrix)


def test_a_single_file_whose_chunks_cut_rows_is_flat_and_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not whole rows"):
        opened = single(tmp_path / "x.blp", WALK.reshape(105, 10), chunk_size=800 - 8)
    np.testing.assert_array_equal(opened[:], WALK)


def test_a_single_file_in_the_order_of_fortran_is_flat_and_says_so(tmp_path: Path) -> None:
    matrix = np.asfortranarray(WALK.reshape(105, 10))
    with pytest.warns(UserWarning, match="Fortran"):
        opened = single(tmp_path / "x.blp", matrix)
    np.testing.assert_array_equal(opened[:], matrix.ravel("F"))


def test_a_single_file_of_bytes_is_bytes(tmp_path: Path) -> None:
    file = tmp_path / "x.blp"
    file.write_bytes(packed(metadata=None))
    opened: Any = chunkyard.open(file)
    assert bytes(opened[:]) == WALK.tobytes()


def test_a_single_file_becomes_zarr(tmp_path: Path) -> None:
    single(tmp_path / "x.blp", WALK)
    chunkyard.convert(tmp_path / "x.blp", tmp_path / "a.zarr")
    opened: Any = chunkyard.open(tmp_path / "a.zarr")
    np.testing.assert_array_equal(opened[:], WALK)
