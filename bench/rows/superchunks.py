"""Superchunks: one long column in a BLZ directory, against the programs of the Blosc family.

All sides have chunks of 1 MiB and the same codec after a byte shuffle: lz4 level 5, or zstd level
3, which is Blosc's 2. Blocks, files and checksums are the default of each side.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import limits
from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import (
    APPEND_GROWTH,
    FILES_MAX,
    SUPERCHUNK_CODEC_PART,
    SUPERCHUNK_MEMORY_MAX,
)

OURS = Side("ours", "ours")
SIDES = (
    OURS,
    Side("blosc2", "blosc2"),
    Side("bcolz", "bcolz"),
    Side("Bloscpack", "bloscpack"),
)

CODECS = ("lz4", "zstd")
# A description of the rows, by the name of the data.
DATA = {
    "linspace": "linspace float64",
    "walk": "random-walk int64",
    "labels": "piecewise constant uint64 labels",
}
# Rows of a batch that is appended, and rows of 10 GB.
BATCH, MANY = 1000, 1_250_000_000
# When appended rows are durable, and the option of the worker.
DURABLE = {"at the end": "no", "after each batch": "yes"}


def planes(size: Size) -> Mapping[str, int]:
    """The data that the workloads need."""
    return dict.fromkeys(DATA, size.labels_planes)


def batches(size: Size) -> int:
    """Batches that are appended."""
    return min(1000, size.tiny_chunks // 10)


def of_data(size: Size, data: Path, name: str, codec: str) -> list[Workload]:
    options = {"data": data, "name": name, "codec": codec, "repeats": size.repeats}
    label, place = f"superchunk {name} {codec}", f"superchunk-{name}-{codec}"
    read: dict[str, Any] = {"prepare": "superchunk-write"}
    return [
        Workload(f"{label} write", "superchunk-write", place, SIDES, options),
        Workload(f"{label} read", "superchunk-read", place, SIDES, options, **read),
        Workload(f"{label} random", "superchunk-random", place, SIDES, options, **read),
    ]


def appended(size: Size, data: Path, each: str) -> Workload:
    count = batches(size)
    options: dict[str, Any] = {"data": data, "name": "walk", "codec": "lz4", "each": each}
    options |= {"batches": count, "rows": BATCH, "expected": count * BATCH}
    name = f"superchunk append {each}"
    return Workload(name, "superchunk-append", f"superchunk-append-{each}", SIDES, options)


def workloads(size: Size, data: Path) -> list[Workload]:
    return [
        *(work for name in DATA for codec in CODECS for work in of_data(size, data, name, codec)),
        *(appended(size, data, each) for each in DURABLE.values()),
        Workload(
            "superchunk files",
            "superchunk-files",
            "superchunk-files",
            SIDES,
            {"rows": MANY},
            rounds_max=1,
        ),
    ]


def row(key: str, title: str, workload: str, measure: str, **more: Any) -> Row:
    return Row(f"superchunks {key}", title, f"superchunk {workload}", measure, **more)


def moved_rows(size: Size, name: str, codec: str) -> list[Row]:
    """All rows at once."""
    what = f"{size.labels_bytes / 2**30:g} GiB {DATA[name]}, {codec}"
    work, key, moved = f"{name} {codec}", f"{name} {codec}", {"size": size.labels_bytes}
    encode = limits.blosc_encode(name, codec)
    decode, fresh = limits.blosc_decode(name, codec), limits.blosc_decode_fresh(name, codec)
    return [
        row(
            f"write {key}",
            f"write {what}, returned",
            f"{work} write",
            "returned",
            limit=encode,
            limit_part=SUPERCHUNK_CODEC_PART,
            **moved,
        ),
        row(
            f"write {key} durable",
            "the same, durable",
            f"{work} write",
            "durable",
            limit=encode,
            **moved,
        ),
        row(f"read {key}", "read it all, warm", f"{work} read", "fresh", limit=fresh, **moved),
        row(
            f"read {key}, of the codec",
            "the same, reused memory, against the codec alone on two cores",
            f"{work} read",
            "reused",
            limit=decode,
            limit_part=SUPERCHUNK_CODEC_PART,
            **moved,
        ),
    ]


def random_rows(name: str, codec: str) -> list[Row]:
    """Random rows and chunks."""
    work, key = f"{name} {codec} random", f"{name} {codec}"
    median: dict[str, Any] = {"statistic": "median"}
    return [
        row(f"row {key}", f"random row, {name}, {codec}, warm, median", work, "row", **median),
        row(
            f"chunk {key}",
            f"random chunk of 1 MiB, {name}, {codec}, warm, median",
            work,
            "chunk",
            size=1 << 20,
            **median,
        ),
        row(f"one client {key}", "the same, time per read", work, "one-client", size=1 << 20),
        row(
            f"four clients {key}",
            "the same by four clients at once, time per read",
            work,
            "four-clients",
            size=1 << 20,
        ),
    ]


def append_rows(size: Size, durable: str) -> list[Row]:
    each = DURABLE[durable]
    count, work = batches(size), f"append {each}"
    title = f"append {count * BATCH:,} rows in batches of {BATCH:,}, durable {durable}"
    early = f"append {durable}, early"
    return [
        row(f"append {durable}", title, work, "all"),
        row(early, "the same, a batch of the first tenth", work, "early"),
        row(
            f"append {durable}, late",
            "the same, a batch of the last tenth",
            work,
            "late",
            against=f"superchunks {early}",
            against_max=APPEND_GROWTH,
        ),
    ]


def fact_rows() -> list[Row]:
    return [
        row(
            "memory",
            "memory while random-walk int64 is written, lz4",
            "walk lz4 write",
            "returned",
            fact="memory",
            fact_max=SUPERCHUNK_MEMORY_MAX,
        ),
        row(
            "files",
            "files of 10 GB of equal float64",
            "files",
            "returned",
            fact="files",
            fact_unit="files",
            fact_max=FILES_MAX,
        ),
    ]


def rows(size: Size) -> list[Row]:
    return [
        *(row for name in DATA for codec in CODECS for row in moved_rows(size, name, codec)),
        *(row for name in DATA for codec in CODECS for row in random_rows(name, codec)),
        *(row for durable in DURABLE for row in append_rows(size, durable)),
        *fact_rows(),
    ]
