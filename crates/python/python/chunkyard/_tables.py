"""Tables of a repository for pyarrow and DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chunkyard import _engine
from chunkyard._extras import extra

if TYPE_CHECKING:
    import pyarrow as pa


def batches(scan: _engine.TableScan) -> pa.RecordBatchReader:
    """The rows of a scan, batch by batch, where the native module put them."""
    with extra("arrow", "a table"):
        import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(scan.schema))

    def each() -> Iterator[pa.RecordBatch]:
        while (message := scan.next()) is not None:
            yield pa.ipc.read_record_batch(pa.py_buffer(message), schema)

    return pa.RecordBatchReader.from_batches(schema, each())


def select(
    query: str,
    parameters: Sequence[Any] | Mapping[str, Any] | None,
    names: Iterable[str],
    table: Callable[[str], pa.Table],
) -> pa.Table:
    """The answer of DuckDB to a query of tables."""
    with extra("sql", "sql"):
        import duckdb

    # Variables of Python are no tables here, whatever their names.
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        for name in names:
            # The query may mean something else by the word; then the table is read in vain.
            if re.search(rf"\b{name}\b", query, re.IGNORECASE):
                connection.register(name, table(name))
        answer = connection.sql(query, params=parameters)
        if answer is None:
            raise ValueError("the query has no answer: it selects nothing")
        return answer.to_arrow_table()
