"""Writing, reading and growing one long column, the same for all rivals."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from peers.array_workloads import read_all
from peers.clock import Answer, Clock, Samples
from peers.data import Data
from peers.disk import Disk, sync, sync_all
from peers.memory import Idle
from peers.superchunk import CHUNK, Column

Make = Callable[[], Column]
Options = dict[str, str]
READS, WARM_UP = 220, 20


def load(options: Options) -> np.ndarray:
    return Data.load(Path(options["data"]), options["name"]).values.reshape(-1)


def fresh(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)


def stored(directory: Path) -> dict[str, int]:
    files = Disk.of(directory).files.values()
    return {"files": len(files), "stored-bytes": sum(file[1] for file in files)}


def write(make: Make, directory: Path, options: Options) -> Answer:
    """Everything, `repeats` times after a warm-up; the last one stays."""
    values = load(options)
    returned, durable, memory = Samples(), Samples(), 0
    for repeat in range(int(options["repeats"]) + 1):
        fresh(directory)
        idle, clock = Idle(), Clock()
        column = make()
        column.write(values)
        if repeat:
            returned.add(clock)
        sync_all(directory)
        if repeat:
            durable.add(clock)
        memory = max(memory, idle.above())
    measures = {"returned": returned, "durable": durable}
    return Answer(measures, facts={"memory": memory, **stored(directory)})


def read(make: Make, _directory: Path, options: Options) -> Answer:
    """Everything, into fresh and into reused memory."""
    return read_all(make(), lambda: load(options), int(options["repeats"]))


def random(make: Make, _directory: Path, options: Options) -> Answer:
    """Single rows and chunks, by one client and by four."""
    column, values = make(), load(options)
    column.open()
    chunks = len(values) // CHUNK
    one_row, one_chunk, equal = Samples(), Samples(), True
    for at in range(READS):
        start = (at * 7_919 + 13) * 104_729 % len(values)
        clock = Clock()
        row = column.part(start, start + 1)
        if at >= WARM_UP:
            one_row.add(clock)
        equal = equal and np.array_equal(row, values[start : start + 1])
        start = at * 617 % chunks * CHUNK
        clock = Clock()
        chunk = column.part(start, start + CHUNK)
        if at >= WARM_UP:
            one_chunk.add(clock)
        equal = equal and np.array_equal(chunk, values[start : start + CHUNK])

    def client(place: int) -> None:
        for at in range(READS):
            start = (at * 617 + place * 331) % chunks * CHUNK
            column.part(start, start + CHUNK)

    measures = {"row": one_row, "chunk": one_chunk}
    for name, count in (("one-client", 1), ("four-clients", 4)):
        shared = measures[name] = Samples()
        for _ in range(3):
            clients = [threading.Thread(target=client, args=(at,)) for at in range(count)]
            clock = Clock()
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
            shared.add(clock, count * READS)
    return Answer(measures, equal=bool(equal))


def append(make: Make, directory: Path, options: Options) -> Answer:
    """Batches of rows, durable once at the end or after each: the whole, and a batch of the first
    and of the last tenth."""
    values = load(options)
    batches, rows = int(options["batches"]), int(options["rows"])
    each, tenth = options.get("each") == "yes", max(1, batches // 10)
    total, early, late = Samples(), Samples(), Samples()
    fresh(directory)
    clock = Clock()
    column = make()
    column.begin(values.dtype, int(options["expected"]))
    seen = Disk.of(directory)
    part = Clock()
    for batch in range(batches):
        column.append(values[batch * rows : (batch + 1) * rows])
        if each:
            column.flush()
            now = Disk.of(directory)
            sync(now.changed_since(seen))
            seen = now
        if batch + 1 == tenth:
            early.add(part, tenth)
        if batch + 1 == batches - tenth:
            part = Clock()
    late.add(part, tenth)
    column.flush()
    sync_all(directory)
    total.add(clock)
    del column
    opened = make()
    opened.open()
    equal = bool(np.array_equal(opened.read(), values[: batches * rows]))
    measures = {"all": total, "early": early, "late": late}
    return Answer(measures, facts=stored(directory), equal=equal)


def files(make: Make, directory: Path, options: Options) -> Answer:
    """How many files a large column of equal rows has with default options."""
    fresh(directory)
    returned, clock = Samples(), Clock()
    make().fill(int(options["rows"]), 1.5)
    returned.add(clock)
    return Answer({"returned": returned}, facts=stored(directory))


WORKLOADS = {
    "superchunk-write": write,
    "superchunk-read": read,
    "superchunk-random": random,
    "superchunk-append": append,
    "superchunk-files": files,
}
