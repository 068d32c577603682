"""All of it: a labelmap with merges, the real server, three workers that are processes, the SDK, the database, a volume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts
from pyarrow import flight

from chunkyard.worker import download
from server import Vast

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("CHUNKYARD_BIN", str(ROOT / "target" / "debug" / "chunkyard"))


def run(*arguments: object) -> None:
    subprocess.run([BINARY, *map(str, arguments)], check=True, capture_output=True, timeout=120)


def test_the_volume_of_the_database_is_the_labelmap(tmp_path: Path) -> None:
    z, y, x = np.ogrid[:100, :90, :200]
    bodies = ((1 << 60) + x // 20 + 20 * (y // 30) + 400 * (z // 40)).astype("u8")
    np.save(tmp_path / "seg.npy", bodies)
    first = 1 << 60
    run("labels", "import", tmp_path / "brain", tmp_path / "seg.npy", "--voxel-size", "8,8,8", "--unit", "nanometer")
    run("labels", "merge-bodies", tmp_path / "brain", first, first + 1, first + 20)
    bodies[np.isin(bodies, (first + 1, first + 20))] = first

    # Faults on the way; what is retried is retried.
    vast = Vast("drop POST rows", "reply lost PUT transaction", "slow down POST rows", "error POST rows")
    command = [BINARY, "serve", f"brain={tmp_path / 'brain'}", "--jobs", str(tmp_path / "jobs"), "--json"]
    server = subprocess.Popen([*command, "--http", "127.0.0.1:0", "--flight", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    workers: list[Any] = []
    try:
        assert server.stdout is not None
        url = "grpc://" + json.loads(server.stdout.readline())["flight"].split("://")[1].rstrip("/")
        with flight.connect(url) as client:

            def call(name: str, **body: Any) -> dict[str, Any]:
                (answer,) = client.do_action(flight.Action(name, json.dumps(body).encode()))
                return json.loads(answer.body.to_pybytes())

            job = call("export.start", source="brain")["job"]
            sink = f"vastdb:{vast.endpoint}/bucket/seg"
            command = [sys.executable, "-m", "chunkyard.worker", url, "--sink", sink, "--job", job]
            workers += [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
            for worker in workers:
                _, text = worker.communicate(timeout=120)
                assert worker.returncode == 0, text
            deadline = time.monotonic() + 30
            while call("export.status", job=job)["state"] != "over":
                assert time.monotonic() < deadline
    finally:
        for process in (*workers, server):
            process.kill()
            process.communicate()

    table = vast.content("seg/blocks_s0")
    assert table.num_rows == 2 * 2 * 4 == len(set(table["morton"].to_pylist()))
    download(sink, str(tmp_path / "tables"))
    vast.close()
    run("export-shards", f"table:{tmp_path / 'tables'}", tmp_path / "volume", "--emit", "precomputed")
    spec = {"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": f"{tmp_path / 'volume'}/"}, "scale_index": 0}
    found = ts.open(spec, read=True).result()[..., 0].read().result()
    np.testing.assert_array_equal(found.transpose(2, 1, 0), bodies)
