"""W1, R1, R2, R3, S1 on plain Zarr: one file per chunk, and shards of 64 chunks.

Only programs that write the very same format take part. In rows that say "returned" no side's data
is durable, not even ours; our default is "durable".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import limits
from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import TARGETS

OURS = Side("ours", "ours", {"layout": "zarr3"})
SIDES = (
    OURS,
    Side("zarrs", "zarrs"),
    Side("TensorStore", "tensorstore"),
    Side("zarr + zarrs", "zarr+zarrs"),
    Side("zarr", "zarr"),
)
# The word that rows and workloads of a layout begin with, and the options of the worker.
LAYOUTS = {"plain": "no", "shards": "yes"}


def workloads(size: Size, data: Path) -> list[Workload]:
    return [
        workload
        for layout, sharded in LAYOUTS.items()
        for workload in of_layout(size, data, layout, sharded)
    ]


def of_layout(size: Size, data: Path, layout: str, sharded: str) -> list[Workload]:
    field = {"data": data, "name": "field", "repeats": size.repeats, "sharded": sharded}
    labels = {**field, "name": "labels"}
    many: dict[str, Any] = {"rounds_max": size.plain_rounds}
    read: dict[str, Any] = {"prepare": "write", **many}

    def workload(name: str, worker: str, options: dict[str, Any], more: dict[str, Any]) -> Workload:
        place = f"{layout}-{options['name']}"
        return Workload(f"{layout} {name}", worker, place, SIDES, options, **more)

    return [
        workload("write field", "write", field, many),
        workload("read field", "read", field, read),
        workload("read field cold", "read-cold", field, {**read, "cold": True}),
        workload("read chunk", "read-chunk", field, read),
        workload("read series", "read-series", field, read),
        workload("write labels", "write", labels, many),
        workload("read labels", "read", labels, read),
    ]


def rows(size: Size) -> list[Row]:
    return [row for layout in LAYOUTS for row in rows_of(size, layout)]


def rows_of(size: Size, layout: str) -> list[Row]:
    field, labels, chunk = size.field_bytes, size.labels_bytes, 1 << 20
    gib = f"{field / 2**30:g} GiB float32, zstd-3 and shuffle"
    where = "chunks of 1 MiB" if layout == "plain" else "shards of 64 chunks of 1 MiB"
    each = limits.decode_of_each("field", size.field_planes, chunk)

    def row(key: str, title: str, workload: str, measure: str, **more: Any) -> Row:
        workload, target = f"{layout} {workload}", TARGETS.get(key)
        return Row(f"{layout} {key}", title, workload, measure, target=target, **more)

    def write(key: str, title: str, data: str, measure: str, **more: Any) -> Row:
        return row(key, title, f"write {data}", measure, **more)

    def read(key: str, title: str, workload: str, measure: str, **more: Any) -> Row:
        return row(key, title, f"read {workload}", measure, **more)

    encode, durably = limits.encode, limits.encode_durably
    one: dict[str, Any] = {"size": chunk, "limit": limits.decode_one("field")}
    f: dict[str, Any] = {"size": field}
    s: dict[str, Any] = {"size": labels}
    cold, fresh, decode = limits.decode_cold, limits.decode_fresh, limits.decode
    return [
        write(
            "W1 returned",
            f"write {gib}, {where}, returned",
            "field",
            "returned",
            limit=encode("field"),
            **f,
        ),
        write("W1 durable", "the same, durable", "field", "durable", limit=durably("field"), **f),
        read("R1 warm", "read it all, warm", "field", "fresh", limit=fresh("field"), **f),
        read("R1 reused", "the same, reused memory", "field", "reused", limit=decode("field"), **f),
        read("R1 cold", "open, read it all, cold", "field cold", "cold", limit=cold("field"), **f),
        read("R2 median", "random chunk, median", "chunk", "latency", statistic="median", **one),
        read("R2 p99", "the same, 99th percentile", "chunk", "latency", statistic="p99", **one),
        read(
            "R2 two clients",
            "the same by two clients, time per read",
            "chunk",
            "two-clients",
            size=chunk,
            limit=decode("field"),
        ),
        read(
            "R3 same codec",
            f"one point through {size.field_planes} chunks",
            "series",
            "series",
            limit=each,
        ),
        write(
            "S1 write",
            f"write {size.labels_planes} × 512 × 512 uint64, zstd-3, returned",
            "labels",
            "returned",
            limit=encode("labels"),
            **s,
        ),
        write(
            "S1 write durable",
            "the same, durable",
            "labels",
            "durable",
            limit=durably("labels"),
            **s,
        ),
        read("S1 read", "read it all, warm", "labels", "fresh", limit=fresh("labels"), **s),
        read(
            "S1 reused", "the same, reused memory", "labels", "reused", limit=decode("labels"), **s
        ),
    ]
