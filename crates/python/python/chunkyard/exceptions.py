"""Errors, sorted by what the caller can do about them.

Every error of Chunkyard is a `ChunkyardError`. If Python has a class for the same case, the error is of
that class too, so `except KeyError` and `except OSError` work as usual.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AlreadyExistsError",
    "ChunkyardError",
    "Conflict",
    "ConflictError",
    "CorruptError",
    "InvalidError",
    "NotFoundError",
    "OutcomeUnknownError",
    "SessionExpiredError",
    "StoreError",
    "UnsupportedError",
    "VirtualSourceChangedError",
]


class ChunkyardError(Exception):
    """Any failure of Chunkyard."""


class InvalidError(ChunkyardError, ValueError):
    """An argument is not valid."""


class NotFoundError(ChunkyardError, KeyError):
    """A name does not exist: an array, a branch, an object, an expired snapshot."""

    def __str__(self) -> str:
        # KeyError would quote the message.
        return str(self.args[0]) if self.args else ""


@dataclass(frozen=True)
class Conflict:
    """One node that this session and another writer changed in ways that exclude each other."""

    path: str
    """The array or group."""
    kind: str
    """The kind of conflict: `chunk`, `row`, `read-chunk`, `metadata`, `attributes`, `node-removed`, …"""
    chunks: tuple[tuple[int, ...], ...] = ()
    """The chunks concerned, the first hundred of them."""
    chunk_count: int = 0
    """How many chunks or rows are concerned in all."""
    theirs: tuple[str, ...] = field(default=())
    """The snapshots of the other writers, oldest first."""
    keys: tuple[str, ...] = ()
    """The keys of the rows of a table concerned, the first hundred of them; of bodies, their ids."""


class ConflictError(ChunkyardError):
    """Another writer was faster, and the two changes do not go together. Nothing was changed."""

    conflicts: tuple[Conflict, ...] = ()
    """Array by array and chunk by chunk, if arrays are in conflict."""

    def _set_conflicts(self, conflicts: list[dict[str, Any]]) -> None:
        self.conflicts = tuple(
            Conflict(
                path=one["path"],
                kind=one["kind"],
                chunks=tuple(tuple(index) for index in one["chunks"]),
                chunk_count=one["chunk_count"],
                theirs=tuple(one["theirs"]),
                keys=tuple(one.get("keys", ())),
            )
            for one in conflicts
        )


class AlreadyExistsError(ConflictError):
    """The name to create exists already."""


class SessionExpiredError(ConflictError):
    """The base of a session, or a file that it wrote, is gone: write again in a new session."""


class CorruptError(ChunkyardError):
    """Bytes fail a check. The message says which, where, and what was expected and found."""


class VirtualSourceChangedError(CorruptError):
    """A file that a repository refers to has changed since."""


class UnsupportedError(ChunkyardError, NotImplementedError):
    """Legal, but not implemented here."""


class StoreError(ChunkyardError, OSError):
    """Network, permission or disk."""


class OutcomeUnknownError(StoreError):
    """The store did not confirm the change: it may have happened, or may yet happen."""
