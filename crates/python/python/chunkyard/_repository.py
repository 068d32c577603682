"""Repositories: arrays under version control."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from chunkyard import _engine
from chunkyard._options import Options, Url, Version, milliseconds, url_of, version
from chunkyard._reports import Collected, Diff, Expired, Report, Snapshot
from chunkyard._session import ForkSession, Rebase, Session
from chunkyard.exceptions import NotFoundError

if TYPE_CHECKING:
    from chunkyard.zarr import Store

_log = logging.getLogger("chunkyard")


class Repository:
    """Arrays and groups with a history: transactions, branches, tags, time travel.

    Open one with `Repository.open`, `Repository.create` or `Repository.open_or_create`. The place is a
    path or a URL (`s3://bucket/prefix`, `gs://…`, `az://…`, `memory://name`). Options of an object
    store (`endpoint`, `region`, `access_key_id`, …) are keyword arguments, or come from the
    environment variables that every tool of that store reads.

    >>> repo = Repository.create("memory://weather")
    >>> with repo.transaction("main", message="first") as store:
    ...     array = store.session.create_array("t", shape=(4, 6), dtype="f4", chunks=(2, 3))
    ...     array[...] = 1.5
    >>> [snapshot.message for snapshot in repo.ancestry()]
    ['first', 'create the repository']
    """

    _native: _engine.Repository

    def __init__(self) -> None:
        raise TypeError("use Repository.open, Repository.create or Repository.open_or_create")

    @classmethod
    def _wrap(cls, native: _engine.Repository, url: str, options: Options) -> Repository:
        repo = object.__new__(cls)
        repo._native, repo._url, repo._options = native, url, options
        return repo

    _url: str
    _options: Options

    @classmethod
    def create(
        cls,
        url: Url,
        *,
        default_branch: str = "main",
        metadata: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        force: bool = False,
        allow: Iterable[str] = (),
        check_chunks: bool = True,
        cache_bytes: int = 128 << 20,
        durable: bool = True,
        **storage: object,
    ) -> Repository:
        """Creates a repository with an empty root group. Refuses if there is one already.

        `config` holds persisted settings such as `{"inline-chunk-max": 512}`; `durable=False` is for
        scratch data that may be lost in a power failure.
        """
        options = Options(
            storage,
            allow=allow,
            check_chunks=check_chunks,
            cache_bytes=cache_bytes,
            durable=durable,
        )
        native = _engine.Repository.create(
            url_of(url),
            options.native(),
            default_branch,
            dict(metadata or {}),
            dict(config or {}),
            force,
        )
        return cls._wrap(native, url_of(url), options)

    @classmethod
    def open(
        cls,
        url: Url,
        *,
        allow: Iterable[str] = (),
        check_chunks: bool = True,
        cache_bytes: int = 128 << 20,
        durable: bool = True,
        **storage: object,
    ) -> Repository:
        """Opens a repository.

        `allow` lists the URL prefixes that virtual references may lead to: no other place is ever
        read just because a dataset says so. `check_chunks` compares the checksum of every chunk that
        is read.
        """
        options = Options(
            storage,
            allow=allow,
            check_chunks=check_chunks,
            cache_bytes=cache_bytes,
            durable=durable,
        )
        return cls._open(url_of(url), options)

    @classmethod
    def _open(cls, url: str, options: Options) -> Repository:
        return cls._wrap(_engine.Repository.open(url, options.native()), url, options)

    @classmethod
    def open_or_create(cls, url: Url, **options: Any) -> Repository:
        """Opens a repository, or creates a missing one. Takes the arguments of both."""
        shared = {
            key: value
            for key, value in options.items()
            if key not in ("default_branch", "metadata", "config", "force")
        }
        try:
            return cls.open(url, **shared)
        except NotFoundError:
            return cls.create(url, **options)

    @classmethod
    def exists(cls, url: Url, **options: Any) -> bool:
        """Whether there is a repository at a place."""
        try:
            cls.open(url, **options)
        except NotFoundError:
            return False
        return True

    @property
    def url(self) -> str:
        """Its place, as it was given."""
        return self._url

    def __repr__(self) -> str:
        return f"<chunkyard.Repository {self._url!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Repository):
            return NotImplemented
        return self._url == other._url and self._options == other._options

    def __hash__(self) -> int:
        return hash(self._url)

    def __reduce__(self) -> Any:
        return (_reopened, (self._url, self._options))

    # Sessions

    def readonly_session(
        self,
        branch: str | None = None,
        *,
        tag: str | None = None,
        snapshot: str | None = None,
        as_of: datetime | str | float | None = None,
    ) -> Session:
        """A session that reads one version: the tip of a branch, a tag, a snapshot, or a branch as of
        a time. It sees that version as long as it lives."""
        meant = self._version(branch, tag, snapshot, as_of)
        return Session._wrap(self._native.readonly_session(meant), self)

    def writable_session(self, branch: str | None = None) -> Session:
        """A session on a branch, to change things and commit. Readers see changes after the commit."""
        name = self.default_branch if branch is None else branch
        return Session._wrap(self._native.writable_session(name), self)

    @contextmanager
    def transaction(
        self,
        branch: str | None = None,
        *,
        message: str,
        metadata: Mapping[str, Any] | None = None,
        rebase: Rebase | bool | None = None,
    ) -> Iterator[Store]:
        """A store that is committed at the end of the block, or not at all if the block raises."""
        session = self.writable_session(branch)
        yield session.store
        session.commit(message, metadata=metadata, rebase=rebase)

    def _open_fork(self, fork: bytes) -> _engine.Session:
        return self._native.open_fork(fork)

    # History

    @property
    def default_branch(self) -> str:
        """The branch for calls that name none."""
        return str(self._native.state()["default-branch"])

    @property
    def metadata(self) -> dict[str, Any]:
        """Properties that its creator attached."""
        return dict(self._native.state()["properties"])

    def ancestry(
        self,
        branch: str | None = None,
        *,
        tag: str | None = None,
        snapshot: str | None = None,
        as_of: datetime | str | float | None = None,
    ) -> Iterator[Snapshot]:
        """The snapshots from a version back to the first one."""
        meant = self._version(branch, tag, snapshot, as_of)
        return map(Snapshot._of, self._native.ancestry(meant))

    def diff(self, before: str, after: str) -> Diff:
        """The difference between two versions, each a branch, a tag or a snapshot."""
        return Diff._of(self._native.diff(("named", before), ("named", after)))

    # Branches and tags

    def list_branches(self) -> dict[str, str]:
        """The branches, each with the snapshot at its tip."""
        return dict(self._native.references("branch"))

    def create_branch(self, name: str, at: str | None = None) -> str:
        """Creates a branch at a branch, tag or snapshot; gives the snapshot."""
        return self._native.create_branch(name, _named(at))

    def delete_branch(self, name: str) -> None:
        """Deletes a branch; its snapshots stay until they expire."""
        self._native.delete_branch(name)

    def reset_branch(self, name: str, to: str, *, expected: str | None = None) -> None:
        """Points a branch at another version; with `expected`, only if it is there now."""
        self._native.reset_branch(name, _named(to), expected)

    def lookup_branch(self, name: str) -> str:
        """The snapshot at the tip of a branch."""
        return self._native.resolve(("branch", name))

    def list_tags(self) -> dict[str, str]:
        """The tags, each with its snapshot."""
        return dict(self._native.references("tag"))

    def create_tag(self, name: str, at: str | None = None, *, reuse: bool = False) -> str:
        """Creates a tag, which never moves; `reuse` the name of a deleted one."""
        return self._native.create_tag(name, _named(at), reuse)

    def delete_tag(self, name: str) -> None:
        """Deletes a tag."""
        self._native.delete_tag(name)

    def lookup_tag(self, name: str) -> str:
        """The snapshot that a tag names."""
        return self._native.resolve(("tag", name))

    # Upkeep

    def expire_snapshots(
        self,
        older_than: datetime | str | float | None = None,
        *,
        keep_last: int | None = None,
        drop_references: bool = False,
    ) -> Expired:
        """Forgets old snapshots; `garbage_collect` deletes their data.

        `drop_references` also drops branches (not the default one) and tags that are as old.
        """
        limit = None if older_than is None else milliseconds(older_than)
        expired = self._native.expire(limit, keep_last, drop_references)
        return Expired(tuple(expired["snapshots"]), tuple(expired["references"]))

    def garbage_collect(
        self, *, min_age: timedelta = timedelta(days=1), dry_run: bool = False
    ) -> Collected:
        """Deletes files that no snapshot needs. Files younger than `min_age` stay: open sessions may
        need them."""
        age_ms = round(min_age.total_seconds() * 1000)
        report = self._native.garbage_collect(age_ms, dry_run)
        _log.info("%s: collected %d files, %d bytes", self._url, report["files"], report["bytes"])
        return Collected(report["files"], report["bytes"], report["kept"], report["dry-run"])

    def optimise(self, branch: str | None = None) -> str | None:
        """Merges the manifests of a branch in a commit; gives its id, or `None` if there is no need."""
        name = self.default_branch if branch is None else branch
        snapshot: str | None = self._native.optimise(name)["snapshot"]
        return snapshot

    def repack(self, branch: str | None = None, *, live_share_min: float = 0.5) -> str | None:
        """Rewrites packs with little data in use, in a commit."""
        name = self.default_branch if branch is None else branch
        snapshot: str | None = self._native.repack(name, live_share_min)["snapshot"]
        return snapshot

    def verify(self, level: str = "bytes") -> Report:
        """Checks everything: `state`, `metadata`, `existence` of all files, or all `bytes`."""
        return Report._of(self._native.verify(level))

    def _version(
        self,
        branch: str | None,
        tag: str | None,
        snapshot: str | None,
        as_of: datetime | str | float | None,
    ) -> Version:
        if as_of is not None and branch is None:
            branch = self.default_branch
        return version(branch, tag, snapshot, as_of) or ("default",)


def version_at(
    place: str,
    options: Options,
    branch: str | None,
    tag: str | None,
    snapshot: str | None,
    as_of: datetime | str | float | None,
) -> Version | None:
    """The version of a dataset of any format; a time alone means the default branch at that time."""
    if as_of is not None and branch is None:
        branch = Repository._open(place, options).default_branch
    return version(branch, tag, snapshot, as_of)


def _named(name: str | None) -> Version:
    return ("default",) if name is None else ("named", name)


@functools.lru_cache(maxsize=8)
def _reopened(url: str, options: Options) -> Repository:
    """Opened once per process for all unpickled objects: they share caches, whose content never
    changes."""
    return Repository._open(url, options)


__all__ = ["ForkSession", "Rebase", "Repository", "Session"]
