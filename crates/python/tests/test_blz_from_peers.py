"""Files of bcolz and bloscpack, read by us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chunkyard
from blosc_family import bcolz, bloscpack

RANDOM = np.random.default_rng(3)
WALK = np.cumsum(RANDOM.integers(-50, 51, 1000))

ARRAYS: dict[str, np.ndarray] = {
    "bool": WALK % 3 == 0,
    "int8": WALK.astype("i1"),
    "uint16": WALK.astype("u2"),
    "int32": WALK.astype("i4"),
    "int64": WALK,
    "uint64": WALK.astype("u8") * np.uint64(2654435761),
    "float32": WALK.astype("f4") / 7,
    "float64": WALK / 7,
    "bytes": np.array([str(value)[:5] for value in WALK], "S5"),
    "text": np.array([f"ä{value}" for value in WALK], "U7"),
    "time": WALK.astype("M8[ns]"),
    "matrix": WALK.reshape(100, 10),
    "cube": (WALK / 3).reshape(50, 4, 5),
}


def directory(values: np.ndarray, path: Path, **options: Any) -> Any:
    """A bcolz array on disk, with several chunks and one that is not full."""
    return bcolz.carray(values, rootdir=str(path), mode="w", chunklen=33, **options)


def found(path: Path, column: str = "/") -> np.ndarray:
    opened: Any = chunkyard.open(path)
    return np.asarray((opened if column == "/" else opened[column])[:])


def same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_every_type_are_read(name: str, tmp_path: Path) -> None:
    directory(ARRAYS[name], tmp_path / "a").flush()
    same(found(tmp_path / "a"), ARRAYS[name])


@pytest.mark.parametrize("codec", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
@pytest.mark.parametrize("level", [0, 1, 5, 9])
def test_every_codec_and_filter_is_read(
    codec: str, shuffle: int, level: int, tmp_path: Path
) -> None:
    for name in ("int32", "float64", "bytes"):
        params = bcolz.cparams(clevel=level, shuffle=shuffle, cname=codec)
        directory(ARRAYS[name], tmp_path / name, cparams=params).flush()
        same(found(tmp_path / name), ARRAYS[name])


def appended(array: Any, values: np.ndarray) -> np.ndarray:
    array.append(values[:150])
    return np.concatenate([values, values[:150]])


def trimmed(array: Any, values: np.ndarray) -> np.ndarray:
    array.trim(450)
    return values[:-450]


def trimmed_to_a_chunk(array: Any, values: np.ndarray) -> np.ndarray:
    array.trim(1000 - 33 * 7)
    return values[: 33 * 7]


def shrunk(array: Any, values: np.ndarray) -> np.ndarray:
    array.resize(100)
    return values[:100]


def grown(array: Any, values: np.ndarray) -> np.ndarray:
    array.resize(1200)
    return np.concatenate([values, np.full(200, array.dflt, values.dtype)])


def changed(array: Any, values: np.ndarray) -> np.ndarray:
    array[10:20], values[10:20] = 7, 7
    return values


def trimmed_and_appended(array: Any, values: np.ndarray) -> np.ndarray:
    return appended(array, trimmed(array, values))


@pytest.mark.parametrize(
    "change",
    [appended, trimmed, trimmed_to_a_chunk, shrunk, grown, changed, trimmed_and_appended],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_arrays_that_bcolz_changed_are_read(
    change: Callable[[Any, np.ndarray], np.ndarray], reopened: bool, tmp_path: Path
) -> None:
    values = ARRAYS["float64"].copy()
    array = directory(values, tmp_path / "a", dflt=2.5)
    if reopened:
        array.flush()
        array = bcolz.open(str(tmp_path / "a"), mode="a")
    expected = change(array, values)
    array.flush()
    same(found(tmp_path / "a"), expected)


def test_quantized_numbers_are_read_as_bcolz_reads_them(tmp_path: Path) -> None:
    params = bcolz.cparams(quantize=3)
    directory(ARRAYS["float64"], tmp_path / "a", cparams=params).flush()
    expected = bcolz.open(str(tmp_path / "a"), mode="r")[:]
    assert not np.array_equal(expected, ARRAYS["float64"])
    same(found(tmp_path / "a"), expected)


def test_an_empty_array_is_read(tmp_path: Path) -> None:
    bcolz.carray(np.empty(0, "f8"), rootdir=str(tmp_path / "a"), mode="w").flush()
    same(found(tmp_path / "a"), np.empty(0, "f8"))


def test_attributes_are_read(tmp_path: Path) -> None:
    array = directory(ARRAYS["int64"], tmp_path / "a")
    array.attrs["unit"], array.attrs["nested"] = "m", {"a": [1, 2.5, None]}
    array.flush()
    attributes = dict(chunkyard.open(tmp_path / "a").attrs)
    assert attributes == {"unit": "m", "nested": {"a": [1, 2.5, None]}}


@pytest.fixture
def table(tmp_path: Path) -> tuple[Any, dict[str, np.ndarray], Path]:
    columns = {name: ARRAYS[name] for name in ("int32", "float64", "bytes", "text", "bool", "time")}
    columns["pairs"] = np.stack([WALK, -WALK], axis=1)
    place = tmp_path / "t"
    made = bcolz.ctable(list(columns.values()), list(columns), rootdir=str(place), mode="w")
    return made, columns, place


def test_tables_are_read_by_column(table: tuple[Any, dict[str, np.ndarray], Path]) -> None:
    made, columns, place = table
    made.flush()
    for name, values in columns.items():
        same(found(place, name), values)


def test_tables_that_bcolz_changed_are_read(
    table: tuple[Any, dict[str, np.ndarray], Path],
) -> None:
    made, columns, place = table
    made.trim(300)
    made.append([values[:90] for values in columns.values()])
    made.addcol(np.arange(790, dtype="u4"), name="more")
    made.delcol("bool")
    made.flush()
    del columns["bool"]
    for name, values in columns.items():
        same(found(place, name), np.concatenate([values[:700], values[:90]]))
    same(found(place, "more"), np.arange(790, dtype="u4"))


def test_objects_are_refused_because_they_are_pickled(tmp_path: Path) -> None:
    values = np.array([{"a": 1}, None, "x"], object)
    bcolz.carray(values, rootdir=str(tmp_path / "a"), mode="w", dtype=np.dtype(object)).flush()
    with pytest.raises(chunkyard.UnsupportedError, match="object"):
        found(tmp_path / "a")
