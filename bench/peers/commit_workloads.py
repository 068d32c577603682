"""Commits, the same for all rivals. They do not sync; `durable` adds that."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from peers.base import CommitPeer
from peers.clock import Answer, Clock, Samples
from peers.disk import Disk, sync

Make = Callable[[], CommitPeer]
Options = dict[str, str]


def idle_memory() -> int:
    """Forgets earlier peaks, if the kernel allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def prepare(make: Make, directory: Path, options: Options) -> Answer:
    """An array with all its references, and two commits, so that there is a chunk to read."""
    peer = make()
    peer.create()
    peer.bulk()
    commit(make, directory, {**options, "chunks": "1", "repeats": "1"})
    return Answer()


def bulk(make: Make, directory: Path, options: Options) -> Answer:
    """Staging and committing all references at once. Memory is measured in the warm-up."""
    returned, durable, memory, size = Samples(), Samples(), 0, 0
    refs = int(options["refs"])
    for repeat in range(int(options["repeats"]) + 1):
        shutil.rmtree(directory, ignore_errors=True)
        peer = make()
        peer.create()
        before, idle = Disk.of(directory), idle_memory()
        clock = Clock()
        peer.bulk()
        clock.stop()
        memory = memory if repeat else peak_memory() - idle
        after = Disk.of(directory)
        size = after.written_since(before)
        add(returned, durable, clock, after.changed_since(before), counts=repeat > 0)
    facts = {"bytes-per-reference": size / refs, "memory-above-idle": memory}
    return Answer({"returned": returned, "durable": durable}, facts=facts)


def commit(make: Make, directory: Path, options: Options) -> Answer:
    """Commits that change a number of scattered chunks of a prepared array."""
    refs, chunks, repeats = (int(options[key]) for key in ("refs", "chunks", "repeats"))
    peer = make()
    peer.open()
    returned, durable = Samples(), Samples()
    besides = []
    for repeat in range(repeats + 1):
        targets = [(repeat * 7919 + at * (refs // chunks) + 17) % refs for at in range(chunks)]
        before = Disk.of(directory)
        clock = Clock()
        peer.change(targets, repeat + 1)
        clock.stop()
        after = Disk.of(directory)
        besides.append(after.written_since(before) - chunks * 1000)
        add(returned, durable, clock, after.changed_since(before), counts=repeat > 0)
    besides.sort()
    facts = {"bytes-besides-chunks": besides[len(besides) // 2]}
    return Answer({"returned": returned, "durable": durable}, facts=facts)


def add(returned: Samples, durable: Samples, clock: Clock, files: list[Path], counts: bool) -> None:
    """Syncs the files of a commit, and adds the times without and with that."""
    syncing = Clock()
    sync(files)
    syncing.stop()
    if counts:
        returned.add(clock)
        durable.add(clock.plus(syncing))


def open_chunk(make: Make, _directory: Path, options: Options) -> Answer:
    """A fresh open and one chunk, which the workload `commit` wrote as the second.

    Without repeats the first counts, for a caller that has dropped the page cache.
    """
    target, repeats = (7919 + 17) % int(options["refs"]), int(options["repeats"])
    samples, equal = Samples(), True
    for repeat in range(repeats + 1):
        peer = make()
        clock = Clock()
        value = peer.open_chunk(target)
        if repeat or not repeats:
            samples.add(clock)
        equal = equal and int(value) == 2
    return Answer({"open": samples}, equal=equal)


def tiny(make: Make, directory: Path, options: Options) -> Answer:
    """Many chunks of 4 KiB in one commit, once after a warm-up with a tenth of them."""
    samples, equal = Samples(), True
    count = int(options["chunks"])
    for chunks in (count // 10, count):
        at = np.arange(chunks * 4096, dtype=np.uint64)
        data = (((at * 31 + at // 4096) & 255) | 1).astype("uint8")
        shutil.rmtree(directory, ignore_errors=True)
        peer = make()
        peer.create_tiny(chunks)
        clock = Clock()
        peer.tiny(data)
        if chunks == count:
            samples.add(clock)
            equal = bool(np.array_equal(peer.read_tiny(), data))
    return Answer({"tiny": samples}, equal=equal)


def history(make: Make, _directory: Path, options: Options) -> Answer:
    """One chunk after another; keeps the twenty after the tenth, and the last twenty."""
    peer, commits = make(), int(options["commits"])
    peer.create()
    peer.bulk()
    peer.open()
    early, late = Samples(), Samples()
    for at in range(commits + 20):
        clock = Clock()
        peer.change([at % 10_000], 1)
        if 10 <= at < 30:
            early.add(clock)
        elif at >= commits:
            late.add(clock)
    return Answer({"early": early, "late": late})


WORKLOADS = {
    "prepare": prepare,
    "bulk": bulk,
    "commit": commit,
    "open-chunk": open_chunk,
    "tiny": tiny,
    "history": history,
}
