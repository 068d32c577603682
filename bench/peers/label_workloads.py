"""Segmentations: single blocks there and back, and the voxels of a whole volume."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from peers.clock import Answer, Clock, Samples
from peers.data import Data
from peers.disk import Disk, sync_all
from peers.supervoxels import EDGE, load_blocks, load_volume

Make = Callable[[], Any]
Options = dict[str, str]
# Samples, and how often the blocks are worked on for each.
SAMPLES, PASSES = 9, 2


def sample(work: Callable[[], Any]) -> Samples:
    """Samples of work on all blocks once, after a warm-up."""
    samples = Samples()
    work()
    for _ in range(SAMPLES):
        clock = Clock()
        for _ in range(PASSES):
            work()
        samples.add(clock, PASSES)
    return samples


def codec(make: Make, _directory: Path, options: Options) -> Answer:
    """Encoding, decoding, and both, as it takes to turn another encoding into this one."""
    peer = make()
    blocks = list(load_blocks(Path(options["data"]), options["name"]))
    encoded = [peer.encode(block) for block in blocks]
    pairs = zip(blocks, encoded, strict=True)
    equal = all(np.array_equal(block, peer.decode(one)) for block, one in pairs)
    measures = {
        "decode": sample(lambda: [peer.decode(one) for one in encoded]),
        "encode": sample(lambda: [peer.encode(block) for block in blocks]),
        "transcode": sample(lambda: [peer.encode(peer.decode(one)) for one in encoded]),
    }
    return Answer(measures, equal=equal, facts={"stored-bytes": sum(map(len, encoded))})


def import_volume(make: Make, directory: Path, options: Options) -> Answer:
    """The voxels alone, without coarser scales or tables: the kind of array is `labels`."""
    shape = tuple(int(options[axis]) for axis in "zyx")
    data = Data("labels", load_volume(Path(options["data"]), shape))
    durable = Samples()
    for _ in range(max(1, int(options["repeats"]))):
        shutil.rmtree(directory, ignore_errors=True)
        clock = Clock()
        peer = make()
        peer.create(data)
        peer.write(data.values)
        peer.finish()
        sync_all(directory)
        durable.add(clock)
    peer = make()
    peer.open()
    slabs = [slice(z, z + EDGE) for z in range(0, shape[0], EDGE)]
    whole = slice(None)
    equal = all(np.array_equal(peer.select((z, whole, whole)), data.values[z]) for z in slabs)
    files = Disk.of(directory).files.values()
    facts = {"files": len(files), "stored-bytes": sum(file[1] for file in files)}
    return Answer({"durable": durable}, equal=equal, facts=facts)


WORKLOADS: dict[str, Callable[..., Answer]] = {
    "label-codec": codec,
    "label-import": import_volume,
}
