"""Icechunk's side of the commit workloads: `commits.py WORKLOAD DIRECTORY [KEY=VALUE …]`."""

import json
import os
import resource
import sys
import time
from pathlib import Path

import icechunk
import numpy as np
import zarr

options = dict(pair.split("=", 1) for pair in sys.argv[3:])
workload, directory = sys.argv[1], sys.argv[2]
refs = int(options.get("refs", 100_000))
chunks = int(options.get("chunks", 1))
repeats = int(options.get("repeats", 3))
split = int(options.get("split", 0))
PREFIX = "s3://bucket/data/"


def config():
    config = icechunk.RepositoryConfig.default()
    store = icechunk.s3_store(region="us-east-1")
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(PREFIX, store))
    if split:
        # The array is (n, 1000, 1): `split` references are so many planes.
        sizes = {
            icechunk.ManifestSplitCondition.AnyArray(): {
                icechunk.ManifestSplitDimCondition.Axis(0): max(split // 1000, 1)
            }
        }
        splitting = icechunk.ManifestSplittingConfig.from_dict(sizes)
        config.manifest = icechunk.ManifestConfig(splitting=splitting)
    return config


def storage():
    return icechunk.local_filesystem_storage(directory)


def create():
    return icechunk.Repository.create(storage(), config=config())


def new_array(session):
    return zarr.create_array(
        session.store,
        name="a",
        shape=(-(-refs // 1000), 1000, 1000),
        chunks=(1, 1, 1000),
        dtype="uint8",
        compressors=None,
        filters=None,
    )


def stage(session):
    specs = [
        icechunk.VirtualChunkSpec([at // 1000, at % 1000, 0], PREFIX + "file.nc", at * 1000, 1000)
        for at in range(refs)
    ]
    session.store.set_virtual_refs("a", specs, validate_containers=False)


def measure(run):
    cpu = time.process_time()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start, time.process_time() - cpu


def report(samples, **extra):
    seconds = sorted(sample[0] for sample in samples)
    cpu = min(sample[1] for sample in samples)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "best": seconds[0],
                "median": seconds[len(seconds) // 2],
                "cpu": cpu,
                "samples": len(seconds),
                "peak-memory": memory,
                **extra,
            }
        )
    )


def disk():
    return sum(file.stat().st_size for file in Path(directory).rglob("*") if file.is_file())


if workload == "prepare-refs":
    session = create().writable_session("main")
    new_array(session)
    stage(session)
    session.commit("all references")
    print(json.dumps({"disk": disk()}))
elif workload == "commit-bulk":
    session = create().writable_session("main")
    new_array(session)
    before = disk()

    def run():
        stage(session)
        session.commit("all references")

    samples = [measure(run)]
    report(samples, **{"bytes-per-reference": (disk() - before) / refs})
elif workload == "commit-one":
    repo = icechunk.Repository.open(storage(), config=config())
    samples = []
    for repeat in range(repeats + 1):

        def run():
            session = repo.writable_session("main")
            array = zarr.open_array(session.store, path="a", mode="r+")
            for at in range(chunks):
                target = (repeat * 7919 + at * (refs // chunks) + 17) % refs
                array[target // 1000, target % 1000, :] = np.full(1000, repeat + 1, "uint8")
            session.commit("one")

        sample = measure(run)
        if repeat:
            samples.append(sample)
    report(samples)
elif workload == "open-first-chunk":
    samples = []
    target = (7919 + 17) % refs
    for _ in range(repeats + 1):

        def run():
            repo = icechunk.Repository.open(storage())
            session = repo.readonly_session("main")
            array = zarr.open_array(session.store, path="a", mode="r")
            assert array[target // 1000, target % 1000, 0] == 2

        samples.append(measure(run))
    report(samples)
elif workload == "write-tiny":
    count = int(options.get("chunks", 100_000))
    session = create().writable_session("main")
    array = zarr.create_array(
        session.store,
        name="a",
        shape=(count * 4096,),
        chunks=(4096,),
        dtype="uint8",
        compressors=None,
        filters=None,
    )
    data = np.arange(count * 4096, dtype=np.uint64)
    data = ((data * 31 + data // 4096) & 255 | 1).astype("uint8")

    def run():
        array[:] = data
        session.commit("tiny chunks")

    report([measure(run)], chunks=count)
elif workload == "history":
    commits = int(options.get("commits", 1000))
    repo = create()
    session = repo.writable_session("main")
    refs = 10_000
    new_array(session)
    session.commit("array")
    times = []
    for at in range(commits):
        start = time.perf_counter()
        session = repo.writable_session("main")
        array = zarr.open_array(session.store, path="a", mode="r+")
        array[(at % 10_000) // 1000, at % 1000, :] = np.full(1000, 1, "uint8")
        session.commit(f"commit {at}")
        times.append(time.perf_counter() - start)
    middle = lambda part: sorted(part)[len(part) // 2]  # noqa: E731
    print(json.dumps({"early": middle(times[5:25]), "late": middle(times[-20:]), "disk": disk()}))
else:
    sys.exit(f"no workload {workload!r}")
sys.stdout.flush()
os._exit(0)  # Icechunk keeps threads that delay a normal exit
