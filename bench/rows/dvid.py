"""A store that DVID wrote: read against Badger itself, and imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import DVID_IMPORT_MAX, DVID_MEMORY_MAX, TARGETS

OURS = Side("ours", "ours")
BADGER = Side("Badger, a goroutine for each core", "badger")
FILES = Side("files read in order", "ours", {"way": "files"})
# The machine, and no rival.
APART = {FILES.name: "the same files, read without looking at them"}


def grid(size: Size) -> tuple[int, int, int]:
    """Blocks along z, y, x: 200,704 in a full run, in 1.2 GB."""
    if size.field_planes < 64:
        return (8, 8, 8)
    return (49, 64, 64) if size.field_planes > 256 else (24, 32, 32)


def store(data: Path) -> Path:
    """Where the store of a size is."""
    return data / "dvid"


def workloads(_size: Size, data: Path) -> list[Workload]:
    source = {"source": store(data)}
    cold: dict[str, Any] = {"cold": True, "rounds_min": 3}
    return [
        Workload("dvid cold", "dvid-values", "dvid", (OURS, BADGER, FILES), source, **cold),
        Workload("dvid labels", "dvid-labels", "dvid", (OURS, BADGER), {**source, "repeats": 3}),
        Workload("dvid import", "dvid-import", "dvid-import", (OURS,), source),
    ]


def rows(size: Size) -> list[Row]:
    z, y, x = grid(size)
    blocks = f"{z * y * x:,} label blocks of a DVID store"
    target = TARGETS.get
    return [
        Row(
            "dvid cold",
            f"every value of {blocks}, checksums compared, cold",
            "dvid cold",
            "returned",
            target=target("dvid cold"),
            apart=APART,
        ),
        Row(
            "dvid labels",
            f"{blocks} checked, unpacked, parsed to their lists of labels, warm",
            "dvid labels",
            "returned",
            target=target("dvid labels"),
        ),
        Row(
            "dvid import",
            f"{blocks} into a labelmap with all its tables, durable",
            "dvid import",
            "durable",
            against="dvid labels",
            against_max=DVID_IMPORT_MAX,
        ),
        *(
            Row(
                f"dvid {work} memory",
                f"the same, peak memory: {work}",
                f"dvid {work}",
                "durable" if work == "import" else "returned",
                fact="memory",
                fact_max=DVID_MEMORY_MAX,
            )
            for work in ("cold", "labels", "import")
        ),
    ]
