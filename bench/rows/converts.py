"""Conversions: copy, transcode, regrid, and the memory that a large one takes.

All sides convert the same source, which is made once. Times are from opening it to what is durable.
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
TENSORSTORE_SLABS = Side("TensorStore, slabs", "tensorstore", {"way": "slabs"})
ZARRS = Side("zarr + zarrs", "zarr+zarrs")
ZARR = Side("zarr", "zarr")
OTHERS = (OURS, TENSORSTORE, TENSORSTORE_SLABS, ZARRS, ZARR)

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

    def row(movement: str, title: str, **more: Any) -> Row:
        key = f"convert {movement}"
        target, part = TARGETS.get(key), LIMIT_PARTS.get(key)
        return Row(key, title, key, "durable", target=target, limit_part=part, **more)

    return [
        row("copy", f"{gib}, plain Zarr into a repository, against cp -r", size=field),
        row(
            "transcode",
            f"{gib}, plain Zarr, zstd-3 to lz4-5, both with shuffle",
            size=field,
            limit=limits.transcode,
        ),
        row(
            "regrid",
            f"{size.labels_planes} × 512 × 512 uint64, zstd-3, 64³ to 128 × 128 × 32",
            size=labels,
        ),
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
