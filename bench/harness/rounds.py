"""Runs a workload: all sides in turn, round after round, each call a fresh process."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from harness import cold
from harness.samples import Record
from harness.worker import Side, call
from rows.model import Source, Workload


def slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


def run(workload: Workload, rounds: int, work: Path) -> dict[str, Record]:
    """The records of all sides, by name."""
    records = {side.name: Record() for side in workload.sides}
    if workload.source:
        failed = make(workload.source, work)
        if failed:
            for record in records.values():
                record.add(failed)
            return records
    for _ in range(min(max(rounds, workload.rounds_min), workload.rounds_max)):
        for side in workload.sides:
            record = records[side.name]
            # A side that failed, or cannot do the workload, does not run again.
            if "*" not in record.cannot:
                progress(f"{workload.name}: {side.name}")
                record.add(one(workload, side, work))
    progress("")
    return records


def make(source: Source, work: Path) -> dict[str, object] | None:
    """Makes the source of all sides, unless it exists; gives an answer only on failure."""
    place = work / source.place
    if place.exists():
        return None
    progress(f"making {source.place}")
    made = call(source.side, source.worker, place, source.options)
    return made if "failed" in made else None


def one(workload: Workload, side: Side, work: Path) -> dict[str, object]:
    place = work / workload.place / slug(side.name)
    options = {**workload.options}
    if workload.source:
        options["source"] = work / workload.source.place
    if workload.prepare is None:
        shutil.rmtree(place, ignore_errors=True)
    elif not place.exists():
        asked = {**options, "repeats": 0, **workload.prepare_options}
        made = call(side, workload.prepare, place, asked)
        if "failed" in made or "*" in made.get("cannot", {}):
            return made
    if workload.cold:
        cold.drop(place)
        if "source" in options:
            cold.drop(Path(options["source"]))
    return call(side, workload.worker, place, options)


def progress(text: str) -> None:
    """One line that is overwritten, if there is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
