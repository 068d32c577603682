"""An xarray dataset under version control: written whole, extended, and read at any version."""

import numpy as np
import xarray as xr

import chunkyard


def days(first: str, count: int) -> xr.Dataset:
    """Some days of temperatures at four places."""
    time = np.datetime64(first, "ns") + np.arange(count) * np.timedelta64(1, "D")
    values = 280.0 + np.arange(4.0 * count).reshape(count, 4)
    return xr.Dataset({"t": (("time", "place"), values)}, coords={"time": time})


repo = chunkyard.Repository.create("climate")

# A session's store is a store of zarr-python. The block commits at its end, or not at all if it raises.
with repo.transaction("main", message="three days") as store:
    days("2026-01-01", 3).to_zarr(store, zarr_format=3, consolidated=False)
repo.create_tag("january")

with repo.transaction("main", message="two more") as store:
    days("2026-01-04", 2).to_zarr(store, append_dim="time", zarr_format=3, consolidated=False)

now = xr.open_dataset("climate", engine="chunkyard")
before = xr.open_dataset("climate", engine="chunkyard", tag="january")
print(now)
print("days now:", now.sizes["time"], "in January:", before.sizes["time"])
assert (now.sizes["time"], before.sizes["time"]) == (5, 3)
assert now.t.sel(time="2026-01-05").values.tolist() == [284.0, 285.0, 286.0, 287.0]
