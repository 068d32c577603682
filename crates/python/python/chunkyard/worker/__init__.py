"""Workers: they fetch an export from a server, shard by shard, and write it durably where it belongs.

    python -m chunkyard.worker grpc://host:8002 --sink parquet:/data/brain

A worker waits for jobs, claims a task, streams its blocks, compares every checksum, writes the shard in one step, and acknowledges
it. It may be killed at any time: what it had not acknowledged goes to another one, which replaces what it left. So each block is
in the table exactly once. docs/worker.md tells how a fleet is run; docs/flight.md is the protocol.

- `Worker` is one of them, for programs that have their own processes. `open_sink` is where it writes.
- `read_blocks` gives the blocks of a table again, whole and checked, and `label_block` the label block of one.

It needs pyarrow: `pip install 'chunkyard[worker]'`.
"""

from chunkyard._extras import extra

with extra("worker", "a worker"):
    import pyarrow as _

from chunkyard.worker._blocks import Block, label_block, read_blocks
from chunkyard.worker._cells import CELL_BYTES, ROW_BYTES, ROW_LABELS, SCHEMA
from chunkyard.worker._errors import CancelledError, LostClaimError, RefusedError, UnreachableError, WorkerError
from chunkyard.worker._server import Server
from chunkyard.worker._sink import ShardWriter, Sink, download, open_sink
from chunkyard.worker._work import Done, Worker

__all__ = [
    "CELL_BYTES",
    "ROW_BYTES",
    "ROW_LABELS",
    "SCHEMA",
    "Block",
    "CancelledError",
    "Done",
    "LostClaimError",
    "RefusedError",
    "Server",
    "ShardWriter",
    "Sink",
    "UnreachableError",
    "Worker",
    "WorkerError",
    "download",
    "label_block",
    "open_sink",
    "read_blocks",
]
