"""The last step, if it is wanted: the Parquet files of a job become a table of an Iceberg catalogue, for Spark, Trino and others.

The files stay where they are. It needs pyiceberg: `pip install 'chunkyard[iceberg]'`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from chunkyard._extras import extra
from chunkyard.worker._cells import SCHEMA
from chunkyard.worker._errors import RefusedError, SinkError

_TRIES = 5

# Iceberg has no unsigned integers. The numbers of shards, chunks and voxels stay below 2^63; labels keep their bits.
_SIGNED = {pa.uint8(): pa.int32(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}


def register(name: str, root: Path, scales: Iterable[int]) -> None:
    """Adds the files that a table of the catalogue does not have yet. `name` is `CATALOG:NAMESPACE.TABLE`; the table of scale n is
    `TABLE_sn`. Catalogues are those of pyiceberg's configuration."""
    catalog_name, _, table_name = name.partition(":")
    if "." not in table_name:
        raise RefusedError(f"{name}: an Iceberg table is named CATALOG:NAMESPACE.TABLE")
    with extra("iceberg", "an Iceberg table"):
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

    catalog = load_catalog(catalog_name)
    catalog.create_namespace_if_not_exists(table_name.rsplit(".", 1)[0])
    for scale in scales:
        files = sorted(str(path.resolve()) for path in (root / f"blocks_s{scale}").glob("shard=*.parquet"))
        for attempt in range(_TRIES):
            try:
                table = catalog.create_table_if_not_exists(f"{table_name}_s{scale}", schema())
                known = {row["file_path"].removeprefix("file://") for row in table.inspect.files().to_pylist()}
                missing = [file for file in files if file not in known]
                if missing:
                    table.add_files(missing)
                break
            except (CommitFailedException, TableAlreadyExistsError) as error:
                # Another worker registers the same files.
                if attempt + 1 == _TRIES:
                    raise SinkError(f"{name}: {error}") from error


def schema() -> Any:
    """The columns as Iceberg has them."""

    def signed(kind: Any) -> Any:
        if pa.types.is_list(kind):
            return pa.list_(pa.field("element", signed(kind.value_type)))
        return _SIGNED.get(kind, kind)

    return pa.schema([field.with_type(signed(field.type)) for field in SCHEMA])
