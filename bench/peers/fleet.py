"""An export from a server to two workers on this machine, and the same shards by one command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from pyarrow import flight

from peers.clock import Clock, Samples
from peers.servers import command

WORKERS = 2


class Fleet:
    """`way=workers`: from the start of the export until the last acknowledgement; server and
    workers are there before. `way=files`: from the start of the command to its end."""

    def __init__(self, path: Path, options: dict[str, str]) -> None:
        self.path, self.way = path, options["way"]
        self.spec = spec(tuple(int(options[axis]) for axis in "xyz"))

    def export(self, source: Path, samples: Samples) -> None:
        if self.way == "files":
            wanted = self.path / "wanted.json"
            wanted.write_text(json.dumps(self.spec))
            clock = Clock()
            export = [command(), "export-shards", str(source), str(self.path)]
            options = ["--spec", str(wanted), "--strip-labels", "--quiet"]
            subprocess.run([*export, *options], check=True)
            samples.add(clock)
            return
        server, url = self._serve(source)
        workers = [self._worker(url) for _ in range(WORKERS)]
        try:
            # They are there when they have done a first job together; it does not count.
            self._job(url, workers)
            clock = Clock()
            self._job(url, workers)
            samples.add(clock)
        finally:
            for process in (*workers, server):
                process.kill()
                process.wait()

    def _job(self, url: str, workers: list[Any]) -> None:
        """Starts an export and waits until all of it is acknowledged."""
        job = _call(url, "export.start", source="source", spec=self.spec)["job"]
        while _call(url, "export.status", job=job)["state"] != "over":
            if any(worker.poll() is not None for worker in workers):
                raise RuntimeError("a worker has ended")
            time.sleep(0.005)

    def _serve(self, source: Path) -> tuple[Any, str]:
        jobs = self.path.parent / "jobs"
        ports = ["--http", "127.0.0.1:0", "--flight", "127.0.0.1:0"]
        serve = [command(), "serve", f"source={source}", "--jobs", str(jobs), "--json", *ports]
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["flight"].split("://")[1]
        return server, "grpc://" + address.rstrip("/")

    def _worker(self, url: str) -> Any:
        sink = f"parquet:{self.path}/{{job}}"
        work = [sys.executable, "-m", "chunkyard.worker", url, "--sink", sink, "--quiet"]
        return subprocess.Popen(work)

    def blocks(self) -> int:
        """How many blocks there are."""
        if self.way == "workers":
            jobs = list(self.path.iterdir())
            files = [file for job in jobs for file in (job / "blocks_s0").glob("*.parquet")]
            return sum(pq.read_metadata(file).num_rows for file in files) // len(jobs)
        count = 0
        for file in (self.path / "s0").glob("*.arrow"):
            with ipc.open_file(file) as reader:
                batches = range(reader.num_record_batches)
                count += sum(reader.get_batch(at).num_rows for at in batches)
        return count


def spec(size: tuple[int, ...]) -> dict[str, Any]:
    """A volume in shards of 256 voxels along each axis."""
    bits = sum((extent // 64 - 1).bit_length() for extent in size)
    scale = {
        "key": "8_8_8",
        "size": size,
        "voxel_offset": [0, 0, 0],
        "resolution": [8, 8, 8],
        "chunk_sizes": [[64, 64, 64]],
        "encoding": "compressed_segmentation",
        "compressed_segmentation_block_size": [8, 8, 8],
        "sharding": {
            "@type": "neuroglancer_uint64_sharded_v1",
            "hash": "identity",
            "preshift_bits": 6,
            "minishard_bits": 0,
            "shard_bits": max(bits - 6, 0),
            "minishard_index_encoding": "gzip",
            "data_encoding": "gzip",
        },
    }
    kind = {"@type": "neuroglancer_multiscale_volume", "type": "segmentation"}
    return {**kind, "data_type": "uint64", "num_channels": 1, "scales": [scale]}


def _call(url: str, name: str, **body: Any) -> dict[str, Any]:
    with flight.connect(url) as client:
        (answer,) = client.do_action(flight.Action(name, json.dumps(body).encode()))
    return dict(json.loads(answer.body.to_pybytes()))
