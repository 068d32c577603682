"""Chunks over HTTP: of a repository without transcoding, and of a labelmap as a volume."""

from __future__ import annotations

from pathlib import Path

from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import HTTP_LABELS_US_MAX

BRANCH = Side("ours", "chunkyard-serve")
SNAPSHOT = Side("ours, by the id of the snapshot", "chunkyard-serve", {"version": "snapshot"})
NGINX = Side("nginx", "nginx")
ZARR = Side("zarr-http-server", "zarr-http-server")


def workloads(size: Size, _data: Path) -> list[Workload]:
    seconds = 2 if size.field_planes < 64 else 10 if size.field_planes > 256 else 5
    options = {"repeats": size.repeats, "seconds": seconds}

    def workload(kind: str, sides: tuple[Side, ...]) -> Workload:
        asked = {**options, "kind": kind}
        return Workload(
            f"http {kind}", "http-chunks", f"http-{kind}", sides, asked, prepare="http-prepare"
        )

    return [workload("zarr", (BRANCH, SNAPSHOT, NGINX, ZARR)), workload("labels", (BRANCH,))]


def rows(_size: Size) -> list[Row]:
    return [
        Row(
            "http zarr",
            "a chunk of a repository as it is stored, warm, wrk on the same cores",
            "http zarr",
            "request",
        ),
        Row(
            "http labels",
            "a chunk of a volume from a labelmap, warm, wrk on the same cores",
            "http labels",
            "request",
            fact="request-us",
            fact_unit="us",
            fact_max=HTTP_LABELS_US_MAX,
        ),
    ]
