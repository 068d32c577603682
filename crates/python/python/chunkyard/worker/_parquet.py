"""The default sink: a directory of Parquet files, one for each shard.

    spec.json                           the volume that the shards make
    job.json                            the job that the tables are of
    blocks_s0/shard=000041f9.parquet    the blocks of a shard, as `chunkyard export-shards --emit table` writes them
    index/part=00000003.parquet         a part of the label index
    table.json                          how many shards there are; written last

A file has another name until its content is on the disk. Then it is renamed, which replaces what was there, and the name is made
durable. So a shard is there once, whole, however often workers die.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from chunkyard.worker._blocks import LABELS_KEY
from chunkyard.worker._cells import CELLS, SCHEMA, cut
from chunkyard.worker._errors import RefusedError, SinkError
from chunkyard.worker._sink import ShardWriter, Sink

_GROUP_BYTES = 16 << 20
_BINS = [f"bin{number}" for number in range(1, CELLS + 1)]


class ParquetSink(Sink):
    """A directory of Parquet files."""

    def __init__(self, directory: str, register: str | None = None) -> None:
        """`{job}` in the name of the directory stands for the id of the job."""
        self._directory, self._register = directory, register
        self._roots: dict[str, Path] = {}
        self._abouts: dict[str, dict[str, Any]] = {}
        self._root = Path()

    def open_job(self, job: str, about: dict[str, Any]) -> None:
        if job not in self._roots:
            root = Path(self._directory.replace("{job}", job))
            try:
                root.mkdir(parents=True, exist_ok=True)
                self._claim(root, job, about)
            except OSError as error:
                raise SinkError(f"{root}: {error}") from error
            self._roots[job], self._abouts[job] = root, about
        self._root = self._roots[job]

    def _claim(self, root: Path, job: str, about: dict[str, Any]) -> None:
        """Makes a directory that of a job, or finds that it is."""
        claim = {name: about.get(name) for name in ("source", "at", "path", "ids", "codec")}
        document = _render({"job": job, **claim})
        marker = root / "job.json"
        temp = _aside(marker)
        _write_durably(temp, document)
        try:
            # A link is made once, by one worker of several.
            os.link(temp, marker)
        except FileExistsError:
            there = json.loads(marker.read_bytes())
            if there.get("job") != job:
                raise RefusedError(
                    f"{root} has the tables of the job {there.get('job')}, not of {job}; name another directory, or put {{job}} into its name"
                ) from None
        finally:
            temp.unlink()
        _replace(root / "spec.json", _render(about["spec"]))

    def begin(self, about: dict[str, Any], shard: dict[str, Any]) -> ShardWriter:
        if shard["stream"] == "blocks":
            return _Blocks(self._shard_path(shard["scale"], shard["shard"]), stripped=about["stripped"])
        return _Index(self._root / "index" / f"part={shard['part']:08x}.parquet")

    def rows(self, about: dict[str, Any], scale: int, shard: int) -> _File | None:
        """The file of a shard, for rows of a table; `None` if it is there."""
        path = self._shard_path(scale, shard)
        return None if path.exists() else _table(path, stripped=about["stripped"])

    def _shard_path(self, scale: int, shard: int) -> Path:
        return self._root / f"blocks_s{scale}" / f"shard={shard:08x}.parquet"

    def conclude(self, job: str) -> None:
        root = self._roots.get(job)
        if root is None:
            return
        scales = range(len(self._abouts[job]["spec"]["scales"]))
        shards = {scale: len(list(root.glob(f"blocks_s{scale}/shard=*.parquet"))) for scale in scales}
        _replace(root / "table.json", _render({"job": job, "shards": shards}))
        if self._register is not None:
            from chunkyard.worker._iceberg import register

            register(self._register, root, scales)


class _Blocks(ShardWriter):
    """The table of a shard."""

    def __init__(self, path: Path, *, stripped: bool) -> None:
        self._file = _table(path, stripped=stripped)

    def write(self, batch: Any) -> None:
        self._file.write(cut(batch))

    def finish(self) -> None:
        self._file.finish()

    def abort(self) -> None:
        self._file.abort()


class _Index(ShardWriter):
    """A part of the label index."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: _File | None = None

    def write(self, batch: Any) -> None:
        if self._file is None:
            self._file = _File(self._path, batch.schema, compression="ZSTD", sorting_columns=[pq.SortingColumn(0)])
        self._file.write(batch)

    def finish(self) -> None:
        if self._file is not None:
            self._file.finish()

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()


def _table(path: Path, *, stripped: bool) -> _File:
    """The file of a shard."""
    schema = SCHEMA.with_metadata({LABELS_KEY: b"apart" if stripped else b"inside"})
    plain = [column for column in SCHEMA.names if column not in _BINS]
    return _File(
        path,
        schema,
        # A block is compressed already, and no two are alike.
        compression={_leaf(column): "NONE" if column in _BINS else "ZSTD" for column in SCHEMA.names},
        use_dictionary=[_leaf(column) for column in plain],
        sorting_columns=[pq.SortingColumn(number) for number in range(3)],
    )


def _leaf(column: str) -> str:
    """A column as options of the writer name it."""
    return f"{column}.list.element" if column in ("labels", "supervoxels") else column


class _File:
    """A Parquet file that is seen when it is finished; one without rows never is."""

    def __init__(self, path: Path, schema: Any, **options: Any) -> None:
        self._path, self._temp = path, _aside(path)
        self._schema, self._options = schema, options
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._bytes = 0

    def write(self, batch: Any) -> None:
        if not batch.num_rows:
            return
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Writes the rows that wait as a row group."""
        if not self._waiting:
            return
        try:
            if self._writer is None:
                if not self._path.parent.exists():
                    self._path.parent.mkdir(exist_ok=True)
                    _sync(self._path.parent.parent)
                self._writer = pq.ParquetWriter(self._temp, self._schema, write_page_index=True, write_page_checksum=True, **self._options)
            table = pa.Table.from_batches(self._waiting).replace_schema_metadata(self._schema.metadata)
            self._writer.write_table(table, row_group_size=table.num_rows)
        except OSError as error:
            raise SinkError(f"{self._path}: {error}") from error
        self._waiting, self._bytes = [], 0

    def finish(self) -> None:
        self._flush()
        try:
            if self._writer is None:
                # An attempt of another worker cannot have had rows either.
                return
            self._writer.close()
            _sync(self._temp)
            os.replace(self._temp, self._path)
            _sync(self._path.parent)
            # What workers left that died while they wrote this shard.
            for left in self._path.parent.glob(f".{self._path.name}.*"):
                left.unlink(missing_ok=True)
        except OSError as error:
            raise SinkError(f"{self._path}: {error}") from error

    def abort(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.close()
        self._temp.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    """A name beside a path, for a file that is not complete."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def _render(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"


def _sync(path: Path) -> None:
    """Makes the content of a file, or the names in a directory, survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_durably(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    _sync(path)


def _replace(path: Path, content: bytes) -> None:
    """Puts a small file in its place in one step."""
    temp = _aside(path)
    _write_durably(temp, content)
    os.replace(temp, path)
    _sync(path.parent)
