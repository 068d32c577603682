"""The store of zarr-python: its own suite, and our tests."""

from __future__ import annotations

import asyncio
import gc
import json
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest
from zarr.core.buffer import Buffer, cpu, default_buffer_prototype
from zarr.core.sync import sync
from zarr.testing.store import StoreTests

from chunkyard import InvalidError, Repository, Session
from chunkyard.zarr import Store, VirtualRef


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "repo", durable=False)


@pytest.fixture
def session(repo: Repository) -> Session:
    return repo.writable_session("main")


class TestStore(StoreTests[Store, cpu.Buffer]):
    """zarr-python's suite."""

    store_cls = Store
    buffer_cls = cpu.Buffer

    async def set(self, store: Store, key: str, value: Buffer) -> None:
        store._keys.set_sync(key, value.to_bytes())

    async def get(self, store: Store, key: str) -> Buffer:
        value = store._keys.get_sync(key, None)
        assert value is not None
        return self.buffer_cls.from_bytes(value)

    @pytest.fixture
    def store_kwargs(self, session: Session) -> dict[str, Any]:
        return {"session": session}

    def test_store_repr(self, store: Store) -> None:
        assert "chunkyard.zarr.Store of" in repr(store) and "branch 'main'" in repr(store)

    def test_store_supports_writes(self, store: Store) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: Store) -> None:
        assert store.supports_listing

    async def test_serializable_store(self, store: Store) -> None:
        # The suite pickles a writable store and expects an equal one. The changes of a session are
        # in one process; a copy of them elsewhere would be lost silently. So that is refused, and
        # this test uses stores that can be sent: read-only stores and forks.
        with pytest.raises(TypeError, match="fork"):
            pickle.dumps(store)
        zarr.create_array(store, name="a", shape=4, chunks=2, dtype="u1")[:2] = 7
        fork = store.session.fork().store
        copy: Store = pickle.loads(pickle.dumps(fork))
        zarr.open_array(copy, path="a", mode="r+")[2:] = 8
        store.session.merge(pickle.loads(pickle.dumps(copy.session)))
        store.session.commit("both")
        reader = store.session.repository.readonly_session("main").store
        again = pickle.loads(pickle.dumps(reader))
        assert again == reader and again.read_only
        assert zarr.open_array(again, path="a", mode="r")[...].tolist() == [7, 7, 8, 8]


def test_zarr_writes_and_a_commit_shows_it_to_others(repo: Repository, session: Session) -> None:
    root = zarr.create_group(session.store, attributes={"title": "t"})
    data = np.arange(60, dtype="f4").reshape(6, 10)
    array = root.create_array("g/a", shape=data.shape, chunks=(4, 3), dtype="f4", fill_value=-1)
    array[...] = data
    assert sync(repo.readonly_session("main").store.is_empty("")), "it is visible before the commit"
    session.commit("first")
    read = zarr.open_group(repo.readonly_session("main").store, mode="r")
    assert read.attrs["title"] == "t"
    assert [key for key, _ in read.members(max_depth=None)] == ["g", "g/a"]
    np.testing.assert_array_equal(read["g/a"][...], data)
    # The same, directly.
    np.testing.assert_array_equal(repo.readonly_session("main")["g/a"][...], data)


def test_a_fresh_repository_is_an_empty_store(repo: Repository, session: Session) -> None:
    assert sync(session.store.is_empty(""))
    with pytest.raises(FileNotFoundError):
        zarr.open_group(session.store, mode="r")
    zarr.open_group(session.store, mode="w-")
    session.commit("an empty group")
    zarr.open_group(repo.readonly_session("main").store, mode="r")


def test_the_commit_names_keys_of_no_array(session: Session) -> None:
    store = session.store
    sync(store.set("a/c/0", cpu.Buffer.from_bytes(b"1")))
    with pytest.raises(InvalidError, match="a/c/0 belongs to no array"):
        session.commit("no")
    zarr.create_array(store, name="a", shape=4, chunks=4, dtype="u1", compressors=None)
    assert zarr.open_array(store, path="a").nchunks_initialized == 1
    session.commit("now it does")


def test_version_2_is_refused_by_the_commit_with_a_hint(session: Session) -> None:
    zarr.create_group(session.store, zarr_format=2)
    with pytest.raises(InvalidError, match="chunkyard convert"):
        session.commit("no")


def test_empty_chunks_leave_no_trace(repo: Repository, session: Session) -> None:
    array = zarr.create_array(session.store, name="a", shape=8, chunks=2, dtype="u1")
    array[...] = 1
    session.commit("ones")
    session = repo.writable_session("main")
    array = zarr.open_array(session.store, path="a")
    array[:4] = 0
    assert array.nchunks_initialized == 2
    session.commit("zeros")
    array = zarr.open_array(repo.readonly_session("main").store, path="a", mode="r")
    assert array[...].tolist() == [0] * 4 + [1] * 4
    assert sync(array.store.getsize_prefix("a/c/")) == array.nbytes_stored() - sync(
        array.store.getsize("a/zarr.json")
    )


def test_a_value_that_changes_after_set_does_not_change_the_store(session: Session) -> None:
    data = np.arange(4, dtype="u1")
    array = zarr.create_array(session.store, name="a", shape=4, chunks=4, dtype="u1", compressors=None)
    array[...] = data
    data[...] = 0
    assert array[...].tolist() == [0, 1, 2, 3]


def test_shards_are_read_in_parts(repo: Repository, session: Session) -> None:
    data = np.random.default_rng(1).integers(0, 1 << 30, (64, 64))
    array = zarr.create_array(
        session.store, name="s", shape=data.shape, shards=(32, 32), chunks=(8, 8), dtype=data.dtype
    )
    array[...] = data
    session.commit("shards")
    read = zarr.open_array(repo.readonly_session("main").store, path="s", mode="r")
    np.testing.assert_array_equal(read[3:40, 50], data[3:40, 50])
    np.testing.assert_array_equal(read[...], data)


def test_virtual_references_are_followed_where_allowed(tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(bytes(range(16)))
    modified = datetime.fromtimestamp(source.stat().st_mtime + 1, UTC)
    url = source.as_uri()
    repo = Repository.create(tmp_path / "repo", allow=[tmp_path.as_uri()])
    session = repo.writable_session("main")
    store = session.store
    zarr.create_array(store, name="v", shape=8, chunks=4, dtype="u1", compressors=None)
    store.set_virtual_ref("v/c/0", url, offset=4, length=4, last_modified=modified)
    store.set_virtual_refs("v", [VirtualRef([1], url, 12, 4, last_modified=modified)])
    for key in ["v/zarr.json", "v/c/2", "w/c/0"]:
        with pytest.raises(InvalidError, match=key):
            store.set_virtual_ref(key, url, offset=0, length=4, last_modified=modified)
    with pytest.raises(InvalidError, match="etag"):
        store.set_virtual_ref("v/c/0", url, offset=4, length=4)
    session.commit("virtual")
    store = repo.readonly_session("main").store
    read = zarr.open_array(store, path="v", mode="r")
    assert read[...].tolist() == [4, 5, 6, 7, 12, 13, 14, 15]
    part = sync(store.get("v/c/1", byte_range=RangeByteRequest(1, 3)))
    assert part is not None and part.to_bytes() == bytes([13, 14])


def test_consolidated_metadata_is_not_needed(session: Session) -> None:
    root = zarr.create_group(session.store)
    root.create_group("g")
    with pytest.raises(TypeError, match="consolidated"):
        zarr.consolidate_metadata(session.store)
    assert not session.store.supports_consolidated_metadata
    assert "g" in zarr.open_group(session.store, mode="r")


def value(chunk: int) -> int:
    """The element that fills a chunk of `chunks`; never the fill value, which is not stored."""
    return chunk % 255 + 1


@pytest.fixture
def chunks(repo: Repository, session: Session) -> Iterator[Store]:
    """A store with a thousand chunks that are not in memory."""
    array = zarr.create_array(
        session.store, name="a", shape=1000 * 600, chunks=600, dtype="u1", compressors=None
    )
    array[...] = np.array([value(n) for n in range(1000)], dtype="u1").repeat(600)
    session.commit("chunks")
    yield repo.readonly_session("main").store


def test_many_reads_at_once_all_arrive(chunks: Store) -> None:
    async def read() -> list[Buffer | None]:
        whole = [chunks.get(f"a/c/{n}") for n in range(1000)]
        return await asyncio.gather(*whole)

    for n, buffer in enumerate(asyncio.run(read())):
        assert buffer is not None and buffer.to_bytes() == bytes([value(n)]) * 600


def test_reads_of_several_loops_do_not_mix(chunks: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    async def read(start: int) -> bool:
        found = await asyncio.gather(*(chunks.get(f"a/c/{n}") for n in range(start, start + 100)))
        expected = [bytes([value(n)]) * 600 for n in range(start, start + 100)]
        return [it.to_bytes() for it in found if it is not None] == expected

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda start: asyncio.run(read(start)), range(0, 900, 50)))


def test_a_read_that_is_cancelled_leaves_the_others_alone(chunks: Store) -> None:
    async def read() -> None:
        tasks = [asyncio.create_task(chunks.get(f"a/c/{n}")) for n in range(300)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        for n, it in enumerate(found):
            # A read that was faster than its cancellation has its value.
            if isinstance(it, asyncio.CancelledError):
                assert n % 2 == 0
            else:
                assert isinstance(it, Buffer) and it.to_bytes() == bytes([value(n)]) * 600
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.gather(*(chunks.get(f"a/c/{n}") for n in range(300)))

    asyncio.run(read())
    gc.collect()


def test_an_error_is_raised_where_it_is_awaited(chunks: Store, tmp_path: Path) -> None:
    for file in (tmp_path / "repo" / "c").rglob("*"):
        if file.is_file():
            file.unlink()

    async def read() -> None:
        with pytest.raises(Exception, match="c/"):
            await chunks.get("a/c/1")
        with pytest.raises(Exception, match="c/"):
            await chunks.get_partial_values(
                default_buffer_prototype(), [("a/c/2", OffsetByteRequest(3))]
            )
        document = await chunks.get("a/zarr.json")
        assert document is not None and json.loads(document.to_bytes())["node_type"] == "array"

    asyncio.run(read())


def test_a_listing_is_not_held_in_memory_as_a_whole(chunks: Store) -> None:
    async def first() -> str:
        async for key in chunks.list_prefix("a/c/"):
            return key
        raise AssertionError

    assert asyncio.run(first()) == "a/c/0"

    async def count() -> int:
        return len([key async for key in chunks.list()])

    assert asyncio.run(count()) == 1002
