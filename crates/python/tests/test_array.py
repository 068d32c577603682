"""Arrays and groups: their properties, how they are created and changed."""

from __future__ import annotations

import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import chunkyard
from chunkyard import Array, Group, NotFoundError, Repository, Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Repository.create(tmp_path / "repo").writable_session()


DTYPES = ["?", "i1", "u2", "<i4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[ns]", "m8[s]", "U5", "S4", "V3"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_numpy_type_goes_in_and_out(session: Session, dtype: str) -> None:
    raw = np.random.default_rng(0).integers(0, 2, (5, 7 * np.dtype(dtype).itemsize), dtype="u1")
    values = np.arange(35).reshape(5, 7).astype(dtype) if "U" in dtype else raw.view(dtype)
    array = session.create_array("a", data=values, chunks=(2, 3))
    assert array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(array[...], values)
    session.commit("a")
    again = session.repository.readonly_session()["a"]
    assert isinstance(again, Array)
    np.testing.assert_array_equal(again[1:4, ::3], values[1:4, ::3])


def test_big_endian_values_are_converted(session: Session) -> None:
    values = np.arange(6, dtype=">i4")
    array = session.create_array("a", data=values)
    np.testing.assert_array_equal(array[...], values)


def test_text_of_any_length(session: Session) -> None:
    words = np.array([["a", "", "ünï"], ["long" * 100, "b", "c"]], dtype=np.dtypes.StringDType())
    array = session.create_array("words", data=words, chunks=(1, 2), fill_value="none")
    assert array.fill_value == "none" and array.dtype == np.dtypes.StringDType()
    np.testing.assert_array_equal(array[...], words)
    array.append(np.array([["x", "y", "z"]], dtype=np.dtypes.StringDType()))
    assert array[2, 1] == "y" and array.shape == (3, 3)
    raw = session.create_array("raw", shape=2, dtype=bytes)
    raw[0] = b"\x00\xff"
    assert list(raw[...]) == [b"\x00\xff", b""]


def test_an_array_describes_itself(session: Session) -> None:
    array = session.create_array(
        "g/a",
        shape=(10, 20),
        dtype="f4",
        chunks=(4, 8),
        codecs="blosc:zstd:3:shuffle",
        fill_value=np.nan,
        attributes={"units": "K"},
        dimension_names=("y", None),
    )
    assert (array.path, array.name, array.ndim, array.size) == ("/g/a", "a", 2, 200)
    assert (array.nbytes, array.cdata_shape, array.nchunks) == (800, (3, 3), 9)
    assert np.isnan(array.fill_value) and array.dimension_names == ("y", None)
    assert array.metadata["codecs"][1]["name"] == "blosc"
    assert len(array) == 10 and np.asarray(array).shape == (10, 20)
    assert array.nbytes_stored == 0
    array[0:4, 0:8] = 1
    assert array.nbytes_stored > 0
    html = array._repr_html_()
    assert "<svg" in html and "10 × 20" in html and "blosc" in html
    assert repr(array) == "<chunkyard.Array '/g/a' shape=(10, 20) dtype=float32 chunks=(4, 8)>"
    array.attrs["more"] = [1, 2]
    array.attrs.update(units="C")
    del array.attrs["more"]
    assert dict(array.attrs) == {"units": "C"}
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(array, copy=False)


def test_numbers_that_json_lacks_are_kept(session: Session) -> None:
    group = zarr.create_group(session.store)
    group.create_array("a", shape=(2,), dtype="f4").attrs["missing"] = [float("nan"), -np.inf]
    attrs = session["a"].attrs
    attrs["more"] = 1
    assert np.isnan(attrs["missing"][0]) and attrs["missing"][1] == -np.inf
    assert zarr.open_array(session.store, path="a").attrs["missing"][1] == -np.inf
    attrs["new"] = float("nan")
    attrs["text"] = "NaN"
    zarr_attrs = zarr.open_array(session.store, path="a").attrs
    assert np.isnan(zarr_attrs["new"]) and zarr_attrs["text"] == "NaN"
    attrs["new"] = "NaN"
    assert attrs["new"] == "NaN" and np.isnan(attrs["missing"][0])
    group = session.create_group("g", {"x": {"y": [np.inf, "Infinity"]}})
    assert dict(group.attrs) == {"x": {"y": [np.inf, "Infinity"]}}
    array = session.create_array("b", shape=1, dtype="i1", attributes={"z": [-np.inf]})
    assert array.attrs["z"] == [-np.inf]


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**40, 0.1, 1e300, -0.0])
def test_numbers_are_kept_digit_by_digit(session: Session, number: float) -> None:
    group = session.create_group("g", {"n": number, "deep": [{"n": [number]}]})
    assert group.attrs["n"] == number and type(group.attrs["n"]) is type(number)
    assert group.attrs["deep"] == [{"n": [number]}]
    assert zarr.open_group(session.store, path="g").attrs["n"] == number
    session.commit("numbers", metadata={"n": number})
    again = session.repository.readonly_session()
    assert again["g"].attrs["n"] == number
    assert next(iter(session.repository.ancestry())).metadata["n"] == number


def test_a_fill_value_that_the_type_does_not_hold_is_refused(session: Session) -> None:
    for dtype, value in [
        ("f2", 1e10),
        ("f4", -1e39),
        ("c8", 1e39 + 0j),
        ("i4", 1.5),
        ("u1", -1),
        ("u1", 256),
        ("i8", 2**63),
        ("i4", np.nan),
        ("?", 2),
        ("S3", b"four"),
        ("U3", "four"),
    ]:
        with pytest.raises((ValueError, OverflowError)):
            session.create_array("a", shape=1, dtype=dtype, fill_value=value)
    for at, (dtype, value) in enumerate(
        [("f2", 65504), ("f4", 0.1), ("f2", np.inf), ("u1", 255), ("?", True), ("S3", b"abc")]
    ):
        array = session.create_array(f"b{at}", shape=1, dtype=dtype, fill_value=value)
        assert array[0] == np.asarray(value, dtype)


def test_groups_pickle_where_arrays_do(session: Session, tmp_path: Path) -> None:
    session.create_array("g/a", data=np.arange(3))
    with pytest.raises(TypeError, match="fork"):
        pickle.dumps(session.root)
    session.commit("a")
    root = session.repository.readonly_session().root
    group = pickle.loads(pickle.dumps(root))["g"]
    again = pickle.loads(pickle.dumps(group))
    assert again.path == "/g" and again["a"][:].tolist() == [0, 1, 2]
    plain = chunkyard.open(tmp_path / "x.zarr", mode="a")
    plain.create_array("g/a", data=np.arange(3))
    read = pickle.loads(pickle.dumps(chunkyard.open(tmp_path / "x.zarr")["g"]))
    assert read["a"][:].tolist() == [0, 1, 2]


def test_control_characters_in_names_are_spelled_out(session: Session) -> None:
    session.create_group("a\u202e<b>&")
    for text in (session.root.tree(), repr(session.root), session.root._repr_html_()):
        assert "\u202e" not in text
    assert "&lt;b&gt;&amp;" in session.root._repr_html_()


def test_references_are_a_table(session: Session) -> None:
    noise = np.random.default_rng(1).random((8, 8))
    session.create_array("a", data=noise, chunks=(4, 4), codecs="none")
    session.create_array("tiny", data=np.arange(4.0), chunks=2)
    session.commit("a")
    root = session.repository.readonly_session().root
    array = root["a"]
    assert isinstance(array, Array)
    table = array.chunk_refs()
    assert table.column("index").to_pylist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert table.column("length").to_pylist() == [128] * 4 and array.nbytes_stored == 512
    tiny = root["tiny"]
    assert isinstance(tiny, Array)
    assert tiny.chunk_refs().column("kind").to_pylist() == ["inline", "inline"]
    scalar = session.repository.writable_session().create_array("s", data=np.float64(3))
    assert scalar.chunk_refs().column("index").to_pylist() == [[]]


def test_an_array_is_walked_chunk_by_chunk(session: Session) -> None:
    values = np.arange(35).reshape(5, 7)
    array = session.create_array("a", data=values, chunks=(2, 3))
    seen = np.zeros_like(values)
    for region, chunk in array.iter_chunks():
        seen[region] += chunk
    np.testing.assert_array_equal(seen, values)


def test_arrays_grow_and_shrink(session: Session) -> None:
    array = session.create_array("a", data=np.arange(6).reshape(2, 3), chunks=(2, 2))
    assert array.append(np.full((1, 3), 9)) == (3, 3)
    assert array.append(np.zeros((3, 1), dtype=int), axis=-1) == (3, 4)
    np.testing.assert_array_equal(array[...], [[0, 1, 2, 0], [3, 4, 5, 0], [9, 9, 9, 0]])
    array.resize((1, 2))
    np.testing.assert_array_equal(array[...], [[0, 1]])
    with pytest.raises(ValueError, match="does not continue"):
        array.append(np.zeros((1, 3)))


def test_groups_are_mappings(session: Session) -> None:
    root = session.root
    root.create_array("a", data=np.arange(3))
    inner = root.create_group("g/h", {"k": 1})
    inner.create_array("b", shape=(2, 2), dtype="u1")
    assert list(root) == ["a", "g"] and len(root) == 2 and "g/h/b" in root and "x" not in root
    assert isinstance(root["g/h"], Group) and dict(root["g/h"].attrs) == {"k": 1}
    assert [name for name, _ in root.arrays()] == ["a"]
    assert [name for name, _ in root.groups()] == ["g"]
    assert [path for path, _ in root.members()] == ["a", "g", "g/h", "g/h/b"]
    assert "b  uint8 (2, 2)" in root.tree() and "<pre>" in root._repr_html_()
    with pytest.raises(KeyError, match="/nothing"):
        root["nothing"]
    session.move("/g/h/b", "/moved")
    del root["g"]
    assert list(root) == ["a", "moved"]
    root.create_array("a", data=np.zeros(2), overwrite=True)
    assert root["a"].shape == (2,)
    with pytest.raises(chunkyard.AlreadyExistsError):
        root.create_array("a", data=np.zeros(2))


def test_every_format_is_opened_by_its_content(tmp_path: Path) -> None:
    values = np.random.default_rng(2).random((20, 30)).astype("f4")
    for version in (2, 3):
        zarr.create_array(
            tmp_path / f"v{version}.zarr", data=values, chunks=(7, 11), zarr_format=version
        )
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.create_dataset("g/a", data=values, chunks=(5, 5), compression="gzip")
    for place, path in (("v2.zarr", "/"), ("v3.zarr", "/"), ("file.h5", "g/a")):
        array = chunkyard.open(tmp_path / place, path)
        assert isinstance(array, Array)
        np.testing.assert_array_equal(array[3:17, ::-2], values[3:17, ::-2])
        assert array.nbytes_stored > 0
    with pytest.raises(NotFoundError, match="none of these"):
        chunkyard.open(tmp_path / "nothing")
    with pytest.raises(NotImplementedError):
        array[...] = 0


def test_hostile_arguments_only_raise_errors(session: Session) -> None:
    for wanted in (
        {"shape": (2,), "dtype": "f4", "chunks": (0,)},
        {"shape": (2,), "dtype": "f4", "chunks": (1, 1)},
        {"shape": (2,), "dtype": "nonsense"},
        {"shape": (2,), "dtype": "f4", "codecs": "zstd:x"},
        {"shape": (2,), "dtype": "f4", "codecs": [{"name": "nonsense"}]},
        {"shape": (2,), "dtype": "f4", "attributes": {"x": object()}},
    ):
        with pytest.raises((ValueError, NotImplementedError, TypeError)):
            session.create_array("bad", **wanted)  # type: ignore[arg-type]
    with pytest.raises((OverflowError, ValueError)):
        session.create_array("bad", shape=(-1,), dtype="f4")
    assert not session.status()
