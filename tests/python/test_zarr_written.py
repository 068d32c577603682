"""Our Zarr opens in zarr-python, TensorStore, zarrs and xarray, with equal data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs import ShardingCodec

from conftest import run
from peers import open_tensorstore, readers, same, strings

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 M8[s] M8[25us] m8[ms]".split()


def values_of(dtype: str, shape=(37, 29)) -> np.ndarray:
    dtype = np.dtype(dtype)
    random = np.random.default_rng(11)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "fc":
        values = random.standard_normal(shape).astype(dtype)
        values[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
        return values
    return random.integers(0, 100, shape).astype("i8").astype(dtype)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A hierarchy by zarr-python with every data type, and its expected content."""
    root = tmp_path_factory.mktemp("written") / "source.zarr"
    group = zarr.create_group(root, attributes={"title": "all types", "nested": {"a": [1, None]}})
    expected = {}
    for dtype in DTYPES:
        name = "types/" + dtype.translate(str.maketrans("[]", "__"))
        values = values_of(dtype)
        array = group.create_array(name, shape=values.shape, chunks=(10, 10), dtype=values.dtype,
                                   attributes={"is": dtype}, dimension_names=("y", "x"))
        array[...] = values
        expected[name] = values
    text = strings(["", "ä", "日本", "chunk"] * 6)
    group.create_array("types/text", shape=text.shape, chunks=(7,), dtype=text.dtype)[...] = text
    expected["types/text"] = text
    single = np.array(42, dtype="i4")
    group.create_array("single", shape=(), dtype="i4")[...] = single
    expected["single"] = single
    # Half of its chunks are missing.
    sparse = np.full((40, 40), np.nan, dtype="f4")
    sparse[:20] = 1
    array = group.create_array("sparse", shape=(40, 40), chunks=(10, 10), dtype="f4", fill_value=np.nan)
    array[:20] = 1
    expected["sparse"] = sparse
    return root, expected


def check(root, expected) -> None:
    for name, values in expected.items():
        for read in readers(values.dtype):
            same(read(root, name), values, f"{name} by {read.__name__}")


def two_dimensional(expected):
    return {name: values for name, values in expected.items() if values.ndim == 2}


def test_a_copy_without_changes(source, tmp_path):
    root, expected = source
    run("convert", root, tmp_path / "out.zarr")
    check(tmp_path / "out.zarr", expected)


def test_there_and_back_through_a_repository(source, tmp_path):
    root, expected = source
    run("convert", root, tmp_path / "r.repo", "--verify")
    run("convert", tmp_path / "r.repo", tmp_path / "out.zarr", "--verify")
    check(tmp_path / "out.zarr", expected)
    group = zarr.open_group(tmp_path / "out.zarr", mode="r")
    assert dict(group.attrs) == {"title": "all types", "nested": {"a": [1, None]}}
    assert group["types/f4"].attrs["is"] == "f4"
    assert group["types/f4"].metadata.dimension_names == ("y", "x")


CODECS = ["none", "zstd:3", "gzip:5", "blosc:lz4:5:shuffle", "blosc:zstd:3:bitshuffle", "zstd:1+crc32c"]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_of_ours_is_read(source, tmp_path, codec):
    root, expected = source
    run("convert", root, tmp_path / "out.zarr", "--codec", codec)
    check(tmp_path / "out.zarr", expected)


@pytest.mark.parametrize("codec", ["zstd:1", "blosc:lz4:1:shuffle+crc32c"])
def test_shards_are_read(source, tmp_path, codec):
    root, expected = source
    out = tmp_path / "out.zarr"
    names = [part for name in two_dimensional(expected) for part in ("--array", name)]
    run("convert", root, out, *names, "--chunks", "8,4", "--shards", "16,32", "--codec", codec)
    check(out, two_dimensional(expected))
    assert isinstance(zarr.open_array(out / "types/f4").metadata.codecs[0], ShardingCodec)
    chunks = open_tensorstore(out, "types/f4").chunk_layout
    assert chunks.read_chunk.shape == (8, 4) and chunks.write_chunk.shape == (16, 32)


@pytest.mark.parametrize("location", ["start", "end"])
def test_the_place_of_a_shards_index_is_kept(tmp_path, location):
    values = values_of("u4", (50, 60))
    codec = ShardingCodec(chunk_shape=(5, 6), index_location=location)
    with zarr.config.set({"array.write_empty_chunks": False}):
        array = zarr.create(store=tmp_path / "in.zarr", shape=values.shape, chunks=(20, 18), dtype="u4",
                            codecs=[codec], zarr_format=3)
        array[:33, :21] = values[:33, :21]
    expected = array[...]
    for name, options in {"copy": (), "regrid": ("--chunks", "10,3")}.items():
        run("convert", tmp_path / "in.zarr", tmp_path / name, *options)
        metadata = json.loads((tmp_path / name / "zarr.json").read_text())
        assert metadata["codecs"][0]["configuration"]["index_location"] == location
        check(tmp_path, {name: expected})


def test_metadata_is_consolidated_and_complete_without(source, tmp_path):
    root, expected = source
    run("convert", root, tmp_path / "out.zarr")
    group = zarr.open_consolidated(tmp_path / "out.zarr", mode="r")
    same(group["types/f8"][...], expected["types/f8"])
    found = {name for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}
    assert found == set(expected)
    plain = zarr.open_group(tmp_path / "out.zarr", mode="r", use_consolidated=False)
    assert {name for name, _ in plain.members(max_depth=None)} == set(expected) | {"types"}


@pytest.fixture
def climate() -> xr.Dataset:
    random = np.random.default_rng(3)
    return xr.Dataset(
        {
            "t": (("time", "lat", "lon"), random.standard_normal((10, 19, 36)).astype("f4"),
                  {"units": "K", "standard_name": "air_temperature"}),
            "mask": (("lat", "lon"), random.integers(0, 2, (19, 36)).astype("i1")),
        },
        coords={
            "time": np.datetime64("2020-01-01", "ns") + np.arange(10) * np.timedelta64(6, "h"),
            "lat": np.linspace(-90, 90, 19),
            "lon": np.arange(0, 360, 10.0),
        },
        attrs={"title": "a small climate", "history": ["made", "up"]},
    )


@pytest.mark.parametrize("version", [2, 3])
def test_a_climate_dataset_stays_complete(climate, tmp_path, version):
    climate.to_zarr(tmp_path / "in.zarr", zarr_format=version, encoding={"t": {"chunks": (4, 10, 10)}})
    run("convert", tmp_path / "in.zarr", tmp_path / "r.repo")
    run("convert", tmp_path / "r.repo", tmp_path / "out.zarr")
    with xr.open_zarr(tmp_path / "out.zarr") as found, xr.open_zarr(tmp_path / "in.zarr") as expected:
        xr.testing.assert_identical(found.load(), expected.load())
    run("convert", tmp_path / "in.zarr", tmp_path / "t.zarr", "--array", "t", "--chunks", "10,19,36")
    same(zarr.open_array(tmp_path / "t.zarr" / "t")[...], climate["t"].values)
