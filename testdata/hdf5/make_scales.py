#!/usr/bin/env python3
"""Writes scales.h5 beside it: dimension scales with units, near their arrays and far from them.

    pip install h5py==3.16.0 numpy==2.4.6
"""

from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent


def array(group: h5py.Group, name: str, *scales: h5py.Dataset) -> h5py.Dataset:
    """An array whose axes have these scales."""
    shape = [len(scale) for scale in scales]
    made = group.create_dataset(name, data=np.arange(np.prod(shape)).reshape(shape), track_times=False)
    for axis, scale in enumerate(scales):
        made.dims[axis].attach_scale(scale)
    return made


def scale(group: h5py.Group, name: str, length: int, units: str | None) -> h5py.Dataset:
    made = group.create_dataset(name, data=np.arange(float(length)), track_times=False)
    made.make_scale(name)
    if units is not None:
        made.attrs["units"] = units
    return made


def main() -> None:
    with h5py.File(HERE / "scales.h5", "w") as file:
        y = scale(file, "y", 3, "degrees_north")
        x = scale(file, "x", 4, "degrees_east")
        elsewhere = file.create_group("elsewhere")
        z = scale(elsewhere, "z", 2, "m")
        n = scale(elsewhere, "n", 2, None)
        deep = file.create_group("deep")
        scale(deep, "x", 4, "pixels")
        array(file, "near", y, x)
        array(deep, "far", y, z, n).dims[0].label = "row"
        array(deep, "shadowed", x)


if __name__ == "__main__":
    main()
