"""The same from Python: W1, R1, R2, R3, S1, every n-th element, tiny chunks, Arrow shards.

Every side is called from Python here, ours too: arrays of a repository and plain Zarr through
`chunkyard.open`, and zarr-python on `session.store`, with its own codec pipeline and with ours. All
take turns in the same workloads. The first word of a key says which of ours the row is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import limits
from harness.worker import Side
from rows.model import Row, Size, Source, Workload
from rows.targets import PYTHON_TARGET, TARGETS

OURS = Side("ours", "chunkyard")
# Shards of 32 KiB inside the chunk of 1 MiB: a point needs one of them.
OWN = Side("ours, sharded", "chunkyard", {"codec": "own"})
# "Returned" data is not durable, not even ours; "durable" data of ours is synced by ours itself.
PLAIN = Side("ours, plain Zarr", "chunkyard-plain", {"durable": "no"})
PLAIN_DURABLE = Side("ours, plain Zarr, durable", "chunkyard-plain")
STORE = Side("ours, store of zarr", "chunkyard-store")
PIPELINE = Side("ours, store and pipeline of zarr", "chunkyard-store", {"pipeline": "ours"})
ICECHUNK = Side("Icechunk + zarr", "icechunk")
ZARR = (
    Side("TensorStore", "tensorstore", {"sync": "no"}),
    Side("zarr + zarrs", "zarr+zarrs"),
    Side("zarr", "zarr"),
)
PEERS = (
    *ZARR,
    ICECHUNK,
    # Warm and cold, it reads fastest from a mapped file.
    Side("blosc2", "blosc2", {"mapped": "yes"}),
    Side("h5py + hdf5plugin", "h5py", {"filters": "plugin"}),
)
# Random chunks of Arrow shards.
WHOLE_TABLES = Side("whole tables", "whole-tables")
RECORDS = 1000
READ = (OURS, PLAIN, STORE, PIPELINE, *PEERS)
WRITE = (*READ, PLAIN_DURABLE)


@dataclass(frozen=True)
class Face:
    """One interface of ours, and its rivals."""

    side: Side
    what: str
    rivals: tuple[Side, ...]
    # The side for durable rows, if that is another.
    durable: Side | None = None

    def name(self, row: Row) -> str:
        """The side whose figures a row shows."""
        if row.ours == OWN.name:
            return OWN.name
        return (self.durable if self.durable and row.measure == "durable" else self.side).name


# By the first word of their rows.
FACES: dict[str, Face] = {
    "python": Face(OURS, "", PEERS),
    "python-plain": Face(PLAIN, "", ZARR, PLAIN_DURABLE),
    "python-store": Face(STORE, "zarr's pipeline", (ICECHUNK,)),
    "python-pipeline": Face(PIPELINE, "our pipeline", (ICECHUNK,)),
}


def planes(size: Size) -> Mapping[str, int]:
    """The data that these workloads need."""
    return {"field": size.field_planes, "labels": size.labels_planes, "tiny": size.tiny_chunks}


def workloads(size: Size, data: Path) -> list[Workload]:
    field = {"data": data, "name": "field", "repeats": max(size.repeats, 3)}
    labels, tiny = {**field, "name": "labels"}, {**field, "name": "tiny", "repeats": 1}
    read: dict[str, Any] = {"prepare": "write"}
    cold: dict[str, Any] = {**read, "cold": True, "rounds_min": 3}

    def workload(
        name: str, worker: str, sides: tuple[Side, ...], options: dict[str, Any], **more: Any
    ) -> Workload:
        place = f"python-{options['name']}"
        return Workload(f"python {name}", worker, place, sides, options, **more)

    return [
        workload("write field", "write", (*WRITE, OWN), field),
        workload("read field", "read", READ, field, **read),
        workload("read field cold", "read-cold", READ, field, **cold),
        workload("read chunk", "read-chunk", READ, field, **read),
        workload("read chunk fresh", "read-chunk-fresh", READ, field, **read),
        workload("read series", "read-series", (*READ, OWN), field, **read),
        workload("read strided", "read-strided", READ, field, **read),
        workload("write labels", "write", WRITE, labels),
        workload("read labels", "read", READ, labels, **read),
        workload("write tiny", "write", WRITE, tiny, rounds_max=1),
        workload("read tiny", "read", READ, tiny, rounds_max=1, **read),
        records(size, data),
    ]


def records(size: Size, data: Path) -> Workload:
    """Chunks at random of shards that ours makes, once, from its Rust side."""
    grid = 4 if size.field_planes < 64 else 64 if size.field_planes > 256 else 32
    blocks: dict[str, Any] = {"data": data, "name": "tens", "blocks": grid**3, "grid": grid}
    blocks["shard"] = grid // 2
    source = Source("python-shards", Side("ours", "ours"), "export-shards", blocks)
    options = {**blocks, "reads": RECORDS, "repeats": max(size.repeats, 3)}
    sides = (OURS, WHOLE_TABLES)
    return Workload("python records", "records", "python-records", sides, options, source=source)


def rows(size: Size) -> list[Row]:
    of_records = Row(
        "python-shards random",
        f"{RECORDS:,} random chunks of Arrow shards, warm, opening included",
        "python records",
        "records",
        target=TARGETS.get("random records"),
        rivals=(WHOLE_TABLES.name,),
    )
    return [*(row for word in FACES for row in rows_of(size, word)), of_records]


def rows_of(size: Size, word: str) -> list[Row]:
    face = FACES[word]
    found = [*writes(size), *reads(size)]
    if face.side is OURS:
        found += own(size)
    rivals = tuple(side.name for side in face.rivals)
    return [
        replace(
            row,
            key=f"{word} {row.key}",
            title=", ".join(part for part in (row.title, face.what) if part),
            workload=f"python {row.workload}",
            ours=face.name(row),
            rivals=rivals,
            # Through zarr-python there is one target: to be ahead.
            target=TARGETS.get(row.key, PYTHON_TARGET) if not face.what else PYTHON_TARGET,
        )
        for row in found
    ]


def writes(size: Size) -> list[Row]:
    gib = f"{size.field_bytes / 2**30:g} GiB float32"
    field: dict[str, Any] = {"workload": "write field", "size": size.field_bytes}
    labels: dict[str, Any] = {"workload": "write labels", "size": size.labels_bytes}
    tiny: dict[str, Any] = {"workload": "write tiny", "size": size.tiny_chunks << 12}
    durably, encode = limits.encode_durably, limits.encode
    return [
        Row("W1 returned", f"write {gib}", measure="returned", limit=encode("field"), **field),
        Row("W1 durable", "the same, durable", measure="durable", limit=durably("field"), **field),
        Row(
            "S1 write",
            f"write {size.labels_planes} × 512 × 512 labels",
            measure="returned",
            limit=encode("labels"),
            **labels,
        ),
        Row(
            "S1 durable", "the same, durable", measure="durable", limit=durably("labels"), **labels
        ),
        Row("tiny write", f"write {size.tiny_chunks:,} tiny chunks", measure="returned", **tiny),
        Row("tiny durable", "the same, durable", measure="durable", **tiny),
    ]


def reads(size: Size) -> list[Row]:
    chunk, planes = 1 << 20, size.field_planes
    field: dict[str, Any] = {"workload": "read field", "size": size.field_bytes}
    labels: dict[str, Any] = {"workload": "read labels", "size": size.labels_bytes}
    tiny: dict[str, Any] = {"workload": "read tiny", "size": size.tiny_chunks << 12}
    one: dict[str, Any] = {"measure": "latency", "size": chunk, "limit": limits.decode_one("field")}
    strided: dict[str, Any] = {"workload": "read strided"}
    fresh, decode, each = limits.decode_fresh, limits.decode, limits.decode_of_each
    return [
        Row("R1 warm", "read the field, warm", measure="fresh", limit=fresh("field"), **field),
        Row("R1 reused", "the same, out=", measure="reused", limit=decode("field"), **field),
        Row(
            "R1 cold",
            "open and read it, cold",
            "read field cold",
            "cold",
            size=size.field_bytes,
            limit=limits.decode_cold("field"),
        ),
        Row("R2 median", "a chunk of 1 MiB, out=, median", "read chunk", statistic="median", **one),
        Row("R2 p99", "the same, 99th percentile", "read chunk", statistic="p99", **one),
        Row(
            "R2 fresh",
            "a chunk into fresh memory, median",
            "read chunk fresh",
            statistic="median",
            **one,
        ),
        Row("R2 fresh p99", "99th percentile of that", "read chunk fresh", statistic="p99", **one),
        Row(
            "R2 two clients",
            "chunks, out=, by two threads, time per read",
            "read chunk",
            "two-clients",
            size=chunk,
            limit=decode("field"),
        ),
        Row(
            "R3 same codec",
            f"one point through {planes} chunks",
            "read series",
            "series",
            apart={"blosc2": "decodes blocks of a chunk"},
            limit=each("field", planes, chunk),
        ),
        Row(
            "strided everywhere",
            "`a[::4, ::4, ::4]`",
            measure="everywhere",
            limit=each("field", -(-planes // 4), chunk),
            **strided,
        ),
        Row(
            "strided in planes",
            "`a[:, ::16, ::16]`",
            measure="in-planes",
            limit=each("field", planes, chunk),
            **strided,
        ),
        Row("S1 read", "read the labels, warm", measure="fresh", limit=fresh("labels"), **labels),
        Row("S1 reused", "the same, out=", measure="reused", limit=decode("labels"), **labels),
        Row("tiny read", f"read {size.tiny_chunks:,} tiny chunks", measure="fresh", **tiny),
    ]


def own(size: Size) -> list[Row]:
    """Rows for our own layout."""
    return [
        Row(
            "R3 codec of our choice",
            "one point, our sharded layout",
            "read series",
            "series",
            ours=OWN.name,
            limit=limits.decode_of_each("field", size.field_planes, 1 << 15),
        )
    ]
