"""Exports of segmentations as jobs, which processes of any kind carry out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from chunkyard import _engine
from chunkyard._options import Options, Url, Version, url_of


@dataclass(frozen=True)
class Exported:
    """The result of an export. `export.log.json` at the target has a full report."""

    target: str
    shards: int
    """Shards with files."""
    empty_shards: int
    """Shards of nothing but label 0, which have no files."""
    blocks: int
    nbytes: int
    """Bytes of the files that were asked for."""


class Wanted(TypedDict, total=False):
    """What is exported, and how; what is not given is as `chunkyard export-shards` has it."""

    spec: str | None
    """The `info` of a sharded Neuroglancer volume, as JSON; chosen if not given."""
    array: str | None
    """The segmentation, if the source holds several."""
    scales: int | None
    ids: Literal["bodies", "supervoxels"]
    emit: Sequence[Literal["arrow", "precomputed", "table"]]
    factor: Sequence[int]
    """Every N-th voxel along x, y and z."""
    codec: str
    """Compression of blocks: `zstd:1` to `zstd:19`, or `keep`."""
    index: Sequence[Literal["json", "csv"]]
    stream: bool
    """The streaming form of Arrow instead of the file form."""
    batch: int
    strip_labels: bool
    """Leave the label list out of blocks."""


def make_job(
    source: Url,
    target: Url,
    job: Url,
    options: Options,
    version: Version | None,
    wanted: Mapping[str, Any],
    task_bytes: int | None,
    lease_seconds: float,
) -> int:
    """Writes the plan of an export as a job, or finds the same one there; gives how many tasks it has."""
    unknown = sorted(wanted.keys() - Wanted.__annotations__.keys())
    if unknown:
        raise TypeError(f"an export has no option {unknown[0]!r}")
    document = {
        "spec": wanted.get("spec"),
        "array": wanted.get("array"),
        "scales": wanted.get("scales"),
        "ids": wanted.get("ids", "bodies"),
        "emit": _listed(wanted.get("emit", ["arrow"])),
        "factor": [int(step) for step in wanted.get("factor", (1, 1, 1))],
        "arrow": {
            "codec": wanted.get("codec", "zstd:3"),
            "container": "stream" if wanted.get("stream", False) else "file",
            "index": sorted(set(_listed(wanted.get("index", ["json"]))), reverse=True),
            "batch": wanted.get("batch", 1),
            "strip_labels": wanted.get("strip_labels", False),
        },
    }
    places = url_of(source), url_of(target), url_of(job)
    return _engine.make_export_job(
        *places, options.native(), version, document, task_bytes, lease_seconds
    )


def work(job: str, options: Options) -> dict[str, Any]:
    """Works on a job until it is finished; gives its outcome."""
    outcome: dict[str, Any] = _engine.work_on(job, options.native())["outcome"]
    return outcome


def _listed(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
