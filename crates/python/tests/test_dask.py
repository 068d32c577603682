"""Dask: many workers write, one commits; workers die, and nothing is lost or visible too early."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from distributed import Client, LocalCluster

import chunkyard
from chunkyard import CorruptError, ForkSession, InvalidError, NotFoundError, Progress, Repository
from chunkyard.dask import Exported, export_shards, from_array, to_repo
from chunkyard.labels import Labelmap
from chunkyard.shards import ArrowShardReader
from test_convert import damage, read

# Workers cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

FIELD = np.arange(128 * 96, dtype="f4").reshape(128, 96)
PACK_BYTES = 1


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with one array of 96 chunks."""
    path = tmp_path / "source.repo"
    session = Repository.create(path).writable_session("main")
    session.create_array("group/field", data=FIELD, chunks=(16, 8))
    session.commit("a field")
    return path


def die_once(marker: Path) -> None:
    """Kills this process as the kernel does when memory is short, the first time it gets here."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def write_rows(fork: ForkSession, path: str, start: int, rows: np.ndarray) -> ForkSession:
    array = fork[path]
    assert isinstance(array, chunkyard.Array)
    array[start : start + len(rows)] = rows
    return fork


def test_workers_write_disjoint_regions_through_forks_and_one_commits(
    client: Client, repo: Repository
) -> None:
    session = repo.writable_session("main")
    session.create_array("a", shape=FIELD.shape, dtype="f4", chunks=(16, 32))
    fork = session.fork()
    futures = [
        client.submit(write_rows, fork, "a", start, FIELD[start : start + 32], pure=False)
        for start in range(0, 128, 32)
    ]
    session.merge(*client.gather(futures))
    before = repo.lookup_branch("main")
    snapshot = session.commit("by four")
    assert next(repo.ancestry()).parent_id == before != snapshot
    np.testing.assert_array_equal(np.asarray(repo.readonly_session("main")["a"]), FIELD)


def test_a_dask_array_is_written_even_if_a_worker_dies(
    client: Client, repo: Repository, tmp_path: Path
) -> None:
    marker = tmp_path / "died"

    def block(values: np.ndarray, block_info: Any = None) -> np.ndarray:
        if block_info is not None and block_info[0]["chunk-location"] == (2, 1):
            die_once(marker)
        return values + 1

    values = da.from_array(FIELD, chunks=(32, 24)).map_blocks(block, dtype="f4")
    session = repo.writable_session("main")
    array = to_repo(values, session, "deep/a", chunks=(16, 8), attributes={"unit": "K"})
    assert isinstance(array, chunkyard.Array) and array.chunks == (16, 8)
    assert marker.exists()
    session.commit("although one died")
    found = repo.readonly_session("main")["deep/a"]
    np.testing.assert_array_equal(np.asarray(found), FIELD + 1)
    assert dict(found.attrs) == {"unit": "K"}
    assert repo.verify("bytes")


def test_a_task_that_always_fails_leaves_the_branch_as_it_was(
    client: Client, repo: Repository
) -> None:
    def fail(values: np.ndarray) -> np.ndarray:
        raise RuntimeError("no luck")

    values = da.from_array(FIELD, chunks=(32, 96)).map_blocks(fail, dtype="f4", meta=FIELD[:0])
    session = repo.writable_session("main")
    with pytest.raises(RuntimeError, match="no luck"):
        to_repo(values, session, "a")
    assert len(repo.readonly_session("main").root) == 0


def test_only_the_region_is_written(client: Client, repo: Repository) -> None:
    session = repo.writable_session("main")
    session.create_array("a", data=np.zeros_like(FIELD), chunks=(16, 32))
    box = (slice(32, 96), slice(64, 96))
    values = da.from_array(FIELD[box], chunks=(32, 32))
    later = to_repo(values, session, "a", region=box, compute=False)
    session.merge(later.compute())
    session.commit("a region")
    expected = np.zeros_like(FIELD)
    expected[box] = FIELD[box]
    np.testing.assert_array_equal(np.asarray(repo.readonly_session("main")["a"]), expected)


def test_blocks_that_share_chunks_are_refused_with_advice(repo: Repository) -> None:
    session = repo.writable_session("main")
    values = da.from_array(FIELD, chunks=(24, 96))
    with pytest.raises(ValueError, match=r"array.rechunk\(\(32, 96\)\)"):
        to_repo(values, session, "a", chunks=(16, 96))
    with pytest.raises(ValueError, match="different sizes"):
        to_repo(da.from_array(FIELD, chunks=((100, 10, 18), 96)), session, "a")
    session.create_array("b", shape=FIELD.shape, dtype="f4", chunks=(16, 96))
    with pytest.raises(ValueError, match="begin at a multiple of 16"):
        to_repo(values[:16], session, "b", region=(slice(8, 24), slice(None)))
    assert "a" not in session.root


def test_arrays_are_read_by_dask_in_blocks_of_whole_chunks(client: Client, source: Path) -> None:
    for array in [
        Repository.open(source).readonly_session("main")["group/field"],
        chunkyard.open(source, "group/field"),
    ]:
        assert isinstance(array, chunkyard.Array)
        lazy = array.to_dask(chunks=(40, 17))
        assert lazy.chunks == ((32, 32, 32, 32), (16,) * 6)
        np.testing.assert_array_equal(lazy.compute(), FIELD)
        assert float(lazy[3:50, ::7].sum().compute()) == FIELD[3:50, ::7].sum()
        assert from_array(array).name == from_array(pickle.loads(pickle.dumps(array))).name


def test_an_array_that_may_change_has_another_name_each_time(source: Path) -> None:
    session = Repository.open(source).writable_session("main")
    array = session["group/field"]
    assert tokenize(array) != tokenize(array)
    array[...] = 7
    assert (array.to_dask().compute(scheduler="threads") == 7).all()


def test_workers_convert_and_the_caller_commits_once(
    client: Client, source: Path, tmp_path: Path
) -> None:
    plain, again = tmp_path / "plain.zarr", tmp_path / "again.repo"
    told: list[Progress] = []
    done = chunkyard.convert(
        source,
        plain,
        chunks=(8, 8),
        shards=(32, 16),
        pack_bytes=PACK_BYTES,
        verify=True,
        progress=told.append,
        client=client,
    )
    assert done.packs == 24 and done.packs_resumed == 0
    assert told[-1].packs_done == told[-1].packs_total == 2 * done.packs
    np.testing.assert_array_equal(read(plain), FIELD)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.zarr", "source.repo"]
    done = chunkyard.convert(plain, again, pack_bytes=PACK_BYTES, client=client, message="by many")
    repo = Repository.open(again)
    assert [one.message for one in repo.ancestry()] == ["by many", "create the repository"]
    assert done.snapshot == repo.lookup_branch("main")
    np.testing.assert_array_equal(read(again), FIELD)
    assert repo.verify("bytes")


@pytest.mark.parametrize("target", ["target.zarr", "target.repo"])
def test_workers_that_are_killed_are_replaced(
    client: Client, source: Path, tmp_path: Path, target: str
) -> None:
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.packs_done > 0 and not killed:
            pids = list(client.run(os.getpid).values())
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])

    chunkyard.convert(
        source,
        tmp_path / target,
        chunks=(8, 8),
        pack_bytes=PACK_BYTES,
        progress=kill_one,
        client=client,
    )
    assert killed
    np.testing.assert_array_equal(read(tmp_path / target), FIELD)
    assert chunkyard.verify(tmp_path / target, level="bytes")


@pytest.mark.parametrize("target", ["target.zarr", "target.repo"])
def test_a_pack_that_always_fails_leaves_nothing_visible_and_the_rest_is_kept(
    client: Client, source: Path, tmp_path: Path, target: str
) -> None:
    plain, place = tmp_path / "plain.zarr", tmp_path / target
    chunkyard.convert(source, plain)
    whole = damage(plain, "c/7/11")
    with pytest.raises(CorruptError, match="field") as raised:
        chunkyard.convert(plain, place, pack_bytes=PACK_BYTES, client=client)
    assert "continues" in raised.value.__notes__[0]
    if target.endswith("repo"):
        assert len(Repository.open(place).readonly_session("main").root) == 0
    else:
        assert not place.exists()
    (plain / "group/field/c/7/11").write_bytes(whole)
    done = chunkyard.convert(plain, place, pack_bytes=PACK_BYTES, client=client)
    assert 0 < done.packs_resumed < done.packs == 96
    np.testing.assert_array_equal(read(place), FIELD)


SIZE = (200, 130, 70)
SPEC = {
    "@type": "neuroglancer_multiscale_volume",
    "type": "segmentation",
    "data_type": "uint64",
    "num_channels": 1,
    "scales": [
        {
            "key": "s0",
            "size": SIZE,
            "resolution": [8, 8, 8],
            "voxel_offset": [0, 0, 0],
            "chunk_sizes": [[64, 64, 64]],
            "encoding": "compressed_segmentation",
            "compressed_segmentation_block_size": [8, 8, 8],
            "sharding": {
                "@type": "neuroglancer_uint64_sharded_v1",
                "hash": "identity",
                "preshift_bits": 0,
                "minishard_bits": 0,
                "shard_bits": 5,
                "minishard_index_encoding": "gzip",
                "data_encoding": "gzip",
            },
        }
    ],
}
"""A volume in which each chunk is a shard."""


@pytest.fixture
def brain(tmp_path: Path) -> tuple[Path, np.ndarray[Any, Any]]:
    """A labelmap of 24 blocks, one of them empty, and its bodies."""
    path = tmp_path / "brain"
    z, y, x = np.indices(SIZE[::-1])
    volume = (1 + z // 30 * 100 + y // 30 * 10 + x // 30).astype("u8")
    volume[:64, :64, :64] = 0
    repo = Repository.create(path)
    Labelmap.import_(repo.writable_session("main"), "seg", volume, mapping={3: 4}).commit("import")
    return path, np.where(volume == 3, np.uint64(4), volume)


def exported(target: Path) -> np.ndarray[Any, Any]:
    volume = np.zeros(SIZE[::-1], "u8")
    for shard in (target / "s0").glob("*.arrow"):
        reader = ArrowShardReader(shard)
        for x, y, z in reader.list_chunks():
            voxels = reader.get_voxels(x, y, z)
            assert voxels is not None
            room = volume[z : z + 64, y : y + 64, x : x + 64]
            room[...] = voxels[tuple(map(slice, room.shape))]
    return volume


def test_a_segmentation_is_exported_by_all_workers_even_if_one_dies(
    client: Client, brain: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path
) -> None:
    source, bodies = brain
    target, job = tmp_path / "shards", tmp_path / "job"
    over = threading.Event()

    def kill_one() -> None:
        pids = list(client.run(os.getpid).values())
        while not over.is_set() and not list(target.glob("s0/*.arrow")):
            time.sleep(0.001)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    how: dict[str, Any] = {"job": job, "spec": json.dumps(SPEC), "task_bytes": 1, "lease_seconds": 1}
    done = export_shards(client, source, target, emit=["arrow", "precomputed"], **how)
    over.set()
    killer.join()
    assert (done.shards, done.empty_shards, done.blocks) == (23, 1, 23)
    np.testing.assert_array_equal(exported(target), bodies)
    assert (target / "info").exists() and done.nbytes > 0
    client.wait_for_workers(4)
    again = export_shards(client, source, target, emit=["arrow", "precomputed"], **how)
    assert isinstance(again, Exported) and again == done


def test_an_export_that_cannot_be_is_refused_in_the_words_of_the_engine(
    client: Client, brain: tuple[Path, np.ndarray[Any, Any]], tmp_path: Path
) -> None:
    source, _ = brain
    target, job = tmp_path / "shards", tmp_path / "job"
    with pytest.raises(InvalidError, match="JSON"):
        export_shards(client, source, target, job=job, spec="no json")
    with pytest.raises(NotFoundError, match="elsewhere"):
        export_shards(client, source, target, job=job, branch="elsewhere")
    with pytest.raises(TypeError, match="codecs"):
        export_shards(client, source, target, job=job, codecs="zstd")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="lease"):
        export_shards(client, source, target, job=job, lease_seconds=-1)
    assert not job.exists() and not target.exists()
