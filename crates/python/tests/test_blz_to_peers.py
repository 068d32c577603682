"""Our files, read by blosc, blosc2, bloscpack and bcolz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import chunkyard
from blosc_family import all_chunks, bcolz, bloscpack, decoded, rows_by_tool, sizes

RANDOM = np.random.default_rng(4)
WALK = np.cumsum(RANDOM.integers(-50, 51, 1050))
CHECKSUMS = ("none", "adler32", "crc32", "md5", "sha1", "sha224", "sha256", "sha384", "sha512")
CODECS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")

ARRAYS: dict[str, np.ndarray] = {
    "bool": WALK % 3 == 0,
    "uint16": WALK.astype("u2"),
    "int64": WALK,
    "float64": WALK / 7,
    "big-endian": (WALK / 7).astype(">f8"),
    "bytes": np.array([str(value)[:5] for value in WALK], "S5"),
    "text": np.array([f"ä{value}" for value in WALK], "U7"),
    "time": WALK.astype("M8[ns]"),
    "matrix": WALK.reshape(105, 10),
    "cube": (WALK / 3).reshape(105, 2, 5),
}


def create(path: Path, values: np.ndarray, **options: Any) -> Any:
    """A dataset of several files: chunks of 50 rows, four to a file, and some rows after them."""
    options = {"chunklen": 50, "superchunk": 4, **options}
    return chunkyard.create_blz(path, values.dtype, values.shape[1:], data=values, **options)


def check(path: Path, expected: np.ndarray) -> None:
    """The tool unpacks every file, and both libraries decode every chunk, to these rows."""
    found = rows_by_tool(path, expected.dtype, 50, expected.shape[1:])
    np.testing.assert_array_equal(found, expected)
    by_blosc, by_blosc2 = decoded(path)
    assert by_blosc == by_blosc2


@pytest.mark.parametrize("name", ARRAYS)
def test_rows_of_every_type_are_unpacked_by_the_tool(name: str, tmp_path: Path) -> None:
    create(tmp_path / "a", ARRAYS[name])
    check(tmp_path / "a", ARRAYS[name])


@pytest.mark.parametrize("checksum", CHECKSUMS)
def test_every_checksum_is_checked_by_the_tool(checksum: str, tmp_path: Path) -> None:
    create(tmp_path / "a", WALK, checksum=checksum)
    check(tmp_path / "a", WALK)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shuffle", ["none", "byte", "bit"])
@pytest.mark.parametrize("slack", [0, 100])
def test_every_codec_and_filter_is_decoded_by_both_libraries(
    codec: str, shuffle: Any, slack: int, tmp_path: Path
) -> None:
    for level in (0, 1, 5, 9):
        path = tmp_path / str(level)
        create(path, WALK, codec=codec, level=level, shuffle=shuffle, slack=slack)
        check(path, WALK)
        assert decoded(path)[0] == WALK.tobytes()


@pytest.mark.parametrize("slack", [0, 64])
def test_every_state_of_a_dataset_that_changes_is_unpacked_by_the_tool(
    slack: int, tmp_path: Path
) -> None:
    path, rows = tmp_path / "a", WALK
    blz = create(path, rows, slack=slack, default=-3)
    check(path, rows)
    for count in (10, 40, 333, 50):
        blz.append(rows[:count])
        rows = np.concatenate([rows, rows[:count]])
        blz.flush()
        check(path, rows)
    for count in (3, 50, 400):
        blz.trim(count)
        rows = rows[:-count]
        check(path, rows)
        blz.append(rows[:7])
        rows = np.concatenate([rows, rows[:7]])
        blz.flush()
        check(path, rows)
    for length in (120, 1001, 1200, 200):
        blz.resize(length)
        blz.flush()
        grown = np.full(max(0, length - len(rows)), -3)
        rows = np.concatenate([rows[:length], grown])
        check(path, rows)


def test_changed_rows_are_unpacked_by_the_tool(tmp_path: Path) -> None:
    rows = WALK.copy()
    blz = create(tmp_path / "a", rows, mutable=True, slack=64)
    for key, value in ((slice(3, 9), 5), (slice(100, 700), WALK[:600]), (slice(1040, 1050), 1)):
        blz[key] = value
        rows[key] = value
        blz.flush()
        check(tmp_path / "a", rows)


def test_zarr_reads_chunks_where_they_are_through_a_repository(tmp_path: Path) -> None:
    create(tmp_path / "a.blz", WALK[:1030])
    linked = chunkyard.link(tmp_path / "a.blz", tmp_path / "repo")
    assert (linked.references, linked.copied_chunks) == (20, 1)
    repo = chunkyard.Repository.open(tmp_path / "repo", allow=[linked.allow])
    array = zarr.open_group(repo.readonly_session("main").store, mode="r")["a"]
    np.testing.assert_array_equal(array[:], WALK[:1030])


TABLE = np.empty(1050, [("x", "<f8"), ("n", "<i4"), ("s", "S5"), ("p", "<i2", (2,))])
TABLE["x"], TABLE["n"], TABLE["s"] = WALK / 7, WALK, ARRAYS["bytes"]
TABLE["p"] = np.stack([WALK, -WALK], axis=1)


def test_every_column_of_a_table_is_unpacked_by_the_tool(tmp_path: Path) -> None:
    create(tmp_path / "t", TABLE)
    for name in TABLE.dtype.names or ():
        values = TABLE[name]
        found = rows_by_tool(tmp_path / "t", values.dtype, 50, values.shape[1:], name)
        np.testing.assert_array_equal(found, values)


def as_bcolz(path: Path) -> Any:
    return bcolz.open(str(path), mode="r")


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "big-endian"])
@pytest.mark.parametrize("codec", CODECS)
def test_arrays_in_the_style_of_bcolz_are_read_by_it(
    name: str, codec: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"codec": codec, "level": 5, "shuffle": "byte", "style": "bcolz"}
    create(tmp_path / "a", ARRAYS[name], superchunk=None, attributes={"unit": "m"}, **options)
    array = as_bcolz(tmp_path / "a")
    assert array.dtype.base == ARRAYS[name].dtype
    assert array.chunklen == 50
    assert array.attrs["unit"] == "m"
    np.testing.assert_array_equal(array[:], ARRAYS[name])


def test_bcolz_and_we_change_an_array_in_turn(tmp_path: Path) -> None:
    path, rows = tmp_path / "a", WALK
    create(path, rows, superchunk=None, style="bcolz", codec="lz4", level=5, shuffle="byte")
    for count in (10, 50, 333):
        array = bcolz.open(str(path), mode="a")
        array.append(rows[:count])
        array.flush()
        rows = np.concatenate([rows, rows[:count]])
        blz: Any = chunkyard.open(path, mode="a")
        np.testing.assert_array_equal(blz[:], rows)
        blz.append(rows[:count])
        blz.flush()
        rows = np.concatenate([rows, rows[:count]])
        np.testing.assert_array_equal(as_bcolz(path)[:], rows)
        blz.trim(77)
        rows = rows[:-77]
        np.testing.assert_array_equal(as_bcolz(path)[:], rows)
        array = bcolz.open(str(path), mode="a")
        array.trim(33)
        array.flush()
        rows = rows[:-33]


def test_tables_in_the_style_of_bcolz_are_read_and_appended_to_by_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, TABLE, superchunk=None, style="bcolz", codec="lz4", level=5, shuffle="byte")
    table = bcolz.open(str(path), mode="a")
    assert table.names == list(TABLE.dtype.names or ())
    np.testing.assert_array_equal(table[:], TABLE)
    table.append(TABLE[:90])
    table.flush()
    blz: Any = chunkyard.open(path)
    for name in table.names:
        expected = np.concatenate([TABLE[name], TABLE[name][:90]])
        np.testing.assert_array_equal(blz[name][:], expected)


def test_chunks_of_bcolz_are_copied_verbatim_into_superchunks(tmp_path: Path) -> None:
    rows = WALK[:1040]
    params = bcolz.cparams(cname="zstd", clevel=3, shuffle=2)
    source = str(tmp_path / "a")
    bcolz.carray(rows, rootdir=source, mode="w", chunklen=50, cparams=params).flush()
    chunkyard.convert(tmp_path / "a", tmp_path / "a.blz")
    check(tmp_path / "a.blz", rows)
    copied = all_chunks(tmp_path / "a.blz")
    # Files of bcolz are a header of 16 bytes and a chunk; the last is not full.
    for number, chunk in enumerate(copied[:-1]):
        assert chunk == (tmp_path / "a" / "data" / f"__{number}.blp").read_bytes()[16:]
    assert len(copied) == 21


def test_tables_of_bcolz_come_back_through_superchunks_and_zarr(tmp_path: Path) -> None:
    names = list(TABLE.dtype.names or ())
    columns = [TABLE[name] for name in names]
    bcolz.ctable(columns, names, rootdir=str(tmp_path / "t"), mode="w").flush()
    for source, target in (("t", "t.blz"), ("t.blz", "t.zarr"), ("t.zarr", "t.bcolz")):
        chunkyard.convert(tmp_path / source, tmp_path / target)
    table = as_bcolz(tmp_path / "t.bcolz")
    assert sorted(table.names) == sorted(names)
    for name in names:
        np.testing.assert_array_equal(table[name][:], TABLE[name])


def test_the_example_of_the_document_gives_its_stated_sizes(tmp_path: Path) -> None:
    """10,000,000 float64, blosclz level 5, byte shuffle; bcolz writes the same for its sizes."""
    rows = np.linspace(0, 1, 10_000_000)
    blz = chunkyard.create_blz(
        tmp_path / "ours",
        "f8",
        expected_rows=len(rows),
        chunklen=16384,
        codec="blosclz",
        level=5,
        shuffle="byte",
        style="bcolz",
    )
    with blz:
        blz.append(rows)
    params = bcolz.cparams(clevel=5, shuffle=1, cname="blosclz")
    theirs = bcolz.carray(
        rows,
        cparams=params,
        chunklen=16384,
        expectedlen=len(rows),
        rootdir=str(tmp_path / "theirs"),
        mode="w",
    )
    theirs.flush()
    ours = sizes(tmp_path / "ours")
    assert (ours["shape"], ours["nbytes"]) == ([10_000_000], 80_000_000)
    # The same codec, of another release, and other blocks: nearly the same bytes.
    assert ours["cbytes"] == pytest.approx(sizes(tmp_path / "theirs")["cbytes"], rel=0.1)
    storage = json.loads((tmp_path / "ours" / "meta" / "storage").read_text())
    said = {"dtype": "float64", "chunklen": 16384, "dflt": 0.0, "expectedlen": 10_000_000}
    assert {key: storage[key] for key in said} == said
    assert {"clevel": 5, "shuffle": 1}.items() <= storage["cparams"].items()
    np.testing.assert_array_equal(as_bcolz(tmp_path / "ours")[:], rows)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_single_file_is_unpacked_by_the_tool(name: str, tmp_path: Path) -> None:
    values = ARRAYS[name]
    create(tmp_path / "x.blz", values)
    chunkyard.convert(tmp_path / "x.blz", tmp_path / "x.blp")
    unpacked = bloscpack.unpack_ndarray_from_file(str(tmp_path / "x.blp"))
    assert unpacked.dtype == values.dtype
    np.testing.assert_array_equal(unpacked, values)
    ours: Any = chunkyard.open(tmp_path / "x.blp")
    np.testing.assert_array_equal(ours[:], values)


def test_a_single_file_of_the_tool_equals_ours(tmp_path: Path) -> None:
    matrix = ARRAYS["matrix"]
    bloscpack.pack_ndarray_to_file(matrix, str(tmp_path / "tool.blp"), chunk_size=4000)
    create(tmp_path / "x.blz", matrix)
    chunkyard.convert(tmp_path / "x.blz", tmp_path / "ours.blp")
    said = []
    for name in ("tool.blp", "ours.blp"):
        with (tmp_path / name).open("rb") as file:
            header, metadata, _, _ = bloscpack.file_io._read_beginning(file)
        layout = (header.format_version, header.checksum, header.typesize, header.nchunks)
        said.append((layout, header.chunk_size, header.last_chunk, metadata))
    assert said[0] == said[1]


def test_several_arrays_are_no_single_file(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "x.zarr")
    for name in ("a", "b"):
        group.create_array(name, data=WALK)
    with pytest.raises(NotImplementedError, match="one array"):
        chunkyard.convert(tmp_path / "x.zarr", tmp_path / "x.blp")
    chunkyard.convert(tmp_path / "x.zarr" / "b", tmp_path / "x.blp")
    np.testing.assert_array_equal(
        bloscpack.unpack_ndarray_from_file(str(tmp_path / "x.blp")), WALK
    )
