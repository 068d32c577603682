"""The rivals' side of the array workloads: `arrays.py PEER WORKLOAD DATA DIRECTORY [REPEATS]`.

One process per call; prints one JSON line. Data is checked once before anything is timed.
"""

import asyncio  # noqa: F401  (zarr wants it imported before its threads start)
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from data import FIELD_CHUNK, LABELS_CHUNK, load

peer, workload, data_directory, directory = sys.argv[1:5]
repeats = int(sys.argv[5]) if len(sys.argv) > 5 else 3
name = "labels" if workload.endswith("labels") else "field"
chunk = LABELS_CHUNK if name == "labels" else FIELD_CHUNK
# blosc level 2 is zstd level 3.
BLOSC = {"cname": "zstd", "clevel": 2, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
CODECS = {
    "field": [{"name": "blosc", "configuration": BLOSC}],
    "labels": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
}


class Tensorstore:
    def __init__(self, path, values):
        import tensorstore as ts

        self.ts = ts
        self.spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
        if values is None:
            self.array = ts.open(self.spec).result()
            return
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *CODECS[name]]
        metadata = {
            "shape": list(values.shape),
            "data_type": str(values.dtype),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
            "codecs": codecs,
        }
        spec = {**self.spec, "metadata": metadata, "create": True}
        self.array = ts.open(spec).result()

    def write(self, values):
        self.array.write(values).result()

    def read(self, key):
        return np.asarray(self.array[key].read().result())

    def durable(self):
        pass


class Zarr:
    """zarr-python on a directory; `zarrs` swaps its codec pipeline."""

    def __init__(self, path, values, store=None):
        import zarr
        from zarr.codecs import BloscCodec, ZstdCodec

        if peer == "zarr+zarrs":
            import zarrs  # noqa: F401

            zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        store = store or str(path)
        if values is None:
            self.array = zarr.open_array(store, path="a", mode="r")
            return
        codec = BloscCodec(**BLOSC) if name == "field" else ZstdCodec(level=3)
        self.array = zarr.create_array(
            store,
            name="a",
            shape=values.shape,
            chunks=chunk,
            dtype=values.dtype,
            compressors=[codec],
            filters=None,
        )

    def write(self, values):
        self.array[...] = values

    def read(self, key):
        return self.array[key]

    def durable(self):
        pass


class Icechunk(Zarr):
    def __init__(self, path, values):
        import icechunk

        storage = icechunk.local_filesystem_storage(str(path))
        if values is None:
            self.session = icechunk.Repository.open(storage).readonly_session("main")
        else:
            self.session = icechunk.Repository.create(storage).writable_session("main")
        super().__init__(path, values, self.session.store)

    def durable(self):
        self.session.commit("all")


class Blosc2:
    def __init__(self, path, values):
        import blosc2

        Path(path).mkdir(parents=True, exist_ok=True)
        self.blosc2, self.file = blosc2, f"{path}/a.b2nd"
        if values is None:
            self.array = blosc2.open(self.file, mode="r")

    def write(self, values):
        filters = [self.blosc2.Filter.SHUFFLE if name == "field" else self.blosc2.Filter.NOFILTER]
        params = self.blosc2.CParams(codec=self.blosc2.Codec.ZSTD, clevel=2, filters=filters)
        self.blosc2.asarray(
            values, chunks=chunk, urlpath=self.file, mode="w", cparams=params
        )

    def read(self, key):
        return self.array[key]

    def durable(self):
        pass


class Hdf5:
    def __init__(self, path, values):
        import h5py

        Path(path).mkdir(parents=True, exist_ok=True)
        self.file = h5py.File(f"{path}/a.h5", "r" if values is None else "w")
        if values is None:
            self.array = self.file["a"]
        else:
            # HDF5's own fastest common filter chain; zstd is not built in.
            self.array = self.file.create_dataset(
                "a", values.shape, values.dtype, chunks=chunk, compression="gzip",
                compression_opts=1, shuffle=name == "field",
            )

    def write(self, values):
        self.array[...] = values

    def read(self, key):
        return self.array[key]

    def durable(self):
        self.file.flush()


PEERS = {
    "tensorstore": Tensorstore,
    "zarr": Zarr,
    "zarr+zarrs": Zarr,
    "icechunk": Icechunk,
    "blosc2": Blosc2,
    "h5py": Hdf5,
}


def sample(run):
    cpu, start = time.process_time(), time.perf_counter()
    run()
    return time.perf_counter() - start, time.process_time() - cpu


def report(samples):
    seconds = sorted(wall for wall, _ in samples)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "best": seconds[0],
        "median": seconds[len(seconds) // 2],
        "p99": seconds[min(len(seconds) * 99 // 100, len(seconds) - 1)],
        "cpu": min(cpu for _, cpu in samples),
        "samples": len(seconds),
        "peak-memory": memory,
    }


def sync(path):
    """What the peers do not do: make everything durable."""
    for root, _, files in os.walk(path):
        for entry in [*(os.path.join(root, file) for file in files), root]:
            descriptor = os.open(entry, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def main():
    import shutil

    everything = (slice(None),) * 3
    if workload.startswith("write"):
        values = load(Path(data_directory), name)
        returned, durable = [], []
        for repeat in range(repeats + 1):
            path = Path(directory) / f"{peer}-{workload}"
            shutil.rmtree(path, ignore_errors=True)
            target = PEERS[peer](path, values)
            wrote = sample(lambda: target.write(values))
            finished = sample(lambda: (target.durable(), sync(path)))
            if repeat:
                returned.append(wrote)
                durable.append((wrote[0] + finished[0], wrote[1] + finished[1]))
        return {"returned": report(returned), "durable": report(durable), "bytes": values.nbytes}
    path = Path(directory) / f"{peer}-write{'-labels' if name == 'labels' else ''}"
    target = PEERS[peer](path, None)
    values = load(Path(data_directory), name)
    planes, nbytes = values.shape[0], values.nbytes
    if workload in ("read", "read-labels"):
        equal = bool(np.array_equal(target.read(everything), values))
        del values
        samples = [sample(lambda: target.read(everything)) for _ in range(repeats)]
        return {"fresh": report(samples), "equal": equal, "bytes": nbytes}
    if workload == "read-chunk":
        samples = []
        for at in range(220):
            plane = at * 617 % planes
            taken = sample(lambda: target.read((plane, slice(None), slice(None))))
            if at >= 20:
                samples.append(taken)
        return {"latency": report(samples)}
    if workload == "read-series":
        expected = values[:, 100, 200]
        equal = bool(np.array_equal(target.read((slice(None), 100, 200)), expected))
        samples = [sample(lambda: target.read((slice(None), 100, 200))) for _ in range(repeats)]
        return {**report(samples), "equal": equal}
    raise SystemExit(f"no workload {workload!r}")


print(json.dumps(main()), flush=True)
os._exit(0)  # some peers keep threads that delay a normal exit
