"""Sessions: one version of a repository, and changes on top of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from chunkyard import _engine
from chunkyard._extras import extra
from chunkyard._group import Group
from chunkyard._reports import Diff

if TYPE_CHECKING:
    from chunkyard._array import Array
    from chunkyard._repository import Repository
    from chunkyard.zarr import Store

_log = logging.getLogger("chunkyard")

Side = Literal["fail", "ours", "theirs"]


@dataclass(frozen=True)
class Rebase:
    """What a rebase does about each kind of conflict: `fail`, keep `ours`, or take `theirs`."""

    chunks: Side = "fail"
    """Both wrote the same chunk."""
    metadata: Side = "fail"
    """Both changed the shape or type of an array."""
    attributes: Side = "fail"
    """Both changed the attributes of a node."""
    merge_attribute_keys: bool = False
    """Merge attributes key by key if both changed different keys."""


class Session:
    """One version of a repository; writable, it collects changes until they are committed.

    `session.store` is for zarr, xarray and dask. `session["path"]` and `session.root` give the same
    arrays and groups directly.
    """

    _handle: _engine.Session
    _repo: Repository

    def __init__(self) -> None:
        raise TypeError("use Repository.readonly_session or Repository.writable_session")

    @classmethod
    def _wrap(cls, native: _engine.Session, repo: Repository) -> Session:
        session = object.__new__(cls)
        session._handle, session._repo = native, repo
        return session

    @property
    def _native(self) -> _engine.Session:
        return self._handle

    @property
    def repository(self) -> Repository:
        """The repository it belongs to."""
        return self._repo

    @property
    def read_only(self) -> bool:
        """Whether it refuses changes."""
        return self._native.branch is None

    @property
    def branch(self) -> str | None:
        """The branch it commits to; `None` if it is read-only."""
        return self._native.branch

    @property
    def snapshot_id(self) -> str:
        """The snapshot it is based on."""
        return self._native.snapshot_id

    @property
    def store(self) -> Store:
        """The session as a store of zarr-python."""
        with extra("zarr", "session.store"):
            from chunkyard.zarr import Store

        return Store(self)

    @property
    def root(self) -> Group:
        """The root group."""
        return Group(self._native, "/", session=self)

    def __getitem__(self, path: str) -> Array | Group:
        return self.root[path]

    def create_array(self, path: str, **spec: Any) -> Array:
        """Creates an array; see `Group.create_array`."""
        return self.root.create_array(path, **spec)

    def create_group(self, path: str, attributes: Mapping[str, Any] | None = None) -> Group:
        """Creates a group, and the groups above it."""
        return self.root.create_group(path, attributes)

    def move(self, source: str, target: str) -> None:
        """Moves an array or group; no chunk is copied."""
        self._native.move_node(source, target)

    def status(self) -> Diff:
        """The changes of this session so far."""
        return Diff._of(self._native.status())

    def track_reads(self) -> None:
        """From now on a rebase also fails if another commit changed a chunk that this session read."""
        self._native.track_reads()

    def commit(
        self,
        message: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        rebase: Rebase | bool | None = None,
        amend: bool = False,
        allow_empty: bool = False,
    ) -> str:
        """Makes all changes visible in one step; gives the id of the new snapshot.

        If the branch moved meanwhile, it raises a `ConflictError`, or with `rebase` puts the changes on
        top, if they do not collide or the policy decides. `amend` replaces the tip.
        """
        snapshot = self._native.commit(
            message, dict(metadata or {}), _policy(rebase), amend, allow_empty
        )
        _log.info("%s: committed %s to %s", self._repo.url, snapshot, self.branch)
        return snapshot

    def rebase(self, solver: Rebase | None = None) -> str:
        """Puts the changes on top of the branch as it is now, without committing."""
        return self._native.rebase(asdict(solver or Rebase()))

    def fork(self) -> ForkSession:
        """Gives a fork for another process: it can be pickled, written through anywhere, and passed
        back to `merge`. A fork writes chunks only: create arrays and groups before."""
        return ForkSession._make(self._repo, self._native.fork(), None)

    def merge(self, *forks: ForkSession) -> None:
        """Takes over the chunks that forks wrote. The same fork may come twice; two forks that wrote
        the same chunk differently raise a `ConflictError`."""
        for fork in forks:
            changes = fork.changes()
            if changes is not None:
                self._native.merge(changes)

    def __repr__(self) -> str:
        if self.read_only:
            return f"<chunkyard.Session of {self._repo.url!r} at {self.snapshot_id}, read-only>"
        return f"<chunkyard.Session of {self._repo.url!r} on branch {self.branch!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Session):
            return NotImplemented
        if self.read_only and other.read_only:
            return self._repo == other._repo and self.snapshot_id == other.snapshot_id
        return self._handle is other._handle

    def __hash__(self) -> int:
        return hash(self._repo)

    def __reduce__(self) -> Any:
        if not self.read_only:
            raise TypeError(
                "a writable session cannot be sent to another process, where its changes would be "
                "lost; send session.fork() and merge what comes back"
            )
        return (_reopened, (self._repo, self.snapshot_id))


class ForkSession(Session):
    """A part of a session in another process; see `Session.fork`."""

    _fork: bytes
    _changes: bytes | None
    _opened: _engine.Session | None

    @classmethod
    def _make(cls, repo: Repository, fork: bytes, changes: bytes | None) -> ForkSession:
        session = object.__new__(cls)
        session._repo, session._fork, session._changes = repo, fork, changes
        session._opened = None
        return session

    @property
    def _native(self) -> _engine.Session:
        # Opened on first use: a fork that is only carried to its merge costs nothing.
        if self._opened is None:
            opened = self._repo._open_fork(self._fork)
            if self._changes is not None:
                opened.merge(self._changes)
            self._opened = opened
        return self._opened

    def changes(self) -> bytes | None:
        """Its changes so far, durable; `None` if there are none."""
        return self._changes if self._opened is None else self._opened.changes()

    def merge(self, *forks: ForkSession) -> None:
        """Takes over the chunks of other forks of the same session, to pass them on as one fork."""
        super().merge(*forks)

    def commit(self, *_: object, **__: object) -> str:
        """Refused: only the forked session commits, once for all forks."""
        raise TypeError("a fork does not commit; merge it into the session it came from")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> Any:
        return (ForkSession._make, (self._repo, self._fork, self.changes()))


def _policy(rebase: Rebase | bool | None) -> dict[str, Any] | None:
    if rebase is None or rebase is False:
        return None
    return asdict(Rebase() if rebase is True else rebase)


def _reopened(repo: Repository, snapshot: str) -> Session:
    return repo.readonly_session(snapshot=snapshot)
