"""Where a worker writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from chunkyard.worker._errors import RefusedError


class ShardWriter(ABC):
    """A shard of blocks, or a part of the index, growing. Nothing of it is visible before `finish`."""

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Adds rows, a `pyarrow.RecordBatch` as it came over the network."""

    @abstractmethod
    def finish(self) -> None:
        """Makes the shard durable and visible in one step, in the place of what an earlier attempt left."""

    @abstractmethod
    def abort(self) -> None:
        """Removes what was written."""


class Sink(ABC):
    """A place for the tables of a job. A shard that is written again replaces the first one."""

    @abstractmethod
    def open_job(self, job: str, about: dict[str, Any]) -> None:
        """Gets ready for the shards of a job. Raises `RefusedError` where the place belongs to another job."""

    @abstractmethod
    def begin(self, about: dict[str, Any], shard: dict[str, Any]) -> ShardWriter:
        """Begins a shard of blocks, or a part of the index."""

    @abstractmethod
    def conclude(self, job: str) -> None:
        """Notes that all shards of the job are there. Several workers may do so, each more than once."""

    def close(self) -> None:
        """Gives up connections."""
        return


def open_sink(url: str, *, register: str | None = None) -> Sink:
    """The sink that a URL names: `parquet:DIR`, or `vastdb:http://HOST/BUCKET/SCHEMA`.

    `register` names an Iceberg table, `CATALOG:NAMESPACE.TABLE`, that gets the Parquet files of a job when it is over.
    """
    kind, _, place = url.partition(":")
    if not place:
        raise RefusedError(f"{url}: a sink is parquet:DIR or vastdb:http://HOST/BUCKET/SCHEMA")
    if kind == "parquet":
        from chunkyard.worker._parquet import ParquetSink

        return ParquetSink(place, register)
    if kind == "vastdb":
        if register is not None:
            raise RefusedError("--register takes Parquet files; a table of VastDB is registered already")
        from chunkyard.worker._vastdb import VastSink

        return VastSink(place)
    raise RefusedError(f"{url}: there is no sink {kind}:, only parquet: and vastdb:")


def download(url: str, directory: str) -> None:
    """Writes the tables of a schema of VastDB, `vastdb:http://HOST/BUCKET/SCHEMA`, as a directory of Parquet files, one for each shard, from
    which `chunkyard export-shards table:DIR` makes a volume. Shards that are there are left alone."""
    from chunkyard.worker._vastdb import VastSink

    VastSink(url.removeprefix("vastdb:")).download(directory)
