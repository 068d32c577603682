"""Runs the workloads, ours and the rivals' in turn, prints ratios, and writes every sample as JSON.

run.py [--python] [--full | --smoke] [--rounds N] [--only WORD …] [--json FILE] [--work DIRECTORY]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import cold, machine, results, rounds, table
from harness.limits import Limits
from harness.samples import Record
from harness.worker import BENCH, call
from peers import dvid_store, supervoxels
from peers.data import make
from rows import (
    arrays,
    commits,
    containers,
    converts,
    dvid,
    exports,
    http,
    labels,
    plain,
    python,
    superchunks,
)
from rows.model import FULL, SHORT, SMOKE, Row, Size, Workload


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="all sizes, more rounds")
    size.add_argument("--smoke", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--python", action="store_true", help="the rows of the Python package")
    parser.add_argument("--rounds", type=int, help="how often each side takes its turn")
    parser.add_argument("--only", action="append", help="rows whose key or workload contains this")
    parser.add_argument("--work", type=Path, default=BENCH / ".work", help="where everything goes")
    parser.add_argument("--json", type=Path, help="the results; default in WORK")
    return parser.parse_args()


def wanted(row: Row, only: list[str] | None) -> bool:
    return not only or any(word in row.key or word in row.workload for word in only)


def of_engine(size: Size, data: Path) -> tuple[list[Row], list[Workload]]:
    """The rows and workloads of our Rust side."""
    tables = (arrays, plain, converts, containers, superchunks, labels, dvid, exports, http)
    rows = [row for table in (commits, *tables) for row in table.rows(size)]
    of_arrays = [work for table in tables for work in table.workloads(size, data)]
    return rows, [*commits.workloads(size), *of_arrays]


def of_python(size: Size, data: Path) -> tuple[list[Row], list[Workload]]:
    """The rows and workloads of our Python side."""
    return python.rows(size), python.workloads(size, data)


def make_segmentations(names: set[str], size: Size, data: Path) -> None:
    """Makes the voxels that some workloads need."""
    if any(name.startswith(("labels codec", "export", "python records")) for name in names):
        supervoxels.make_blocks(data)
    if "export blocks coarse" in names:
        supervoxels.make_blocks(data, supervoxels.COARSE)
    for edge in exports.volumes(size):
        if f"export precomputed {edge}" in names:
            supervoxels.make_volume(exports.place(data, edge), (edge,) * 3)
    if "labels import" in names:
        supervoxels.make_volume(data, labels.volume(size))


def measure_limits(work: Path, data: Path) -> Limits:
    record = Record()
    record.add(call(arrays.OURS, "limits", work / "limits", {"data": data}))
    shutil.rmtree(work / "limits", ignore_errors=True)
    if record.cannot:
        raise SystemExit(f"the limits could not be measured: {record.cannot['*']}")
    return Limits(record)


def run(
    workloads: list[Workload], rows: list[Row], size: Size, work: Path, limits: Limits
) -> Iterator[tuple[results.Records, list[dict[str, Any]]]]:
    """Runs workload after workload and shows its rows; yields all results after each."""
    records: results.Records = {}
    found: dict[str, dict[str, Any]] = {}
    for workload in workloads:
        mine = [row for row in rows if row.workload == workload.name]
        if not mine:
            continue
        records[workload.name] = rounds.run(shown(workload, mine), size.rounds, work)
        for row in mine:
            found[row.key] = results.result(row, records, limits, found)
            table.show(found[row.key])
        yield records, list(found.values())


def shown(workload: Workload, rows: list[Row]) -> Workload:
    """The workload with only the sides that its rows show."""
    names = {name for row in rows for name in (row.ours, *row.rivals)}
    if any(not row.rivals for row in rows):
        return workload
    return replace(workload, sides=tuple(side for side in workload.sides if side.name in names))


def samples(records: results.Records) -> dict[str, Any]:
    """Every sample of every side of every workload."""
    return {
        workload: {
            side: {
                "measures": {n: {"wall": m.wall, "cpu": m.cpu} for n, m in record.measures.items()},
                "facts": record.facts,
                "cannot": record.cannot,
                "wrong-data": record.wrong_data,
            }
            for side, record in sides.items()
        }
        for workload, sides in records.items()
    }


def main() -> None:
    load = os.getloadavg()[0]
    options = arguments()
    size = FULL if options.full else SMOKE if options.smoke else SHORT
    size = replace(size, rounds=options.rounds or size.rounds)
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    data = work / "data"
    cold.free_memory()
    of_rust = {**arrays.planes(size), **superchunks.planes(size)}
    make(data, python.planes(size) if options.python else of_rust)
    rows, workloads = of_python(size, data) if options.python else of_engine(size, data)
    rows = [row for row in rows if wanted(row, options.only)]
    names = {row.workload for row in rows}
    make_segmentations(names, size, data)
    if any(name.startswith("dvid ") for name in names):
        try:
            dvid_store.make_store(dvid.store(data), dvid.grid(size))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no rows about DVID, for want of its server: {error}")
            rows = [row for row in rows if not row.workload.startswith("dvid ")]
    for workload in workloads:
        shutil.rmtree(work / workload.place, ignore_errors=True)
        if workload.source:
            shutil.rmtree(work / workload.source.place, ignore_errors=True)
    limits = measure_limits(work, data)
    for name, limit in limits.to_json().items():
        if "gb-per-s" in limit:
            print(f"limit {name:<22} {table.number(limit['gb-per-s'])} GB/s")
        elif "seconds" in limit:
            print(f"limit {name:<22} {table.seconds(limit['seconds'])}")
    about = {
        **machine.describe(BENCH, load),
        "size": "full" if options.full else "smoke" if options.smoke else "short",
        "limits": limits.to_json(),
    }
    file = options.json or work / ("python.json" if options.python else "result.json")
    # Written after each workload: an interrupted long run keeps its results.
    for records, found in run(workloads, rows, size, work, limits):
        document = {**about, "rows": found, "samples": samples(records)}
        file.write_text(json.dumps(document, indent=1))
    print(f"every sample as JSON: {file}")


if __name__ == "__main__":
    main()
