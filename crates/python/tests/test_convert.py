"""Whole datasets: convert, link, verify, describe."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import chunkyard
from chunkyard import CorruptError, InvalidError, Progress, Repository

FIELD = np.arange(64 * 48, dtype="i4").reshape(64, 48)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with one array of 48 chunks."""
    path = tmp_path / "source.repo"
    session = Repository.create(path, durable=False).writable_session("main")
    session.create_array("group/field", data=FIELD, chunks=(8, 8))
    session.commit("a field")
    return path


def read(place: Path) -> np.ndarray:
    array = chunkyard.open(place, "group/field")
    assert isinstance(array, chunkyard.Array)
    return np.asarray(array)


def damage(place: Path, chunk: str) -> bytes:
    """Breaks one chunk of plain Zarr; gives its old bytes."""
    file = place / "group" / "field" / chunk
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    return whole


def test_a_repository_becomes_sharded_zarr_and_a_repository_again(
    source: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.zarr"
    done = chunkyard.convert(source, plain, chunks=(4, 4), shards=(32, 16), verify=True)
    assert (done.source_format, done.target_format) == ("repo", "zarr3")
    assert (done.chunks, done.nbytes, done.snapshot) == (192, FIELD.nbytes, None)
    assert done.arrays[0].movement == "regrid"
    np.testing.assert_array_equal(read(plain), FIELD)
    again = tmp_path / "again.repo"
    done = chunkyard.convert(plain, again, codecs="zstd:1", message="back", dtype="i8")
    assert done.snapshot == Repository.open(again).lookup_branch("main")
    found = read(again)
    assert found.dtype == np.dtype("i8")
    np.testing.assert_array_equal(found, FIELD)


def test_a_version_and_a_region_are_chosen(source: Path, tmp_path: Path) -> None:
    repo = Repository.open(source)
    repo.create_tag("v1", "main")
    session = repo.writable_session("main")
    session["group/field"][...] = 0
    session.commit("zeros")
    target = tmp_path / "old.zarr"
    chunkyard.convert(source, target, tag="v1", arrays="group", selection=np.s_[8:16, :], shards="none")
    np.testing.assert_array_equal(read(target), FIELD[8:16])


def test_progress_is_reported_to_the_end(source: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    chunkyard.convert(source, tmp_path / "t.zarr", progress=told.append, verify=True)
    last = told[-1]
    assert last.bytes_done == last.bytes_total == 2 * FIELD.nbytes
    assert last.packs_done == last.packs_total > 0


def test_progress_is_shown_on_request(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunkyard.convert(source, tmp_path / "a.zarr", progress=True)
    assert "converting" in capsys.readouterr().err
    chunkyard.convert(source, tmp_path / "b.zarr")
    assert capsys.readouterr().err == ""


def test_progress_without_tqdm_is_a_line(
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    chunkyard.convert(source, tmp_path / "a.zarr", progress=True)
    assert "converting: 100%" in capsys.readouterr().err


def test_ctrl_c_leaves_nothing_visible_and_the_same_conversion_continues(tmp_path: Path) -> None:
    source, target = tmp_path / "large.repo", tmp_path / "large.zarr"
    session = Repository.create(source, durable=False).writable_session("main")
    values = np.random.default_rng(1).integers(0, 1000, (128, 256, 64), dtype="i4")
    session.create_array("a", data=values, chunks=(64, 64, 64))
    session.commit("a")

    def interrupt(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    wished = {"codecs": "gzip:6", "chunks": (64, 64, 32), "pack_bytes": 1 << 20}
    with pytest.raises(KeyboardInterrupt):
        chunkyard.convert(source, target, progress=interrupt, **wished)
    assert not target.exists()
    chunkyard.convert(source, target, **wished)
    np.testing.assert_array_equal(np.asarray(chunkyard.open(target, "a")), values)


def test_a_damaged_source_is_an_error_and_its_repair_is_enough(
    source: Path, tmp_path: Path
) -> None:
    plain, target = tmp_path / "plain.zarr", tmp_path / "target.zarr"
    chunkyard.convert(source, plain)
    whole = damage(plain, "c/3/2")
    assert not chunkyard.verify(plain)
    with pytest.raises(CorruptError, match="field"):
        chunkyard.convert(plain, target, pack_bytes=1)
    assert not target.exists()
    (plain / "group/field/c/3/2").write_bytes(whole)
    assert chunkyard.verify(plain)
    chunkyard.convert(plain, target, pack_bytes=1)
    np.testing.assert_array_equal(read(target), FIELD)


def test_a_message_is_for_repositories(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="repositories"):
        chunkyard.convert(source, tmp_path / "t.zarr", message="no commit there")


def test_linked_data_is_read_where_it_is(source: Path, tmp_path: Path) -> None:
    plain, repo = tmp_path / "plain.zarr", tmp_path / "linked.repo"
    chunkyard.convert(source, plain)
    linked = chunkyard.link(plain, repo)
    assert (linked.arrays, linked.references) == (1, 48)
    assert next(Repository.open(repo).ancestry()).message == f"link {plain}"
    with pytest.raises(chunkyard.ChunkyardError, match="allow"):
        read(repo)
    found = chunkyard.open(repo, "group/field", allow=[linked.allow])
    np.testing.assert_array_equal(np.asarray(found), FIELD)


def test_info_describes_any_format(source: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.zarr"
    chunkyard.convert(source, plain, shards=(16, 16))
    for place, name in [(source, "repo"), (plain, "zarr3")]:
        info = chunkyard.info(place)
        (array,) = info.arrays
        assert (info.format, info.groups, info.nbytes) == (name, ("/", "/group"), FIELD.nbytes)
        assert (array.path, array.shape, array.chunks) == ("/group/field", FIELD.shape, (8, 8))
        assert "/group/field" in str(info)
