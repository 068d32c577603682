"""Label arrays through zarr-python and xarray: our codec, found by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import chunkyard
from chunkyard.zarr import LabelBlock

THEIRS = "zarr.core.codec_pipeline.BatchedCodecPipeline"
OURS = "chunkyard.zarr.CodecPipeline"
CODECS = "label_block+zstd:3"


def segmentation(shape: tuple[int, int, int], dtype: str) -> np.ndarray[Any, Any]:
    """Cells of a few labels, some beyond 32 bits where the type allows, and a corner of zeros."""
    z, y, x = np.indices(shape)
    labels = (z // 5 * 7 + y // 9 * 31 + x // 4) % 60
    if dtype == "u8":
        labels = labels.astype("u8") << np.uint64(30)
    labels = labels.astype(dtype)
    labels[:8, :8, :8] = 0
    return labels


@pytest.mark.parametrize("pipeline", [THEIRS, OURS])
@pytest.mark.parametrize("dtype", ["u8", "u4"])
def test_zarr_reads_what_we_write(tmp_path: Path, dtype: str, pipeline: str) -> None:
    labels = segmentation((40, 33, 70), dtype)
    root = chunkyard.open(tmp_path / "x.zarr", mode="a")
    root.create_array("seg", data=labels, chunks=(16, 16, 32), codecs=CODECS)
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        read = zarr.open_array(tmp_path / "x.zarr" / "seg", mode="r")
        assert read.metadata.codecs[0].to_dict() == {"name": "chunkyard.label_block"}
        np.testing.assert_array_equal(read[...], labels)
        np.testing.assert_array_equal(read[3:30:4, 20:, ::3], labels[3:30:4, 20:, ::3])


@pytest.mark.parametrize("dtype", ["u8", "u4"])
def test_we_read_what_zarr_writes(tmp_path: Path, dtype: str) -> None:
    labels = segmentation((24, 20, 36), dtype)
    with zarr.config.set({"codec_pipeline.path": THEIRS}):
        array = zarr.create_array(
            tmp_path / "x.zarr",
            shape=labels.shape,
            chunks=(16, 8, 16),
            dtype=labels.dtype,
            serializer=LabelBlock(),
        )
        array[...] = labels
        array[5:9, 3:4] = 12
    labels[5:9, 3:4] = 12
    np.testing.assert_array_equal(chunkyard.open(tmp_path / "x.zarr")[...], labels)


def test_xarray_reads_label_arrays_of_a_repository(tmp_path: Path) -> None:
    labels = segmentation((16, 24, 32), "u8")
    session = chunkyard.Repository.create(tmp_path / "repo").writable_session("main")
    names = ["z", "y", "x"]
    session.create_array("seg", data=labels, chunks=(8, 8, 16), codecs=CODECS, dimension_names=names)
    session.commit("labels")
    store = chunkyard.Repository.open(tmp_path / "repo").readonly_session("main").store
    with xr.open_zarr(store, consolidated=False, zarr_format=3) as dataset:
        np.testing.assert_array_equal(dataset["seg"].values, labels)


def test_what_is_no_chunk_of_labels_is_refused(tmp_path: Path) -> None:
    for chunks, dtype, what in [((8, 8, 9), "u8", "8"), ((8, 8), "u8", "axes"), ((8, 8, 8), "i8", "uint64")]:
        with pytest.raises(ValueError, match=what):
            zarr.create_array({}, shape=chunks, chunks=chunks, dtype=dtype, serializer=LabelBlock())
    with pytest.raises(ValueError, match="nothing to configure"):
        LabelBlock.from_dict({"name": "chunkyard.label_block", "configuration": {"a": 1}})


def test_a_damaged_block_is_an_error(tmp_path: Path) -> None:
    with zarr.config.set({"codec_pipeline.path": THEIRS}):
        array = zarr.create_array(
            tmp_path / "x.zarr",
            data=segmentation((8, 8, 8), "u8") + np.uint64(1),
            chunks=(8, 8, 8),
            serializer=LabelBlock(),
            compressors=None,
        )
        chunk = tmp_path / "x.zarr" / "c" / "0" / "0" / "0"
        chunk.write_bytes(chunk.read_bytes()[:-1])
        with pytest.raises(chunkyard.exceptions.CorruptError):
            array[...]
