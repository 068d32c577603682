"""The last step: the Parquet files of a job in an Iceberg catalogue, which pyiceberg then reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from chunkyard.worker import RefusedError, Worker, open_sink, read_blocks
from chunkyard.worker._server import Access
from flight_server import Exports, Job, blocks


def test_a_finished_job_is_a_table_of_the_catalogue(tmp_path: Path) -> None:
    tasks = [({"stream": "blocks", "scale": 0, "shard": shard}, blocks(shard, [200_000, 50, 0], [3, 1, 2])) for shard in (3, 5)]
    with Exports(Job(tasks)) as server:
        # Each of several workers registers: what is there is not added again.
        for name in ("one", "other"):
            sink = open_sink(f"parquet:{tmp_path / 'out'}", register="local:brain.blocks")
            Worker(Access(server.url), sink, name, job=server.job.name).run()
    table = load_catalog("local").load_table("brain.blocks_s0")
    assert len(table.inspect.files()) == 2
    rows = table.scan(row_filter="shard_id = 5").to_arrow()
    found = {block.morton: block.data for block in read_blocks(pa.table(rows))}
    assert [found[row["morton"]] for row in tasks[1][1].to_pylist()] == tasks[1][1]["data"].to_pylist()


def test_a_name_without_a_namespace_is_refused(tmp_path: Path) -> None:
    with Exports(Job([])) as server:
        sink = open_sink(f"parquet:{tmp_path}", register="blocks")
        sink.open_job(server.job.name, server.about())
        with pytest.raises(RefusedError, match="CATALOG:NAMESPACE.TABLE"):
            sink.conclude(server.job.name)
