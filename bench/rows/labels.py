"""Segmentations: label blocks by one thread, an import, the mapping, edits and comparisons.

Blocks are of three kinds, by how many supervoxels meet in one. Rows about growth compare ours with
ours; no rival keeps segmentations under version control.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import limits
from harness.worker import Side
from peers.supervoxels import CUBE, DENSITIES
from rows.model import Row, Size, Workload
from rows.targets import (
    INDEPENDENT_OF_BODIES,
    INDEPENDENT_OF_MAPPING,
    LINEAR,
    LOAD_MS_MAX,
    LOOKUP_NS_MAX,
    MAPPING_BYTES_MAX,
    TARGETS,
)

OURS = Side("ours", "ours")
CODEC = (OURS, Side("compressed-segmentation", "compressed-segmentation"))
BY_VOXELS = Side("decode, vote, encode", "ours", {"way": "voxels"})
IMPORT = (OURS, Side("TensorStore, scale 0 alone", "tensorstore", {"sharded": "yes"}))

# Decoded bytes of the eight blocks of a kind.
BLOCKS_BYTES = 8 * 64**3 * 8
# What is done with them by one thread.
WAYS = {
    "decode": "decode",
    "encode": "encode",
    "transcode": "to compressed_segmentation, encoded to encoded",
}
SCALES = 4


def volume(size: Size) -> tuple[int, int, int]:
    """The shape of the volume to import: 4 GiB in a full run."""
    return (2 * CUBE, 4 * CUBE, 4 * CUBE) if size.labels_planes > 64 else (CUBE, 2 * CUBE, CUBE)


def counts(size: Size) -> dict[str, tuple[int, int]]:
    """The rows of the mapping, the same beside a merge, and the bodies of a comparison."""
    if size.tiny_chunks < 10_000:
        return {"rows": (10**4, 10**5), "beside": (10**4, 10**5), "bodies": (10**3, 10**4)}
    return {"rows": (10**6, 10**7), "beside": (10**5, 10**7), "bodies": (10**4, 10**6)}


def power(count: int) -> str:
    return f"10^{len(str(count)) - 1}"


def workloads(size: Size, data: Path) -> list[Workload]:
    repeats = {"repeats": size.repeats}
    shape: Mapping[str, Any] = dict(zip("zyx", volume(size), strict=True))
    imported = {"data": data, "scales": SCALES, **shape, "repeats": 1}
    found = []
    for name in DENSITIES:
        options = {"data": data, "name": name}
        work = f"labels codec {name}"
        found += [
            Workload(work, "label-codec", f"labels-{name}", CODEC, options),
            Workload(f"{work} half", "label-half", f"labels-{name}", (OURS, BY_VOXELS), options),
        ]
    found.append(Workload("labels import", "label-import", "labels-import", IMPORT, imported))
    for work, worker, option in (
        ("mapping", "label-mapping", "rows"),
        ("merge", "label-merge", "rows"),
        ("diff", "label-diff", "bodies"),
    ):
        kind = "beside" if work == "merge" else option
        for count in counts(size)[kind]:
            name, place = f"labels {work} {power(count)}", f"labels-{work}-{count}"
            options = {option: count, **repeats}
            found.append(Workload(name, worker, place, (OURS,), options))
    rows = counts(size)["rows"][1]
    options = {"rows": rows, "skewed": 1, **repeats}
    name, place = f"labels mapping {power(rows)} skewed", f"labels-mapping-skewed-{rows}"
    found.append(Workload(name, "label-mapping", place, (OURS,), options))
    return found


def row(key: str, title: str, workload: str, measure: str, **more: Any) -> Row:
    key = f"segmentations {key}"
    options = {"target": TARGETS.get(key), **more}
    return Row(key, title, f"labels {workload}", measure, **options)


def codec_rows(name: str) -> list[Row]:
    """One core, on blocks of 64³ uint64."""
    what = f"blocks with {name} of labels, one core"
    moved = {"size": BLOCKS_BYTES, "limit": limits.copied}
    return [
        *(
            row(f"{way} {name}", f"{title}, {what}", f"codec {name}", way, **moved)
            for way, title in WAYS.items()
        ),
        row(
            f"half {name}",
            f"half the resolution, encoded to encoded, {what}",
            f"codec {name} half",
            "half",
            rivals=(BY_VOXELS.name,),
            **moved,
        ),
    ]


def import_row(size: Size) -> Row:
    shape = volume(size)
    what = f"{shape[2]} × {shape[1]} × {shape[0]} uint64"
    total = 8 * shape[0] * shape[1] * shape[2]
    title = f"import {what} with {SCALES} scales and all tables, durable"
    return row("import", title, "import", "durable", size=total)


def mapping_rows(size: Size) -> list[Row]:
    few, many = counts(size)["rows"]
    work = f"mapping {power(many)}"
    first, last = f"load {power(few)}", f"load {power(many)}"
    rows = power(many)
    return [
        row(first, f"load a mapping of {power(few)} rows", f"mapping {power(few)}", "load"),
        row(
            last,
            f"load a mapping of {rows} rows",
            work,
            "load",
            against=f"segmentations {first}",
            against_max=LINEAR,
        ),
        *(
            row(f"{key} {rows}", f"{title}, {rows} rows", work, measure, **fact)
            for key, title, measure, fact in (
                (
                    "load time",
                    "the same, milliseconds",
                    "load",
                    about("load-ms", "ms", LOAD_MS_MAX),
                ),
                (
                    "mapping memory",
                    "memory of a row",
                    "load",
                    about("bytes-per-row", "bytes each", MAPPING_BYTES_MAX),
                ),
                (
                    "sorted lookups",
                    "CPU of a lookup, sorted batches",
                    "sorted",
                    about("sorted-ns", "ns", LOOKUP_NS_MAX),
                ),
                ("scattered lookups", "a lookup, scattered", "scattered", {}),
            )
        ),
        row(
            f"skewed lookups {rows}",
            f"CPU of a lookup, sorted batches, small ids and one far away, {rows} rows",
            f"{work} skewed",
            "sorted",
            **about("sorted-ns", "ns", LOOKUP_NS_MAX),
        ),
    ]


def about(name: str, unit: str, most: int) -> dict[str, Any]:
    return {"fact": name, "fact_unit": unit, "fact_max": most}


def growth_rows(size: Size) -> list[Row]:
    found = []
    for work, kind, title, most in (
        (
            "merge",
            "beside",
            "merge two bodies of 1,000 blocks, mapping of {} rows, durable",
            INDEPENDENT_OF_MAPPING,
        ),
        (
            "diff",
            "bodies",
            "compare versions that differ in 100 of {} bodies",
            INDEPENDENT_OF_BODIES,
        ),
    ):
        few, many = map(power, counts(size)[kind])
        found += [
            row(f"{work} {few}", title.format(few), f"{work} {few}", work),
            row(
                f"{work} {many}",
                title.format(many),
                f"{work} {many}",
                work,
                against=f"segmentations {work} {few}",
                against_max=most,
            ),
        ]
    return found


def rows(size: Size) -> list[Row]:
    return [
        *(row for name in DENSITIES for row in codec_rows(name)),
        import_row(size),
        *mapping_rows(size),
        *growth_rows(size),
    ]
