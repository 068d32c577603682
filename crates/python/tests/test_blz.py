"""BLZ arrays and tables: NumPy's answers, in bounded memory, through every layout."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import chunkyard
from chunkyard import (
    AlreadyExistsError,
    Blz,
    InvalidError,
    NotFoundError,
    UnsupportedError,
    create_blz,
)

POINT = np.dtype([("x", "<f8"), ("y", "<i4"), ("name", "S3"), ("at", "<f4", (2,))])


def opened(place: Path, **options: object) -> Blz:
    found = chunkyard.open(place, **options)  # type: ignore[arg-type]
    assert isinstance(found, Blz)
    return found


def points(count: int) -> np.ndarray[Any, Any]:
    rows = np.zeros(count, POINT)
    rows["x"] = np.arange(count) / 4
    rows["y"] = np.arange(count) % 7
    rows["name"] = [b"n%d" % (n % 10) for n in range(count)]
    rows["at"] = np.arange(2 * count).reshape(count, 2)
    return rows


ELEMENTS = [
    np.array([True, False, True]),
    np.array([-1, 0, 1], "i1"),
    np.array([0, 1, 2**64 - 1], "u8"),
    np.array([0.5, np.nan, -np.inf]),
    np.array([0.5, 2, 3], ">f4"),
    np.array([1 + 2j, 0, -1j], ">c16"),
    np.array([b"", b"ab", b"abc"], "S3"),
    np.array(["", "zwölf", "x"], ">U5"),
    np.array(["2026-01-31T12:00:00.123", "1969-01-01", "NaT"], "M8[ms]"),
    np.arange(24, dtype="i2").reshape(3, 2, 4),
]


@pytest.mark.parametrize("style", ["superchunk", "document", "bcolz"])
@pytest.mark.parametrize("values", ELEMENTS, ids=lambda values: str(values.dtype))
def test_elements_of_every_type_come_back(
    values: np.ndarray[Any, Any], style: Any, tmp_path: Path
) -> None:
    place = tmp_path / "x.blz"
    with create_blz(place, values.dtype, values.shape[1:], chunklen=2, style=style) as blz:
        blz.append(values)
        np.testing.assert_array_equal(blz[:], values)
    again = opened(place)
    assert again.shape == values.shape
    assert again.style == style
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(again[::-1], values[::-1])


def test_other_readers_see_rows_after_a_flush(tmp_path: Path) -> None:
    place = tmp_path / "x.blz"
    blz = create_blz(place, "i8", chunklen=4)
    other = opened(place)
    blz.append(range(10))
    assert len(blz) == 10 and len(opened(place)) == 0
    blz.flush()
    assert len(other) == 0
    other.refresh()
    np.testing.assert_array_equal(other, np.arange(10))
    assert other.nbytes == 80 and other.cbytes > 0
    blz.trim(3)
    blz.resize(9)
    blz.flush()
    np.testing.assert_array_equal(opened(place), [*range(7), 0, 0])


def test_an_exception_discards_added_rows(tmp_path: Path) -> None:
    blz = create_blz(tmp_path / "x.blz", "i8", data=[1, 2])
    with pytest.raises(RuntimeError), blz:
        blz.append([3])
        raise RuntimeError
    assert len(blz) == 2
    with blz:
        blz.append(4)
    np.testing.assert_array_equal(opened(tmp_path / "x.blz"), [1, 2, 4])


def test_a_table_is_a_structured_array_by_columns(tmp_path: Path) -> None:
    rows = points(100)
    place = tmp_path / "t.blz"
    with create_blz(place, POINT, chunklen=16, attributes={"title": "points"}) as table:
        table.append(rows[:40])
        table.append({name: rows[name][40:50] for name in POINT.names or ()})
        table.append(tuple(row) for row in rows[50:].tolist())
    table = opened(place)
    assert table.dtype == POINT and table.names == POINT.names and table.shape == (100,)
    np.testing.assert_array_equal(table, rows)
    np.testing.assert_array_equal(table[10:60:7], rows[10:60:7])
    np.testing.assert_array_equal(table[rows["y"] == 3], rows[rows["y"] == 3])
    assert table[5] == rows[5] and table[-1]["name"] == b"n9"
    np.testing.assert_array_equal(table["at"][::9], rows["at"][::9])
    np.testing.assert_array_equal(table["at"][3:9, 1], rows["at"][3:9, 1])
    np.testing.assert_array_equal(table["x", "y"][:5], rows[["x", "y"]][:5])
    np.testing.assert_array_equal(table[["y", "x"]][:5], rows[["y", "x"]][:5])
    np.testing.assert_array_equal(table["x", 3:5], rows["x"][3:5])
    with pytest.raises(KeyError, match="nothing"):
        table["nothing"]
    with pytest.raises(KeyError):
        create_blz(None, "f8")["x"]


def test_nested_fields_are_columns_of_their_own() -> None:
    dtype = np.dtype([("id", "u2"), ("place", [("x", "f8"), ("inner", [("a b", "i1")])])])
    rows = np.zeros(5, dtype)
    rows["place"]["x"] = np.arange(5)
    rows["place"]["inner"]["a b"] = [1, 2, 3, 4, 5]
    table = create_blz(None, dtype, data=rows)
    assert table.dtype == dtype
    np.testing.assert_array_equal(table, rows)
    np.testing.assert_array_equal(table["place"], rows["place"])
    np.testing.assert_array_equal(table["place/inner/a b"], rows["place"]["inner"]["a b"])
    np.testing.assert_array_equal(table["place"]["inner"]["a b"][2:], [3, 4, 5])
    assert table["place"].where("`place/x` > 2").tolist() == [(3.0, (4,)), (4.0, (5,))]


def test_rows_are_found_by_conditions_and_masks() -> None:
    rows = points(1000)
    table = create_blz(None, POINT, chunklen=64, data=rows)
    expected = rows[(rows["x"] > 30) & (rows["y"] != 2) & (rows["name"] == b"n4")]
    np.testing.assert_array_equal(table.where("x > 30 and y != 2 and name == 'n4'"), expected)
    np.testing.assert_array_equal(table["y"].where("x >= 249.5"), rows["y"][-2:])
    np.testing.assert_array_equal(table.where(rows["y"] == 1), rows[rows["y"] == 1])
    np.testing.assert_array_equal(table.nonzero("x < 1"), [0, 1, 2, 3])
    assert table.where("x < 0").shape == (0,)
    for wrong in ["x", "x >", "z > 1", "at > 1", "x > 'a'"]:
        with pytest.raises((InvalidError, NotFoundError, UnsupportedError)):
            table.where(wrong)


def test_blocks_are_bounded_and_rows_are_rows() -> None:
    values = np.arange(60).reshape(20, 3)
    blz = create_blz(None, "i8", 3, chunklen=4, data=values)
    blocks = list(blz.blocks(7))
    assert [len(block) for block in blocks] == [7, 7, 6]
    np.testing.assert_array_equal(np.concatenate(blocks), values)
    np.testing.assert_array_equal(np.stack(list(blz)), values)
    with pytest.raises(ValueError):
        list(blz.blocks(0))
    assert list(create_blz(None, "f8").blocks()) == []


def test_resize_adds_default_rows() -> None:
    blz = create_blz(None, "f4", default=np.nan)
    blz.resize(3)
    assert np.isnan(blz[:]).all()
    rows = create_blz(None, "i4", 2, default=[1, 2], chunklen=3)
    rows.resize(5)
    np.testing.assert_array_equal(rows, [[1, 2]] * 5)
    table = create_blz(None, [("x", "f8"), ("s", "S2"), ("t", "M8[D]")], default=(0.5, b"ab", 3))
    table.resize(1)
    assert table[0].tolist() == (0.5, b"ab", np.datetime64(3, "D").item())
    by_name = create_blz(None, [("x", "f8"), ("y", "i4")], default={"y": 7})
    by_name.resize(1)
    assert by_name[0].tolist() == (0.0, 7)


def test_attributes_are_a_mapping(tmp_path: Path) -> None:
    blz = create_blz(tmp_path / "x.blz", "f8", attributes={"unit": "K"})
    blz.attrs.update(a=[1, 2], b=None)
    del blz.attrs["unit"]
    assert dict(opened(tmp_path / "x.blz").attrs) == {"a": [1, 2], "b": None}
    blz.attrs["x"] = [np.nan, -np.inf, "NaN", 2**70]
    x = opened(tmp_path / "x.blz").attrs["x"]
    assert np.isnan(x[0]) and x[1:] == [-np.inf, "NaN", 2**70]
    with pytest.raises(TypeError, match="no bytes"):
        blz.attrs["y"] = b"bytes"


@pytest.mark.parametrize(
    ("style", "verdict"), [("superchunk", "sound"), ("document", "sound"), ("bcolz", "readable")]
)
def test_verify_says_whether_it_could_check(style: str, verdict: str, tmp_path: Path) -> None:
    place = tmp_path / "x.blz"
    create_blz(place, "f8", data=[1.0, 2.0], style=style)  # type: ignore[arg-type]
    report = chunkyard.verify(place)
    assert report
    assert report.verdict == verdict
    assert report.checked["unchecked"] == (1 if style == "bcolz" else 0)


def test_a_dataset_opened_for_reading_refuses_changes(tmp_path: Path) -> None:
    place = tmp_path / "x.blz"
    create_blz(place, "f8", data=[1.0])
    blz = opened(place)
    for change in (
        lambda: blz.append([1.0]),
        lambda: blz.trim(1),
        lambda: blz.resize(3),
        lambda: blz.flush(),
        lambda: blz.attrs.update(x=1),
        lambda: blz.__setitem__(0, 2.0),
    ):
        with pytest.raises(UnsupportedError, match="reading only"):
            change()
    with blz:
        pass
    again = pickle.loads(pickle.dumps(blz))
    np.testing.assert_array_equal(again, blz)
    with pytest.raises(TypeError):
        pickle.dumps(create_blz(None, "f8"))


def test_rows_change_only_in_a_mutable_dataset(tmp_path: Path) -> None:
    place = tmp_path / "t.blz"
    rows = points(50)
    create_blz(place, POINT, chunklen=8, data=rows)
    with pytest.raises(UnsupportedError, match="mutable"):
        opened(place, mode="a")[0] = rows[1]
    with opened(place, mode="r+") as table:
        table[3:5] = rows[10:12]
        table["x"][::7] = -1
        table["at"][-1, 0] = 9
        rows[3:5] = rows[10:12].copy()
        rows["x"][::7] = -1
        rows["at"][-1, 0] = 9
        np.testing.assert_array_equal(table, rows)
    np.testing.assert_array_equal(opened(place), rows)
    array = create_blz(None, "i4", 2, data=np.zeros((5, 2), int), mutable=True)
    array[1:3] = [7, 8]
    np.testing.assert_array_equal(array, [[0, 0], [7, 8], [7, 8], [0, 0], [0, 0]])


def test_rows_that_do_not_fit_are_refused() -> None:
    blz = create_blz(None, "i2", 3)
    for wrong in ([1, 2], [[1, 2]], np.zeros((2, 4)), [[1.5, 2, 3]], [[70000, 0, 0]]):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            blz.append(wrong)
    table = create_blz(None, POINT)
    with pytest.raises(ValueError, match="nothing for the column y"):
        table.append({"x": [1.0], "name": [b""], "at": [[1, 2]]})
    with pytest.raises(InvalidError, match="rows"):
        table.append({"x": [1.0, 2.0], "y": [1], "name": [b""], "at": [[1, 2]]})
    with pytest.raises(ValueError):
        table.append(np.zeros(2, [("x", "f8")]))
    assert len(blz) == 0 and len(table) == 0
    with pytest.raises(InvalidError):
        blz.trim(1)


def test_places_that_are_taken_or_empty_are_errors(tmp_path: Path) -> None:
    create_blz(tmp_path / "x.blz", "f8")
    with pytest.raises(AlreadyExistsError):
        create_blz(tmp_path / "x.blz", "f8")
    for mode in ("r", "r+", "a"):
        with pytest.raises(NotFoundError):
            chunkyard.open(tmp_path / "none.blz", mode=mode)  # type: ignore[arg-type]
    with pytest.raises(InvalidError):
        create_blz(None, "f8", codec="rar")
    with pytest.raises(UnsupportedError):
        create_blz(None, object)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_indexing_agrees_with_numpy(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([np.dtype("i4"), np.dtype(">f8"), POINT]))
    row_shape = () if dtype == POINT else data.draw(st.sampled_from([(), (3,), (2, 2)]))
    blz = create_blz(None, dtype, row_shape, chunklen=data.draw(st.integers(1, 9)), superchunk=2)
    expected = np.zeros((0, *row_shape), dtype)
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(st.sampled_from(["append", "append", "trim", "resize", "flush", "discard"]))
        if step == "append":
            count = data.draw(st.integers(0, 30))
            size = count * int(np.prod(row_shape))
            more = points(count) if dtype == POINT else np.arange(size).reshape(-1, *row_shape)
            blz.append(more)
            expected = np.concatenate([expected, more.astype(dtype)])
        elif step == "trim":
            count = data.draw(st.integers(0, len(expected)))
            blz.trim(count)
            expected = expected[: len(expected) - count]
        elif step == "resize":
            count = data.draw(st.integers(0, 40))
            blz.resize(count)
            more = np.zeros((max(count - len(expected), 0), *row_shape), dtype)
            expected = np.concatenate([expected[:count], more])
        else:
            blz.flush()
            if step == "discard":
                blz.append(expected)
                blz.discard()
        assert len(blz) == len(expected)
        index = data.draw(hnp.basic_indices(expected.shape, allow_newaxis=False))
        np.testing.assert_array_equal(blz[index], expected[index])
        mask = data.draw(hnp.arrays(bool, len(expected)))
        np.testing.assert_array_equal(blz[mask], expected[mask])
