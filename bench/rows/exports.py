"""Exports of segmentations: Arrow shards, sharded Neuroglancer volumes, and how cost grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.worker import Side
from peers.supervoxels import CUBE
from rows import dvid
from rows.model import Row, Size, Source, Workload
from rows.targets import (
    AS_BYTES,
    EXPORT_FILES_MAX,
    EXPORT_MEMORY_MAX,
    EXPORT_SIZE_PART,
    LINEAR,
    TARGETS,
)

OURS = Side("ours", "ours", {"codec": "zstd:3"})
FAST = Side("ours, zstd-1", "ours", {"codec": "zstd:1"})
KEPT = Side("ours, blocks kept as they are stored", "ours", {"codec": "keep"})
CODEC = Side("inflate and zstd-3 alone", "ours", {"way": "codec"})
DVID = Side("DVID's way, with its libraries in Go", "badger")

PLAIN = Side("ours", "ours", {"from": "plain"})
MAP = Side("ours, from a labelmap", "ours", {"from": "map"})
CONVERT = Side("ours, convert", "ours", {"from": "plain", "way": "convert"})
TENSORSTORE = (
    Side("TensorStore, a transaction", "tensorstore", {"way": "transaction"}),
    Side("TensorStore, a transaction for each layer of shards", "tensorstore", {"way": "layers"}),
)

ALONE = Side("ours", "ours")
TWO = Side("ours", "ours", {"processes": "2"})
ONE = Side("one process", "ours", {"processes": "1"})

WORKERS = Side("ours, two workers", "fleet", {"way": "workers"})
FILES = Side("export-shards to local files", "fleet", {"way": "files"})

# Labels of a block: about 450, and about 6,000 as at a coarse scale.
KINDS = {"hundreds": "ordinary blocks", "coarse": "blocks of 6,000 labels each"}
# Possible chunks along each axis of a volume that holds few: 3.8 * 10^9 of them.
SPARSE_EDGE = 1560


def volumes(size: Size) -> tuple[int, ...]:
    """Edges of the volumes that become Neuroglancer volumes."""
    if size.field_planes < 64:
        return (CUBE,)
    return (512, 1024) if size.field_planes > 256 else (512,)


def place(data: Path, edge: int) -> Path:
    """Where the voxels of a volume are."""
    return data / f"export-{edge}"


def cube(size: Size) -> int:
    """Edge, in blocks, of the cubes of blocks."""
    return 4 if size.field_planes < 64 else 24 if size.field_planes > 256 else 16


def counts(size: Size) -> tuple[int, int]:
    """Shards of one block each: few and many."""
    if size.field_planes < 64:
        return 20, 200
    return (10_000, 100_000) if size.field_planes > 256 else (1000, 10_000)


def workloads(size: Size, data: Path) -> list[Workload]:
    store = {"source": dvid.store(data), "repeats": 1}
    sides = (OURS, FAST, KEPT, CODEC, DVID)
    found = [Workload("dvid export arrow", "export-arrow", "exports-arrow", sides, store)]
    for edge in volumes(size):
        voxels = {"data": place(data, edge), "z": edge, "y": edge, "x": edge}
        source = Source(f"exports-volume-{edge}", ALONE, "export-volume", voxels)
        sides = (PLAIN, MAP, CONVERT, *TENSORSTORE)
        found.append(
            Workload(
                f"export precomputed {edge}",
                "export-precomputed",
                f"exports-precomputed-{edge}",
                sides,
                {**voxels, "repeats": 1},
                source=source,
            )
        )
        if edge == volumes(size)[0]:
            options = {**voxels, "repeats": 1}
            sides = (WORKERS, FILES)
            where = "exports-fleet"
            found.append(
                Workload("export fleet", "export-fleet", where, sides, options, source=source)
            )
    for kind in KINDS:
        found.append(of_blocks(size, data, f"export blocks {kind}", kind, (ALONE,)))
    for count in counts(size):
        scattered = {"name": "solid", "blocks": count, "grid": SPARSE_EDGE, "scattered": "yes"}
        source = Source(f"exports-scattered-{count}", ALONE, "export-blocks", scattered)
        options = {**scattered, "shard": 1, "repeats": 1}
        found.append(
            Workload(
                f"export shards {count}",
                "export-growth",
                f"exports-shards-{count}",
                (ALONE,),
                options,
                source=source,
                rounds_max=1,
            )
        )
    found.append(of_blocks(size, data, "export work", "hundreds", (TWO, ONE)))
    return found


def of_blocks(size: Size, data: Path, name: str, kind: str, sides: tuple[Side, ...]) -> Workload:
    """A workload on a cube of blocks of a kind."""
    edge = cube(size)
    blocks: dict[str, Any] = {"data": data, "name": kind, "blocks": edge**3, "grid": edge}
    source = Source(f"exports-blocks-{kind}", ALONE, "export-blocks", blocks)
    worker, shard = "export-growth", 8
    if TWO in sides:
        # Enough tasks to share.
        worker, shard = "export-work", 4 if edge > 4 else 2
    options = {**blocks, "shard": shard, "repeats": 1}
    where = name.replace(" ", "-")
    return Workload(name, worker, where, sides, options, source=source)


def row(key: str, title: str, workload: str, measure: str, **more: Any) -> Row:
    key = f"exports {key}"
    options = {"target": TARGETS.get(key), **more}
    return Row(key, title, workload, measure, **options)


def about(name: str, most: int, unit: str = "bytes") -> dict[str, Any]:
    return {"fact": name, "fact_max": most, "fact_unit": unit}


def arrow_rows(size: Size) -> list[Row]:
    z, y, x = dvid.grid(size)
    blocks = f"{z * y * x:,} label blocks of a DVID store as Arrow shards"
    work, rivals = "dvid export arrow", (DVID.name,)

    def one(key: str, title: str, measure: str = "returned", **more: Any) -> Row:
        return row(key, title, work, measure, **{"rivals": rivals, **more})

    return [
        one("arrow", f"{blocks}, zstd-3, returned"),
        one("arrow cpu", "the same, CPU time", by_cpu=True),
        one("arrow durable", "the same, durable", "durable"),
        one("arrow of the codec", "the same against the codec alone", rivals=(CODEC.name,)),
        one("arrow zstd-1", "the same, zstd-1, returned", ours=FAST.name),
        one("arrow zstd-1 cpu", "the same, CPU time", ours=FAST.name, by_cpu=True),
        one("arrow kept", "the same, blocks as they are stored, returned", ours=KEPT.name),
        one("arrow kept cpu", "the same, CPU time", ours=KEPT.name, by_cpu=True),
        one("arrow memory", "peak memory, zstd-3", **about("memory", EXPORT_MEMORY_MAX)),
        one("arrow open files", "open files", **about("open-files", EXPORT_FILES_MAX, "files")),
    ]


def volume_rows(edge: int) -> list[Row]:
    work, size = f"export precomputed {edge}", 8 * edge**3
    what = f"{edge}³ uint64 as a sharded volume, compressed_segmentation and gzip"
    rivals = tuple(side.name for side in TENSORSTORE)

    def one(key: str, title: str, **more: Any) -> Row:
        more = {"measure": "returned", "rivals": rivals, "size": size, **more}
        return row(f"{key} {edge}", title, work, **more)

    return [
        one("volume", f"{what}, from plain Zarr, returned"),
        one("volume cpu", "the same, CPU time", by_cpu=True),
        one("volume durable", "the same, durable", measure="durable"),
        one("volume by convert", "the same by convert, returned", ours=CONVERT.name),
        one("volume of a labelmap", "the same from a labelmap, returned", ours=MAP.name),
        one("volume of a labelmap cpu", "the same, CPU time", ours=MAP.name, by_cpu=True),
        one("volume bytes", "bytes of the shards", fact="stored-bytes", fact_part=EXPORT_SIZE_PART),
        one("volume memory", "peak memory", **about("memory", EXPORT_MEMORY_MAX)),
        one("volume open files", "open files", **about("open-files", EXPORT_FILES_MAX, "files")),
    ]


def growth_rows(size: Size) -> list[Row]:
    found = [
        row(
            f"blocks {kind}",
            f"{cube(size) ** 3:,} {title} as Arrow shards, time for a MB of them",
            f"export blocks {kind}",
            "per-mb",
        )
        for kind, title in KINDS.items()
    ]
    ordinary, coarse = found
    per_byte = row(
        "blocks coarse for each byte",
        "the same against ordinary blocks",
        coarse.workload,
        "per-mb",
        against=ordinary.key,
        against_max=AS_BYTES,
    )
    few, many = counts(size)
    shards = [
        row(
            f"shards {count}",
            f"{count:,} Arrow shards of one block, of 3.8·10⁹ possible ones",
            f"export shards {count}",
            "returned",
        )
        for count in (few, many)
    ]
    linear = row(
        "shards growth",
        f"{many:,} against {few:,}",
        f"export shards {many}",
        "returned",
        against=shards[0].key,
        against_max=LINEAR,
    )
    memory = row(
        "shards memory",
        "the same, peak memory",
        f"export shards {many}",
        "returned",
        **about("memory", EXPORT_MEMORY_MAX),
    )
    return [*found, per_byte, *shards, linear, memory]


def rows(size: Size) -> list[Row]:
    title = "a job by two processes with a core each, against one"
    fleet = (
        "label blocks from a server to two workers on loopback, as Parquet, against export-shards "
        "to local Arrow files"
    )
    return [
        *arrow_rows(size),
        *(row for edge in volumes(size) for row in volume_rows(edge)),
        *growth_rows(size),
        row("fleet", fleet, "export fleet", "returned", ours=WORKERS.name, rivals=(FILES.name,)),
        row("work", title, "export work", "durable", rivals=(ONE.name,)),
    ]
