"""Repositories and sessions: create, commit, branch, travel in time, conflict, fork."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import chunkyard
from chunkyard import ConflictError, NotFoundError, Rebase, Repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo")


def with_array(repo: Repository) -> str:
    session = repo.writable_session("main")
    session.create_array("a", data=np.arange(24, dtype="i4").reshape(4, 6), chunks=(2, 3))
    return session.commit("an array")


def test_committed_data_is_read_back(repo: Repository) -> None:
    snapshot = with_array(repo)
    session = repo.readonly_session("main")
    assert session.snapshot_id == snapshot
    array = session["a"]
    assert isinstance(array, chunkyard.Array)
    assert array.shape == (4, 6) and array.dtype == np.dtype("i4") and array.chunks == (2, 3)
    np.testing.assert_array_equal(array[...], np.arange(24).reshape(4, 6))


def test_a_transaction_commits_or_leaves_nothing(repo: Repository) -> None:
    with_array(repo)
    before = repo.lookup_branch("main")
    with pytest.raises(RuntimeError), repo.transaction("main", message="fails") as store:
        store.session["a"][...] = 0
        raise RuntimeError
    assert repo.lookup_branch("main") == before
    with repo.transaction("main", message="works", metadata={"who": "me"}) as store:
        store.session["a"][...] = 0
    newest = next(repo.ancestry())
    assert (newest.message, newest.metadata, newest.parent_id) == ("works", {"who": "me"}, before)
    assert repo.readonly_session("main")["a"][...].sum() == 0
    assert repo.readonly_session(snapshot=before)["a"][...].sum() == 276


def test_branches_and_tags_are_created_moved_and_deleted(repo: Repository) -> None:
    first = with_array(repo)
    assert repo.create_branch("dev") == first
    assert repo.create_tag("v1", "main") == first
    session = repo.writable_session("dev")
    session["a"][...] = 7
    second = session.commit("on dev")
    assert repo.list_branches() == {"main": first, "dev": second}
    assert repo.list_tags() == {"v1": first}
    assert repo.diff("main", "dev").chunks["/a"].replaced == ((0, 0), (0, 1), (1, 0), (1, 1))
    repo.reset_branch("main", "dev", expected=first)
    assert repo.lookup_branch("main") == second
    with pytest.raises(ConflictError):
        repo.reset_branch("main", "v1", expected=first)
    repo.delete_branch("dev")
    repo.delete_tag("v1")
    assert repo.list_tags() == {} and list(repo.list_branches()) == ["main"]


def test_time_travel_by_tag_snapshot_and_time(repo: Repository) -> None:
    first = with_array(repo)
    written = next(repo.ancestry()).written_at
    session = repo.writable_session("main")
    session["a"][...] = 0
    session.commit("zeros")
    repo.create_tag("old", first)
    for session in (
        repo.readonly_session(tag="old"),
        repo.readonly_session(snapshot=first),
        repo.readonly_session(as_of=written),
        repo.readonly_session("main", as_of=written.isoformat()),
    ):
        assert session["a"][...].sum() == 276
    with pytest.raises(NotFoundError):
        repo.readonly_session(as_of=0)
    with pytest.raises(ValueError, match="one of"):
        repo.readonly_session("main", tag="old")


def test_a_conflict_lists_arrays_and_chunks(repo: Repository) -> None:
    with_array(repo)
    ours, theirs = repo.writable_session("main"), repo.writable_session("main")
    theirs["a"][0:2, 0:3] = 1
    ours["a"][0:4, 0:3] = 2
    snapshot = theirs.commit("theirs")
    with pytest.raises(ConflictError):
        ours.commit("ours")
    with pytest.raises(ConflictError) as caught:
        ours.commit("ours", rebase=True)
    [conflict] = caught.value.conflicts
    assert (conflict.path, conflict.kind, conflict.chunks) == ("/a", "chunk", ((0, 0),))
    assert conflict.theirs == (snapshot,)
    ours.commit("ours wins", rebase=Rebase(chunks="ours"))
    assert repo.readonly_session("main")["a"][...][0, 0] == 2


def test_sessions_and_repositories_travel_by_pickle(repo: Repository) -> None:
    with_array(repo)
    again = pickle.loads(pickle.dumps(repo))
    assert again == repo and again.list_branches() == repo.list_branches()
    session = repo.readonly_session("main")
    other = pickle.loads(pickle.dumps(session))
    assert other == session and other["a"][...].sum() == 276
    with pytest.raises(TypeError, match=r"session.fork\(\)"):
        pickle.dumps(repo.writable_session("main"))


def test_forks_write_elsewhere_and_are_merged(repo: Repository) -> None:
    with_array(repo)
    session = repo.writable_session("main")
    session.create_array("b", shape=(4,), dtype="f8", chunks=(2,))
    returned = []
    for at in range(2):
        fork = pickle.loads(pickle.dumps(session.fork()))
        fork["b"][2 * at : 2 * at + 2] = at + 1
        with pytest.raises(TypeError, match="does not commit"):
            fork.commit("no")
        returned.append(pickle.loads(pickle.dumps(fork)))
    session.merge(*returned)
    session.merge(returned[0])
    session.commit("by forks")
    np.testing.assert_array_equal(repo.readonly_session("main")["b"][...], [1, 1, 2, 2])


def test_a_fork_with_changes_continues_in_another_process(repo: Repository) -> None:
    with_array(repo)
    session = repo.writable_session("main")
    fork = session.fork()
    fork["a"][0:2, 0:3] = 100
    other = pickle.loads(pickle.dumps(fork))
    assert other["a"][0, 0] == 100
    other["a"][2:4, 0:3] = 200
    session.merge(other)
    session.commit("both")
    assert list(repo.readonly_session("main")["a"][:, 0]) == [100, 100, 200, 200]


def test_upkeep_reports_its_work(repo: Repository) -> None:
    first = with_array(repo)
    for value in range(3):
        with repo.transaction("main", message=f"{value}") as store:
            store.session["a"][...] = value
    expired = repo.expire_snapshots(keep_last=1)
    assert first in expired.snapshots
    collected = repo.garbage_collect(min_age=timedelta(0))
    assert collected.files > 0 and not collected.dry_run
    report = repo.verify()
    assert report and report.level == "bytes" and report.checked["references"] > 0
    with pytest.raises(NotFoundError):
        repo.readonly_session(snapshot=first)


def test_damage_is_found_and_read_as_an_error(repo: Repository) -> None:
    session = repo.writable_session("main")
    values = np.random.default_rng(1).random((64, 64))
    session.create_array("noise", data=values, chunks=(32, 32))
    session.commit("noise")
    [pack] = [path for path in (Path(repo.url) / "c").rglob("*") if path.is_file()]
    damaged = bytearray(pack.read_bytes())
    damaged[100] ^= 1
    pack.write_bytes(damaged)
    report = repo.verify()
    assert not report and report.findings[0].severity == "error"
    with pytest.raises(chunkyard.CorruptError, match="expected .* found"):
        repo.readonly_session("main")["noise"][...]


def test_errors_are_what_python_expects(tmp_path: Path, repo: Repository) -> None:
    with pytest.raises(KeyError):
        Repository.open(tmp_path / "nothing")
    with pytest.raises(chunkyard.AlreadyExistsError):
        Repository.create(repo.url)
    with pytest.raises(ValueError):
        Repository.open("gopher://x")
    with pytest.raises(ValueError, match="is a file"):
        Repository.create("/dev/null/x")
    assert not Repository.exists(tmp_path / "nothing")
    assert Repository.open_or_create(repo.url) == repo
