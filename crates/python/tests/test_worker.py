"""Workers against a server that lies, loses replies and goes away. The real server is in tests/python/test_worker.py."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pyarrow import flight

from chunkyard import worker
from chunkyard.exceptions import CorruptError
from chunkyard.worker import CELL_BYTES, ROW_BYTES, ROW_LABELS, SCHEMA, RefusedError, Worker, WorkerError, open_sink, read_blocks
from chunkyard.worker._cells import cut
from chunkyard.worker._command import main
from chunkyard.worker._server import Access
from flight_server import Exports, Job, blocks, index


def job() -> Job:
    """Three shards, of which one is empty and one has blocks and lists of several rows, and a part of the index."""
    many = blocks(7, [100, ROW_BYTES + 5, 0, CELL_BYTES, CELL_BYTES + 1], [3, 1, 2, ROW_LABELS + 3, 7])
    return Job(
        [
            ({"stream": "blocks", "scale": 0, "shard": 7}, many),
            ({"stream": "blocks", "scale": 0, "shard": 9}, blocks(9, [10] * 40, [2] * 40)),
            ({"stream": "blocks", "scale": 0, "shard": 11}, blocks(11, [], [])),
            ({"stream": "index", "part": 1}, index(1, 100)),
        ]
    )


@pytest.fixture
def serve() -> Iterator[Callable[..., Exports]]:
    servers: list[Exports] = []

    def begin(*faults: str) -> Exports:
        servers.append(Exports(job(), *faults))
        return servers[-1]

    yield begin
    for server in servers:
        server.shutdown()


def work(server: Exports, out: Path, **options: Any) -> list[str]:
    """Works until the job is over; what the worker told."""
    told: list[str] = []
    sink = open_sink(f"parquet:{out}")
    options.setdefault("job", server.job.name)
    Worker(Access(server.url), sink, "test", tell=told.append, **options).run()
    return told


def check(server: Exports, out: Path) -> None:
    """All of the job is in the table, each block once."""
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    expected = ["blocks_s0/shard=00000007.parquet", "blocks_s0/shard=00000009.parquet", "index/part=00000001.parquet"]
    assert files == [*expected, "job.json", "spec.json", "table.json"]
    assert json.loads((out / "table.json").read_text())["shards"] == {"0": 2}
    for shard, batch in server.job.tasks:
        if shard["stream"] == "blocks" and batch.num_rows:
            rows = batch.to_pylist()
            found = list(read_blocks(out / "blocks_s0" / f"shard={shard['shard']:08x}.parquet"))
            assert [block.morton for block in found] == [row["morton"] for row in rows]
            for block, row in zip(found, rows, strict=True):
                assert block.data == row["data"] and block.stripped
                assert block.labels.tolist() == row["labels"] and block.supervoxels.tolist() == row["supervoxels"]
                assert block.position == (row["x"], row["y"], row["z"])
    assert pq.read_table(out / "index" / "part=00000001.parquet").to_pylist() == server.job.tasks[3][1].to_pylist()


def test_a_job_becomes_a_table(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve()
    assert work(server, tmp_path / "out") == []
    check(server, tmp_path / "out")
    assert len(server.job.acked) == 4
    file = pq.ParquetFile(tmp_path / "out" / "blocks_s0" / "shard=00000007.parquet")
    assert file.schema_arrow.equals(SCHEMA)
    assert [column.column_index for column in file.metadata.row_group(0).sorting_columns] == [0, 1, 2]
    by_name = {file.metadata.row_group(0).column(at).path_in_schema: file.metadata.row_group(0).column(at) for at in range(18)}
    assert by_name["bin1"].compression == "UNCOMPRESSED" and "RLE_DICTIONARY" not in by_name["bin1"].encodings
    assert by_name["labels.list.element"].compression == "ZSTD" and by_name["morton"].statistics.min == 56


@pytest.mark.parametrize("fault", ["claim", "ack", "fail"])
@pytest.mark.parametrize("how", ["unavailable", "reply lost"])
def test_a_call_that_fails_on_its_way_is_repeated(serve: Callable[..., Exports], tmp_path: Path, fault: str, how: str) -> None:
    server = serve(f"{fault} {how}", "wrong crc32c")
    work(server, tmp_path / "out")
    assert server.faults == []
    check(server, tmp_path / "out")


@pytest.mark.parametrize("what", ["rows", "bytes", "crc32c", "row", "shard", "columns"])
def test_what_is_not_as_the_server_says_is_given_back(serve: Callable[..., Exports], tmp_path: Path, what: str) -> None:
    server = serve(f"wrong {what}")
    told = work(server, tmp_path / "out")
    assert len(server.job.failed) == 1 and len(told) == 1
    word = {"row": "crc32c of a row", "shard": "shard 8", "columns": "column labels"}.get(what, what)
    assert word in server.job.failed[0] and word in told[0]
    check(server, tmp_path / "out")


def test_a_stream_that_ends_early_is_read_again(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve("stream ends", "stream ends")
    work(server, tmp_path / "out")
    assert server.job.sent == 6 and server.job.failed == []
    check(server, tmp_path / "out")


def test_a_claim_that_went_to_another_worker_does_not_count(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve("claim lost")
    told = work(server, tmp_path / "out")
    assert "no longer this worker's" in told[0] and server.job.failed == []
    check(server, tmp_path / "out")


def test_a_cancelled_job_ends_the_stream(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve("lease", "stream hangs", "cancelled")
    server.job.tasks = server.job.tasks[:1]
    server.job.state = {0: "free"}
    beat = server._beat

    def then_over(body: dict[str, Any]) -> dict[str, Any]:
        server.job.state[0] = "done"
        return beat(body)

    server._beat = then_over  # type: ignore[method-assign]
    told = work(server, tmp_path / "out")
    assert "no longer this worker's" in told[0]
    assert not (tmp_path / "out" / "blocks_s0" / "shard=00000007.parquet").exists()


def test_a_worker_that_is_stopped_gives_its_task_back(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve("stream hangs")
    stop = threading.Event()
    instance = Worker(Access(server.url), open_sink(f"parquet:{tmp_path}"), "test", stop=stop)
    thread = threading.Thread(target=instance.run)
    thread.start()
    while not server.job.sent:
        thread.join(0.01)
    instance.stop()
    thread.join(30)
    assert not thread.is_alive() and server.job.failed == ["the worker was stopped"]
    assert server.job.state[0] == "free" and server.job.acked == []
    assert [path.name for path in tmp_path.rglob("*") if "shard=" in path.name] == []


def test_a_worker_that_waits_for_any_job_concludes_those_that_are_over(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve()
    stop = threading.Event()
    instance = Worker(Access(server.url), open_sink(f"parquet:{tmp_path}"), "test", stop=stop)
    thread = threading.Thread(target=instance.run)
    thread.start()
    while not (tmp_path / "table.json").exists():
        thread.join(0.01)
        assert thread.is_alive()
    instance.stop()
    thread.join(30)
    check(server, tmp_path)


def test_tasks_that_never_work_end_the_worker(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve(*["wrong crc32c"] * 100)
    server.job.tasks, server.job.state = server.job.tasks[:1], {0: "free"}
    stop = threading.Event()
    stop.wait = lambda _=None: False  # type: ignore[assignment,method-assign]
    with pytest.raises(WorkerError, match="5 tasks in a row"):
        work(server, tmp_path / "out", stop=stop)
    assert len(server.job.failed) == 5


def test_a_directory_of_another_job_is_refused(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve()
    work(server, tmp_path / "out")
    other = serve()
    other.job.name = "1" * 32
    with pytest.raises(RefusedError, match="put {job} into its name"):
        work(other, tmp_path / "out")
    assert len(other.job.failed) == 1
    work(other, tmp_path / "{job}")
    check(other, tmp_path / ("1" * 32))


def test_what_a_dead_worker_left_is_replaced_and_swept(serve: Callable[..., Exports], tmp_path: Path) -> None:
    folder = tmp_path / "out" / "blocks_s0"
    folder.mkdir(parents=True)
    (folder / "shard=00000007.parquet").write_bytes(b"of an attempt that was not acknowledged")
    (folder / ".shard=00000009.parquet.0123").write_bytes(b"of a worker that was killed")
    server = serve()
    work(server, tmp_path / "out")
    check(server, tmp_path / "out")


def test_the_command_works_until_the_job_is_over(serve: Callable[..., Exports], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        code = main([server.url, "--sink", f"parquet:{tmp_path / 'out'}", "--once", "--json"])
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert code == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["acknowledged"] * 4 + ["end"]
    assert lines[-1]["shards"] == 3 and lines[-1]["rows"] == 145
    check(server, tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["http://host:1", "--sink", "parquet:x"], "grpc://host:8002"),
        (["grpc://host:1", "--sink", "parquet"], "parquet:DIR"),
        (["grpc://host:1", "--sink", "csv:x"], "no sink csv:"),
    ],
)
def test_what_is_wrong_with_arguments_is_said(arguments: list[str], word: str, tmp_path: Path) -> None:
    done = run(arguments, tmp_path)
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "chunkyard.worker", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_processes_share_a_job(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve()
    done = run([server.url, "--sink", "parquet:out", "--job", server.job.name, "--workers", "2"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 shards, 145 rows" in done.stderr
    check(server, tmp_path / "out")


def test_processes_that_had_no_part_of_the_job_end_with_it(serve: Callable[..., Exports], tmp_path: Path) -> None:
    server = serve()
    server.job.tasks, server.job.state = server.job.tasks[:1], {0: "free"}
    done = run([server.url, "--sink", "parquet:out", "--once", "--workers", "2"], tmp_path)
    assert done.returncode == 0 and "1 shards, 5 rows" in done.stderr, done.stderr
    assert server.job.state == {0: "done"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_gives_tasks_back(serve: Callable[..., Exports], tmp_path: Path, number: int, code: int, workers: int) -> None:
    server = serve(*["stream hangs"] * 4)
    command = [sys.executable, "-m", "chunkyard.worker", server.url, "--sink", "parquet:out", "--workers", str(workers)]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while server.job.sent < workers:
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, number)
    _, text = child.communicate(timeout=30)
    assert child.returncode == code, text
    # Each process has two tasks at a time.
    assert set(server.job.failed) == {"the worker was stopped"} and set(server.job.state.values()) == {"free"}
    assert "Traceback" not in text


def certificate() -> tuple[bytes, bytes]:
    """A certificate of 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = builder.add_extension(place, critical=False).sign(key, hashes.SHA256())
    return signed.public_bytes(Encoding.PEM), key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_a_server_with_tls_is_asked_if_its_authority_is_trusted(tmp_path: Path) -> None:
    pem, key = certificate()
    (tmp_path / "authorities.pem").write_bytes(pem)
    with Exports(job(), certificate=(pem, key)) as server:
        arguments = [server.url, "--sink", "parquet:out", "--job", server.job.name, "--patience", "0"]
        refused = run(arguments, tmp_path)
        assert refused.returncode == 1 and server.calls == [], refused.stderr
        done = run([*arguments, "--certificates", "authorities.pem"], tmp_path)
        assert done.returncode == 0, done.stderr
        check(server, tmp_path / "out")


def test_payloads_and_lists_are_cut_at_every_border() -> None:
    around = [0, 1, CELL_BYTES, 2 * CELL_BYTES, ROW_BYTES, 2 * ROW_BYTES, 600 << 10]
    sizes = sorted({max(size + by, 0) for size in around for by in (-1, 0, 1)})
    counts = [1, ROW_LABELS - 1, ROW_LABELS, ROW_LABELS + 1, 3 * ROW_LABELS]
    batch = blocks(5, sizes, [counts[at % len(counts)] for at in range(len(sizes))])
    rows = cut(batch)
    rows.validate(full=True)
    for number in range(1, 5):
        cells = [cell for cell in rows[f"bin{number}"].to_pylist() if cell is not None]
        assert all(len(cell) <= CELL_BYTES for cell in cells)
        assert sum(cell == b"" for cell in cells) == (number == 1)
    found = list(read_blocks(pa.Table.from_batches([rows])))
    assert [block.data for block in found] == batch["data"].to_pylist()
    assert [block.supervoxels.tolist() for block in found] == batch["supervoxels"].to_pylist()


def test_rows_that_are_missing_or_damaged_are_not_joined() -> None:
    rows = pa.Table.from_batches([cut(blocks(5, [2 * ROW_BYTES + 5], [3]))])
    for wrong in (rows.slice(1), rows.slice(0, 2), pa.concat_tables([rows, rows.slice(1, 1)])):
        with pytest.raises(CorruptError, match="block 40 of shard 5"):
            list(read_blocks(wrong))
    for name, values in (("crc32c", [1] * 3), ("nbytes", [5] * 3), ("bin2", [b"x", None, None])):
        changed = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), pa.array(values, rows.schema.field(name).type))
        with pytest.raises(CorruptError, match="block 40 of shard 5"):
            list(read_blocks(changed))


def test_errors_are_sorted_by_what_a_worker_does() -> None:
    from chunkyard.worker._errors import FailedTaskError, sort_error

    assert isinstance(sort_error(flight.FlightUnavailableError("away")), worker.UnreachableError)
    assert isinstance(sort_error(flight.FlightUnauthenticatedError("no token")), RefusedError)
    assert isinstance(sort_error(pa.ArrowInvalid("member")), RefusedError)
    assert isinstance(sort_error(flight.FlightServerError("gRPC returned aborted error, with message: x")), worker.LostClaimError)
    assert isinstance(sort_error(flight.FlightServerError("gRPC returned data loss error, with message: x")), FailedTaskError)
    assert isinstance(sort_error(flight.FlightCancelledError("x")), worker.CancelledError)


def test_sums_of_the_index_are_those_of_its_bytes() -> None:
    from chunkyard.worker._sums import _index_bytes
    from flight_server import index_bytes

    for rows in (1, 7, 300):
        batch = index(3, rows)
        assert _index_bytes(batch).tobytes() == index_bytes(batch)
        assert _index_bytes(batch.slice(rows // 2)).tobytes() == index_bytes(batch.slice(rows // 2))
    assert np.all(_index_bytes(batch.slice(0, 0)) == np.zeros(0, np.uint8))
