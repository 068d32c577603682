"""W1, R1, R2, R3, S1: a float32 field and a uint64 segmentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import limits
from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import TARGETS

OURS = Side("ours", "ours")
# Shards of 32 KiB inside the chunk of 1 MiB: a point needs one of them.
OWN = Side("ours, sharded", "ours", {"codec": "own"})
PEERS = (
    Side("zarrs", "zarrs"),
    Side("TensorStore", "tensorstore"),
    Side("zarr + zarrs", "zarr+zarrs"),
    Side("zarr", "zarr"),
    Side("Icechunk", "icechunk"),
    Side("blosc2", "blosc2"),
    Side("TileDB", "tiledb"),
    Side("h5py (gzip)", "h5py"),
)


def planes(size: Size) -> Mapping[str, int]:
    """The data that workloads on arrays need."""
    return {"field": size.field_planes, "labels": size.labels_planes}


def workloads(size: Size, data: Path) -> list[Workload]:
    sides = (OURS, *PEERS)
    field = {"data": data, "name": "field", "repeats": size.repeats}
    labels = {**field, "name": "labels"}
    cold: dict[str, Any] = {"prepare": "write", "cold": True, "rounds_min": 3}
    return [
        Workload("write field", "write", "field", (*sides, OWN), field),
        Workload("read field", "read", "field", sides, field, prepare="write"),
        Workload("read field cold", "read-cold", "field", sides, field, **cold),
        Workload("read chunk", "read-chunk", "field", sides, field, prepare="write"),
        Workload("read series", "read-series", "field", (*sides, OWN), field, prepare="write"),
        Workload("write labels", "write", "labels", sides, labels),
        Workload("read labels", "read", "labels", sides, labels, prepare="write"),
    ]


def rows(size: Size) -> list[Row]:
    field, labels = size.field_bytes, size.labels_bytes
    gib, codec = f"{field / 2**30:g} GiB float32", "zstd-3 and shuffle, chunks of 1 MiB"
    seg = f"{size.labels_planes} × 512 × 512 uint64, zstd-3"
    encode, durably = limits.encode("field"), limits.encode_durably("field")
    decode_1 = limits.decode_one("field")

    def row(key: str, title: str, workload: str, measure: str, **more: Any) -> Row:
        return Row(key, title, workload, measure, target=TARGETS.get(key), **more)

    return [
        row(
            "W1 returned",
            f"write {gib}, {codec}, returned",
            "write field",
            "returned",
            size=field,
            limit=encode,
        ),
        row("W1 durable", "the same, durable", "write field", "durable", size=field, limit=durably),
        row(
            "W1 sharded",
            "the same, in our sharded layout, durable",
            "write field",
            "durable",
            ours=OWN.name,
            size=field,
            limit=durably,
        ),
        row(
            "R1 warm",
            "read it all, warm, fresh memory",
            "read field",
            "fresh",
            size=field,
            limit=limits.decode_fresh("field"),
        ),
        row(
            "R1 reused",
            "the same, into reused memory",
            "read field",
            "reused",
            size=field,
            limit=limits.decode("field"),
        ),
        row(
            "R1 cold",
            "open and read it all, cold",
            "read field cold",
            "cold",
            size=field,
            limit=limits.decode_cold("field"),
        ),
        row(
            "R2 median",
            "random chunk of 1 MiB into a reused buffer, median",
            "read chunk",
            "latency",
            statistic="median",
            size=1 << 20,
            limit=decode_1,
        ),
        row(
            "R2 p99",
            "the same, 99th percentile",
            "read chunk",
            "latency",
            statistic="p99",
            size=1 << 20,
            limit=decode_1,
        ),
        row(
            "R2 two clients",
            "the same by two clients, time per read",
            "read chunk",
            "two-clients",
            size=1 << 20,
            limit=limits.decode("field"),
        ),
        row(
            "R3 same codec",
            f"one point through {size.field_planes} chunks, same codec",
            "read series",
            "series",
            apart={"blosc2": "decodes blocks of a chunk"},
            limit=limits.decode_of_each("field", size.field_planes, 1 << 20),
        ),
        row(
            "R3 codec of our choice",
            "the same, our sharded layout",
            "read series",
            "series",
            ours=OWN.name,
            limit=limits.decode_of_each("field", size.field_planes, 1 << 15),
        ),
        row(
            "S1 write",
            f"write a segmentation, {seg}, returned",
            "write labels",
            "returned",
            size=labels,
            limit=limits.encode("labels"),
        ),
        row(
            "S1 write durable",
            "the same, durable",
            "write labels",
            "durable",
            size=labels,
            limit=limits.encode_durably("labels"),
        ),
        row(
            "S1 read",
            "read it all, warm, fresh memory",
            "read labels",
            "fresh",
            size=labels,
            limit=limits.decode_fresh("labels"),
        ),
        row(
            "S1 reused",
            "the same, into reused memory",
            "read labels",
            "reused",
            size=labels,
            limit=limits.decode("labels"),
        ),
    ]
