"""Data of zarr-python, TensorStore and xarray converts to a repository and back without change."""

from __future__ import annotations

import itertools
import json

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

from conftest import run
from peers import read_zarr_python, readers, same, strings, write_tensorstore

pytestmark = pytest.mark.filterwarnings("ignore")

FIELD = np.random.default_rng(2).standard_normal((41, 23)).cumsum(axis=0)


def round_trip(root, expected, tmp_path) -> None:
    """To a repository and back, and to plain Zarr with other codecs."""
    run("convert", root, tmp_path / "r.repo", "--verify")
    run("convert", tmp_path / "r.repo", tmp_path / "back.zarr")
    run("convert", root, tmp_path / "other.zarr", "--codec", "zstd:1")
    for out in ("back.zarr", "other.zarr"):
        for name, values in expected.items():
            same(read_zarr_python(tmp_path / out, name), values, f"{out} {name}")


def test_version_2_in_all_orders_and_separators(tmp_path):
    root = tmp_path / "in.zarr"
    zarr.create_group(root, zarr_format=2)
    expected = {}
    for order, separator, dtype in itertools.product("CF", "./", ["<f4", ">f8", ">i2", "|u1", "<c8", "|b1"]):
        name = f"{order}{ord(separator)}{dtype[1:]}{dtype[0] == '>'}"
        values = (FIELD * 10).astype("i2").astype(dtype)
        array = zarr.create(store=root, path=name, shape=values.shape, chunks=(10, 7), dtype=dtype, order=order,
                            dimension_separator=separator, zarr_format=2, fill_value=0)
        array[...] = values
        expected[name] = values
    round_trip(root, expected, tmp_path)


def test_version_2_with_compressors_and_filters(tmp_path):
    root = tmp_path / "in.zarr"
    zarr.create_group(root, zarr_format=2)
    values = (FIELD * 100).astype("i4")
    expected = {}
    for name, compressor, filters in [
        ("none", None, None),
        ("zlib", numcodecs.Zlib(1), None),
        ("gzip", numcodecs.GZip(1), None),
        ("zstd", numcodecs.Zstd(1), None),
        ("bz2", numcodecs.BZ2(1), None),
        ("blosc", numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE), None),
        ("bits", numcodecs.Blosc("zstd", 1, numcodecs.Blosc.BITSHUFFLE), None),
        ("shuffled", numcodecs.Zlib(1), [numcodecs.Shuffle(4)]),
    ]:
        array = zarr.create(store=root, path=name, shape=values.shape, chunks=(10, 7), dtype="i4",
                            compressor=compressor, filters=filters, zarr_format=2)
        array[...] = values
        expected[name] = values
    round_trip(root, expected, tmp_path)


def test_version_2_with_types_of_its_own(tmp_path):
    root = tmp_path / "in.zarr"
    zarr.create_group(root, zarr_format=2)
    text = strings(["", "ä", "日本", "chunk"] * 3)
    expected = {
        "text": text,
        "letters": np.array(["ab", "c", "äöü"], dtype="<U3"),
        "time": np.arange(20).astype("M8[s]"),
        "step": np.arange(20).astype("m8[ms]"),
        "single": np.array(7, dtype="<i8"),
        "empty": np.zeros((0, 3), dtype="<f4"),
        "nan": np.full((9,), np.nan, dtype="<f4"),
    }
    for name, values in expected.items():
        chunks = tuple(max(1, extent // 2) for extent in values.shape)
        fill_value = {"nan": np.nan, "text": ""}.get(name)
        array = zarr.create(store=root, path=name, shape=values.shape, chunks=chunks, dtype=values.dtype,
                            fill_value=fill_value, zarr_format=2)
        if values.size:
            array[...] = values
    assert json.loads((root / "text" / ".zarray").read_text())["filters"][0]["id"] == "vlen-utf8"
    round_trip(root, expected, tmp_path)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
def test_hierarchies_consolidated_or_not(tmp_path, version, consolidated):
    root = tmp_path / "in.zarr"
    group = zarr.create_group(root, zarr_format=version, attributes={"title": "x"})
    expected = {}
    for name in ("a", "b/c", "b/d/e"):
        array = group.create_array(name, shape=FIELD.shape, chunks=(20, 20), dtype="f8", attributes={"name": name})
        array[...] = FIELD
        expected[name] = FIELD
    if consolidated:
        zarr.consolidate_metadata(root)
    round_trip(root, expected, tmp_path)
    back = zarr.open_group(tmp_path / "back.zarr", mode="r")
    assert back.attrs["title"] == "x" and back["b/d/e"].attrs["name"] == "b/d/e"


def test_version_3_with_codecs_and_keys(tmp_path):
    root = tmp_path / "in.zarr"
    zarr.create_group(root)

    def shards(**options):
        return [ShardingCodec(chunk_shape=(5, 4), **options)]

    expected = {}
    for number, (keys, codecs) in enumerate(itertools.product(
        [("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")],
        [
            [BytesCodec(endian="little")],
            [BytesCodec(endian="big"), GzipCodec(level=1)],
            [TransposeCodec(order=(1, 0)), BytesCodec(), ZstdCodec(level=1), Crc32cCodec()],
            [BytesCodec(), BloscCodec(typesize=8, cname="lz4", clevel=5, shuffle="shuffle")],
            shards(),
            shards(codecs=[BytesCodec(), ZstdCodec()], index_location="start"),
            shards(index_codecs=[BytesCodec(endian="big")]),
        ],
    )):
        name = f"a{number}"
        array = zarr.create(store=root, path=name, shape=FIELD.shape, chunks=(20, 12), dtype="f8", codecs=codecs,
                            chunk_key_encoding=keys, zarr_format=3)
        array[...] = FIELD
        expected[name] = FIELD
    round_trip(root, expected, tmp_path)


def test_tensorstore_version_3(tmp_path):
    root = tmp_path / "in.zarr"
    zarr.create_group(root)

    def codec(name, **configuration):
        return {"name": name, "configuration": configuration}

    little, crc32c = codec("bytes", endian="little"), {"name": "crc32c"}
    plain = [little, codec("zstd", level=1)]
    chains = {
        "plain": plain,
        "gzip": [codec("bytes", endian="big"), codec("gzip", level=1)],
        "blosc": [little, codec("blosc", cname="zstd", clevel=1, shuffle="bitshuffle", typesize=4)],
        "transposed": [codec("transpose", order=[1, 0]), *plain, crc32c],
    }
    for location in ("start", "end"):
        packed = {"codecs": plain, "index_codecs": [little, crc32c], "index_location": location}
        chains[f"shards-{location}"] = [codec("sharding_indexed", chunk_shape=[4, 5], **packed)]
    values = FIELD.astype("f4")
    for name, codecs in chains.items():
        write_tensorstore(root, name, "zarr3", {
            "shape": list(values.shape), "data_type": "float32", "codecs": codecs, "fill_value": "NaN",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [12, 10]}},
            "attributes": {"by": "TensorStore"}, "dimension_names": ["y", None],
        }, values)
    round_trip(root, dict.fromkeys(chains, values), tmp_path)
    kept = json.loads((tmp_path / "back.zarr" / "plain" / "zarr.json").read_text())
    assert kept["attributes"] == {"by": "TensorStore"} and kept["dimension_names"] == ["y", None]


def test_tensorstore_version_2(tmp_path):
    root = tmp_path / "in.zarr"
    zarr.create_group(root, zarr_format=2)
    expected = {}
    for order, separator, dtype in itertools.product("CF", "./", ["<f4", ">i2", "<c16", "|u1"]):
        name = f"{order}{ord(separator)}{dtype[1:]}"
        values = (FIELD * 10).astype("i2").astype(dtype)
        write_tensorstore(root, name, "zarr", {
            "shape": list(values.shape), "chunks": [10, 7], "dtype": dtype, "order": order, "fill_value": None,
            "dimension_separator": separator, "filters": None,
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
        }, values)
        expected[name] = values
    round_trip(root, expected, tmp_path)


def test_everything_that_arrives_is_read_by_all(tmp_path):
    array = zarr.create(store=tmp_path / "in.zarr", shape=FIELD.shape, chunks=(9, 9), dtype=">f8", order="F",
                        zarr_format=2)
    array[...] = FIELD
    options = ("--chunks", "6,4", "--shards", "24,12", "--codec", "zstd:1")
    run("convert", tmp_path / "in.zarr", tmp_path / "out.zarr", *options)
    for read in readers(FIELD.dtype):
        same(read(tmp_path, "out.zarr"), FIELD, read.__name__)
