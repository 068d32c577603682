"""Dask: arrays in and out of repositories, and conversions by the workers of a cluster.

Tasks write everything; they may fail, be killed, or run twice. One commit, by the calling process, makes
the result visible; an export is ended by its last worker.

- `to_repo` writes a Dask array through forks of a session.
- `from_array` makes a Dask array from any array of Chunkyard.
- `chunkyard.convert(..., client=client)` hands out the packs of a conversion.
- `export_shards` lets the workers of a cluster carry out the job of an export.
"""

from __future__ import annotations

import functools
import itertools
import logging
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import compute as computed
from dask.base import tokenize
from dask.delayed import delayed

from chunkyard import _engine
from chunkyard._array import Array
from chunkyard._export import Exported, Wanted, make_job
from chunkyard._export import work as work_on
from chunkyard._group import Codecs
from chunkyard._options import Options, Url, url_of
from chunkyard._repository import version_at
from chunkyard._session import ForkSession, Session

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from typing import Unpack

    from distributed import Client

_log = logging.getLogger("chunkyard")

__all__ = ["Exported", "export_shards", "from_array", "to_repo"]

_MERGE_AT_ONCE = 16
"""Change sets that one task merges: a tree of these keeps any one task small."""
_RETRIES = 3
"""How often Dask repeats a task that raised. It repeats the tasks of dead workers on its own."""


def from_array(
    array: Array, *, chunks: str | int | Sequence[int] | None = None, name: str | None = None
) -> da.Array:
    """A Dask array that reads `array`, in blocks of whole chunks.

    `chunks` is the shape of a block, in elements; about Dask's `array.chunk-size` if not given, and
    rounded so that no chunk is read for two blocks. The same array of the same version has the same
    name, so Dask recognises work that it has done.
    """
    session = array._session
    if session is not None and not session.read_only and not isinstance(session, ForkSession):
        # Workers see the changes made so far.
        fork = session.fork()
        array = Array(fork._native, array.path, session=fork)
    blocks = _aligned(array, "auto" if chunks is None else chunks)
    name = name or f"chunkyard-{tokenize(array, blocks)}"
    return da.from_array(array, chunks=blocks, name=name, asarray=False, fancy=False)


def to_repo(
    array: da.Array,
    session: Session,
    path: str,
    *,
    chunks: int | Sequence[int] | None = None,
    codecs: Codecs | None = None,
    fill_value: Any = None,
    attributes: dict[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    region: tuple[slice, ...] | None = None,
    compute: bool = True,
) -> Array | Delayed:
    """Writes a Dask array into a writable session; the caller commits.

    Without `region` the array is created at `path`, with chunks of the shape of the blocks if not
    given. With `region`, one slice per axis, it is written into the existing array. Blocks must
    consist of whole chunks, so that no two tasks write the same chunk.

    With `compute=False` nothing is written yet: the result computes to a fork of the session, for
    `session.merge`.
    """
    if session.read_only:
        raise ValueError("this session is read-only; use repo.writable_session")
    if region is None:
        shape = _block_shape(array) if chunks is None else _per_axis(chunks, array.ndim)
        _refuse_misaligned(array, shape, [0] * array.ndim, array.shape)
        target = session.create_array(
            path,
            shape=array.shape,
            dtype=array.dtype,
            chunks=shape,
            codecs=codecs,
            fill_value=fill_value,
            attributes=attributes,
            dimension_names=dimension_names,
        )
        origin = [0] * array.ndim
    else:
        found = session[path]
        if not isinstance(found, Array):
            raise ValueError(f"{path} is a group, not an array")
        target = found
        origin = _origin(region, target.shape, array.shape)
        _refuse_misaligned(array, target.chunks, origin, target.shape)
    merged = _written(array.astype(target.dtype), session.fork(), target.path, origin)
    if not compute:
        return merged
    (fork,) = computed(merged)
    session.merge(fork)
    return target


def export_shards(
    client: Client,
    source: Url,
    target: Url,
    *,
    job: Url,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
    task_bytes: int | None = None,
    lease_seconds: float = 60,
    allow: Iterable[str] = (),
    memory_bytes: int | None = None,
    requests: int | None = None,
    storage: dict[str, object] | None = None,
    **wanted: Unpack[Wanted],
) -> Exported:
    """Exports a segmentation as shards by the workers of a cluster.

    This process writes the plan to `job`, a directory on any store. Each worker of the cluster then does what
    `chunkyard work` does, and so may any other process meanwhile: claim shards, write them, note them. A worker
    that dies is replaced, and its shards are written by another one after `lease_seconds`. All must reach source,
    target and job by the same names; `storage` is sent to them, and `memory_bytes` holds for each. The same call,
    made again, goes on where it ended; shards that are finished stay.

    `wanted` says what is exported, and how: `spec`, `scales`, `emit`, `array`, `ids`, `factor`, `codec`, `index`,
    `stream`, `batch` and `strip_labels`, as `chunkyard export-shards` has them.
    """
    options = Options(storage or {}, allow=allow, memory_bytes=memory_bytes, requests=requests)
    read = version_at(url_of(source), options, branch, tag, snapshot, as_of)
    make_job(source, target, job, options, read, wanted, task_bytes, lease_seconds)
    work = uuid.uuid4().hex
    workers = list(client.ncores())
    if not workers:
        raise ValueError("the cluster has no workers")
    futures = [
        client.submit(
            work_on,
            url_of(job),
            options,
            key=f"chunkyard-export-{work}-{number}",
            workers=[worker],
            allow_other_workers=True,
            pure=False,
        )
        for number, worker in enumerate(workers)
    ]
    try:
        return _exported(client.gather(futures)[0])
    except BaseException:
        client.cancel(futures)
        raise


def _exported(outcome: dict[str, Any]) -> Exported:
    facts = dict(outcome)
    return Exported(nbytes=facts.pop("bytes"), **facts)


def _written(array: da.Array, fork: ForkSession, path: str, origin: Sequence[int]) -> Delayed:
    """A fork that holds the chunks of all blocks of an array."""
    # One node of the graph, however many tasks need it.
    shared = delayed(fork, traverse=False)
    write = delayed(_write_block, pure=False)
    merge = delayed(_merge, pure=False)
    starts = [np.cumsum([0, *sizes[:-1]]).tolist() for sizes in array.chunks]
    blocks = array.to_delayed()
    parts: list[Any] = []
    for index in np.ndindex(*blocks.shape):
        inside = [axis[at] for axis, at in zip(starts, index, strict=True)]
        at = [begin + offset for begin, offset in zip(origin, inside, strict=True)]
        parts.append(write(blocks[index], shared, path, at))
    while len(parts) > 1:
        starts_at = range(0, len(parts), _MERGE_AT_ONCE)
        parts = [merge(shared, parts[at : at + _MERGE_AT_ONCE]) for at in starts_at]
    return parts[0] if parts else shared


def _write_block(
    block: npt.NDArray[Any], fork: ForkSession, path: str, origin: Sequence[int]
) -> ForkSession:
    """Writes one block through a fork of its own, so that tasks are independent."""
    own = ForkSession._make(fork.repository, fork._fork, None)
    array = Array(own._native, path, session=own)
    values = np.asarray(block)
    array[tuple(slice(at, at + n) for at, n in zip(origin, values.shape, strict=True))] = values
    return _closed(own)


def _merge(fork: ForkSession, parts: Sequence[ForkSession]) -> ForkSession:
    merged = ForkSession._make(fork.repository, fork._fork, None)
    merged.merge(*parts)
    return _closed(merged)


def _closed(fork: ForkSession) -> ForkSession:
    """The same fork, durable, and without state that only this process needs."""
    return ForkSession._make(fork.repository, fork._fork, fork.changes())


def carry_out(
    coordinator: _engine.Coordinator, client: Client, options: Options
) -> dict[str, Any]:
    """Lets the workers of a cluster write all packs of a conversion, then commits.

    A bounded number of tasks is queued: as many as keep the workers busy.
    """
    from distributed import as_completed

    work = uuid.uuid4().hex
    threads = max(1, sum(client.ncores().values()))
    order = coordinator.order()
    tasks = enumerate(coordinator.tasks(threads))
    under_way: set[Any] = set()

    def submit(number: int, packs: bytes) -> Any:
        key = f"chunkyard-convert-{work}-{number}"
        future = client.submit(
            _work, order, packs, options, key=key, pure=False, retries=_RETRIES
        )
        under_way.add(future)
        return future

    try:
        first = [submit(*task) for task in itertools.islice(tasks, 2 * threads)]
        completed = as_completed(first)
        for future in completed:
            coordinator.adopt(future.result())
            under_way.discard(future)
            for task in itertools.islice(tasks, 1):
                completed.add(submit(*task))
        return coordinator.finish()
    except BaseException as error:
        _give_up(coordinator, client, under_way)
        error.add_note(
            "nothing of this conversion is visible; the same call continues where it ended"
        )
        raise


def _give_up(coordinator: _engine.Coordinator, client: Client, under_way: set[Any]) -> None:
    """Ends running tasks. Finished packs are recorded for the next attempt."""
    try:
        client.cancel(list(under_way))
        coordinator.pause()
    except Exception:
        # The caller must hear of the first error, not of this one.
        _log.warning("a conversion was not ended cleanly", exc_info=True)
    finally:
        coordinator.close()


@functools.lru_cache(maxsize=1)
def _joined(order: bytes, options: Options) -> _engine.Worker:
    """Source, plan and target stay open for the tasks of one conversion."""
    return _engine.Worker.join(order, options.native())


def _work(order: bytes, packs: bytes, options: Options) -> bytes:
    return _joined(order, options).work(packs)


def _aligned(array: Array, wanted: str | int | Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Blocks of about the wanted size, made of whole chunks."""
    previous = da.core.normalize_chunks(array.chunks, shape=array.shape, dtype=array.dtype)
    if array.dtype.hasobject or array.dtype.kind == "T":
        # Dask cannot know the size of such elements.
        wanted = array.chunks if isinstance(wanted, str) else wanted
    sizes = da.core.normalize_chunks(
        wanted, shape=array.shape, dtype=array.dtype, previous_chunks=previous
    )
    blocks = []
    for axis, (extent, chunk) in enumerate(zip(array.shape, array.chunks, strict=True)):
        size = max(1, round(max(sizes[axis], default=1) / chunk)) * chunk
        blocks.append(tuple(min(size, extent - at) for at in range(0, extent, size)) or (0,))
    return tuple(blocks)


def _block_shape(array: da.Array) -> list[int]:
    """The shape of the blocks, if all are equal except at the end."""
    shape = []
    for axis, sizes in enumerate(array.chunks):
        first = sizes[0] if sizes else 1
        if any(size != first for size in sizes[:-1]) or (sizes and sizes[-1] > first):
            raise ValueError(
                f"the blocks along axis {axis} have different sizes, {_some(sizes)}; say "
                "array.rechunk(...) first, or give chunks= that divide all of them"
            )
        shape.append(max(1, int(first)))
    return shape


def _refuse_misaligned(
    array: da.Array, chunks: Sequence[int], origin: Sequence[int], extent: Sequence[int]
) -> None:
    """Refuses blocks that share chunks: tasks would overwrite each other's elements."""
    for axis, (sizes, chunk) in enumerate(zip(array.chunks, chunks, strict=True)):
        begin = origin[axis]
        borders = [begin, *(begin + int(end) for end in np.cumsum(sizes))]
        if any(at % chunk and at != extent[axis] for at in borders):
            fitting = tuple(-(-max(s, default=1) // c) * c for s, c in zip(array.chunks, chunks))
            advice = f"array.rechunk({fitting}) makes them fit"
            if begin % chunk:
                advice = f"the region must begin at a multiple of {chunk} along axis {axis}"
            raise ValueError(
                f"the blocks along axis {axis}, {_some(sizes)} from {begin}, do not consist of "
                f"whole chunks of {chunk}, and two tasks would write the same chunk; {advice}"
            )


def _origin(
    region: tuple[slice, ...], extent: Sequence[int], shape: Sequence[int]
) -> list[int]:
    if len(region) != len(extent) or len(shape) != len(extent):
        raise ValueError(f"the array has {len(extent)} axes: give a slice and a length for each")
    origin = []
    for part, length, wanted in zip(region, extent, shape, strict=True):
        start, stop, step = part.indices(length)
        if step != 1 or stop - start != wanted:
            raise ValueError(f"{part} is not {wanted} elements long, one after the other")
        origin.append(start)
    return origin


def _per_axis(shape: int | Sequence[int], rank: int) -> list[int]:
    if isinstance(shape, (int, np.integer)):
        return [int(shape)] * rank
    return [int(extent) for extent in shape]


def _some(sizes: Sequence[int]) -> str:
    listed = ", ".join(str(size) for size in sizes[:6])
    return f"({listed}, …)" if len(sizes) > 6 else f"({listed})"
