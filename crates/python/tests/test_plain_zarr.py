"""Plain Zarr that is changed in place, and what zarr-python makes of it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import zarr

import chunkyard
from chunkyard import AlreadyExistsError, NotFoundError, Repository, UnsupportedError


@pytest.fixture
def root(tmp_path: Path) -> chunkyard.Group:
    found = chunkyard.open(tmp_path / "x.zarr", mode="a")
    assert isinstance(found, chunkyard.Group)
    return found


def test_what_is_written_in_place_is_read_by_zarr(root: chunkyard.Group, tmp_path: Path) -> None:
    values = np.arange(35, dtype="f4").reshape(5, 7)
    for name, shards in [("plain", None), ("sharded", (4, 4))]:
        array = root.create_array(f"g/{name}", data=values, chunks=(2, 2), shards=shards)
        array[1:4, ::3] = -1
        array.attrs["unit"] = "m"
        theirs = zarr.open_array(tmp_path / "x.zarr" / "g" / name, mode="r")
        expected = values.copy()
        expected[1:4, ::3] = -1
        np.testing.assert_array_equal(theirs[...], expected)
        assert theirs.attrs["unit"] == "m"
        assert theirs.chunks == (2, 2) and theirs.shards == shards


def test_what_need_not_be_durable_is_written_all_the_same(tmp_path: Path) -> None:
    root = chunkyard.open(tmp_path / "scratch.zarr", mode="a", durable=False)
    assert isinstance(root, chunkyard.Group)
    root.create_array("a", data=np.arange(12), chunks=5)
    assert zarr.open_array(tmp_path / "scratch.zarr" / "a", mode="r")[...].tolist() == list(range(12))


def test_what_zarr_wrote_is_changed_in_place(tmp_path: Path) -> None:
    theirs = zarr.create_array(tmp_path / "y.zarr", shape=(6, 6), chunks=(4, 4), dtype="i2")
    theirs[...] = 1
    ours = chunkyard.open(tmp_path / "y.zarr", mode="r+")
    assert isinstance(ours, chunkyard.Array)
    ours[2:, 5] = 7
    ours.append(np.full((1, 6), 9, dtype="i2"))
    found = zarr.open_array(tmp_path / "y.zarr", mode="r")[...]
    assert found.shape == (7, 6) and found[6].tolist() == [9] * 6
    assert found[:6].sum() == 36 + 4 * 6


def test_consolidated_metadata_of_zarr_stays_true(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "c.zarr", mode="w")
    group.create_array("a", shape=(4,), chunks=(2,), dtype="u1")
    zarr.consolidate_metadata(tmp_path / "c.zarr")
    ours = chunkyard.open(tmp_path / "c.zarr", mode="r+")
    assert isinstance(ours, chunkyard.Group)
    ours.create_array("deep/b", data=np.arange(3))
    ours["a"].attrs["n"] = 1
    found = zarr.open_consolidated(tmp_path / "c.zarr")
    assert sorted(name for name, _ in found.members(max_depth=None)) == ["a", "deep", "deep/b"]
    assert found["a"].attrs["n"] == 1
    del ours["deep"]
    found = zarr.open_consolidated(tmp_path / "c.zarr")
    assert [name for name, _ in found.members(max_depth=None)] == ["a"]


def test_the_mode_says_what_may_be_done(root: chunkyard.Group, tmp_path: Path) -> None:
    root.create_array("a", data=np.zeros(4))
    reading = chunkyard.open(tmp_path / "x.zarr")
    assert isinstance(reading, chunkyard.Group)
    with pytest.raises(UnsupportedError):
        reading["a"][...] = 1
    with pytest.raises(NotFoundError):
        chunkyard.open(tmp_path / "nothing.zarr", mode="r+")
    with pytest.raises(AlreadyExistsError):
        root.create_array("a", data=np.zeros(4))
    root.create_array("a", data=np.ones(2), overwrite=True)
    assert root["a"].shape == (2,)
    with pytest.raises(ValueError, match="version"):
        chunkyard.open(tmp_path / "x.zarr", mode="a", branch="main")
    Repository.create(tmp_path / "repo")
    with pytest.raises(UnsupportedError, match="session"):
        chunkyard.open(tmp_path / "repo", mode="a")


def test_threads_that_share_chunks_lose_nothing(root: chunkyard.Group, tmp_path: Path) -> None:
    root.create_array("a", shape=(40,), dtype="i4", chunks=(10,))

    def write(lane: int) -> None:
        array = chunkyard.open(tmp_path / "x.zarr", "a", mode="r+")
        array[lane::4] = lane + 1

    threads = [threading.Thread(target=write, args=(lane,)) for lane in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert root["a"][...].tolist() == [1, 2, 3, 4] * 10


def test_stored_chunks_are_listed(root: chunkyard.Group) -> None:
    array = root.create_array("a", data=np.arange(40, dtype="u1"), chunks=(10,), codecs="none")
    assert array.nbytes_stored == 40
    array[:10] = 0
    assert array.nbytes_stored == 30
