"""Conversions of plain Zarr, the same for all rivals."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from peers.array_workloads import Make, Options, load
from peers.base import LZ4, Change
from peers.clock import Answer, Clock, Samples
from peers.disk import sync_all

CHANGES = {
    "copy": Change(),
    "transcode": Change(codec=LZ4),
    "regrid": Change(chunk=(128, 128, 32)),
}


def convert(make: Make, directory: Path, options: Options) -> Answer:
    """From opening the source to a durable target, `repeats` times after a warm-up."""
    source, change = Path(options["source"]), CHANGES[options["movement"]]
    returned, durable = Samples(), Samples()
    for repeat in range(int(options["repeats"]) + 1):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        clock = Clock()
        make().convert(source, change)
        if repeat:
            returned.add(clock)
        sync_all(directory)
        if repeat:
            durable.add(clock)
    peer = make()
    peer.open()
    equal = bool(np.array_equal(peer.read(), load(options).values))
    return Answer({"returned": returned, "durable": durable}, equal=equal)


WORKLOADS = {"convert": convert}
