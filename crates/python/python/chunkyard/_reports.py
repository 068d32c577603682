"""Reports of the engine, as plain objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any


@dataclass(frozen=True)
class Snapshot:
    """One committed version."""

    id: str
    parent_id: str | None
    written_at: datetime
    message: str
    metadata: dict[str, Any]
    """Properties that the committer attached."""
    chunks_written: int
    chunks_removed: int
    bytes_written: int

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Snapshot:
        summary = document["summary"]
        return cls(
            id=document["snapshot-id"],
            parent_id=document["parent-snapshot-id"],
            written_at=datetime.fromtimestamp(document["timestamp-ms"] / 1000, timezone.utc),
            message=document["message"],
            metadata=document["properties"],
            chunks_written=summary["refs-added"],
            chunks_removed=summary["refs-removed"],
            bytes_written=summary["bytes-written"],
        )


@dataclass(frozen=True)
class ChunkChanges:
    """Chunks of one array that differ, by their index in the chunk grid."""

    added: tuple[tuple[int, ...], ...]
    replaced: tuple[tuple[int, ...], ...]
    removed: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Diff:
    """The difference between two versions. An empty one is false."""

    added: tuple[str, ...]
    """Paths of arrays and groups only in the second version."""
    removed: tuple[str, ...]
    """Paths of arrays and groups only in the first version."""
    moved: dict[str, str]
    """The old and the new path of each moved node."""
    metadata: tuple[str, ...]
    """Arrays whose shape, type or codecs differ."""
    attributes: tuple[str, ...]
    """Nodes whose attributes differ."""
    chunks: dict[str, ChunkChanges]
    """Arrays whose chunks differ."""

    def __bool__(self) -> bool:
        parts = (self.added, self.removed, self.moved, self.metadata, self.attributes, self.chunks)
        return any(parts)

    def __str__(self) -> str:
        lines = [f"+ {path}" for path in self.added]
        lines += [f"- {path}" for path in self.removed]
        lines += [f"> {before} moved to {after}" for before, after in self.moved.items()]
        lines += [f"~ {path}: metadata" for path in self.metadata]
        lines += [f"~ {path}: attributes" for path in self.attributes]
        for path, changes in self.chunks.items():
            counts = [
                f"{len(chunks)} {verb}"
                for verb, chunks in vars(changes).items()
                if chunks
            ]
            lines.append(f"~ {path}: chunks {', '.join(counts)}")
        return "\n".join(lines) or "no difference"

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Diff:
        def paths(key: str) -> tuple[str, ...]:
            return tuple(node["path"] for node in document[key])

        def indices(changes: dict[str, Any], key: str) -> tuple[tuple[int, ...], ...]:
            return tuple(tuple(index) for index in changes[key])

        return cls(
            added=paths("added"),
            removed=paths("removed"),
            moved={node["from"]: node["path"] for node in document["moved"]},
            metadata=paths("metadata"),
            attributes=paths("attributes"),
            chunks={
                changes["path"]: ChunkChanges(
                    indices(changes, "added"),
                    indices(changes, "replaced"),
                    indices(changes, "removed"),
                )
                for changes in document["chunks"]
            },
        )


@dataclass(frozen=True)
class Finding:
    """One finding of a verification."""

    severity: str
    """`error`: data is lost or unreadable; `note`: worth knowing."""
    file: str
    what: str
    array: str | None = None
    chunk: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Report:
    """The findings of a verification. It is true unless data is damaged; see `verdict`."""

    level: str
    findings: tuple[Finding, ...]
    checked: dict[str, int]
    """How much was checked, in numbers."""
    orphan_files: int
    """Files that nothing needs."""
    orphan_bytes: int
    errors: int = field(default=0)
    verdict: str = field(default="sound")
    """`sound`; `readable`: no damage was found, but some data has no checksum and cannot be checked;
    `damaged`."""

    def __bool__(self) -> bool:
        return self.errors == 0

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Report:
        findings = tuple(
            Finding(
                severity=one["severity"],
                file=one["file"],
                what=one["what"],
                array=one.get("array"),
                chunk=tuple(one["chunk"]) if one.get("chunk") is not None else None,
            )
            for one in document["findings"]
        )
        listed = sum(finding.severity == "error" for finding in findings)
        errors = document.get("errors", listed)
        return cls(
            level=document["level"],
            findings=findings,
            checked=document["checked"],
            orphan_files=document["orphan-files"],
            orphan_bytes=document["orphan-bytes"],
            errors=errors,
            verdict=document.get("verdict", "damaged" if errors else "sound"),
        )


@dataclass(frozen=True)
class Collected:
    """What a garbage collection deleted, or would delete."""

    files: int
    bytes: int
    kept: int
    dry_run: bool


@dataclass(frozen=True)
class Expired:
    """What an expiry dropped."""

    snapshots: tuple[str, ...]
    references: tuple[str, ...]
