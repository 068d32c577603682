"""Plain Zarr changed in place, and read by zarr-python."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

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


def test_zarr_reads_arrays_that_were_written_in_place(root: chunkyard.Group, tmp_path: Path) -> None:
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


def test_data_that_need_not_be_durable_is_still_written(tmp_path: Path) -> None:
    root = chunkyard.open(tmp_path / "scratch.zarr", mode="a", durable=False)
    assert isinstance(root, chunkyard.Group)
    root.create_array("a", data=np.arange(12), chunks=5)
    assert zarr.open_array(tmp_path / "scratch.zarr" / "a", mode="r")[...].tolist() == list(range(12))


def test_arrays_that_zarr_wrote_are_changed_in_place(tmp_path: Path) -> None:
    theirs = zarr.create_array(tmp_path / "y.zarr", shape=(6, 6), chunks=(4, 4), dtype="i2")
    theirs[...] = 1
    ours = chunkyard.open(tmp_path / "y.zarr", mode="r+")
    assert isinstance(ours, chunkyard.Array)
    ours[2:, 5] = 7
    ours.append(np.full((1, 6), 9, dtype="i2"))
    found = zarr.open_array(tmp_path / "y.zarr", mode="r")[...]
    assert found.shape == (7, 6) and found[6].tolist() == [9] * 6
    assert found[:6].sum() == 36 + 4 * 6


def test_consolidated_metadata_of_zarr_stays_correct(tmp_path: Path) -> None:
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


def test_the_mode_limits_the_changes(root: chunkyard.Group, tmp_path: Path) -> None:
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


NUMBERS = {
    "missing_value": float("nan"),
    "range": [-np.inf, {"most": np.inf}, 1.5],
    "word": "NaN",
    "a/b~c": np.nan,
    "large": 2**70,
}


def check_numbers(found: Mapping[str, Any]) -> None:
    assert np.isnan(found["missing_value"]) and np.isnan(found["a/b~c"])
    assert found["range"] == [-np.inf, {"most": np.inf}, 1.5]
    assert found["word"] == "NaN" and found["large"] == 2**70


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_numbers_that_json_lacks_are_read_and_written_as_zarr_does(
    tmp_path: Path, version: Literal[2, 3], consolidated: bool
) -> None:
    place = tmp_path / "their.zarr"
    group = zarr.open_group(place, mode="w", zarr_format=version, attributes=NUMBERS)
    array = group.create_array("g/a", shape=(4,), dtype="f4", fill_value=np.nan, attributes=NUMBERS)
    array[:2] = 1
    if consolidated:
        zarr.consolidate_metadata(place)
    ours = chunkyard.open(place)
    check_numbers(ours.attrs)
    check_numbers(ours["g/a"].attrs)
    # Through every format that can be written, and back.
    source = place
    repo = Repository.create(tmp_path / "repo")
    chunkyard.convert(source, tmp_path / "repo", into="x")
    stored = repo.readonly_session()
    check_numbers(stored["x"].attrs)
    check_numbers(zarr.open_group(stored.store, path="x", mode="r")["g/a"].attrs)
    for name in ["x.af", "x.blz", "plain.zarr"]:
        chunkyard.convert(source, tmp_path / name)
        source = tmp_path / name
        if name != "x.blz":  # opened as rows; the next step converts it
            check_numbers(chunkyard.open(source)["g/a"].attrs)
    theirs = zarr.open_group(tmp_path / "plain.zarr", mode="r")
    check_numbers(theirs.attrs)
    check_numbers(theirs["g/a"].attrs)
    assert np.isnan(theirs["g/a"].fill_value)
    text = (tmp_path / "plain.zarr" / "zarr.json").read_text()
    assert "NaN" in text and "chunkyard" not in text


def test_numbers_that_json_lacks_are_set_in_place(root: chunkyard.Group, tmp_path: Path) -> None:
    array = root.create_array("g/a", data=np.arange(3), attributes={"x": np.nan})
    array.attrs.update(NUMBERS)
    root["g"].attrs.update(NUMBERS)
    theirs = zarr.open_group(tmp_path / "x.zarr", mode="r+")
    for attributes in (theirs["g"].attrs, theirs["g/a"].attrs):
        check_numbers(attributes)
        attributes["more"] = -np.inf
    again = chunkyard.open(tmp_path / "x.zarr", mode="r+")
    assert again["g/a"].attrs["more"] == -np.inf
    again["g/a"].attrs["missing_value"] = "NaN"
    assert zarr.open_array(tmp_path / "x.zarr" / "g" / "a").attrs["missing_value"] == "NaN"
