"""Writing and reading arrays, the same for all rivals."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from peers.base import ArrayPeer, Key
from peers.clock import Answer, Cannot, Clock, Samples
from peers.data import Data, series_point
from peers.disk import sync_all
from peers.memory import Idle
from peers.superchunk import Column

Make = Callable[[], ArrayPeer]
Options = dict[str, str]
READS, WARM_UP = 220, 20


def load(options: Options) -> Data:
    return Data.load(Path(options["data"]), options["name"])


def write(make: Make, directory: Path, options: Options) -> Answer:
    """Everything into a fresh directory, `repeats` times after a warm-up; the last one stays."""
    data = load(options)
    returned, durable = Samples(), Samples()
    for repeat in range(int(options["repeats"]) + 1):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        peer = make()
        peer.create(data)
        clock = Clock()
        peer.write(data.values)
        if repeat:
            returned.add(clock)
        peer.finish()
        sync_all(directory)
        if repeat:
            durable.add(clock)
    stored = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    measures = {"returned": returned, "durable": durable}
    return Answer(measures, facts={"stored-bytes": stored})


def read(make: Make, _directory: Path, options: Options) -> Answer:
    """Everything, into fresh and into reused memory."""
    return read_all(make(), lambda: load(options).values, int(options["repeats"]))


def read_all(peer: ArrayPeer | Column, load: Callable[[], np.ndarray], repeats: int) -> Answer:
    """Everything, into fresh and into reused memory. The first read of each checks the data."""
    values = load()
    peer.open()
    idle = Idle()
    found = peer.read()
    answer = Answer(facts={"memory": idle.above()}, equal=bool(np.array_equal(found, values)))
    memory = np.ones_like(values)
    try:
        peer.read_into(memory)
        answer.equal = answer.equal and bool(np.array_equal(memory, values))
    except Cannot as reason:
        answer.cannot["reused"] = str(reason)
    del found, values
    fresh, reused = Samples(), Samples()
    for _ in range(repeats):
        clock = Clock()
        found = peer.read()
        fresh.add(clock)
        del found
        if "reused" not in answer.cannot:
            clock = Clock()
            peer.read_into(memory)
            reused.add(clock)
    answer.measures = {"fresh": fresh, "reused": reused}
    return answer


def read_cold(make: Make, _directory: Path, options: Options) -> Answer:
    """Open and read everything once; the caller has dropped the page cache."""
    samples = Samples()
    clock = Clock()
    peer = make()
    peer.open()
    values = peer.read()
    samples.add(clock)
    return Answer({"cold": samples}, equal=bool(np.array_equal(values, load(options).values)))


def read_chunk(make: Make, _directory: Path, options: Options) -> Answer:
    """Random chunks, into a reused buffer if the rival can, by one client and by two."""
    peer, values = make(), load(options).values
    peer.open()
    planes = len(values)
    out = np.empty((1, 512, 512), values.dtype)
    one, two, equal = Samples(), Samples(), True
    for at in range(READS):
        plane = at * 617 % planes
        clock = Clock()
        chunk = peer.read_chunk(plane, out)
        if at >= WARM_UP:
            one.add(clock)
        equal = equal and np.array_equal(chunk, values[plane : plane + 1])

    def client(start: int) -> None:
        out = np.empty((1, 512, 512), values.dtype)
        for at in range(READS):
            peer.read_chunk((at * 617 + start) % planes, out)

    for _ in range(3):
        clients = [threading.Thread(target=client, args=(start,)) for start in (0, 331)]
        clock = Clock()
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        two.add(clock, 2 * READS)
    return Answer({"latency": one, "two-clients": two}, equal=bool(equal))


def read_chunk_fresh(make: Make, _directory: Path, options: Options) -> Answer:
    """Random chunks, each into memory of its own."""
    peer, values = make(), load(options).values
    peer.open()
    samples, equal = Samples(), True
    for at in range(READS):
        plane = at * 617 % len(values)
        part = slice(plane, plane + 1)
        clock = Clock()
        chunk = peer.select((part, slice(None), slice(None)))
        if at >= WARM_UP:
            samples.add(clock)
        equal = equal and np.array_equal(chunk, values[part])
        del chunk
    return Answer({"latency": samples}, equal=bool(equal))


def read_strided(make: Make, _directory: Path, options: Options) -> Answer:
    """Every fourth element along each axis, and every sixteenth of each plane."""
    peer, values = make(), load(options).values
    peer.open()
    fourth, sixteenth = slice(None, None, 4), slice(None, None, 16)
    keys: dict[str, Key] = {
        "everywhere": (fourth, fourth, fourth),
        "in-planes": (slice(None), sixteenth, sixteenth),
    }
    measures, equal = {name: Samples() for name in keys}, True
    for repeat in range(int(options["repeats"]) + 1):
        for name, key in keys.items():
            clock = Clock()
            part = peer.select(key)
            if repeat:
                measures[name].add(clock)
            equal = equal and np.array_equal(part, values[key])
    return Answer(measures, equal=bool(equal))


def read_series(make: Make, _directory: Path, options: Options) -> Answer:
    """One point through all chunks, another point each time."""
    peer, values = make(), load(options).values
    peer.open()
    samples, equal = Samples(), True
    for repeat in range(int(options["repeats"]) + 1):
        y, x = series_point(repeat)
        clock = Clock()
        series = peer.read_series(y, x)
        if repeat:
            samples.add(clock)
        equal = equal and np.array_equal(series, values[:, y, x])
    return Answer({"series": samples}, equal=bool(equal))


WORKLOADS = {
    "write": write,
    "read": read,
    "read-cold": read_cold,
    "read-chunk": read_chunk,
    "read-chunk-fresh": read_chunk_fresh,
    "read-series": read_series,
    "read-strided": read_strided,
}
