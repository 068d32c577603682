"""A server of exports in a few lines, which lies where a test wants it to: what no honest server does cannot be tested with one."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
from pyarrow import flight

LIST = pa.list_(pa.field("item", pa.uint64()))
BLOCKS = pa.schema(
    [
        pa.field("scale", pa.uint8(), nullable=False),
        pa.field("shard_id", pa.uint64(), nullable=False),
        pa.field("morton", pa.uint64(), nullable=False),
        *(pa.field(axis, pa.int32(), nullable=False) for axis in "xyz"),
        pa.field("labels", LIST, nullable=False),
        pa.field("supervoxels", LIST, nullable=False),
        pa.field("data", pa.binary(), nullable=False),
        pa.field("nbytes", pa.uint32(), nullable=False),
        pa.field("raw_nbytes", pa.uint32(), nullable=False),
        pa.field("codec", pa.utf8(), nullable=False),
        pa.field("crc32c", pa.uint32(), nullable=False),
    ]
)
INDEX = pa.schema(
    [
        pa.field("body", pa.uint64(), nullable=False),
        *(pa.field(axis, pa.int32(), nullable=False) for axis in "xyz"),
        pa.field("supervoxels", LIST, nullable=False),
        pa.field("counts", pa.list_(pa.field("item", pa.uint32())), nullable=False),
    ]
)


def blocks(shard: int, sizes: list[int], labels: list[int], scale: int = 0) -> Any:
    """Blocks of a shard with payloads of some sizes and label lists of some lengths."""
    random = np.random.default_rng(shard)
    data = [random.bytes(size) for size in sizes]
    lists = [random.integers(1, 1 << 60, count, "u8") for count in labels]
    rows = len(sizes)
    columns = {
        "scale": [scale] * rows,
        "shard_id": [shard] * rows,
        "morton": [8 * shard + at for at in range(rows)],
        "x": [64 * at for at in range(rows)],
        "y": [0] * rows,
        "z": [-64] * rows,
        "labels": [numbers // 2 for numbers in lists],
        "supervoxels": lists,
        "data": data,
        "nbytes": sizes,
        "raw_nbytes": [size + 9 for size in sizes],
        "codec": ["zstd"] * rows,
        "crc32c": [crc32c.crc32c(payload) for payload in data],
    }
    return pa.RecordBatch.from_pydict(columns, schema=BLOCKS)


def index(part: int, rows: int) -> Any:
    """Rows of a part of the index."""
    random = np.random.default_rng(part)
    lengths = random.integers(0, 5, rows)
    columns = {
        "body": np.arange(rows, dtype="u8") + 100 * part,
        **{axis: random.integers(-1000, 1000, rows).astype("i4") for axis in "xyz"},
        "supervoxels": [random.integers(1, 1 << 60, length, "u8") for length in lengths],
        "counts": [random.integers(1, 1 << 18, length).astype("u4") for length in lengths],
    }
    return pa.RecordBatch.from_pydict(columns, schema=INDEX)


def index_bytes(batch: Any) -> bytes:
    """The rows of an index as docs/flight.md lays them one behind the other."""
    found = b""
    for row in batch.to_pylist():
        found += row["body"].to_bytes(8, "little")
        found += b"".join(row[axis].to_bytes(4, "little", signed=True) for axis in "xyz")
        found += b"".join(number.to_bytes(8, "little") for number in row["supervoxels"])
        found += b"".join(number.to_bytes(4, "little") for number in row["counts"])
    return found


class Job:
    """Tasks with their rows, and what became of each."""

    def __init__(self, tasks: list[tuple[dict[str, Any], Any]], name: str = "0" * 32) -> None:
        self.name, self.tasks = name, tasks
        self.state = dict.fromkeys(range(len(tasks)), "free")
        self.acked: list[dict[str, Any]] = []
        self.failed: list[str] = []
        self.sent = 0


class Exports(flight.FlightServerBase):
    """The server. Faults are taken from `faults`, by name, each once for each time that it is listed."""

    def __init__(self, job: Job, *faults: str, certificate: tuple[bytes, bytes] | None = None) -> None:
        scheme = "grpc" if certificate is None else "grpc+tls"
        super().__init__(f"{scheme}://127.0.0.1:0", tls_certificates=None if certificate is None else [certificate])
        self.job, self.faults = job, list(faults)
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._lock = threading.Lock()
        self.calls: list[str] = []

    def fault(self, name: str) -> bool:
        with self._lock:
            if name in self.faults:
                self.faults.remove(name)
                return True
        return False

    def about(self) -> dict[str, Any]:
        spec = {"scales": [{"key": "8_8_8"}]}
        return {"source": "brain", "at": "x", "path": None, "ids": "bodies", "codec": "zstd:3", "stripped": True, "index": True, "shards": 3, "spec": spec}

    def do_action(self, context: Any, action: Any) -> list[bytes]:
        body = json.loads(action.body.to_pybytes())
        name = action.type.removeprefix("export.")
        self.calls.append(name)
        if self.fault(f"{name} unavailable"):
            raise flight.FlightUnavailableError("the store is away")
        answer = getattr(self, f"_{name}")(body)
        if self.fault(f"{name} reply lost"):
            raise flight.FlightUnavailableError("connection reset")
        return [json.dumps(answer).encode()]

    def _claim(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            # A worker that claims again has lost what it had: its lease is over at once.
            open_to = ("free", body["worker"])
            free = next((task for task, state in self.job.state.items() if state in open_to), None)
            if free is None:
                over = all(state == "done" for state in self.job.state.values())
                if over and body["job"] is not None:
                    return {"state": "over", "job": self.job.name}
                return {"state": "wait", "retry_ms": 1}
            self.job.state[free] = body["worker"]
        ticket = base64.b64encode(str(free).encode()).decode()
        shard = {**self.job.tasks[free][0], "weight": 1}
        lease = 40 if "lease" in self.faults else 60_000
        claimed = {"state": "claimed", "job": self.job.name, "task": free, "epoch": 0, "ticket": ticket, "lease_ms": lease}
        return {**claimed, "shards": [shard], "about": self.about()}

    def _status(self, body: dict[str, Any]) -> dict[str, Any]:
        over = all(state == "done" for state in self.job.state.values())
        return {"job": self.job.name, "state": "over" if over else "running"}

    def _ack(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.fault("claim lost"):
            self.job.state[body["task"]] = "free"
            raise flight.FlightServerError("gRPC returned precondition failed error, with message: the claim is another worker's")
        self.job.state[body["task"]] = "done"
        self.job.acked.append(body)
        return {"acked": body["shards"], "done": all(state == "done" for state in self.job.state.values())}

    def _beat(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.fault("cancelled"):
            return {"ok": True, "cancelled": True}
        return {"ok": True, "cancelled": False}

    def _fail(self, body: dict[str, Any]) -> dict[str, Any]:
        self.job.failed.append(body["error"])
        self.job.state[body["task"]] = "free"
        return {"ok": True}

    def do_get(self, context: Any, ticket: Any) -> Any:
        shard, batch = self.job.tasks[int(ticket.ticket)]
        self.job.sent += 1
        if "data" in batch.schema.names:
            data = b"".join(batch["data"].to_pylist())
        else:
            data = index_bytes(batch)
        marker = {**shard, "rows": batch.num_rows, "bytes": len(data), "crc32c": crc32c.crc32c(data)}
        for name in ("rows", "bytes", "crc32c"):
            if self.fault(f"wrong {name}"):
                marker[name] += 1
        if self.fault("wrong row"):
            crcs = pa.array([1] * batch.num_rows, pa.uint32())
            batch = batch.set_column(batch.schema.get_field_index("crc32c"), batch.schema.field("crc32c"), crcs)
        if self.fault("wrong shard"):
            marker["shard"] += 1
        if self.fault("wrong columns"):
            batch = batch.drop_columns(["labels"])
        half = batch.num_rows // 2
        ends = self.fault("stream ends")
        hangs = self.fault("stream hangs")

        def stream() -> Any:
            yield batch.slice(0, half)
            if hangs:
                # Until the worker gives up.
                while not context.is_cancelled():
                    threading.Event().wait(0.01)
            if ends:
                return
            yield batch.slice(half), json.dumps(marker).encode()

        return flight.GeneratorStream(batch.schema, stream())
