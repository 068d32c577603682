"""One workload of one rival: `python -m peers.worker PEER WORKLOAD DIRECTORY [KEY=VALUE …]`.

Prints one JSON line, see `peers.clock.Answer`. The data is compared outside the timed part.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from peers import (
    array_workloads,
    commit_workloads,
    convert_workloads,
    export_workloads,
    http_workloads,
    label_workloads,
    superchunk_workloads,
)
from peers.clock import Answer, Cannot

# Module and class of each rival, by kind of workload.
ARRAYS = {
    "tensorstore": ("tensorstore", "Arrays"),
    "zarr": ("zarr_python", "Arrays"),
    "zarr+zarrs": ("zarr_python", "ZarrsArrays"),
    "icechunk": ("icechunk", "Arrays"),
    "blosc2": ("blosc2", "Arrays"),
    "h5py": ("hdf5", "Arrays"),
    "tiledb": ("tiledb", "Arrays"),
    "cp": ("copied", "Arrays"),
    # Ours, called from Python like the rivals.
    "chunkyard": ("chunkyard", "Arrays"),
    "chunkyard-plain": ("chunkyard", "PlainArrays"),
    "chunkyard-store": ("chunkyard", "StoreArrays"),
}
COMMITS = {
    "icechunk": ("icechunk", "Commits"),
    "tiledb": ("tiledb", "Commits"),
    "lance": ("lance", "Commits"),
}
SUPERCHUNKS = {
    "blosc2": ("blosc2", "Columns"),
    "bcolz": ("bcolz", "Columns"),
    "bloscpack": ("bloscpack", "Columns"),
}
LABELS = {
    "compressed-segmentation": ("segmentation", "Blocks"),
    "tensorstore": ("tensorstore", "Arrays"),
}
EXPORTS = {
    "tensorstore": ("precomputed", "Volumes"),
    "fleet": ("fleet", "Fleet"),
    "chunkyard": ("arrow_shards", "Ours"),
    "whole-tables": ("arrow_shards", "Document"),
}
SERVERS = {
    "chunkyard-serve": ("servers", "Ours"),
    "nginx": ("servers", "Nginx"),
    "zarr-http-server": ("servers", "ZarrHttpServer"),
}
# Each kind of workload, and the rivals that it is for.
KINDS: tuple[tuple[dict[str, Callable[..., Answer]], dict[str, tuple[str, str]]], ...] = (
    (array_workloads.WORKLOADS, ARRAYS),
    (convert_workloads.WORKLOADS, ARRAYS),
    (commit_workloads.WORKLOADS, COMMITS),
    (superchunk_workloads.WORKLOADS, SUPERCHUNKS),
    (label_workloads.WORKLOADS, LABELS),
    (export_workloads.WORKLOADS, EXPORTS),
    (http_workloads.WORKLOADS, SERVERS),
)


def run(peer: str, workload: str, directory: Path, options: dict[str, str]) -> Answer:
    workloads, rivals = next(pair for pair in KINDS if workload in pair[0])
    module, name = rivals[peer]
    kind: Callable[..., Any] = getattr(importlib.import_module(f"peers.{module}"), name)
    return workloads[workload](partial(kind, directory, options), directory, options)


def main() -> None:
    peer, workload, directory, *pairs = sys.argv[1:]
    options = dict(pair.split("=", 1) for pair in pairs)
    try:
        answer = run(peer, workload, Path(directory), options)
    except Cannot as reason:
        answer = Answer(cannot={"*": str(reason)})
    print(json.dumps(answer.to_json()), flush=True)
    os._exit(0)  # some rivals keep threads that delay a normal exit


main()
