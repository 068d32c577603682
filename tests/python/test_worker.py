"""An export through the real server and real workers, which are killed: label map, server, Parquet, volume, voxel for voxel.

The faults that no server commits are in crates/python/tests/test_worker.py, the sink for VastDB in tests/vastdb.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tensorstore as ts
from pyarrow import flight

from chunkyard.worker import label_block, read_blocks
from conftest import ROOT, run
from label_blocks import block_voxels

# A worker or a server that ended is waited for in vain.
pytestmark = pytest.mark.timeout(300)

SHAPE = (160, 140, 300)  # z, y, x
BINARY = os.environ.get("CHUNKYARD_BIN", str(ROOT / "target" / "debug" / "chunkyard"))


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    """A labelmap with merges at the tag v1, and other ones after it; its bodies and its supervoxels at the tag."""
    folder = tmp_path_factory.mktemp("brain")
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    volume = ((1 << 60) + 1 + x // 20 + 20 * (y // 30) + 400 * (z // 40)).astype("u8")
    volume[:, :, 250:] = 0
    np.save(folder / "seg.npy", volume)
    first = (1 << 60) + 1
    run("labels", "import", folder / "brain", folder / "seg.npy", "--voxel-size", "8,8,8", "--unit", "nanometer")
    run("labels", "merge-bodies", folder / "brain", first, first + 1, first + 2)
    run("repo", "tag", folder / "brain", "create", "v1")
    run("labels", "merge-bodies", folder / "brain", first + 3, first + 4)
    bodies = volume.copy()
    bodies[np.isin(volume, (first + 1, first + 2))] = first
    return folder / "brain", bodies, volume


class Server:
    """`chunkyard serve`, which is killed and begun again with the same jobs."""

    def __init__(self, brain: Path, folder: Path) -> None:
        # A worker that was killed holds its task for a second.
        (folder / "chunkyard.toml").write_text("[limits]\nlease-ms = 1000\n")
        self._command = [BINARY, "serve", f"brain={brain}", "--config", str(folder / "chunkyard.toml"), "--jobs", str(folder / "jobs")]
        self._command += ["--http", "127.0.0.1:0", "--json"]
        self._child: Any = None
        self.url = self.http = ""

    def begin(self) -> None:
        # The same port again: workers know no other.
        port = self.url.rsplit(":", 1)[1] if self.url else "0"
        command = [*self._command, "--flight", f"127.0.0.1:{port}"]
        self._child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        where = json.loads(self._child.stdout.readline())
        self.url, self.http = where["flight"], where["http"]

    def kill(self) -> None:
        self._child.kill()
        self._child.communicate()

    def call(self, name: str, **body: Any) -> dict[str, Any]:
        with flight.connect(self.url) as client:
            (answer,) = client.do_action(flight.Action(name, json.dumps(body).encode()))
        return json.loads(answer.body.to_pybytes())

    def done(self, job: str) -> int:
        return self.call("export.status", job=job)["done"]

    def start(self, over_http: bool = False, **more: Any) -> str:
        # Shards of one block or two, so that there are many.
        sizes = [[300, 140, 160], [150, 70, 80]]
        scales = [
            {
                "key": f"{8 << scale}_{8 << scale}_{8 << scale}", "size": size, "voxel_offset": [0, 0, 0], "resolution": [8 << scale] * 3,
                "chunk_sizes": [[64, 64, 64]], "encoding": "compressed_segmentation", "compressed_segmentation_block_size": [8, 8, 8],
                "sharding": {
                    "@type": "neuroglancer_uint64_sharded_v1", "hash": "identity", "preshift_bits": 1, "minishard_bits": 0, "shard_bits": 7,
                    "minishard_index_encoding": "gzip", "data_encoding": "gzip",
                },
            }
            for scale, size in enumerate(sizes)
        ]  # fmt: skip
        spec = {"@type": "neuroglancer_multiscale_volume", "type": "segmentation", "data_type": "uint64", "num_channels": 1, "scales": scales}
        if over_http:
            body = json.dumps({"spec": spec, **more}).encode()
            with urllib.request.urlopen(f"{self.http}/api/node/v1/brain/export", body) as answer:
                assert answer.status == 202
                return json.load(answer)["job"]
        return self.call("export.start", source="brain", at="v1", spec=spec, **more)["job"]


@pytest.fixture
def server(brain: tuple[Path, np.ndarray, np.ndarray], tmp_path: Path) -> Iterator[Server]:
    server = Server(brain[0], tmp_path)
    server.begin()
    yield server
    server.kill()


@contextmanager
def workers(server: Server, out: Path, count: int, *options: str) -> Iterator[list[Any]]:
    command = [sys.executable, "-m", "chunkyard.worker", server.url, "--sink", f"parquet:{out}", "--json", *options]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        yield children
    finally:
        for child in children:
            child.kill()
            child.communicate()


def wait(condition: Callable[[], bool]) -> None:
    """Waits for something that is to happen; the time limit of the test ends it otherwise."""
    while not condition():
        time.sleep(0.01)


def ends(children: list[Any]) -> list[list[dict[str, Any]]]:
    """Waits for workers; what each acknowledged."""
    found = []
    for child in children:
        out, text = child.communicate(timeout=90)
        assert child.returncode == 0, text
        found.append([json.loads(line) for line in out.splitlines()])
    return found


def check(brain: tuple[Path, np.ndarray, np.ndarray], out: Path, folder: Path) -> None:
    """Each block is in the table once, and the volume of the table is the labelmap at the version."""
    _, bodies, supervoxels = brain
    found: Counter[tuple[int, int]] = Counter()
    voxels = np.zeros((192, 192, 320), "u8")
    for path in sorted(out.glob("blocks_s*/*.parquet")):
        for block in read_blocks(path):
            found[block.scale, block.morton] += 1
            if block.scale == 0:
                x, y, z = block.position
                voxels[z : z + 64, y : y + 64, x : x + 64] = block_voxels(label_block(block))
                inside = supervoxels[z : z + 64, y : y + 64, x : x + 64]
                theirs = block_voxels(label_block(block, supervoxels=True))
                np.testing.assert_array_equal(theirs[tuple(map(slice, inside.shape))], inside)
    assert set(found.values()) == {1}
    # 250 of 300 voxels along x are not label 0.
    assert sum(scale == 0 for scale, _ in found) == 4 * 3 * 3
    np.testing.assert_array_equal(voxels[: SHAPE[0], : SHAPE[1], : SHAPE[2]], bodies)
    run("export-shards", f"table:{out}", folder / "volume", "--emit", "precomputed")
    run("export-shards", brain[0], folder / "direct", "--version", "v1", "--spec", out / "spec.json", "--emit", "precomputed")
    for scale in (0, 1):
        arrays = []
        for name in ("volume", "direct"):
            spec = {"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": f"{folder / name}/"}, "scale_index": scale}
            arrays.append(ts.open(spec, read=True).result()[..., 0].read().result())
        np.testing.assert_array_equal(arrays[0], arrays[1])
        if scale == 0:
            np.testing.assert_array_equal(arrays[0].transpose(2, 1, 0), bodies)


def test_three_workers_write_what_the_labelmap_is_at_the_version(brain: Any, server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # They wait before there is a job, and after it.
    with workers(server, out, 3) as children:
        job = server.start(over_http=True, key="first")
        assert server.start(over_http=True, key="first") == job
        wait(lambda: (out / "table.json").exists())
        for child in children:
            child.terminate()
        acknowledged = ends(children)
    tasks = [line["task"] for lines in acknowledged for line in lines if line["event"] == "acknowledged"]
    status = server.call("export.status", job=job)
    assert sorted(tasks) == list(range(status["tasks"])) and status["state"] == "over"
    check(brain, out, tmp_path)
    # DuckDB reads it: blocks and the index.
    first = (1 << 60) + 1
    count = f"select count(*), count(distinct (shard_id, morton)) from '{out}/blocks_s0/*.parquet' where list_contains(labels, {first})"
    ((blocks, distinct),) = duckdb.sql(count).fetchall()
    bodies = brain[1]
    places = {tuple(at // 64 for at in place) for place in np.argwhere(bodies == first)}
    assert blocks == distinct == len(places)
    index = f"select sum(list_sum(counts)) from '{out}/index/*.parquet' where body = {first}"
    assert duckdb.sql(index).fetchall() == [((bodies == first).sum(),)]


@pytest.mark.parametrize("killed", [1, 2])
def test_workers_that_are_killed_are_replaced_by_the_others(brain: Any, server: Server, tmp_path: Path, killed: int) -> None:
    out = tmp_path / "out"
    job = server.start()
    with workers(server, out, 3, "--job", job) as children:
        wait(lambda: server.done(job) > 0)
        for child in children[:killed]:
            child.kill()
        ends(children[killed:])
    assert server.call("export.status", job=job)["state"] == "over"
    check(brain, out, tmp_path)


def test_a_server_that_is_killed_goes_on_where_it_was(brain: Any, server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = server.start()
    with workers(server, out, 2, "--job", job) as children:
        wait(lambda: server.done(job) > 0)
        server.kill()
        server.begin()
        ends(children)
    status = server.call("export.status", job=job)
    assert status["state"] == "over" and status["done"] == status["tasks"]
    check(brain, out, tmp_path)


def test_all_of_them_are_killed_and_others_go_on(brain: Any, server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = server.start()
    with workers(server, out, 2, "--job", job):
        wait(lambda: server.done(job) > 0)
        server.kill()
    server.begin()
    with workers(server, out, 1, "--job", job) as children:
        ends(children)
    check(brain, out, tmp_path)


def test_a_token_is_asked_for_and_given(brain: Any, tmp_path: Path) -> None:
    server = Server(brain[0], tmp_path)
    tokens = [f'[[tokens]]\ntoken = "{role}-token"\nrole = "{role}"\n' for role in ("read", "write", "admin")]
    (tmp_path / "chunkyard.toml").write_text("".join(tokens))
    server.begin()

    def work(token: str | None, *options: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "CHUNKYARD_TOKEN"}
        if token is not None:
            environment["CHUNKYARD_TOKEN"] = token
        command = [sys.executable, "-m", "chunkyard.worker", server.url, "--sink", f"parquet:{tmp_path / 'out'}", *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    try:
        with flight.connect(server.url) as client:
            action = flight.Action("export.start", json.dumps({"source": "brain", "scales": 1}).encode())
            headers = [(b"authorization", b"Bearer admin-token")]
            (answer,) = client.do_action(action, flight.FlightCallOptions(headers=headers))
        job = json.loads(answer.body.to_pybytes())["job"]
        for token in (None, "another", "read-token"):
            done = work(token, "--job", job)
            assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
        done = work("write-token", "--job", job)
        assert done.returncode == 0, done.stderr
        # The job is over; the file with the token is read.
        (tmp_path / "token").write_text("write-token\n")
        done = work(None, "--job", job, "--token-file", str(tmp_path / "token"))
        assert done.returncode == 0, done.stderr
    finally:
        server.kill()
    assert (tmp_path / "out" / "table.json").exists()
