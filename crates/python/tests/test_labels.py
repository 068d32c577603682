"""Labelmaps: import, questions, edits, diff and merge, with NumPy as the naive model."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import chunkyard
from chunkyard import ConflictError, InvalidError, NotFoundError, Repository, labels
from chunkyard.labels import Labelmap

SHAPE = (40, 33, 50)
MAPPING = {3: 2, 4: 2, 9: 5}
"""Supervoxels that do not stand for themselves."""


def segmentation(shape: tuple[int, int, int] = SHAPE) -> np.ndarray[Any, Any]:
    """Cells of a few supervoxels, one beyond 63 bits, and a corner of zeros."""
    z, y, x = np.indices(shape)
    volume = (1 + z // 14 * 6 + y // 12 * 3 + x // 20).astype("u8")
    volume[volume == 7] = 2**63 + 7
    volume[:5, :7, :9] = 0
    return volume


def bodies(volume: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The naive model of the mapping."""
    mapped = volume.copy()
    for supervoxel, body in MAPPING.items():
        mapped[volume == supervoxel] = body
    return mapped


def box_of(mask: np.ndarray[Any, Any]) -> tuple[slice, ...]:
    found = np.argwhere(mask)
    return tuple(map(slice, found.min(0).tolist(), (found.max(0) + 1).tolist()))


def voxels_of(runs: np.ndarray[Any, Any], shape: tuple[int, ...] = SHAPE) -> np.ndarray[Any, Any]:
    mask = np.zeros(shape, bool)
    for z, y, x, length in runs:
        assert not mask[z, y, x : x + length].any()
        mask[z, y, x : x + length] = True
    return mask


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    repo = Repository.create(tmp_path / "repo")
    session = repo.writable_session("main")
    seg = Labelmap.import_(session, "seg", segmentation(), block=16, mapping=MAPPING)
    seg.commit("import")
    return repo


def writable(repo: Repository, branch: str = "main") -> Labelmap:
    return Labelmap.open(repo.writable_session(branch), "seg")


def test_every_body_is_as_numpy_counts_it(repo: Repository) -> None:
    seg, volume = Labelmap.open(repo, "seg"), segmentation()
    mapped = bodies(volume)
    for body, count in zip(*np.unique(mapped[mapped > 0], return_counts=True), strict=True):
        mask = mapped == body
        found = seg.body(body)
        assert (found.id, found.voxels, found.mutation) == (body, count, 0)
        assert found.bounds == box_of(mask)
        assert found.supervoxels == len(np.unique(volume[mask]))
        np.testing.assert_array_equal(seg.supervoxels(body), np.unique(volume[mask]))
        runs = seg.sparse_volume(body)
        assert runs.dtype == np.int64 and runs.shape[1] == 4
        np.testing.assert_array_equal(voxels_of(runs), mask)
        at, counts = seg.blocks(body)
        expected, numbers = np.unique(np.argwhere(mask) // 16, axis=0, return_counts=True)
        np.testing.assert_array_equal(at, expected)
        np.testing.assert_array_equal(counts, numbers)
    only = seg.sparse_volume(2, supervoxel=4)
    np.testing.assert_array_equal(voxels_of(only), volume == 4)


def test_points_and_boxes_are_as_in_numpy(repo: Repository) -> None:
    seg, volume = Labelmap.open(repo, "seg"), segmentation()
    mapped = bodies(volume)
    points = np.random.default_rng(1).integers(0, SHAPE, (500, 3))
    at = tuple(points.T)
    found = seg.labels_at(points)
    assert found.dtype == np.uint64
    np.testing.assert_array_equal(found, mapped[at])
    np.testing.assert_array_equal(seg.labels_at(points, supervoxels=True), volume[at])
    np.testing.assert_array_equal(
        seg.labels_at(points.reshape(5, 100, 3)), mapped[at].reshape(5, 100)
    )
    assert seg.labels_at((20, 20, 20)) == mapped[20, 20, 20]
    assert seg.labels_at(np.empty((0, 3), int)).shape == (0,)
    for box in (np.s_[...], np.s_[3:17, 5:6, :], np.s_[-4:, 2, 10:30], np.s_[0:0], np.s_[:5, :7, :9]):
        expected = np.unique(mapped[box])
        np.testing.assert_array_equal(seg.labels_in(box), expected[expected > 0])
        expected = np.unique(volume[box])
        np.testing.assert_array_equal(seg.labels_in(box, supervoxels=True), expected[expected > 0])


def test_what_it_is_made_of(repo: Repository) -> None:
    seg, volume = Labelmap.open(repo, "seg"), segmentation()
    assert (seg.path, seg.shape, seg.block, seg.scales) == ("/seg", SHAPE, (16, 16, 16), 3)
    assert (seg.voxel_size, seg.unit) == ((1.0, 1.0, 1.0), None)
    assert repr(seg).startswith("<chunkyard.labels.Labelmap '/seg' shape=(40, 33, 50)")
    array = seg.array()
    assert isinstance(array, chunkyard.Array)
    np.testing.assert_array_equal(array[...], volume)
    np.testing.assert_array_equal(seg.bodies_of(array[...]), bodies(volume))
    assert seg.array(2).shape == (10, 9, 13)
    assert Labelmap.list(repo) == ("/seg",)
    again = pickle.loads(pickle.dumps(seg))
    assert again.body(2) == seg.body(2)
    supervoxels, mapped = seg.mapping()
    assert dict(zip(supervoxels.tolist(), mapped.tolist(), strict=True)) == MAPPING
    assert seg.verify()


def test_volumes_of_all_kinds_make_the_same_labelmap(tmp_path: Path) -> None:
    volume = segmentation((20, 20, 40)) % np.uint64(200)
    root = chunkyard.open(tmp_path / "x.zarr", mode="a")
    root.create_array("v", data=volume.astype("u2"), chunks=(7, 8, 9))
    session = Repository.create(tmp_path / "repo").writable_session()
    turned = np.ascontiguousarray(volume.transpose(2, 1, 0)).transpose(2, 1, 0)
    sources: dict[str, Any] = {
        "numpy": volume,
        "strided": turned,
        "narrow": volume.astype("u1"),
        "big-endian": volume.astype(">u4"),
        "zarr": chunkyard.open(tmp_path / "x.zarr", "v"),
    }
    for name, source in sources.items():
        seg = Labelmap.import_(
            session, name, source, block=(16, 16, 32), scales=1, voxel_size=(8, 4, 4), unit="nm"
        )
        assert (seg.block, seg.scales) == ((16, 16, 32), 1), name
        assert (seg.voxel_size, seg.unit) == ((8.0, 4.0, 4.0), "nm"), name
        np.testing.assert_array_equal(seg.array()[...], volume, name)
    session.commit("all")
    assert Labelmap.list(session) == tuple(sorted(f"/{name}" for name in sources))


def test_an_exception_of_the_volume_is_raised(tmp_path: Path) -> None:
    class Broken:
        shape, dtype = (64, 64, 64), np.dtype("u8")

        def __getitem__(self, box: object) -> None:
            raise EOFError("no more tape")

    session = Repository.create(tmp_path / "repo").writable_session()
    with pytest.raises(EOFError, match="no more tape"):
        Labelmap.import_(session, "seg", Broken())


def test_an_empty_labelmap_has_tables_and_no_bodies(tmp_path: Path) -> None:
    session = Repository.create(tmp_path / "repo").writable_session()
    seg = Labelmap.create(session, "seg", (20, 20, 20), block=32)
    assert seg.scales == 1 and len(seg.labels_in()) == 0 and seg.log() == ()
    assert [seg.table(name).num_rows for name in labels.TABLES] == [0] * 6
    assert seg.table("bodies").column_names[:3] == ["body", "voxels", "supervoxels"]
    seg.commit("empty")


def test_edits_follow_numpy(repo: Repository) -> None:
    seg, volume = writable(repo), segmentation()
    mapped = bodies(volume)

    def check() -> None:
        np.testing.assert_array_equal(seg.array()[...], volume)
        np.testing.assert_array_equal(seg.bodies_of(volume), mapped)
        ids, counts = np.unique(mapped[mapped > 0], return_counts=True)
        table = seg.table("bodies", ["body", "voxels"])
        np.testing.assert_array_equal(table["body"].to_numpy(), ids)
        np.testing.assert_array_equal(table["voxels"].to_numpy(), counts)
        report = seg.verify()
        assert report and report.problems == ()

    merged = seg.merge(1, [2, 5], user="ada", note="one cell")
    mapped[np.isin(mapped, [2, 5])] = 1
    assert (merged.kind, merged.body, merged.user, merged.note) == ("merge", 1, "ada", "one cell")
    assert merged.bodies == (1, 2, 5) and merged.supervoxels == (2, 3, 4, 5, 9)
    check()

    cleft = seg.cleave(1, np.array([3, 9], "i4"))
    mapped[np.isin(volume, [3, 9])] = cleft.other
    assert seg.body(cleft.other).mutation == cleft.id
    check()

    half = np.zeros(SHAPE, bool)
    half[:10] = True
    cut = seg.split_supervoxel(4, half, part=1000, rest=1001)
    volume[(volume == 4) & half] = 1000
    volume[volume == 4] = 1001
    assert (cut.kind, cut.other, cut.supervoxels) == ("split-supervoxel", 1000, (4, 1000, 1001))
    check()

    corner = np.ones((10, 12, 14), bool)
    seg.split_body(1, corner, (4, 0, 10), new_body=2000)
    inside = np.zeros(SHAPE, bool)
    inside[4:14, :12, 10:24] = True
    mapped[(mapped == 1) & inside] = 2000
    volume = seg.array()[...]
    check()

    runs = seg.sparse_volume(6)[:20]
    other = seg.split_body(6, runs).other
    mapped[voxels_of(runs)] = other
    volume = seg.array()[...]
    check()

    seg.renumber(other, 3000)
    mapped[mapped == other] = 3000
    check()

    seg.map({8: 4000, 10: 4000})
    mapped[np.isin(volume, [8, 10])] = 4000
    check()

    assert [mutation.kind for mutation in seg.log()] == [
        "merge", "cleave", "split-supervoxel", "split-body", "split-body", "renumber", "map",
    ]  # fmt: skip
    assert len(seg.log(since=cleft.id)) == 6
    seg.commit("edits")
    fresh = Labelmap.open(repo, "seg")
    np.testing.assert_array_equal(fresh.bodies_of(fresh.array()[...]), mapped)
    assert fresh.log() == seg.log()


def test_a_mutation_is_undone_and_blamed(repo: Repository) -> None:
    seg = writable(repo)
    before = seg.body(2)
    merged = seg.merge(1, [2])
    with pytest.raises(NotFoundError, match="2"):
        seg.body(2)
    undone = seg.revert(merged.id)
    assert undone.kind == "revert" and undone.other == merged.id
    assert (seg.body(2).voxels, seg.body(2).bounds) == (before.voxels, before.bounds)
    moved = seg.cleave(2, [3])
    with pytest.raises(ConflictError, match="undo"):
        seg.revert(undone)
    seg.revert(moved)
    decisions = seg.blame(3)
    assert [(one.mutation.kind, one.before, one.after) for one in decisions] == [
        ("merge", 2, 1),
        ("revert", 1, 2),
        ("cleave", 2, moved.other),
        ("revert", moved.other, 2),
    ]
    assert seg.blame(6) == ()
    assert seg.verify()


def test_nothing_is_visible_before_the_commit(repo: Repository) -> None:
    seg = writable(repo)
    seg.merge(1, [2])
    assert Labelmap.open(repo, "seg").body(2).supervoxels == 3
    snapshot = seg.commit("merge")
    assert repo.lookup_branch("main") == snapshot
    with pytest.raises(NotFoundError):
        Labelmap.open(repo, "seg").body(2)


def test_edits_of_other_bodies_go_together_and_of_the_same_conflict(repo: Repository) -> None:
    ours, theirs, late = writable(repo), writable(repo), writable(repo)
    ours.merge(6, [8])
    theirs.merge(1, [2])
    late.merge(5, [2])
    theirs.commit("theirs")
    ours.commit("ours")
    with pytest.raises(ConflictError, match="body .*2") as caught:
        late.commit("late")
    rows = [conflict for conflict in caught.value.conflicts if conflict.path == "/seg/bodies"]
    assert rows and rows[0].kind == "row" and "2" in rows[0].keys
    seg = Labelmap.open(repo, "seg")
    assert {6, 8} <= set(seg.supervoxels(6).tolist()) and seg.verify()


def test_sessions_that_split_bodies_of_one_block_both_land(repo: Repository) -> None:
    ours, theirs, late = writable(repo), writable(repo), writable(repo)
    half = np.zeros(SHAPE, bool)
    half[:, :20] = True
    [mine, other] = ours.split_supervoxel(4, half), theirs.split_body(6, half)
    late.split_body(6, half)
    theirs.commit("theirs")
    snapshot = ours.commit("ours")
    assert repo.lookup_branch("main") == snapshot
    with pytest.raises(ConflictError, match="body 6"):
        late.commit("late")
    seg = Labelmap.open(repo, "seg")
    assert seg.verify() and {mine.id, other.id} == {mutation.id for mutation in seg.log()}
    assert mine.other in seg.supervoxels(mine.body) and seg.body(other.other).voxels > 0


def test_versions_are_compared_body_by_body(repo: Repository) -> None:
    base = repo.create_tag("base")
    seg = writable(repo)
    seg.merge(1, [2])
    cleft = seg.cleave(5, [9])
    seg.renumber(6, 60)
    seg.commit("edits")
    diff = labels.diff(repo, "base", "main", "seg")
    volume = segmentation()
    mapped = bodies(volume)
    assert [(one.body, one.was) for one in diff.renamed] == [(60, 6)]
    assert [one.body for one in diff.vanished] == [2]
    assert [one.body for one in diff.appeared] == [cleft.other]
    [grown], [shrunk] = diff.grown, diff.shrunk
    assert (grown.body, grown.voxels_before) == (1, np.count_nonzero(mapped == 1))
    assert grown.voxels_after == np.count_nonzero((mapped == 1) | (mapped == 2))
    assert (shrunk.body, shrunk.voxels_after) == (5, np.count_nonzero(volume == 5))
    assert [mutation.kind for mutation in diff.mutations] == ["merge", "cleave", "renumber"]
    blocks = np.unique(np.argwhere(mapped == 2) // 16, axis=0)
    np.testing.assert_array_equal(diff.blocks[diff.blocks[:, 0] == 2][:, 1:], blocks)
    assert diff and not labels.diff(repo, base, "base", "seg")


def test_branches_of_edits_are_merged_by_what_they_mean(repo: Repository) -> None:
    repo.create_branch("other")
    ours, theirs = writable(repo), writable(repo, "other")
    mine = ours.merge(1, [2])
    ours.commit("ours")
    same, apart = theirs.cleave(2, [3]), theirs.merge(6, [8])
    theirs.commit("theirs")
    with pytest.raises(ConflictError, match="body 2") as caught:
        labels.merge(repo, "main", "other", "seg")
    assert caught.value.conflicts[0].keys == ("2",)
    with pytest.raises(ValueError, match="body 2"):
        labels.merge(repo, "main", "other", "seg", ours=[2], theirs_bodies=[2])
    with pytest.raises(InvalidError, match="neither"):
        labels.merge(repo, "main", "other", "seg", others="neither")  # type: ignore[arg-type]
    merged = labels.merge(repo, "main", "other", "seg", ours=[2], user="ada")
    assert (merged.taken, merged.left_out, merged.given_up) == ((apart.id,), (same.id,), ())
    assert merged.snapshot == repo.lookup_branch("main")
    seg = Labelmap.open(repo, "seg")
    assert seg.bodies_of([2, 3, 8]).tolist() == [1, 1, 6] and seg.verify()
    assert labels.merge(repo, "main", "other", "seg").snapshot is None
    back = labels.merge(repo, "other", "main", "seg", theirs_bodies=[1])
    assert back.given_up == (same.id,) and mine.id in back.taken


def test_tables_are_arrow_and_of_this_version(repo: Repository) -> None:
    seg = writable(repo)
    seg.merge(1, [2], note="here")
    table = seg.table("supervoxels")
    volume = segmentation()
    ids, counts = np.unique(volume[volume > 0], return_counts=True)
    np.testing.assert_array_equal(table["supervoxel"].to_numpy(), ids)
    np.testing.assert_array_equal(table["voxels"].to_numpy(), counts)
    assert table.schema.field("supervoxel").type == "uint64"
    [row] = seg.table("mutations").to_pylist()
    assert (row["kind"], row["note"], row["bodies"]) == ("merge", "here", [1, 2])
    assert seg.table("index", ["z", "body"]).column_names == ["z", "body"]
    index = seg.table("index")
    assert sum(map(sum, index["counts"].to_pylist())) == np.count_nonzero(volume)
    assert sum(batch.num_rows for batch in seg.batches("history")) == 3
    assert Labelmap.open(repo, "seg").table("mutations").num_rows == 0


def test_sql_asks_the_tables(repo: Repository) -> None:
    pytest.importorskip("duckdb")
    seg, mapped = writable(repo), bodies(segmentation())
    bodies_by_size = seg.sql("select body, voxels from bodies order by voxels desc, body limit 2")
    ids, counts = np.unique(mapped[mapped > 0], return_counts=True)
    order = np.lexsort((ids, -counts.astype(int)))[:2]
    assert bodies_by_size["body"].to_pylist() == ids[order].tolist()
    query = "select count(*) as n from supervoxels s join bodies b using (body) where b.body = $body"
    assert seg.sql(query, {"body": 2}).to_pylist() == [{"n": 3}]
    assert seg.sql("select count(*) as n from index where body = ?", [2])["n"][0].as_py() == len(
        seg.blocks(2)[0]
    )
    seg.merge(1, [2])
    assert seg.sql("select kind from MUTATIONS")["kind"].to_pylist() == ["merge"]
    with pytest.raises(ValueError, match="no answer"):
        seg.sql("")


def test_sql_without_duckdb_says_how_to_get_it(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError) as caught:
        Labelmap.open(repo, "seg").sql("select 1")
    assert "pip install 'chunkyard[sql]'" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "pipeline", ["zarr.core.codec_pipeline.BatchedCodecPipeline", "chunkyard.zarr.CodecPipeline"]
)
def test_zarr_reads_the_voxels_of_all_scales(repo: Repository, pipeline: str) -> None:
    seg = Labelmap.open(repo, "seg")
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        group = zarr.open_group(seg.session.store, path="seg", mode="r")
        assert len(group.attrs["ome"]["multiscales"][0]["datasets"]) == seg.scales
        np.testing.assert_array_equal(group["s0"][...], segmentation())
        np.testing.assert_array_equal(group["s0"][3:30:4, 20:, ::3], segmentation()[3:30:4, 20:, ::3])
        for scale in range(1, seg.scales):
            np.testing.assert_array_equal(group[f"s{scale}"][...], seg.array(scale)[...])


def test_wrong_questions_are_refused(repo: Repository) -> None:
    seg = Labelmap.open(repo, "seg")
    for wrong in ([[0, 0]], 5, [[0, 0, 0, 0]]):
        with pytest.raises(ValueError, match="last axis"):
            seg.labels_at(wrong)
    with pytest.raises(InvalidError, match="outside"):
        seg.labels_at([[0, 0, 50]])
    with pytest.raises(ValueError, match="below zero"):
        seg.labels_at([[0, 0, -1]])
    with pytest.raises(TypeError, match="whole numbers"):
        seg.bodies_of([1.5])
    with pytest.raises(NotFoundError, match="77"):
        seg.body(77)
    with pytest.raises(ValueError, match="-1"):
        seg.body(-1)
    with pytest.raises(ValueError, match="step"):
        seg.labels_in(np.s_[::2])
    with pytest.raises(IndexError):
        seg.array(3)
    with pytest.raises(NotFoundError, match="there are mapping"):
        seg.table("rows")
    with pytest.raises(NotFoundError, match="size"):
        seg.table("bodies", ["size"])
    with pytest.raises(NotFoundError):
        seg.blame(77)
    with pytest.raises(NotFoundError):
        Labelmap.open(repo, "nowhere")
    with pytest.raises(TypeError, match=r"Labelmap\.open"):
        Labelmap()


def test_wrong_edits_are_refused_and_change_nothing(repo: Repository) -> None:
    seg = writable(repo)
    with pytest.raises(NotFoundError):
        seg.merge(1, [77])
    with pytest.raises(InvalidError, match="itself"):
        seg.merge(1, [1])
    with pytest.raises(InvalidError, match="belongs to body 2"):
        seg.cleave(1, [3])
    with pytest.raises(chunkyard.AlreadyExistsError):
        seg.renumber(1, 2)
    with pytest.raises(InvalidError, match="both sides"):
        seg.split_supervoxel(4, np.zeros(SHAPE, bool))
    with pytest.raises(ValueError, match="booleans"):
        seg.split_supervoxel(4, np.zeros((2, 2, 2)[:2], int))
    with pytest.raises(InvalidError, match="leave the volume"):
        seg.split_body(1, np.ones((2, 2, 2), bool), (39, 0, 0))
    with pytest.raises(ValueError, match="2 supervoxels and 1 bodies"):
        seg.map(([1, 2], [3]))
    assert seg.log() == () and not seg.session.status()
    with pytest.raises(chunkyard.ChunkyardError):
        Labelmap.open(repo, "seg").merge(1, [2])


def test_wrong_volumes_are_refused(tmp_path: Path) -> None:
    session = Repository.create(tmp_path / "repo").writable_session()
    for volume, error, what in [
        (np.zeros((4, 4), "u8"), ValueError, "axes z, y, x"),
        (np.zeros((4, 4, 4), "i8"), TypeError, "unsigned"),
        (np.zeros((0, 4, 4), "u8"), InvalidError, "no voxels"),
    ]:
        with pytest.raises(error, match=what):
            Labelmap.import_(session, "seg", volume)
    with pytest.raises(InvalidError, match="multiple of 16"):
        Labelmap.create(session, "seg", (8, 8, 8), block=20)
    with pytest.raises(ValueError, match="z, y and x"):
        Labelmap.create(session, "seg", (8, 8, 8), block=(16, 16))
    with pytest.raises(InvalidError, match="follows"):
        mapping = ([1, 1], [2, 3])
        Labelmap.import_(session, "seg", np.ones((8, 8, 8), "u8"), mapping=mapping)
