"""The VastDB sink: the real SDK against a server that speaks its protocol, with faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import vastdb

from chunkyard.worker import ROW_BYTES, ROW_LABELS, SCHEMA, RefusedError, Worker, WorkerError, open_sink, read_blocks
from chunkyard.worker import _vastdb as sink_module
from chunkyard.worker._server import Access
from flight_server import Exports, Job, blocks, index
from server import Vast


def job() -> Job:
    """Shards of more bytes than a request, of several rows per block, and without rows; and a part of the index."""
    large = blocks(7, [100, 3 * ROW_BYTES + 5, 0, *[400_000] * 8], [3, 1, 2, 2 * ROW_LABELS + 3, *[5] * 7])
    return Job(
        [
            ({"stream": "blocks", "scale": 0, "shard": 7}, large),
            ({"stream": "blocks", "scale": 0, "shard": 9}, blocks(9, [10] * 40, [2] * 40)),
            ({"stream": "blocks", "scale": 0, "shard": 11}, blocks(11, [], [])),
            ({"stream": "index", "part": 1}, index(1, 100)),
        ]
    )


@pytest.fixture
def vast() -> Iterator[Callable[..., Vast]]:
    begun: list[Vast] = []

    def begin(*faults: str) -> Vast:
        begun.append(Vast(*faults))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


@pytest.fixture
def server() -> Iterator[Exports]:
    with Exports(job()) as exports:
        yield exports


def work(server: Exports, vast: Vast, sink: Any = None, **options: Any) -> list[str]:
    told: list[str] = []
    sink = sink or open_sink(f"vastdb:{vast.endpoint}/bucket/seg")
    options.setdefault("job", server.job.name)
    Worker(Access(server.url), sink, "test", tell=told.append, **options).run()
    return told


def check(server: Exports, vast: Vast) -> None:
    """Every block of the job is in the table once, whole."""
    rows = vast.content("seg/blocks_s0")
    assert rows.schema.names == SCHEMA.names
    for shard, batch in server.job.tasks:
        if shard["stream"] != "blocks":
            continue
        own = rows.filter(pa.compute.equal(rows["shard_id"], pa.scalar(shard["shard"], pa.uint64())))
        found = {block.morton: block for block in read_blocks(own)}
        expected = batch.to_pylist()
        assert sorted(found) == [row["morton"] for row in expected]
        for row in expected:
            block = found[row["morton"]]
            assert block.data == row["data"] and block.supervoxels.tolist() == row["supervoxels"]
    parts = vast.content("seg/label_index").to_pylist()
    expected = server.job.tasks[3][1].to_pylist()
    names = ["body", "x", "y", "z", "supervoxels", "counts"]
    assert sorted([row[name] for name in names] for row in parts) == sorted([row[name] for name in names] for row in expected)
    assert {row["part"] for row in parts} == {1}
    assert vast.open == {}, "a transaction was left open"


def test_a_job_becomes_tables(server: Exports, vast: Callable[..., Vast]) -> None:
    database = vast()
    assert work(server, database) == []
    check(server, database)
    table = database.tables["seg/blocks_s0"]
    assert table.sorting == ["shard_id", "morton"] and list(table.projections) == ["by_position"]
    # Batches are less than a request each, so none is inserted column by column.
    assert database.requests.count("POST rows") > 3 and "PUT rows" not in database.requests
    # The SDK reads it, by shard.
    session = vastdb.connect(endpoint=database.endpoint)
    with session.transaction() as tx:
        found = tx.bucket("bucket").schema("seg").table("blocks_s0")
        shard = found.select(["morton", "bin1"], predicate=found["shard_id"] == 9).read_all()
    assert shard.num_rows == 40


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        ("drop POST rows", 5),
        ("drop POST transaction", 5),
        ("error POST rows", 5),
        ("reply lost POST rows", 5),
        # The SDK itself repeats what is slowed down, and what only reads.
        ("slow down POST rows", 4),
        ("slow down GET data", 4),
        ("drop PUT transaction", 5),
        ("error PUT transaction", 5),
        # A commit whose answer was lost is found, and the shard is not sent again.
        ("reply lost PUT transaction", 4),
    ],
)
def test_a_fault_leaves_each_block_once(server: Exports, vast: Callable[..., Vast], fault: str, sent: int) -> None:
    database = vast()
    # The tables are there before the fault.
    sink = open_sink(f"vastdb:{database.endpoint}/bucket/seg")
    sink.open_job(server.job.name, server.about())
    database.faults = [fault]
    work(server, database, sink)
    assert database.faults == []
    if "PUT transaction" in fault:
        # One that was not ended by us is ended by the server in its time.
        database.open.clear()
    check(server, database)
    assert server.job.sent == sent


def test_what_was_committed_and_not_acknowledged_is_replaced(server: Exports, vast: Callable[..., Vast]) -> None:
    database = vast()
    server.faults = ["claim lost", "claim lost"]
    told = work(server, database)
    assert len(told) == 2 and "no longer this worker's" in told[0]
    check(server, database)


def test_a_cell_that_is_too_large_is_refused_before_it_is_sent(
    server: Exports, vast: Callable[..., Vast], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = vast()
    monkeypatch.setattr(sink_module, "CELL_BYTES", 1000)
    server.job.tasks, server.job.state = server.job.tasks[:1], {0: "free"}
    monkeypatch.setattr("chunkyard.worker._work._FAILURES_MAX", 1)
    with pytest.raises(WorkerError, match="tasks in a row"):
        work(server, database)
    assert "a cell of 129024 bytes in labels, and 1000 are the most" in server.job.failed[0]
    assert "POST rows" not in database.requests[database.requests.index("PUT transaction") :]


def test_a_cell_that_the_database_refuses_is_given_back(
    server: Exports, vast: Callable[..., Vast], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = vast()
    database.cell_bytes_max = 1000
    server.job.tasks, server.job.state = server.job.tasks[:1], {0: "free"}
    monkeypatch.setattr("chunkyard.worker._work._FAILURES_MAX", 1)
    with pytest.raises(WorkerError, match="tasks in a row"):
        work(server, database)
    assert "TabularCellTooLarge" in server.job.failed[0]
    assert database.content("seg/blocks_s0").num_rows == 0 and database.open == {}


def test_a_schema_of_another_job_is_refused(server: Exports, vast: Callable[..., Vast]) -> None:
    database = vast()
    work(server, database)
    with Exports(job()) as other:
        other.job.name = "1" * 32
        with pytest.raises(RefusedError, match="name another schema"):
            work(other, database)


@pytest.mark.parametrize("place", ["bucket/seg", "http://host/bucket", "ftp://host/bucket/seg"])
def test_a_place_is_said_to_be_wrong(place: str) -> None:
    with pytest.raises(RefusedError, match="vastdb:http://HOST/BUCKET/SCHEMA"):
        open_sink(f"vastdb:{place}")


def test_missing_and_wrong_keys_are_said(server: Exports, vast: Callable[..., Vast], monkeypatch: pytest.MonkeyPatch) -> None:
    database = vast()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    with pytest.raises(RefusedError, match="InvalidAccessKeyId"):
        work(server, database)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(RefusedError, match="AWS_ACCESS_KEY_ID"):
        work(server, database)
