"""Segmentations as shards: a sharded Neuroglancer volume, and random records of Arrow shards."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from peers.clock import Answer, Clock, Samples
from peers.disk import Disk, sync_all
from peers.memory import peak

Make = Callable[[], Any]
Options = dict[str, str]
# Planes that are compared at once.
PLANES = 64
SEED = 17


def precomputed(make: Make, directory: Path, options: Options) -> Answer:
    """From opening the source to a complete volume, `repeats` times."""
    source = Path(options["source"], "plain")
    returned, durable = Samples(), Samples()
    for _ in range(max(1, int(options["repeats"]))):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        clock = Clock()
        make().export(source)
        returned.add(clock)
        sync_all(directory)
        durable.add(clock)
    memory = peak()
    shape = tuple(int(options[axis]) for axis in "zyx")
    wanted = np.memmap(Path(options["data"], "supervoxels"), "<u8", "r", shape=shape)
    read = make().open()
    equal = all(
        np.array_equal(read(slice(z, z + PLANES)), wanted[z : z + PLANES])
        for z in range(0, shape[0], PLANES)
    )
    stored = sum(file[1] for file in Disk.of(directory).files.values())
    facts = {"memory": memory, "stored-bytes": stored}
    return Answer({"returned": returned, "durable": durable}, equal=equal, facts=facts)


def records(make: Make, _directory: Path, options: Options) -> Answer:
    """Chunks at random, opening the shards included, `repeats` times after a warm-up."""
    shards = sorted(Path(options["source"], "shards", "s0").glob("*.arrow"))
    edge, count = int(options["grid"]), int(options["reads"])
    order = random.Random(SEED)
    chunks = [tuple(64 * order.randrange(edge) for _ in "xyz") for _ in range(count)]
    samples, equal, sums = Samples(), True, set()
    for repeat in range(max(1, int(options["repeats"])) + 1):
        clock = Clock()
        peer = make()
        peer.open(shards)
        found = [peer.chunk(*chunk) for chunk in chunks]
        if repeat:
            samples.add(clock)
        equal = equal and all(
            one["coordinates"] == chunk for one, chunk in zip(found, chunks, strict=True)
        )
        # Both lists and the bytes of each block are there, and the same every time.
        sums.add(hash(tuple((tuple(one["labels"]), one["compressed_data"]) for one in found)))
    return Answer({"records": samples}, equal=equal and len(sums) == 1, facts={"memory": peak()})


def fleet(make: Make, directory: Path, options: Options) -> Answer:
    """All blocks of a labelmap as shards, `repeats` times after a warm-up."""
    returned, equal = Samples(), True
    for repeat in range(max(1, int(options["repeats"])) + 1):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        peer = make()
        peer.export(Path(options["source"], "map"), returned if repeat else Samples())
        shape = tuple(int(options[axis]) // 64 for axis in "zyx")
        # No block of this volume is empty.
        equal = equal and peer.blocks() == int(np.prod(shape))
    return Answer({"returned": returned}, equal=equal, facts={})


WORKLOADS: dict[str, Callable[..., Answer]] = {
    "export-precomputed": precomputed,
    "export-fleet": fleet,
    "records": records,
}
