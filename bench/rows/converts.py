"""Conversions: copy, transcode, regrid, and the memory that a large one takes.

All sides convert the same source, which is made once. Times are from opening it to a
complete target, and to a durable one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import limits
from harness.worker import Side
from rows.model import Row, Size, Source, Workload
from rows.targets import LIMIT_PARTS, MEMORY_MAX, TARGETS

OURS = Side("ours", "ours")
PLAIN = Side("ours", "ours", {"layout": "zarr3"})
CP = Side("cp -r", "cp")
TENSORSTORE = Side("TensorStore", "tensorstore")
TENSORSTORE_AT_ONCE = Side("TensorStore, transaction", "tensorstore", {"way": "transaction"})
ZARRS = Side("zarr + zarrs", "zarr+zarrs")
ZARR = Side("zarr", "zarr")
OTHERS = (OURS, TENSORSTORE, TENSORSTORE_AT_ONCE, ZARRS, ZARR)

VOLUMES = {
    "copy": "into a repository, copied",
    "transcode": "zstd to lz4",
    "regrid-sharded": "64³ chunks in shards",
}


def workloads(size: Size, data: Path) -> list[Workload]:
    field = {"data": data, "name": "field", "repeats": size.repeats}
    labels = {**field, "name": "labels"}

    def convert(movement: str, sides: tuple[Side, ...], options: dict[str, Any]) -> Workload:
        name = options["name"]
        source = Source(f"source-{name}", PLAIN, "write", {**options, "repeats": 0})
        options = {**options, "movement": movement}
        return Workload(
            f"convert {movement}", "convert", f"convert-{movement}", sides, options, source=source
        )

    volume = {**field, "times": size.volume_fields}
    made = Source("source-volume", OURS, "volume", volume)
    return [
        convert("copy", (OURS, CP), field),
        convert("transcode", OTHERS, field),
        convert("regrid", OTHERS, labels),
        *(
            Workload(
                f"memory {movement}",
                "convert-volume",
                f"memory-{movement}",
                (OURS,),
                {**volume, "movement": movement},
                rounds_max=1,
                source=made,
            )
            for movement in VOLUMES
        ),
    ]


def rows(size: Size) -> list[Row]:
    field, labels = size.field_bytes, size.labels_bytes
    gib = f"{field / 2**30:g} GiB float32"
    volume = size.field_bytes * size.volume_fields

    def pair(movement: str, title: str, **more: Any) -> list[Row]:
        found = []
        for measure, what in (("returned", f"{title}, returned"), ("durable", "the same, durable")):
            key = f"convert {movement} {measure}"
            targets = {"target": TARGETS.get(key), "limit_part": LIMIT_PARTS.get(key)}
            options: dict[str, Any] = {**targets, **more}
            found.append(Row(key, what, f"convert {movement}", measure, **options))
        return found

    regridded = f"{size.labels_planes} × 512 × 512 uint64, zstd-3, 64³ to 128 × 128 × 32"
    recoded: dict[str, Any] = {"size": field, "limit": limits.transcode}
    return [
        *pair("copy", f"{gib}, plain Zarr into a repository, against cp -r", size=field),
        *pair("transcode", f"{gib}, plain Zarr, zstd-3 to lz4-5, both with shuffle", **recoded),
        *pair("regrid", regridded, size=labels),
        *(
            Row(
                f"memory {movement}",
                f"{volume / 2**30:g} GiB float32, plain Zarr, {title}",
                f"memory {movement}",
                "durable",
                size=volume,
                fact="memory-peak",
                fact_max=MEMORY_MAX,
            )
            for movement, title in VOLUMES.items()
        ),
    ]
