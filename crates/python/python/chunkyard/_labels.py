"""Labelmaps: a segmentation with its bodies, in a session."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from chunkyard import _engine
from chunkyard._array import Array, bytes_of
from chunkyard._ids import Ids, id_of, ids_of, maybe_id, numbers, three
from chunkyard._indexing import parse
from chunkyard._label_reports import Body, Decision, Mutation, Verified
from chunkyard._progress import Shown, shown
from chunkyard._repository import Repository
from chunkyard._session import Session
from chunkyard._tables import batches, select

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("chunkyard")

TABLES = ("mapping", "index", "bodies", "supervoxels", "mutations", "history")
"""The tables of a labelmap."""

Pairs = Mapping[int, int] | tuple[npt.ArrayLike, npt.ArrayLike]
"""Supervoxels and the body of each: as a dictionary, or as two arrays."""


class Labelmap:
    """A segmentation under version control: supervoxels, the bodies they belong to, and every edit.

    Voxels hold supervoxels, which rarely change; a mapping says which body a supervoxel belongs to, and
    edits change it. All of it is one group of a repository, so versions, branches and tags are the
    repository's. Axes are z, y, x everywhere; ids are `uint64`.

    Edits are made in a writable session; other readers see them after `commit`.

    >>> import chunkyard, numpy
    >>> from chunkyard.labels import Labelmap
    >>> repo = chunkyard.Repository.create("memory://cells")
    >>> volume = numpy.arange(1, 9, dtype="u8").reshape(2, 2, 2).repeat(8, 0).repeat(8, 1).repeat(8, 2)
    >>> cells = Labelmap.import_(repo.writable_session(), "cells", volume, block=16)
    >>> cells.merge(1, [2, 3]).supervoxels
    (2, 3)
    >>> snapshot = cells.commit("one cell, not three")
    >>> cells = Labelmap.open(repo, "cells")
    >>> cells.labels_at([[0, 0, 8], [8, 8, 8]])
    array([1, 8], dtype=uint64)
    >>> cells.body(1).voxels
    1536
    """

    _native: _engine.Labelmap
    _session: Session

    def __init__(self) -> None:
        raise TypeError("use Labelmap.open, Labelmap.create or Labelmap.import_")

    @classmethod
    def _wrap(cls, native: _engine.Labelmap, session: Session) -> Labelmap:
        labelmap = object.__new__(cls)
        labelmap._native, labelmap._session = native, session
        labelmap._layout = native.layout
        return labelmap

    _layout: dict[str, Any]

    @classmethod
    def open(cls, of: Session | Repository, path: str) -> Labelmap:
        """Opens the labelmap in a group of a session. Of a repository, it is read at the tip of the
        default branch."""
        session = of.readonly_session() if isinstance(of, Repository) else of
        return cls._wrap(_engine.Labelmap.open(session._native, path), session)

    @classmethod
    def list(cls, of: Session | Repository) -> tuple[str, ...]:
        """The paths of all labelmaps."""
        session = of.readonly_session() if isinstance(of, Repository) else of
        return tuple(_engine.Labelmap.list(session._native))

    @classmethod
    def create(
        cls,
        session: Session,
        path: str,
        shape: Sequence[int],
        *,
        block: int | Sequence[int] = 64,
        scales: int | None = None,
        voxel_size: float | Sequence[float] = 1.0,
        unit: str | None = None,
    ) -> Labelmap:
        """Creates an empty labelmap in a group that does not exist.

        A block is a multiple of 16 voxels along each axis. There are as many `scales` as it takes until
        one block holds all, each of half the resolution of the one before.
        """
        wanted = _wanted(shape, block, scales, voxel_size, unit)
        return cls._wrap(_engine.Labelmap.create(session._native, path, wanted), session)

    @classmethod
    def import_(
        cls,
        session: Session,
        path: str,
        volume: Any,
        *,
        block: int | Sequence[int] = 64,
        scales: int | None = None,
        voxel_size: float | Sequence[float] = 1.0,
        unit: str | None = None,
        mapping: Pairs | None = None,
        progress: Shown = None,
    ) -> Labelmap:
        """Creates a labelmap from a volume of supervoxels, box by box, whatever its size.

        The volume is an `Array` of any format, a NumPy array, or anything with `shape` and `dtype` that
        is sliced like one. `mapping` says which body a supervoxel belongs to, if that is not itself.
        """
        wanted = _wanted(volume.shape, block, scales, voxel_size, unit)
        supervoxels, bodies = _sorted_pairs({} if mapping is None else mapping)
        with shown("importing", progress) as report:
            native, imported = _engine.Labelmap.import_(
                session._native, path, wanted, _readable(volume), supervoxels, bodies, report
            )
        _log.info(
            "%s: imported %d bodies of %d supervoxels",
            native.path,
            imported["bodies"],
            imported["supervoxels"],
        )
        return cls._wrap(native, session)

    # What it is

    @property
    def path(self) -> str:
        """The group."""
        return self._native.path

    @property
    def session(self) -> Session:
        """The session it belongs to."""
        return self._session

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels along each axis."""
        z, y, x = self._layout["shape"]
        return (z, y, x)

    @property
    def block(self) -> tuple[int, int, int]:
        """Voxels of a block along each axis."""
        z, y, x = self._layout["block"]
        return (z, y, x)

    @property
    def scales(self) -> int:
        """How many arrays there are, each of half the resolution of the one before."""
        return int(self._layout["scales"])

    @property
    def voxel_size(self) -> tuple[float, float, float]:
        """The size of a voxel along each axis."""
        z, y, x = self._layout["voxel_size"]
        return (z, y, x)

    @property
    def unit(self) -> str | None:
        """The unit of `voxel_size`, if it is known."""
        unit: str | None = self._layout.get("unit")
        return unit

    def array(self, scale: int = 0) -> Array:
        """The supervoxels of a scale. `bodies_of` turns what is read into bodies."""
        if not 0 <= scale < self.scales:
            raise IndexError(f"scale {scale} of {self.path}, which has {self.scales}")
        path = f"{self.path.rstrip('/')}/s{scale}"
        return Array(self._session._native, path, session=self._session)

    # Questions

    def labels_at(self, points: npt.ArrayLike, *, supervoxels: bool = False) -> Any:
        """The body, or supervoxel, at each point; `points` has z, y, x along its last axis."""
        places = ids_of(points, "positions")
        if places.ndim == 0 or places.shape[-1] != 3:
            raise ValueError(f"points have z, y, x along their last axis, not {places.shape}")
        found = numbers(self._native.labels_at(places.reshape(-1), supervoxels))
        return found.reshape(places.shape[:-1])[()]

    def bodies_of(self, supervoxels: npt.ArrayLike) -> Any:
        """The body of each supervoxel: itself if it was never mapped, 0 if it is retired. An array of
        any shape gives one of the same shape."""
        unique, inverse = np.unique(ids_of(supervoxels), return_inverse=True)
        return numbers(self._native.bodies_of(unique))[inverse]

    def body(self, body: SupportsIndex) -> Body:
        """Size and place of a body. If there is none, the error says what became of it."""
        return Body._of(self._native.body(id_of(body)))

    def supervoxels(self, body: SupportsIndex) -> Ids:
        """The supervoxels of a body, by id."""
        return numbers(self._native.supervoxels_of(id_of(body)))

    def blocks(self, body: SupportsIndex) -> tuple[Ids, Ids]:
        """The blocks that a body is in: z, y, x of each in the grid of blocks, one in a row, and how
        many voxels of the body each has."""
        rows = numbers(self._native.blocks_of(id_of(body)), 4)
        return rows[:, :3], rows[:, 3]

    def labels_in(self, box: Any = ..., *, supervoxels: bool = False) -> Ids:
        """The bodies, or supervoxels, that have voxels in a box of slices, by id."""
        origin, shape = _box(box, self.shape)
        return numbers(self._native.labels_in(origin, shape, supervoxels))

    def sparse_volume(
        self, body: SupportsIndex, *, supervoxel: SupportsIndex | None = None
    ) -> npt.NDArray[np.int64]:
        """The voxels of a body, or of one of its supervoxels: z, y, x of the first voxel of each run
        along x, and the length of the run, one in a row."""
        found = self._native.sparse_volume(id_of(body), maybe_id(supervoxel))
        return numbers(found, 4).view(np.int64)

    def mapping(self) -> tuple[Ids, Ids]:
        """All supervoxels that were ever mapped, by id, and the body of each; 0 is a retired id."""
        supervoxels, bodies = self._native.mapping()
        return numbers(supervoxels), numbers(bodies)

    # Tables

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table as it is in this session: `mapping`, `index`, `bodies`, `supervoxels`, `mutations` or
        `history`; of its columns only `columns`, if they are given."""
        return self.batches(name, columns).read_all()

    def batches(self, name: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """The same batch by batch, in bounded memory."""
        chosen = None if columns is None else [str(column) for column in columns]
        return batches(self._native.scan(name, chosen))

    def sql(
        self, query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> pa.Table:
        """The answer to a query in the SQL of DuckDB, which knows the tables by their names. The tables
        that the query names are read into memory."""
        return select(query, parameters, TABLES, self.table)

    # History

    def log(self, since: SupportsIndex = 0) -> tuple[Mutation, ...]:
        """The mutations from an id on, oldest first."""
        return tuple(map(Mutation._of, self._native.log(id_of(since))))

    def blame(self, supervoxel: SupportsIndex) -> tuple[Decision, ...]:
        """The mutations that decided where a supervoxel belongs, oldest first."""
        found = self._native.blame(id_of(supervoxel))
        return tuple(Decision(Mutation._of(one), before, after) for one, before, after in found)

    def verify(self, *, progress: Shown = None) -> Verified:
        """Counts all voxels anew, and compares all tables and scales with them."""
        with shown("verifying", progress) as report:
            return Verified._of(self._native.verify(report))

    # Edits

    def merge(
        self, target: SupportsIndex, bodies: npt.ArrayLike, *, user: str = "", note: str = ""
    ) -> Mutation:
        """Bodies become part of `target`."""
        wanted = _list(bodies, "bodies")
        return Mutation._of(self._native.merge(id_of(target), wanted, (user, note)))

    def cleave(
        self,
        body: SupportsIndex,
        supervoxels: npt.ArrayLike,
        *,
        new_body: SupportsIndex | None = None,
        user: str = "",
        note: str = "",
    ) -> Mutation:
        """Supervoxels leave a body and become one of their own: `other` of the mutation, a new id unless
        `new_body` is given."""
        wanted = _list(supervoxels, "supervoxels")
        cleft = self._native.cleave(id_of(body), wanted, maybe_id(new_body), (user, note))
        return Mutation._of(cleft)

    def split_supervoxel(
        self,
        supervoxel: SupportsIndex,
        voxels: npt.ArrayLike,
        offset: Sequence[int] = (0, 0, 0),
        *,
        part: SupportsIndex | None = None,
        rest: SupportsIndex | None = None,
        user: str = "",
        note: str = "",
    ) -> Mutation:
        """A supervoxel is cut in two; both stay in its body.

        `voxels` is what to cut out: a mask whose first voxel is at `offset`, or runs as
        `sparse_volume` gives them. Voxels of other supervoxels do not count. `part` is cut out, and
        `rest` is left; both get new ids, which may be given.
        """
        cut = self._native.split_supervoxel(
            id_of(supervoxel), _voxels(voxels, offset), maybe_id(part), maybe_id(rest), (user, note)
        )
        return Mutation._of(cut)

    def split_body(
        self,
        body: SupportsIndex,
        voxels: npt.ArrayLike,
        offset: Sequence[int] = (0, 0, 0),
        *,
        new_body: SupportsIndex | None = None,
        user: str = "",
        note: str = "",
    ) -> Mutation:
        """Voxels of a body become another body: `other` of the mutation. Supervoxels that lie in both
        are cut in two. `voxels` is as in `split_supervoxel`."""
        cut = self._native.split_body(
            id_of(body), _voxels(voxels, offset), maybe_id(new_body), (user, note)
        )
        return Mutation._of(cut)

    def renumber(
        self, body: SupportsIndex, new_body: SupportsIndex, *, user: str = "", note: str = ""
    ) -> Mutation:
        """A body gets another id."""
        return Mutation._of(self._native.renumber(id_of(body), id_of(new_body), (user, note)))

    def map(self, mapping: Pairs, *, user: str = "", note: str = "") -> Mutation:
        """Supervoxels are given to bodies, which need not exist."""
        supervoxels, bodies = _pairs(mapping)
        return Mutation._of(self._native.map(supervoxels, bodies, (user, note)))

    def revert(
        self, mutation: Mutation | SupportsIndex, *, user: str = "", note: str = ""
    ) -> Mutation:
        """Undoes a mutation. Later mutations of the same supervoxels have to be undone first."""
        undone = mutation.id if isinstance(mutation, Mutation) else id_of(mutation)
        return Mutation._of(self._native.revert(undone, (user, note)))

    def commit(self, message: str) -> str:
        """Makes all changes of the session visible in one step; gives the id of the new snapshot.

        Edits of other bodies that were committed meanwhile stay. If they share blocks with these, the
        edits of the session are made anew on top of them, with the ids that they have, and the session is
        of no further use; unless it has other changes too, which is a `ConflictError`. If a body was
        edited by both, it raises a `ConflictError` that names it.
        """
        snapshot = self._native.commit(message)
        _log.info("%s: committed %s to %s", self.path, snapshot, self._session.branch)
        return snapshot

    def __repr__(self) -> str:
        return (
            f"<chunkyard.labels.Labelmap {self.path!r} shape={self.shape} block={self.block} "
            f"scales={self.scales}>"
        )

    def __reduce__(self) -> Any:
        return (Labelmap.open, (self._session, self.path))


def _wanted(
    shape: Sequence[int],
    block: int | Sequence[int],
    scales: int | None,
    voxel_size: float | Sequence[float],
    unit: str | None,
) -> dict[str, Any]:
    if len(shape) != 3:
        raise ValueError(f"a volume of labels has the axes z, y, x, not the shape {tuple(shape)}")
    return {
        "shape": [id_of(extent, "an extent") for extent in shape],
        "block": [id_of(edge, "the edge of a block") for edge in three(block, "block")],
        "scales": None if scales is None else id_of(scales, "scales"),
        "voxel_size": [float(size) for size in three(voxel_size, "voxel_size")],
        "unit": unit,
    }


def _readable(volume: Any) -> Any:
    """A native array, or a function that gives the labels between two corners."""
    if isinstance(volume, Array):
        return volume._native
    if np.dtype(volume.dtype).kind != "u":
        raise TypeError(f"labels are unsigned integers, not {volume.dtype}; cast them first")

    def read(start: Sequence[int], end: Sequence[int]) -> Ids:
        box = volume[tuple(map(slice, start, end))]
        return np.require(box, np.uint64, ["C"])

    return read


def _pairs(mapping: Pairs) -> tuple[Ids, Ids]:
    if isinstance(mapping, Mapping):
        mapping = (list(mapping.keys()), list(mapping.values()))
    supervoxels, bodies = (_list(column, "a mapping") for column in mapping)
    if len(supervoxels) != len(bodies):
        raise ValueError(f"{len(supervoxels)} supervoxels and {len(bodies)} bodies")
    return supervoxels, bodies


def _sorted_pairs(mapping: Pairs) -> tuple[Ids, Ids]:
    supervoxels, bodies = _pairs(mapping)
    if np.all(supervoxels[1:] > supervoxels[:-1]):
        return supervoxels, bodies
    order = np.argsort(supervoxels)
    return supervoxels[order], bodies[order]


def _list(values: npt.ArrayLike, what: str) -> Ids:
    ids = ids_of(values)
    if ids.ndim != 1:
        raise ValueError(f"{what}: a list of ids, not an array with {ids.ndim} axes")
    return ids


def _voxels(voxels: npt.ArrayLike, offset: Sequence[int]) -> Any:
    """Voxels as the native module takes them: place, shape and bytes of a mask, or runs."""
    array = np.asarray(voxels)
    start = [id_of(at, "a position") for at in offset]
    if len(start) != 3:
        raise ValueError(f"an offset is a position along z, y and x, not {start}")
    if array.dtype == bool:
        if array.ndim != 3:
            raise ValueError(f"a mask has the axes z, y, x, not {array.ndim} axes")
        return (start, array.shape, bytes_of(np.ascontiguousarray(array)))
    runs = ids_of(array, "runs")
    if runs.ndim != 2 or runs.shape[1] != 4:
        raise ValueError(
            "voxels are a mask of booleans with the axes z, y, x, or runs with z, y, x and length in "
            f"a row, not {array.dtype} of the shape {array.shape}"
        )
    runs = runs + np.array([*start, 0], np.uint64) if any(start) else runs
    return runs.reshape(-1)


def _box(selection: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """First voxel and extent of a selection that is a box."""
    along = []
    for axis in parse(selection, shape).axes:
        if not isinstance(axis, tuple) or (axis[1] != 1 and axis[2] > 1):
            raise ValueError("a box is made of slices without a step")
        along.append(axis)
    return [start for start, _, _ in along], [count for _, _, count in along]
