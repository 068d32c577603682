"""The engine of xarray: lazy, any format, any version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from chunkyard import Repository


@pytest.fixture
def ds() -> xr.Dataset:
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), rng.random((6, 5, 7)).astype("f4"), {"units": "K"}),
            "n": (("y", "x"), rng.integers(0, 9, (5, 7)), {"long_name": "count"}),
            "holes": (("y",), np.array([1.0, np.nan, 3.0, np.nan, 5.0])),
            "label": (("x",), np.array(list("abcdefg"), dtype=object)),
        },
        coords={
            "time": np.arange("2024-01-01", "2024-01-07", dtype="M8[D]").astype("M8[ns]"),
            "y": np.linspace(0, 1, 5),
            "area": (("y", "x"), rng.random((5, 7))),
        },
        attrs={"title": "sample"},
    )


@pytest.fixture
def url(tmp_path: Path, ds: xr.Dataset) -> str:
    repo = Repository.create(tmp_path / "repo")
    with repo.transaction(message="dataset") as store:
        ds.to_zarr(store, zarr_format=3, consolidated=False, encoding={"t": {"chunks": (2, 3, 4)}})
        ds[["n"]].to_zarr(store, group="deep/er", zarr_format=3, consolidated=False)
    repo.create_tag("v1")
    with repo.transaction(message="changed") as store:
        (ds[["n"]] * 0).to_zarr(store, mode="r+", zarr_format=3, consolidated=False)
    return str(tmp_path / "repo")


def test_a_dataset_comes_back_unchanged(url: str, ds: xr.Dataset) -> None:
    with xr.open_dataset(url, engine="chunkyard", tag="v1") as found:
        xr.testing.assert_identical(found.load(), ds)


def test_the_requested_version_is_read(url: str, ds: xr.Dataset) -> None:
    assert int(xr.open_dataset(url, engine="chunkyard", branch="main").n.sum()) == 0
    assert int(xr.open_dataset(url, engine="chunkyard", tag="v1").n.sum()) == int(ds.n.sum())
    session = Repository.open(url).readonly_session(tag="v1")
    assert int(xr.open_dataset(session, engine="chunkyard").n.sum()) == int(ds.n.sum())
    # A repository is recognised without naming the engine.
    assert int(xr.open_dataset(url).n.sum()) == 0


def test_nothing_is_read_before_it_is_needed(url: str) -> None:
    found = xr.open_dataset(url, engine="chunkyard", tag="v1")
    assert not found.t.variable._in_memory
    assert found.t.encoding["preferred_chunks"] == {"time": 2, "y": 3, "x": 4}


@pytest.mark.parametrize(
    "choose",
    [
        lambda a: a.isel(time=slice(1, None, 2), y=[3, 0], x=-1),
        lambda a: a.isel(x=slice(None, None, -1)),
        lambda a: a.sel(y=0.5).isel(time=[0, 0, 5]),
        lambda a: a.isel(y=xr.DataArray([0, 1, 4], dims="p"), x=xr.DataArray([6, 0, 3], dims="p")),
        lambda a: a.isel(time=2, y=3, x=4),
        lambda a: a.where(a > 0.5),
        lambda a: a.isel(time=np.array([True, False, True, False, False, True])),
    ],
)
def test_every_kind_of_indexing(url: str, ds: xr.Dataset, choose) -> None:  # type: ignore[no-untyped-def]
    found = xr.open_dataset(url, engine="chunkyard", tag="v1")
    xr.testing.assert_equal(choose(found.t).load(), choose(ds.t))


def test_it_scales_with_dask(url: str, ds: xr.Dataset) -> None:
    found = xr.open_dataset(url, engine="chunkyard", tag="v1", chunks={})
    assert found.t.chunks == ((2, 2, 2), (3, 2), (4, 3))
    xr.testing.assert_allclose(found.t.mean("time").compute(), ds.t.mean("time"))


def test_groups_are_a_tree(url: str, ds: xr.Dataset) -> None:
    deep = xr.open_dataset(url, engine="chunkyard", tag="v1", group="deep/er")
    xr.testing.assert_equal(deep.n.load(), ds.n)
    tree = xr.open_datatree(url, engine="chunkyard", tag="v1")
    assert int(tree["/deep/er/n"].sum()) == int(ds.n.sum())


def test_netcdf_is_read_without_its_library(tmp_path: Path, ds: xr.Dataset) -> None:
    path = tmp_path / "file.nc"
    plain = ds.drop_vars("label")
    encoding = {"t": {"zlib": True, "chunksizes": (3, 5, 7), "scale_factor": 0.001, "dtype": "i2"}}
    plain.to_netcdf(path, engine="netcdf4", encoding=encoding)
    expected = xr.open_dataset(path, engine="netcdf4").load()
    found = xr.open_dataset(path, engine="chunkyard").load()
    xr.testing.assert_equal(found, expected)
    assert found.t.attrs == expected.t.attrs
