"""Indexing: our results are NumPy's, for arrays of every format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import chunkyard
from chunkyard import Repository

NDArray = np.ndarray[Any, Any]
Shape = tuple[int, ...]

KINDS = ["repo", "zarr", "shards"]


class Yard:
    """Places for arrays, each used for many examples."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self.session = Repository.create(path / "repo").writable_session("main")
        self.zarr = chunkyard.open(path / "plain.zarr", mode="a")

    def array(self, kind: str, values: NDArray, chunks: Shape) -> chunkyard.Array:
        self.count += 1
        name = f"a{self.count}"
        if kind == "repo":
            return self.session.create_array(name, data=values, chunks=chunks)
        assert isinstance(self.zarr, chunkyard.Group)
        shards = tuple(2 * n for n in chunks) if kind == "shards" else None
        return self.zarr.create_array(name, data=values, chunks=chunks, shards=shards)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    yield Yard(tmp_path_factory.mktemp("yard"))


class Case(NamedTuple):
    kind: str
    values: NDArray
    chunks: Shape
    key: Any


def elements(shape: Shape, dtype: str) -> NDArray:
    values = np.arange(1, int(np.prod(shape)) + 1).reshape(shape)
    return values % 2 == 0 if dtype == "?" else values.astype(dtype)


def basic_keys(shape: Shape) -> st.SearchStrategy[Any]:
    return hnp.basic_indices(shape, allow_newaxis=True, max_dims=6)


def one_axis(extent: int) -> st.SearchStrategy[Any]:
    slices = st.slices(extent)
    if extent == 0:
        return slices
    index = st.integers(-extent, extent - 1)
    indices = st.lists(index, max_size=6).map(lambda found: np.array(found, dtype=np.intp))
    masks = hnp.arrays(bool, extent)
    return st.one_of(slices, index, indices, st.lists(index, min_size=1, max_size=4), masks)


def advanced_keys(shape: Shape) -> st.SearchStrategy[Any]:
    """Anything along each axis; arrays are made to fit each other."""

    @st.composite
    def keys(draw: st.DrawFn) -> Any:
        common = draw(hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
        items: list[Any] = []
        for extent in shape[: draw(st.integers(0, len(shape)))]:
            if draw(st.integers(0, 5)) == 0:
                items.append(None)
            way = draw(st.integers(0, 3))
            if way == 0 or extent == 0:
                items.append(draw(st.slices(extent)))
            elif way == 1:
                items.append(draw(st.integers(-extent, extent - 1)))
            else:
                where = st.integers(-extent, extent - 1)
                items.append(draw(hnp.arrays(np.int64, common, elements=where)))
        if draw(st.booleans()):
            items.insert(draw(st.integers(0, len(items))), Ellipsis)
        return tuple(items)

    return keys()


def mask_keys(shape: Shape) -> st.SearchStrategy[Any]:
    return st.integers(1, len(shape)).flatmap(lambda rank: hnp.arrays(bool, shape[:rank]))


SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9)
DTYPES = st.sampled_from(["?", "u1", "<i2", "<u4", "<f4", "<f8", "<c16", "<M8[s]", "<U2"])


def cases(keys: Any) -> st.SearchStrategy[Case]:
    @st.composite
    def case(draw: st.DrawFn) -> Case:
        shape = draw(SHAPES)
        chunks = tuple(draw(st.integers(1, max(1, n))) for n in shape)
        values = elements(shape, draw(DTYPES))
        return Case(draw(st.sampled_from(KINDS)), values, chunks, draw(keys(shape)))

    return case()


def relaxed(examples: int) -> Any:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks)


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


def read_and_write(yard: Yard, case: Case) -> None:
    array = yard.array(case.kind, case.values, case.chunks)
    try:
        expected = case.values[case.key]
    except IndexError:
        # If an ellipsis moves an index to a shorter axis.
        errors(array, case.key)
        return
    same(array[case.key], expected)
    # Into existing memory, contiguous or not.
    for order in "CF":
        out = np.empty(np.shape(expected), dtype=case.values.dtype, order=order)  # type: ignore[call-overload]
        assert array.read(case.key, out=out) is out
        np.testing.assert_array_equal(out, expected)
    if case.values.size == 0:
        return
    changed, first = case.values.copy(), case.values.reshape(-1)[0]
    for given_values in (changed[::-1].copy()[case.key], first):
        changed[case.key] = given_values
        array[case.key] = given_values
        same(array[...], changed)


@given(case=cases(basic_keys))
@relaxed(200)
def test_basic_indexing_agrees_with_numpy(yard: Yard, case: Case) -> None:
    read_and_write(yard, case)


@given(case=cases(advanced_keys))
@relaxed(300)
def test_advanced_indexing_agrees_with_numpy(yard: Yard, case: Case) -> None:
    read_and_write(yard, case)


@given(case=cases(mask_keys))
@relaxed(100)
def test_masks_agree_with_numpy(yard: Yard, case: Case) -> None:
    read_and_write(yard, case)


def orthogonal_keys(shape: Shape) -> st.SearchStrategy[Any]:
    return st.tuples(*(one_axis(extent) for extent in shape))


@given(case=cases(orthogonal_keys))
@relaxed(200)
def test_orthogonal_indexing_goes_axis_by_axis(yard: Yard, case: Case) -> None:
    array = yard.array(case.kind, case.values, case.chunks)
    dropped = tuple(0 if isinstance(item, int) else slice(None) for item in case.key)
    positions = [
        np.arange(extent)[[item] if isinstance(item, int) else item]
        for item, extent in zip(case.key, case.values.shape, strict=True)
    ]
    whole = np.ix_(*positions)
    same(array.oindex[case.key], np.asarray(case.values[whole][dropped]))
    changed, given_values = case.values.copy(), case.values[::-1][whole]
    changed[whole] = given_values
    array.oindex[case.key] = given_values[dropped]
    same(array[...], changed)


@given(case=cases(lambda shape: st.lists(st.tuples(*(st.integers(0, max(n - 1, 0)) for n in shape)))))
@relaxed(100)
def test_points_are_picked_one_by_one(yard: Yard, case: Case) -> None:
    if case.values.size == 0:
        return
    array = yard.array(case.kind, case.values, case.chunks)
    points = np.array(case.key, dtype=np.int64).reshape(-1, case.values.ndim)
    key = tuple(points.T)
    same(array.vindex[key], case.values[key])
    changed = case.values.copy()
    given_values = np.resize(case.values.reshape(-1)[::-1], len(points))
    changed[key] = given_values
    array.vindex[key] = given_values
    same(array[...], changed)


@pytest.mark.parametrize("kind", KINDS)
def test_one_element_is_a_scalar_and_an_array_without_axes_works(yard: Yard, kind: str) -> None:
    array = yard.array(kind, np.array(7, dtype="i4"), ())
    same(array[()], np.int32(7))
    same(array[...], np.array(7, dtype="i4"))
    array[...] = 8
    same(array[()], np.int32(8))
    array[()] = np.int8(9)
    assert array[()] == 9
    with pytest.raises(IndexError, match="too many indices"):
        array[0]


def test_strings_of_any_length_are_indexed_too(yard: Yard) -> None:
    words = np.array([["a", "bb", ""], ["dddd", "é", "f"]], dtype=np.dtypes.StringDType())
    for kind in KINDS:
        array = yard.array(kind, words, (1, 2))
        for key in [..., 1, (0, 1), (slice(None, None, -1), 2), ([1, 0, 1], [0, 0, 2]), words != ""]:
            np.testing.assert_array_equal(array[key], words[key])
        assert array[1, 0] == "dddd"
        changed = words.copy()
        changed[:, ::2] = array[:, ::2] = "same"
        changed[[1, 0], [0, 1]] = array.vindex[[1, 0], [0, 1]] = ["x", "yy"]
        np.testing.assert_array_equal(array[...], changed)


def errors(array: Any, key: Any) -> str:
    with pytest.raises(IndexError) as raised:
        array[key]
    return str(raised.value)


@pytest.mark.parametrize(
    "key",
    [
        (0, 0, 0),
        (0, ..., 0, 0),
        (..., ...),
        5,
        (0, -7),
        ([0, 5], 0),
        np.array([0, -6]),
        np.ones(4, bool),
        np.ones((5, 5), bool),
        ([0, 1], [0, 1, 2]),
        1.5,
        "a",
        ([0.5],),
        (0, np.array([1.0])),
    ],
)
def test_errors_agree_with_numpy(yard: Yard, key: Any) -> None:
    values = np.arange(30).reshape(5, 6)
    array = yard.array("repo", values, (2, 3))
    ours, theirs = errors(array, key), errors(values, key)
    assert ours.split(":")[0].split(";")[0] == theirs.split(":")[0].split(";")[0]


def test_an_ellipsis_without_axes_still_separates_arrays(yard: Yard) -> None:
    values = np.arange(60).reshape(3, 4, 5)
    array = yard.array("repo", values, (2, 2, 2))
    for key in [
        (slice(None), [0, 1], ..., 0),
        (slice(None), [0, 1], ..., [1, 2]),
        (None, [0, 1], ..., 0, None, slice(None)),
        ([0, 1], None, [1, 2]),
    ]:
        same(array[key], values[key])


def test_unsupported_indices_are_refused(yard: Yard) -> None:
    array = yard.array("repo", np.arange(30).reshape(5, 6), (2, 3))
    for key in [True, np.False_, (0, np.array(True))]:
        assert "single boolean" in errors(array, key)
    for key in [slice(None), (0,), (..., 0)]:
        assert "vindex" in errors(array.vindex, key)
    assert "oindex" in errors(array.oindex, (None, 0))
    assert "oindex" in errors(array.oindex, ([[0]], 0))
    assert "oindex" in errors(array.oindex, np.ones((5, 6), bool))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("i4", 1.5),
        ("i4", np.array([1.0])),
        ("f8", 1j),
        ("?", 0.0),
        ("M8[s]", 1.5),
    ],
)
def test_values_of_another_kind_are_refused(yard: Yard, dtype: str, value: Any) -> None:
    array = yard.array("repo", np.zeros(4, dtype=dtype), (2,))
    with pytest.raises(TypeError):
        array[:] = value


@pytest.mark.parametrize("value", [300, -1, [1, 256], np.array([-1]), 2**70])
def test_integers_that_do_not_fit_are_refused(yard: Yard, value: Any) -> None:
    array = yard.array("repo", np.zeros(2, dtype="u1"), (2,))
    with pytest.raises(OverflowError):
        array[:] = value
    array[:] = np.array([255, 0], dtype="i8")
    assert array[...].tolist() == [255, 0]


def test_shapes_that_do_not_broadcast_are_refused(yard: Yard) -> None:
    array = yard.array("repo", np.zeros((4, 3)), (2, 2))
    with pytest.raises(ValueError, match=r"could not broadcast .* \(2,\) into shape \(4, 3\)"):
        array[...] = np.zeros(2)
    array[:, 1] = np.ones((1, 4))
    assert array[...].sum() == 4
    with pytest.raises(ValueError, match="out has the shape"):
        array.read(..., out=np.empty((3, 4)))


def test_out_is_filled_in_place(yard: Yard) -> None:
    values = np.arange(24, dtype="f4").reshape(4, 6)
    array = yard.array("repo", values, (3, 2))
    whole = np.zeros((2, 4, 6), dtype="f4")
    array.read(out=whole[1])
    np.testing.assert_array_equal(whole[1], values)
    wider = np.zeros((2, 3))
    assert array.read((slice(1, 3), slice(None, None, -2)), out=wider) is wider
    np.testing.assert_array_equal(wider, values[1:3, ::-2])
