"""The VastDB sink: a table for each scale, in which a shard is written by one transaction.

    blocks_s0, blocks_s1, …    docs/formats/block-table.md, sorted by (shard_id, morton), with a projection by position
    label_index                the index: part, body, x, y, z, piece, pieces, supervoxels, counts
    export_jobs                the job that the tables are of, the volume, and whether label lists are apart from blocks

A transaction first deletes the rows of its shard, so an attempt that was committed without being acknowledged is replaced. Nothing
is seen before the commit. Where the answer to a commit is lost, the table is looked at.

It needs the SDK: `pip install 'chunkyard[vastdb]'`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chunkyard._extras import extra
from chunkyard.worker._cells import CELL_BYTES, ROW_LABELS, SCHEMA, cut
from chunkyard.worker._parquet import ParquetSink
from chunkyard.worker._errors import FailedTaskError, RefusedError, SinkError, UnreachableError, WorkerError
from chunkyard.worker._sink import ShardWriter, Sink
from chunkyard.worker._sums import name_of

T = TypeVar("T")

# A request of the SDK has 5 MiB at most. A batch that fits is one POST; a larger one would become several, column by column.
_BATCH_BYTES = 4 << 20
_CONNECT_TRIES = 8

_LIST = pa.list_(pa.field("item", pa.uint64()))
_COUNTS = pa.list_(pa.field("item", pa.uint32()))
_INDEX = pa.schema(
    [
        pa.field("part", pa.uint32()),
        pa.field("body", pa.uint64()),
        *(pa.field(axis, pa.int32()) for axis in "xyz"),
        pa.field("piece", pa.uint16()),
        pa.field("pieces", pa.uint16()),
        pa.field("supervoxels", _LIST),
        pa.field("counts", _COUNTS),
    ]
)
_JOBS = pa.schema([pa.field("job", pa.utf8()), pa.field("spec", pa.utf8()), pa.field("stripped", pa.bool_())])
# Every column of a table of VastDB may be null.
_BLOCKS = pa.schema([field.with_nullable(True) for field in SCHEMA])


def _sdk() -> Any:
    """The SDK. It is imported when it is used, so that it need not be there for other sinks."""
    with extra("vastdb", "a sink of VastDB"):
        import vastdb
        import vastdb.errors
    return vastdb


class VastSink(Sink):
    """Tables of a schema of VastDB."""

    def __init__(self, place: str) -> None:
        """`place` is `http://HOST/BUCKET/SCHEMA`; keys are those of the environment, `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`."""
        _sdk()
        # The SDK logs each error with its stack, whether it is dealt with or not.
        logging.getLogger("vastdb").setLevel(logging.CRITICAL)
        scheme, _, rest = place.partition("://")
        parts = rest.strip("/").split("/", 2)
        if scheme not in ("http", "https") or len(parts) != 3:
            raise RefusedError(f"vastdb:{place}: a sink of VastDB is vastdb:http://HOST/BUCKET/SCHEMA")
        self._endpoint = f"{scheme}://{parts[0]}"
        self._bucket, self._schema = parts[1], parts[2]
        self._session: Any = None
        self._opened: set[str] = set()

    def open_job(self, job: str, about: dict[str, Any]) -> None:
        if job in self._opened:
            return
        for attempt in range(_CONNECT_TRIES):
            try:
                self._make(job, about)
                break
            except Exception as error:
                # A conflict: another worker makes the same tables.
                if not isinstance(error, _sdk().errors.Conflict) or attempt + 1 == _CONNECT_TRIES:
                    raise self._sorted(error) from error
                time.sleep(random.uniform(0.05, 0.2) * 2**attempt)
        self._opened.add(job)

    def _make(self, job: str, about: dict[str, Any]) -> None:
        with self.session().transaction() as tx:
            schema = tx.bucket(self._bucket).create_schema(self._schema, fail_if_exists=False)
            jobs = schema.create_table("export_jobs", _JOBS, fail_if_exists=False)
            there = set(jobs.select().read_all()["job"].to_pylist())
            if there - {job}:
                raise RefusedError(f"{self._name()} has the tables of the job {sorted(there)[0]}, not of {job}; name another schema")
            if not there:
                row = [[job], [json.dumps(about["spec"])], [bool(about["stripped"])]]
                jobs.insert(pa.record_batch(row, schema=_JOBS))
            for scale in range(len(about["spec"]["scales"])):
                if schema.table(f"blocks_s{scale}", fail_if_missing=False) is None:
                    table = schema.create_table(f"blocks_s{scale}", _BLOCKS, sorting_key=["shard_id", "morton"])
                    table.create_projection("by_position", ["z", "y", "x"], ["shard_id", "morton"])
            if about.get("index") and schema.table("label_index", fail_if_missing=False) is None:
                schema.create_table("label_index", _INDEX, sorting_key=["part", "body"])

    def begin(self, about: dict[str, Any], shard: dict[str, Any]) -> ShardWriter:
        return _Shard(self, shard)

    def conclude(self, job: str) -> None:
        """Every commit is all there is to note."""

    def close(self) -> None:
        self._session = None

    def download(self, directory: str) -> None:
        """Writes the tables as a directory of Parquet files, one for each shard, as the other sink would have. Shards that are there
        are left alone, so it goes on where it was interrupted."""
        files = ParquetSink(directory)
        with self.session().transaction() as tx:
            ((job, spec, stripped),) = {tuple(row.values()) for row in self.table(tx, "export_jobs").select().read_all().to_pylist()}
            about = {"spec": json.loads(spec), "stripped": stripped}
            files.open_job(job, about)
            for scale in range(len(about["spec"]["scales"])):
                table = self.table(tx, f"blocks_s{scale}")
                shards = pc.unique(table.select(columns=["shard_id"]).read_all()["shard_id"]).to_pylist()
                for shard in sorted(shards):
                    writer = files.rows(about, scale, shard)
                    if writer is None:
                        continue
                    rows = table.select(predicate=table["shard_id"] == shard).read_all()
                    rows = rows.sort_by([("morton", "ascending"), ("part", "ascending")]).cast(SCHEMA)
                    # A sorting key is a hint, and no row is lost by it.
                    for batch in rows.combine_chunks().to_batches(max_chunksize=64):
                        writer.write(batch)
                    writer.finish()
        files.conclude(job)

    def session(self) -> Any:
        if self._session is None:
            self._session = _sdk().connect(endpoint=self._endpoint)
        return self._session

    def table(self, tx: Any, name: str) -> Any:
        return tx.bucket(self._bucket).schema(self._schema).table(name)

    def _name(self) -> str:
        return f"{self._endpoint}/{self._bucket}/{self._schema}"

    def guarded(self, call: Callable[[], T]) -> T:
        """Calls the SDK; what it raises is sorted by what a worker does about it."""
        try:
            return call()
        except Exception as error:
            raise self._sorted(error) from error

    def _sorted(self, error: Exception) -> Exception:
        if isinstance(error, WorkerError):
            return error
        if isinstance(error, KeyError) and str(error).strip("'").startswith("AWS_"):
            return RefusedError(f"{self._name()}: the environment variable {error} is not set")
        text = f"{self._name()}: {_text(error)}"
        errors = _sdk().errors
        if isinstance(error, (errors.ConnectionError, errors.ServiceUnavailable, errors.InternalServerError, errors.RequestTimeout)):
            return UnreachableError(text)
        if isinstance(error, (errors.Forbidden, errors.MissingBucket, NotImplementedError)):
            return RefusedError(text)
        return SinkError(text)


class _Shard(ShardWriter):
    """A shard of blocks or a part of the index, as one transaction."""

    def __init__(self, sink: VastSink, shard: dict[str, Any]) -> None:
        self._sink, self._shard = sink, shard
        if shard["stream"] == "blocks":
            self._table_name, self._key, self._value = f"blocks_s{shard['scale']}", "shard_id", shard["shard"]
        else:
            self._table_name, self._key, self._value = "label_index", "part", shard["part"]
        self._tx: Any = None
        self._table: Any = None
        self._waiting: list[Any] = []
        self._bytes = self._rows = self._sum = 0

    def write(self, batch: Any) -> None:
        if not batch.num_rows:
            return
        rows = cut(batch) if self._shard["stream"] == "blocks" else _index_rows(batch, self._value)
        _check_cells(rows, self._shard)
        self._rows += rows.num_rows
        self._sum += _sum(rows)
        for piece, size in _pieces(rows):
            if self._bytes + size > _BATCH_BYTES:
                self._flush()
            self._waiting.append(piece)
            self._bytes += size

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting).combine_chunks().to_batches()[0]
        self._waiting, self._bytes = [], 0
        self._sink.guarded(lambda: self._insert(rows))

    def _insert(self, rows: Any) -> None:
        if self._tx is None:
            self._tx = self._sink.session().transaction()
            self._tx.__enter__()
            self._table = self._sink.table(self._tx, self._table_name)
            left = self._select(self._table, [], internal_row_id=True)
            if left.num_rows:
                self._table.delete(left)
        self._table.insert(rows.cast(self._table.arrow_schema))

    def _select(self, table: Any, columns: list[str], **options: Any) -> Any:
        return table.select(columns=columns, predicate=table[self._key] == self._value, **options).read_all()

    def finish(self) -> None:
        self._flush()
        tx, self._tx = self._tx, None
        if tx is None:
            return
        try:
            self._sink.guarded(lambda: tx.__exit__(None, None, None))
        except UnreachableError:
            # Whether it was committed, only the table says.
            if not self._sink.guarded(self._is_there):
                raise

    def _is_there(self) -> bool:
        """Whether the table has exactly the rows of the shard."""
        with self._sink.session().transaction() as tx:
            found = self._select(self._sink.table(tx, self._table_name), [self._key, *_summed(self._shard)])
        return found.num_rows == self._rows and _sum(found) == self._sum

    def abort(self) -> None:
        tx, self._tx = self._tx, None
        if tx is not None:
            with contextlib.suppress(Exception):
                tx.__exit__(WorkerError, WorkerError("given up"), None)


def _summed(shard: dict[str, Any]) -> list[str]:
    """The columns by which two sets of rows are told apart."""
    return ["morton", "part", "crc32c"] if shard["stream"] == "blocks" else ["body", "x", "y", "z", "piece"]


def _sum(rows: Any) -> int:
    """A sum of such columns that does not depend on the order of rows."""
    columns = _summed({"stream": "blocks" if "morton" in rows.schema.names else "index"})
    total = np.zeros(rows.num_rows, np.uint64)
    for name in columns:
        with np.errstate(over="ignore"):
            total = (total * np.uint64(0x9E3779B97F4A7C15)) ^ rows[name].to_numpy().astype(np.int64).astype(np.uint64)
    return int(total.astype(object).sum())


def _index_rows(batch: Any, part: int) -> Any:
    """Rows of the index, lists cut into cells."""
    lengths = pc.list_value_length(batch["supervoxels"]).to_numpy()
    pieces = np.maximum(-(-lengths // ROW_LABELS), 1)
    found = []
    for piece in range(int(pieces.max(initial=1))):
        chosen = np.flatnonzero(pieces > piece)
        some = batch.take(pa.array(chosen))
        start = piece * ROW_LABELS
        columns = {
            "part": pa.array(np.full(len(chosen), part, np.uint32)),
            **{name: some[name] for name in ("body", "x", "y", "z")},
            "piece": pa.array(np.full(len(chosen), piece, np.uint16)),
            "pieces": pa.array(pieces[chosen].astype(np.uint16)),
            "supervoxels": pc.list_slice(some["supervoxels"].cast(_LIST), start, start + ROW_LABELS, return_fixed_size_list=False),
            "counts": pc.list_slice(some["counts"].cast(_COUNTS), start, start + ROW_LABELS, return_fixed_size_list=False),
        }
        found.append(pa.RecordBatch.from_arrays([columns[name] for name in _INDEX.names], schema=_INDEX))
    return pa.Table.from_batches(found).combine_chunks().to_batches()[0]


def _check_cells(rows: Any, shard: dict[str, Any]) -> None:
    """Refuses a cell that the database would refuse: the SDK does not look."""
    for field in rows.schema:
        if pa.types.is_binary(field.type):
            most = pc.max(pc.binary_length(rows[field.name])).as_py() or 0
        elif pa.types.is_list(field.type):
            most = (pc.max(pc.list_value_length(rows[field.name])).as_py() or 0) * field.type.value_type.bit_width // 8
        else:
            continue
        if most > CELL_BYTES:
            raise FailedTaskError(f"{name_of(shard)}: a cell of {most} bytes in {field.name}, and {CELL_BYTES} are the most")


def _pieces(rows: Any) -> list[tuple[Any, int]]:
    """Rows in pieces that are less than a request each, with their bytes."""
    sizes = np.full(rows.num_rows, 128, np.int64)
    for field in rows.schema:
        if pa.types.is_binary(field.type):
            sizes += pc.fill_null(pc.binary_length(rows[field.name]), 0).to_numpy()
        elif pa.types.is_list(field.type):
            sizes += pc.list_value_length(rows[field.name]).to_numpy().astype(np.int64) * (field.type.value_type.bit_width // 8)
    found, start = [], 0
    ends = np.cumsum(sizes)
    while start < rows.num_rows:
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + _BATCH_BYTES, side="right")), start + 1)
        found.append((rows.slice(start, end - start), int(ends[end - 1]) - before))
        start = end
    return found


def _text(error: Exception) -> str:
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    if code or message:
        return f"{type(error).__name__}: {code or ''} {message or ''}".strip()
    cause = getattr(error, "cause", None)
    return f"{type(error).__name__}: {cause if cause is not None else error}"
