"""Containers: read, changed, converted, by layers."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import chunkyard
from chunkyard import (
    AlreadyExistsError,
    ConflictError,
    Container,
    CorruptError,
    NotFoundError,
    UnsupportedError,
)


def opened(path: Path, **options: object) -> Container:
    found = chunkyard.open(path, **options)  # type: ignore[arg-type]
    assert isinstance(found, Container)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A container of two layers."""
    path = tmp_path / "x.af"
    with opened(path, mode="a") as container:
        field = np.arange(35, dtype="f4").reshape(5, 7)
        container.create_array(
            "ocean/field", data=field, chunks=(2, 3), dimension_names=("y", "x"), fill_value=-1
        )
        container["ocean/field"].attrs.update({"units": "K", "range": [1, 2], "nested": {"a": None}})
        container.create_group("empty", {"title": "nothing"})
    with opened(path, mode="r+") as container:
        container["ocean/field"][0, :2] = 99
    return path


ELEMENTS = {
    "bool": np.array([True, False, True]),
    "int8": np.array([-1, 0, 1], "i1"),
    "uint64": np.array([0, 1, 2**64 - 1], "u8"),
    "float64": np.array([0.5, np.nan, -np.inf]),
    "time": np.array(["2026-01-31T12:00:00.123456789", "1969-01-01", "NaT"], "M8[ns]"),
    "text": np.array(["", "zwölf", "x" * 1000], object),
    "blob": np.array([b"", b"\x00\xff", b"abc"], object),
}


def test_elements_of_every_type_come_back(tmp_path: Path) -> None:
    dtypes: dict[str, object] = {"text": "string", "blob": "bytes"}
    with opened(tmp_path / "t.af", mode="a") as container:
        for name, values in ELEMENTS.items():
            dtype = dtypes.get(name, values.dtype)
            array = container.create_array(name, shape=values.shape, dtype=dtype, chunks=2)
            array[...] = values
    again = opened(tmp_path / "t.af")
    for name, values in ELEMENTS.items():
        np.testing.assert_array_equal(again[name][...], values)
    assert again["time"].dtype == np.dtype("M8[ns]")
    assert again.statistics("text") == chunkyard.Statistics("", "zwölf", 0, 3)
    time = again.statistics("time")
    assert time is not None and time.max == ELEMENTS["time"][0]


def test_a_hierarchy_and_its_attributes_are_read(place: Path) -> None:
    container = opened(place)
    assert list(container) == ["empty", "ocean"]
    assert container["empty"].attrs["title"] == "nothing"
    field = container["ocean/field"]
    assert isinstance(field, chunkyard.Array)
    assert field.attrs.asdict() == {"units": "K", "range": [1, 2], "nested": {"a": None}}
    assert field[0].tolist() == [99, 99, 2, 3, 4, 5, 6]
    assert chunkyard.open(place, "ocean/field")[4, 6] == 34
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(field))[...], field[...])
    with pytest.raises(UnsupportedError):
        container.flush()
    with pytest.raises(UnsupportedError):
        field[0, 0] = 1


def test_older_layers_are_read_until_they_are_compacted(place: Path) -> None:
    assert [layer.chunks for layer in opened(place).layers()] == [0, 9, 1]
    assert all(layer.checksums for layer in opened(place).layers())
    assert chunkyard.open(place, "ocean/field", snapshot=1)[0, 0] == 0
    with pytest.raises(NotFoundError):
        chunkyard.open(place, snapshot=9)
    with opened(place, mode="r+") as container:
        compacted = container.compact()
    assert compacted.layers == 3 and compacted.bytes_after < compacted.bytes_before
    assert len(opened(place).layers()) == 1
    assert chunkyard.open(place, "ocean/field")[0, 0] == 99
    assert chunkyard.verify(place)


def test_changes_wait_for_a_flush(place: Path) -> None:
    writer = opened(place, mode="r+")
    writer["ocean/field"].append(np.zeros((1, 7), "f4"))
    writer.create_array("new/deep", data=np.arange(3))
    del writer["empty"]
    assert "empty" not in writer and "new" in writer and writer["new/deep"][2] == 2
    assert "empty" in opened(place) and "new" not in opened(place)
    assert writer.flush() == 3
    assert writer.flush() is None
    found = opened(place)
    assert list(found) == ["new", "ocean"]
    assert found["ocean/field"].shape == (6, 7)
    writer["ocean/field"].resize((1, 1))
    writer.discard()
    assert writer["ocean/field"].shape == (6, 7)
    with pytest.raises(AlreadyExistsError):
        writer.create_array("new/deep", shape=3, dtype="i4")
    writer.create_array("new/deep", data=np.ones(2), overwrite=True)
    writer.flush()
    assert opened(place)["new/deep"][...].tolist() == [1, 1]


def test_an_exception_discards_changes(place: Path) -> None:
    with pytest.raises(RuntimeError), opened(place, mode="r+") as container:
        container["ocean/field"][...] = 0
        raise RuntimeError
    assert len(opened(place).layers()) == 3
    assert opened(place)["ocean/field"][0, 0] == 99


def test_the_second_of_two_writers_gets_a_conflict(place: Path) -> None:
    first, second = opened(place, mode="r+"), opened(place, mode="r+")
    first["ocean/field"][0, 0] = 1
    second["ocean/field"][0, 0] = 2
    first.flush()
    with pytest.raises(ConflictError):
        second.flush()
    assert opened(place)["ocean/field"][0, 0] == 1


def test_values_that_a_container_cannot_hold_are_refused(place: Path, tmp_path: Path) -> None:
    container = opened(place, mode="r+")
    with pytest.raises(UnsupportedError):
        container.create_array("half", shape=3, dtype="f2")
    with pytest.raises(UnsupportedError):
        container.create_array("shards", shape=8, dtype="i4", chunks=2, shards=4)
    with pytest.raises(ValueError):
        container.create_array("ocean/field/inner", shape=3, dtype="i4")
    with pytest.raises(NotFoundError):
        chunkyard.open(tmp_path / "none.af", mode="r+")
    with pytest.raises(ValueError):
        chunkyard.open(place, mode="r+", snapshot=1)


def test_a_torn_newest_layer_gives_a_warning_and_refuses_writes(place: Path) -> None:
    layer = place.with_name("x.2.af")
    layer.write_bytes(layer.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="the newest layer, cannot be read"):
        assert chunkyard.open(place, "ocean/field")[0, 0] == 0
    with pytest.raises(CorruptError, match="af repair"):
        chunkyard.open(place, mode="r+")
    assert not chunkyard.verify(place)


def test_containers_are_converted_both_ways(place: Path, tmp_path: Path) -> None:
    chunkyard.convert(place, tmp_path / "y.zarr", verify=True)
    chunkyard.convert(tmp_path / "y.zarr", tmp_path / "z.af", verify=True)
    before, after = opened(place), opened(tmp_path / "z.af")
    np.testing.assert_array_equal(after["ocean/field"][...], before["ocean/field"][...])
    assert after["ocean/field"].attrs.asdict() == before["ocean/field"].attrs.asdict()
    assert after["empty"].attrs["title"] == "nothing"
    assert after.statistics("ocean/field") == before.statistics("ocean/field")
    assert chunkyard.info(place).format == "container"


def test_attributes_keep_their_types_and_scalars_give_them(tmp_path: Path) -> None:
    with opened(tmp_path / "t.af", mode="a") as container:
        array = container.create_array("a", shape=2, dtype="i4", attributes={"low": np.int8(-5)})
        array.attrs["scale"] = np.float32(0.5)
        array.attrs["count"] = 3
        container.create_group("g", {"flag": np.bool_(True), "size": np.uint16(9)})
    with opened(tmp_path / "t.af", mode="r+") as container:
        container["a"].attrs["units"] = "K"
        del container["a"].attrs["count"]
        expected = {"low": "Int8", "scale": "Float32", "units": "String"}
        assert container.attribute_types("a") == expected
        assert container.attribute_types("g") == {"flag": "Bool", "size": "UInt16"}
    found = opened(tmp_path / "t.af")
    assert found["a"].attrs.asdict() == {"low": -5, "scale": 0.5, "units": "K"}


def test_elements_that_are_lists_come_back(tmp_path: Path) -> None:
    numbers = [[1, 2, 3], [], [-4]]
    words = [["a", "b"], [], ["ccc"]]
    with opened(tmp_path / "t.af", mode="a") as container:
        container.create_array("numbers", data=numbers, dtype="list<int32>", chunks=2)
        array = container.create_array("words", shape=3, dtype="list<string>")
        array[...] = words
        array[1:2] = [["new"]]
    found = opened(tmp_path / "t.af")
    assert found["numbers"][...].tolist() == numbers
    assert found["words"][...].tolist() == [["a", "b"], ["new"], ["ccc"]]
    assert found["numbers"][2] == [-4]
    with opened(tmp_path / "t.af", mode="r+") as container:
        container["numbers"][0] = np.array([7, 8], "i4")
    assert opened(tmp_path / "t.af")["numbers"][0] == [7, 8]


def test_a_damaged_newest_layer_is_an_error(place: Path) -> None:
    layer = place.with_name("x.2.af")
    damaged = bytearray(layer.read_bytes())
    damaged[-20] ^= 1
    layer.write_bytes(damaged)
    with pytest.raises(CorruptError, match="af repair"):
        chunkyard.open(place)
    assert chunkyard.open(place, "ocean/field", snapshot=1)[0, 0] == 0
