"""A session as a store of zarr-python 3.

`session.store` is one of these: zarr, xarray and dask read and write through it, and
`session.commit` makes all of it visible at once.

>>> import chunkyard, zarr
>>> repo = chunkyard.Repository.create("memory://zarr-store")
>>> session = repo.writable_session("main")
>>> root = zarr.create_group(session.store)
>>> field = root.create_array("field", shape=(4, 6), chunks=(2, 3), dtype="f4")
>>> field[:2] = 1.5
>>> snapshot = session.commit("a field")
>>> float(zarr.open_array(repo.readonly_session("main").store, path="field", mode="r")[0, 0])
1.5

Keys that a repository cannot keep, because they are no part of a Zarr v3 hierarchy, can be written and
read back, but the commit refuses them by name; see `Store`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, cast

import zarr.abc.store as abc
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from chunkyard import _engine
from chunkyard._label_block import LabelBlock
from chunkyard._options import milliseconds
from chunkyard._pipeline import CodecPipeline

if TYPE_CHECKING:
    from chunkyard._session import Session

__all__ = ["CodecPipeline", "LabelBlock", "Store", "VirtualRef"]


@dataclass(frozen=True)
class VirtualRef:
    """A chunk in an object outside the repository; see `Store.set_virtual_refs`."""

    index: Sequence[int]
    """Position of the chunk in its grid."""
    url: str
    """The object. A reader of the chunk must allow this place when opening the repository."""
    offset: int
    """Its first byte there."""
    length: int
    """How many bytes."""
    etag: str | None = None
    """The entity tag of the object when the range was found."""
    last_modified: datetime | None = None
    """When the object had last changed at that time."""
    crc32c: int | None = None
    """Checksum of the bytes."""


class Store(abc.Store):
    """The keys and values of a session, for zarr-python.

    It behaves like a dictionary, with these differences:

    - A document is rendered from the node; what was written as JSON comes back as equal JSON.
      Consolidated metadata is not kept, because it is not needed: all metadata are in memory.
    - Keys may come in any order. A key that fits no array yet, such as a chunk before its array, waits
      in memory; a commit refuses while keys wait, and names them.
    - Deleting the `zarr.json` of an array deletes its chunks, too.
    - A commit gives every group above a node a document, the root included.
    """

    _session: Session
    _opened: _engine.Keys | None

    def __init__(self, session: Session, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only or session.read_only)
        self._session = session
        self._opened = None

    @property
    def session(self) -> Session:
        """The session."""
        return self._session

    @property
    def _keys(self) -> _engine.Keys:
        # A fork opens on first use, not while it is carried around.
        if self._opened is None:
            self._opened = _engine.Keys(self._session._native)
        return self._opened

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same session, perhaps without the right to write."""
        return type(self)(self._session, read_only=read_only)

    @property
    def supports_writes(self) -> bool:
        """It does, if the session is writable."""
        return True

    @property
    def supports_deletes(self) -> bool:
        """It does."""
        return True

    @property
    def supports_listing(self) -> bool:
        """It does."""
        return True

    @property
    def supports_consolidated_metadata(self) -> bool:
        """It does not: all metadata of a version are in memory, and never stale."""
        return False

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: abc.ByteRequest | None = None,
    ) -> Buffer | None:
        """The value of a key, or a range of it."""
        found = await _result(self._keys.get(key, _range(byte_range)))
        return _buffer(found, prototype)

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: abc.ByteRequest | None = None,
    ) -> Buffer | None:
        """Like `get`, without an event loop."""
        return _buffer(self._keys.get_sync(key, _range(byte_range)), prototype)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, abc.ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Many values or ranges of them, located and fetched together."""
        wanted = [(key, _range(byte_range)) for key, byte_range in key_ranges]
        found = await _result(self._keys.get_many(wanted))
        return [_buffer(value, prototype) for value in found]

    async def _get_many(
        self, requests: Iterable[tuple[str, BufferPrototype, abc.ByteRequest | None]]
    ) -> AsyncGenerator[tuple[str, Buffer | None], None]:
        asked = list(requests)
        wanted = [(key, _range(byte_range)) for key, _, byte_range in asked]
        found = await _result(self._keys.get_many(wanted))
        for (key, prototype, _), value in zip(asked, found, strict=True):
            yield key, _buffer(value, prototype)

    async def exists(self, key: str) -> bool:
        """Whether there is such a key."""
        return cast(bool, await _result(self._keys.exists(key)))

    async def set(self, key: str, value: Buffer) -> None:
        """Sets the value of a key."""
        self._check_writable()
        await _result(self._keys.set(key, _bytes(value)))

    def set_sync(self, key: str, value: Buffer) -> None:
        """Like `set`, without an event loop."""
        self._check_writable()
        self._keys.set_sync(key, _bytes(value))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Sets the value of a key that does not exist."""
        self._check_writable()
        await _result(self._keys.set_if_not_exists(key, _bytes(value)))

    async def delete(self, key: str) -> None:
        """Deletes a key, if it exists."""
        self._check_writable()
        await _result(self._keys.delete(key))

    def delete_sync(self, key: str) -> None:
        """Like `delete`, without an event loop."""
        self._check_writable()
        self._keys.delete_sync(key)

    async def delete_dir(self, prefix: str) -> None:
        """Deletes all keys in a folder; a node is deleted as a whole."""
        self._check_writable()
        await _result(self._keys.delete_dir(prefix))

    async def is_empty(self, prefix: str) -> bool:
        """Whether a folder is empty."""
        return cast(bool, await _result(self._keys.is_empty(prefix)))

    async def getsize(self, key: str) -> int:
        """How many bytes a value has; no chunk is read for it."""
        size = await _result(self._keys.size(key))
        if size is None:
            raise FileNotFoundError(key)
        return cast(int, size)

    async def getsize_prefix(self, prefix: str) -> int:
        """How many bytes the values below a prefix have; no chunk is read for it."""
        return cast(int, await _result(self._keys.size_prefix(prefix)))

    def list(self) -> AsyncIterator[str]:
        """All keys."""
        return self.list_prefix("")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """The keys with a prefix, in no particular order. They are not held in memory."""
        listing = self._keys.list_prefix(prefix)
        while batch := await _result(listing.next()):
            for key in batch:
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names in a folder."""
        for name in await _result(self._keys.list_dir(prefix)):
            yield name

    def set_virtual_ref(
        self,
        key: str,
        url: str,
        *,
        offset: int,
        length: int,
        etag: str | None = None,
        last_modified: datetime | None = None,
        crc32c: int | None = None,
    ) -> None:
        """Points the chunk of a key at a range of an object elsewhere, without copying it.

        One of `etag`, `last_modified` and `crc32c` must be given, taken before the range was found:
        then a source that changes later is an error for readers, never wrong data. The array must
        exist.
        """
        self._check_writable()
        modified = None if last_modified is None else milliseconds(last_modified)
        self._keys.set_virtual(key, url, offset, length, etag, modified, crc32c)

    def set_virtual_refs(self, path: str, refs: Iterable[VirtualRef]) -> None:
        """Points many chunks of the array at `path` at ranges of objects elsewhere."""
        self._check_writable()
        chunks = [
            (
                ref.index,
                ref.url,
                ref.offset,
                ref.length,
                ref.etag,
                None if ref.last_modified is None else milliseconds(ref.last_modified),
                ref.crc32c,
            )
            for ref in refs
        ]
        self._session._native.set_virtual(path, chunks, True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Store):
            return NotImplemented
        return self._session == other._session and self.read_only == other.read_only

    def __hash__(self) -> int:
        return hash(self._session)

    def __repr__(self) -> str:
        return f"<chunkyard.zarr.Store{' (read-only)' if self.read_only else ''} of {self._session!r}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}


async def _result(answer: Any) -> Any:
    """The outcome of a method of `_engine.Keys`: its result, or a future of it."""
    return await answer if asyncio.isfuture(answer) else answer


def _range(byte_range: abc.ByteRequest | None) -> tuple[int | None, int | None] | None:
    match byte_range:
        case None:
            return None
        case abc.RangeByteRequest(start, end):
            return start, end
        case abc.OffsetByteRequest(offset):
            return offset, None
        case abc.SuffixByteRequest(suffix):
            return None, suffix
    raise ValueError(f"Unexpected byte_range, got {byte_range}")


def _buffer(found: bytes | None, prototype: BufferPrototype | None) -> Buffer | None:
    if found is None:
        return None
    return (prototype or default_buffer_prototype()).buffer.from_bytes(found)


def _bytes(value: Buffer) -> Any:
    if not isinstance(value, Buffer):
        raise TypeError(
            f"Store.set(): value must be a Buffer instance. Got an instance of {type(value)} instead."
        )
    return value.as_numpy_array()
