"""One way to read and to write an array with each of the other implementations of Zarr."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorstore as ts
import zarr
from zarr.core.dtype import VariableLengthUTF8

# Types that TensorStore lacks.
NOT_IN_TENSORSTORE = {"M", "m", "T", "O", "U", "S", "V"}


def read_zarr_python(root: Path, path: str) -> np.ndarray:
    return np.asarray(zarr.open_array(root / path, mode="r")[...])


def read_zarrs(root: Path, path: str) -> np.ndarray:
    """The Rust crate, as the codec pipeline of zarr-python."""
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        array = zarr.open_array(root / path, mode="r")
        assert type(array.async_array.codec_pipeline).__name__ == "ZarrsCodecPipeline"
        return np.asarray(array[...])


def read_tensorstore(root: Path, path: str) -> np.ndarray:
    return open_tensorstore(root, path).read().result()


def open_tensorstore(root: Path, path: str) -> ts.TensorStore:
    driver = "zarr3" if (root / path / "zarr.json").exists() else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(root / path)}}
    return ts.open(spec, read=True).result()


def readers(dtype: np.dtype) -> list:
    """The implementations that know a type."""
    if dtype.kind in NOT_IN_TENSORSTORE:
        return [read_zarr_python, read_zarrs]
    return [read_zarr_python, read_zarrs, read_tensorstore]


def same(found: np.ndarray, expected: np.ndarray, what: object = "") -> None:
    """Equal to the bit: -0.0 is not 0.0, and NaN is NaN."""
    assert found.shape == expected.shape, what
    if expected.dtype.kind in "OT" or found.dtype.kind in "OT":
        assert found.tolist() == expected.tolist(), what
        return
    little = [array.astype(array.dtype.newbyteorder("<"), copy=False) for array in (found, expected)]
    assert little[0].dtype == little[1].dtype, what
    assert little[0].tobytes() == little[1].tobytes(), what


def write_tensorstore(root: Path, path: str, driver: str, metadata: dict, values: np.ndarray) -> None:
    spec = {
        "driver": driver,
        "kvstore": {"driver": "file", "path": str(root / path)},
        "metadata": metadata,
        "create": True,
    }
    ts.open(spec).result().write(values).result()


def strings(values: list[str]) -> np.ndarray:
    return np.array(values, dtype=VariableLengthUTF8().to_native_dtype())
