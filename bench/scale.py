"""Ours alone, with far more than usual of one thing: references, arrays, commits.

    scale.py [--smoke] [--only references|arrays|commits] [--json FILE] [--work DIRECTORY]

Each repository is made in three sizes, and each step on it is a fresh process: wall and CPU time,
peak memory above idle, bytes read and written. `render.py` makes the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Any

from harness import machine
from harness.table import number, seconds
from harness.worker import BENCH, Side, call

OURS = Side("ours", "ours")
MEMORY_MAX = 12 << 30
SIZES = {
    "references": (100_000, 1_000_000, 10_000_000),
    "arrays": (1000, 10_000, 100_000),
    "commits": (100, 1000, 10_000),
}
# `commit` writes the chunk that `read` reads; `locate` asks for a reference of the oldest manifest.
STEPS = ("prepare", "open", "commit", "read", "locate", "list", "log", "gc", "verify")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a hundredth: does everything work?")
    parser.add_argument("--only", choices=SIZES, help="one of the three")
    parser.add_argument("--seconds-max", type=int, default=600, help="making commits stops then")
    parser.add_argument("--work", type=Path, default=BENCH / ".work", help="where everything goes")
    parser.add_argument("--json", type=Path, help="the results; default WORK/scale.json")
    return parser.parse_args()


def step(name: str, of: str, count: int, place: Path, seconds_max: int) -> dict[str, Any]:
    options = {"of": of, "count": count, "step": name, "seconds": seconds_max}
    worker = "scale-prepare" if name == "prepare" else "scale-step"
    answer = call(OURS, worker, place, options, MEMORY_MAX)
    if "failed" in answer:
        return {"of": of, "count": count, "step": name, "cannot": answer["failed"]}
    samples = answer["measures"]["step"]
    taken = {"seconds": samples["wall"][0], "cpu-seconds": samples["cpu"][0]}
    return {"of": of, "count": count, "step": name, **taken, **answer["facts"]}


def show(found: dict[str, Any]) -> None:
    what = f"{found['count']:>10,} {found['of']:<10} {found['step']:<8}"
    if "cannot" in found:
        print(f"{what} {found['cannot']}", flush=True)
        return
    memory = f"{number(found['memory'] / 2**20)} MiB"
    moved = f"read {found.get('read-bytes', 0):,}, wrote {found['written-bytes']:,} bytes"
    times = f"{seconds(found['seconds'])}, {seconds(found['cpu-seconds'])} CPU"
    print(f"{what} {times}, {memory}, {moved}", flush=True)


def main() -> None:
    load = os.getloadavg()[0]
    options = arguments()
    found = []
    for of, sizes in SIZES.items():
        if options.only not in (None, of):
            continue
        for count in (size // 100 if options.smoke else size for size in sizes):
            place = options.work / "scale" / f"{of}-{count}"
            shutil.rmtree(place, ignore_errors=True)
            for name in STEPS:
                found.append(step(name, of, count, place, options.seconds_max))
                show(found[-1])
            shutil.rmtree(place, ignore_errors=True)
    document = {**machine.describe(BENCH, load), "steps": found}
    file = options.json or options.work / "scale.json"
    file.write_text(json.dumps(document, indent=1))
    print(f"as JSON: {file}")


if __name__ == "__main__":
    main()
