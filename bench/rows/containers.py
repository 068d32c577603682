"""Containers: one file of many arrays, with layers, against two releases of array-format.

0.9 has our file format; 0.15 is the newest, which gave up layers. Everything is
measured on a local directory and in memory, behind stores that count requests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import limits
from harness.limits import Limit
from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import CODEC_PART, INDEPENDENT_OF_LAYERS, LINEAR, MEMORY_PART, TARGETS

OURS = Side("ours", "ours")
LAYERED = Side("array-format 0.9", "array-format", {"release": "0.9"})
NEWEST = Side("array-format 0.15", "array-format", {"release": "0.15"})
SIDES = (OURS, LAYERED, NEWEST)

CODECS = ("none", "lz4", "zstd")
# The word of the worker, and the text in rows.
STORES = {"local": "", "memory": ", in memory"}
LAYERS = 100


def mib(size: Size) -> int:
    """MiB of the arrays that are written and read at once."""
    return min(256, size.field_planes)


def chunks(size: Size) -> int:
    """Chunks of the array that has many of them."""
    return size.references[-1]


def arrays(size: Size) -> int:
    """Arrays of the container that has many of them."""
    return size.tiny_chunks


def by(word: str) -> dict[str, Any]:
    """Makes the directory of a workload, also if the workload loads it into memory first."""
    return {"prepare": f"container-{word}", "prepare_options": {"store": "local"}}


def written(size: Size, data: Path, name: str, codec: str, store: str) -> list[Workload]:
    """Writes an array at once, and reads it."""
    options: dict[str, Any] = {"data": data, "name": name, "repeats": size.repeats}
    options |= {"codec": codec, "mib": mib(size), "store": store}
    label, place = f"container {name} {codec} {store}", f"container-{name}-{codec}"
    return [
        Workload(f"{label} write", "container-write", f"{place}-{store}", SIDES, options),
        Workload(f"{label} read", "container-read", place, SIDES, options, **by("write")),
    ]


def opened(size: Size, data: Path, store: str) -> list[Workload]:
    """Opens and changes existing containers."""
    many = {"chunks": chunks(size), "store": store}
    field = {"data": data, "name": "field", "mib": min(64, size.field_planes), "store": store}
    tiny, planes = by("chunks"), by("planes")

    def workload(name: str, word: str, place: str, options: Any, **more: Any) -> Workload:
        worker = f"container-{word}"
        return Workload(
            f"container {name} {store}", worker, f"container-{place}", SIDES, options, **more
        )

    return [
        workload("16 values", "point", "chunks", many, **tiny),
        workload("open chunks", "open", "chunks", many, rounds_min=3, **tiny),
        workload(
            "open arrays",
            "open",
            "arrays",
            {"arrays": arrays(size), "store": store},
            rounds_min=3,
            **by("arrays"),
        ),
        workload("first chunk", "first", "planes", field, rounds_min=3, **planes),
        # A round adds layers to the container.
        workload("change", "change", f"changed-{store}", field, rounds_max=2, **planes),
    ]


def layered(layers: int, store: str) -> Workload:
    return Workload(
        f"container {layers} layers {store}",
        "container-deep",
        f"container-layers-{layers}",
        (OURS, LAYERED),
        {"layers": layers, "store": store},
        **by("layers"),
    )


def tiny(count: int) -> Workload:
    options = {"chunks": count, "store": "local"}
    # With 0.9, 10^5 take a minute.
    place = f"container-tiny-{count}"
    return Workload(f"container tiny {count}", "container-tiny", place, SIDES, options, rounds_max=2)


def workloads(size: Size, data: Path) -> list[Workload]:
    field = [
        work
        for store in STORES
        for codec in CODECS
        for work in written(size, data, "field", codec, store)
    ]
    labels = [work for codec in CODECS for work in written(size, data, "labels", codec, "local")]
    others = [work for store in STORES for work in opened(size, data, store)]
    deep = [layered(layers, store) for store in STORES for layers in (1, LAYERS)]
    few = [tiny(size.tiny_chunks // 10), tiny(size.tiny_chunks)]
    return [*field, *labels, *others, *deep, *few]


def encode_limit(data: str, codec: str) -> Limit | None:
    return None if codec == "none" else limits.pack(data, codec)


def decode_limit(data: str, codec: str) -> Limit:
    return limits.unpack_fresh(data, codec)


def row(key: str, title: str, workload: str, measure: str, store: str, **more: Any) -> Row:
    """A row whose target does not depend on the store."""
    key, title = f"containers {key}", title + STORES[store]
    more.setdefault("target", TARGETS.get(key))
    return Row(key + STORES[store], title, f"container {workload}", measure, **more)


def written_rows(size: Size, name: str, codec: str, store: str) -> list[Row]:
    count, moved = mib(size), {"size": mib(size) << 20}
    what = f"{count} MiB {'float32' if name == 'field' else 'uint64 labels'}, {codec}"
    work, limit = f"{name} {codec} {store}", decode_limit(name, codec)
    return [
        row(
            f"write {name} {codec}",
            f"write {what}, chunks of 4 MiB",
            f"{work} write",
            "returned",
            store,
            limit=encode_limit(name, codec),
            **moved,
        ),
        row(
            f"read {name} {codec}",
            f"open and read {what}",
            f"{work} read",
            "fresh",
            store,
            limit=limit,
            **moved,
        ),
        row(
            f"read {name} {codec}, of the codec",
            "the same, against the codec alone on two cores",
            f"{work} read",
            "fresh",
            store,
            limit=limit,
            limit_part=CODEC_PART,
            **moved,
        ),
    ]


def opened_rows(size: Size, store: str) -> list[Row]:
    one_chunk = f"one changed chunk of 1 MiB of {min(64, size.field_planes)}"
    kept: dict[str, Any] = {"fact": "memory-growth", "fact_part": MEMORY_PART}
    asked: dict[str, Any] = {"fact": "requests", "fact_unit": "requests"}

    def pair(key: str, title: str) -> list[Row]:
        work = f"{key} {store}"
        return [
            row(key, title, work, "open", store),
            row(f"{key}, kept", "the same, memory that it keeps", work, "open", store, **kept),
        ]

    return [
        row(
            "16 values",
            f"16 values of an array of {chunks(size):,} chunks, warm, median",
            f"16 values {store}",
            "latency",
            store,
            statistic="median",
        ),
        *pair("open chunks", f"open a container of {chunks(size):,} chunks"),
        *pair("open arrays", f"open a container of {arrays(size):,} arrays"),
        row(
            "first chunk",
            "first chunk of 1 MiB after opening",
            f"first chunk {store}",
            "latency",
            store,
            fact_max=1,
            **asked,
        ),
        row("change", f"open, {one_chunk}, flush", f"change {store}", "returned", store),
    ]


def layered_rows(store: str) -> list[Row]:
    shown: dict[str, Any] = {"statistic": "median", "rivals": (LAYERED.name,)}
    many, one = f"{LAYERS} layers", "1 layer"
    title = "random chunk of 4 KiB, warm, median"
    work = f"{LAYERS} layers {store}"
    return [
        row(one, f"{title}, 1 layer", f"1 layers {store}", "latency", store, **shown),
        row(
            many,
            f"the same, {LAYERS} layers",
            work,
            "latency",
            store,
            against=f"containers {one}{STORES[store]}",
            against_max=INDEPENDENT_OF_LAYERS,
            **shown,
        ),
        row(
            f"open {many}",
            f"the same, requests of opening {LAYERS} layers and the base",
            work,
            "latency",
            store,
            fact="requests",
            fact_unit="requests",
            fact_max=LAYERS + 1 + 2,
            **shown,
        ),
    ]


def tiny_rows(size: Size) -> list[Row]:
    few, many = size.tiny_chunks // 10, size.tiny_chunks
    title = "write {:,} chunks of 64 bytes"
    return [
        row("tiny, a tenth", title.format(few), f"tiny {few}", "returned", "local"),
        row("tiny", title.format(many), f"tiny {many}", "returned", "local"),
        row(
            "tiny, linear",
            "the same against a tenth of them",
            f"tiny {many}",
            "returned",
            "local",
            against="containers tiny, a tenth",
            against_max=LINEAR,
        ),
    ]


def rows(size: Size) -> list[Row]:
    field = [
        row
        for store in STORES
        for codec in CODECS
        for row in written_rows(size, "field", codec, store)
    ]
    labels = [row for codec in CODECS for row in written_rows(size, "labels", codec, "local")]
    others = [row for store in STORES for row in opened_rows(size, store)]
    deep = [row for store in STORES for row in layered_rows(store)]
    return [*field, *labels, *others, *deep, *tiny_rows(size)]
