"""zarr-python through the engine: the same arrays with both pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.testing.strategies import basic_indices, orthogonal_indices

from chunkyard import Repository, _pipeline
from chunkyard.zarr import Store

OURS = "chunkyard.zarr.CodecPipeline"
THEIRS = "zarr.core.codec_pipeline.BatchedCodecPipeline"
BOUNDED = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def open_array(store: Store, pipeline: str, mode: Any = "r+", path: str = "a") -> zarr.Array[Any]:
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        return zarr.open_array(store, path=path, mode=mode)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How many calls went which way."""
    counts = {"ours": 0, "theirs": 0}
    whole, read, write = _pipeline._whole, BatchedCodecPipeline.read, BatchedCodecPipeline.write

    def counting(name: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **named)

        return call

    def counted_whole(batch: Any) -> Any:
        found = whole(batch)
        counts["ours"] += found is not None
        return found

    monkeypatch.setattr(_pipeline, "_whole", counted_whole)
    monkeypatch.setattr(BatchedCodecPipeline, "read", counting("theirs", read))
    monkeypatch.setattr(BatchedCodecPipeline, "write", counting("theirs", write))
    yield counts


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", durable=False)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    shape = draw(npst.array_shapes(min_dims=0, max_dims=3, max_side=9))
    dtype = draw(st.sampled_from(["u1", "<i4", "<f8", "?", "<c8", ">i2"]))
    values = draw(npst.arrays(dtype, shape, elements={"allow_nan": False}))
    inner = [draw(st.integers(1, side)) for side in shape]
    wanted: dict[str, Any] = {"chunks": tuple(inner)}
    if shape and draw(st.booleans()):
        wanted["shards"] = tuple(side * draw(st.integers(1, 3)) for side in inner)
    wanted["compressors"] = draw(st.sampled_from(["auto", None]))
    wanted["chunk_key_encoding"] = draw(
        st.sampled_from([{"name": "default", "separator": "/"}, {"name": "v2", "separator": "."}])
    )
    return values, wanted


@given(data=st.data())
@BOUNDED
def test_both_pipelines_read_and_write_the_same(repo: Repository, data: st.DataObject) -> None:
    values, wanted = data.draw(arrays(), label="array")
    store = repo.writable_session("main").store
    created = zarr.create_array(store, name="a", shape=values.shape, dtype=values.dtype, **wanted)
    ours, theirs = open_array(store, OURS), open_array(store, THEIRS)
    assert created.shape == ours.shape
    expected = np.zeros_like(values)
    for _ in range(3):
        index = data.draw(basic_indices(shape=values.shape), label="written")
        part = values[index] if data.draw(st.booleans()) else values.reshape(-1)[:1].sum()
        writer = data.draw(st.sampled_from([ours, theirs]))
        writer[index] = part
        expected[index] = part
        np.testing.assert_array_equal(ours[...], expected)
        np.testing.assert_array_equal(theirs[...], expected)
    for _ in range(3):
        index = data.draw(basic_indices(shape=values.shape), label="read")
        np.testing.assert_array_equal(ours[index], theirs[index])
        np.testing.assert_array_equal(ours[index], expected[index])
    if values.ndim:
        theirs_index, numpy_index = data.draw(orthogonal_indices(shape=values.shape))
        np.testing.assert_array_equal(ours.oindex[theirs_index], expected[numpy_index])
        mask = data.draw(npst.arrays(bool, values.shape), label="mask")
        np.testing.assert_array_equal(ours.vindex[mask], expected[mask])


def test_slices_go_through_the_engine_and_lists_do_not(
    repo: Repository, counted: dict[str, int]
) -> None:
    store = repo.writable_session("main").store
    zarr.create_array(store, name="a", shape=(20, 30), chunks=(6, 7), dtype="f4")
    array = open_array(store, OURS)
    values = np.arange(600, dtype="f4").reshape(20, 30)
    array[...] = values
    array[3] = 7
    values[3] = 7
    for index in [np.s_[...], np.s_[2:17:5, 1:], np.s_[4, 3:9], np.s_[19, 29], np.s_[::2, ::29]]:
        np.testing.assert_array_equal(array[index], values[index])
    assert counted == {"ours": 7, "theirs": 0}
    np.testing.assert_array_equal(array.oindex[[1, 5], :], values[[1, 5], :])
    np.testing.assert_array_equal(array.vindex[[1, 5], [2, 3]], values[[1, 5], [2, 3]])
    assert counted == {"ours": 7, "theirs": 2}


def test_other_stores_and_unknown_codecs_are_read_by_zarr(
    repo: Repository, counted: dict[str, int]
) -> None:
    values = np.arange(12, dtype="i4")
    elsewhere = zarr.storage.MemoryStore()
    zarr.create_array(elsewhere, name="a", data=values, chunks=(5,))
    np.testing.assert_array_equal(open_array(elsewhere, OURS)[...], values)  # type: ignore[arg-type]
    store = repo.writable_session("main").store
    from numcodecs.zarr3 import Delta

    zarr.create_array(store, name="a", data=values, chunks=(5,), filters=[Delta(dtype="<i4")])
    np.testing.assert_array_equal(open_array(store, OURS)[...], values)
    assert counted["ours"] == 0 and counted["theirs"] >= 2


def test_a_pipeline_is_found_without_an_import(repo: Repository) -> None:
    from zarr.registry import get_pipeline_class

    with zarr.config.set({"codec_pipeline.path": OURS}):
        assert get_pipeline_class().__name__ == "CodecPipeline"


def test_a_read_only_store_refuses_to_write(repo: Repository) -> None:
    store = repo.writable_session("main").store
    zarr.create_array(store, name="a", shape=4, chunks=2, dtype="u1")
    array = open_array(store.with_read_only(True), OURS, mode="r")
    for value in (1, np.ones(4, dtype="u1")):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = value
    assert array[...].tolist() == [0] * 4


def test_empty_chunks_are_kept_on_request(repo: Repository) -> None:
    store = repo.writable_session("main").store
    zarr.create_array(store, name="a", shape=4, chunks=2, dtype="u1")
    with zarr.config.set({"codec_pipeline.path": OURS, "array.write_empty_chunks": True}):
        array = zarr.open_array(store, path="a", mode="r+")
        array[...] = 0
    assert array.nchunks_initialized == 2
    open_array(store, OURS)[...] = 0
    assert array.nchunks_initialized == 0


def test_memory_of_the_caller_is_not_kept(repo: Repository) -> None:
    store = repo.writable_session("main").store
    zarr.create_array(store, name="a", shape=4000, chunks=4000, dtype="u1", compressors=None)
    array = open_array(store, OURS)
    values = np.full(4000, 7, dtype="u1")
    array[...] = values
    values[...] = 0
    assert (array[...] == 7).all()
