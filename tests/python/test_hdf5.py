"""Files that h5py, netCDF4 and xarray write, converted and linked, and read back by zarr-python and xarray."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import hdf5plugin
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

from conftest import ROOT, run

GOLDEN = ROOT / "testdata" / "hdf5"

pytestmark = pytest.mark.filterwarnings("ignore")


def convert(source: Path, target: Path, *options: str) -> Path:
    run("convert", source, target, *options, "--quiet")
    return target


def same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected.astype(found.dtype, copy=False))


def compare(file: Path, converted: Path) -> int:
    """All arrays of a hierarchy against the datasets of the same name."""
    count = 0
    group = zarr.open_group(converted, mode="r")
    with h5py.File(file) as source:
        for path, array in group.members(max_depth=None):
            if isinstance(array, zarr.Array):
                dataset = source[path]
                text = h5py.check_string_dtype(dataset.dtype)
                values = dataset.asstr()[()] if text and text.length is None else dataset[()]
                same(np.asarray(array[...]), np.asarray(values))
                count += 1
    return count


@pytest.fixture(params=["earliest", "v110", "latest"])
def written(request, tmp_path) -> Path:
    """A file with every layout and filter that Zarr can express."""
    random = np.random.default_rng(5)
    smooth = np.cumsum(random.integers(-2, 3, (70, 90)), axis=1).astype("f4")
    noise = random.standard_normal((70, 90))
    file = tmp_path / f"{request.param}.h5"
    with h5py.File(file, "w", libver=request.param) as out:
        for name, options in {
            "contiguous": {},
            "chunked": {"chunks": (32, 32)},
            "one_chunk": {"chunks": (70, 90), "compression": "gzip"},
            "grows": {"chunks": (32, 32), "maxshape": (None, 90), "compression": "gzip", "shuffle": True},
            "grows_twice": {"chunks": (32, 32), "maxshape": (None, None), "fletcher32": True},
            "everything": {"chunks": (16, 16), "shuffle": True, "compression": 9, "fletcher32": True},
            "zstd": {"chunks": (32, 32), **hdf5plugin.Zstd()},
            "blosc": {"chunks": (32, 32), **hdf5plugin.Blosc(cname="zstd", shuffle=2)},
            "bzip2": {"chunks": (32, 32), **hdf5plugin.BZip2()},
        }.items():
            out.create_dataset(f"smooth/{name}", data=smooth, **options)
            out.create_dataset(f"noise/{name}", data=noise.astype(">f8"), **options)
        out["text"] = ["one", "two", "drei"]
        out["letters"] = np.array([b"abc", b"d"], dtype="S4")
    return file


def test_every_layout_and_filter_is_read_by_zarr_python(written, tmp_path):
    assert compare(written, convert(written, tmp_path / "out.zarr")) == 20


def test_other_chunks_and_codecs_hold_the_same(written, tmp_path):
    options = ("--array", "smooth", "--chunks", "40,50", "--codec", "zstd:3")
    assert compare(written, convert(written, tmp_path / "out.zarr", *options)) == 9


def test_a_linked_file_is_read_where_it_is(written, tmp_path):
    repo = tmp_path / "repo"
    linked = run("link", written, repo)
    assert "references" in linked.stdout + linked.stderr
    out = convert(repo, tmp_path / "out.zarr", "--allow", str(tmp_path))
    assert compare(written, out) == 20
    # Nothing was copied, so without the file there is no data.
    written.rename(tmp_path / "gone.h5")
    failed = run("convert", repo, tmp_path / "again.zarr", "--allow", str(tmp_path), check=False)
    assert failed.returncode != 0


def test_xarray_sees_the_same_dataset(tmp_path):
    file = tmp_path / "written.nc"
    time = np.arange("2020-01-01", "2020-01-06", dtype="M8[D]").astype("M8[ns]")
    values = np.random.default_rng(1).standard_normal((5, 4, 3))
    values[2, 1, 0] = np.nan
    written = xr.Dataset(
        {
            "temperature": (("time", "y", "x"), values, {"units": "K"}),
            "packed": (("y", "x"), np.linspace(0, 50, 12).reshape(4, 3)),
            "label": (("y",), ["a", "bb", "ccc", ""]),
            "flag": (("x",), np.array([True, False, True])),
        },
        coords={"time": time, "y": np.arange(4) * 1.5},
        attrs={"title": "a test", "version": 3},
    )
    packing = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 20.0, "_FillValue": -999, "zlib": True}
    written.to_netcdf(file, engine="netcdf4", encoding={"packed": packing, "temperature": {"zlib": True}})
    out = convert(file, tmp_path / "out.zarr")
    with xr.open_dataset(file, engine="netcdf4") as expected:
        found = xr.open_zarr(out, consolidated=False)
        xr.testing.assert_identical(found.load(), expected.load())


def test_the_golden_netcdf_file_opens_in_xarray(tmp_path):
    out = convert(GOLDEN / "netcdf.nc", tmp_path / "out.zarr")
    found = xr.open_zarr(out, consolidated=False, decode_times=False)
    with netCDF4.Dataset(GOLDEN / "netcdf.nc") as file:
        assert set(found.variables) == set(file.variables)
        for name, variable in file.variables.items():
            assert found[name].dims == variable.dimensions, name
        same(found["temperature"].values, np.asarray(file["temperature"][:]))


def test_losses_are_listed_before_anything_is_written(tmp_path):
    shutil.copy(GOLDEN / "latest.h5", tmp_path / "x.h5")
    refused = run("convert", tmp_path / "x.h5", tmp_path / "out.zarr", check=False)
    assert refused.returncode == 6
    for name in ("/types/compound", "/filters/lzf", "/virtual", "links: ", "attributes: "):
        assert name in refused.stderr, name
    assert not (tmp_path / "out.zarr").exists()
    losses = [line.strip().split(":")[0] for line in refused.stderr.splitlines() if line.startswith("  ")]
    accepted = [word for loss in sorted(set(losses)) for word in ("--lossy", loss)]
    with h5py.File(tmp_path / "x.h5") as file:
        wanted = ["filters", "tree"] + [item.name for item in file["types"].values() if item.name not in losses]
    # zarr-python has no bfloat16, and opens no group that holds one.
    wanted = [path for path in wanted if path not in ("/types/bfloat16", "/types/named_type")]
    arrays = [word for path in wanted for word in ("--array", path)]
    assert compare(tmp_path / "x.h5", convert(tmp_path / "x.h5", tmp_path / "out.zarr", *accepted, *arrays)) > 50


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_a_file_cut_short_is_an_error_and_not_a_crash(tmp_path, size):
    whole = (GOLDEN / "small_latest.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[:size])
    failed = run("convert", tmp_path / "cut.h5", tmp_path / "out.zarr", check=False)
    assert failed.returncode in (3, 5, 6), failed.stderr
    assert "panicked" not in failed.stderr
