"""The rows of a block table: payloads and label lists cut into cells, as docs/formats/block-table.md says.

Databases bound the size of a cell. A block goes into up to four cells, and on in further rows; nothing is ever cut off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chunkyard.worker._errors import FailedTaskError

CELL_BYTES = 126 << 10
CELLS = 4
ROW_BYTES = CELLS * CELL_BYTES
ROW_LABELS = CELL_BYTES // 8
PARTS_MAX = 65_535

_LIST = pa.list_(pa.field("item", pa.uint64()))

SCHEMA = pa.schema(
    [
        pa.field("shard_id", pa.uint64(), nullable=False),
        pa.field("morton", pa.uint64(), nullable=False),
        pa.field("part", pa.uint16(), nullable=False),
        pa.field("parts", pa.uint16(), nullable=False),
        pa.field("scale", pa.uint8(), nullable=False),
        *(pa.field(axis, pa.int32(), nullable=False) for axis in "xyz"),
        pa.field("labels", _LIST, nullable=False),
        pa.field("supervoxels", _LIST, nullable=False),
        pa.field("nbytes", pa.uint32(), nullable=False),
        pa.field("raw_nbytes", pa.uint32(), nullable=False),
        pa.field("codec", pa.utf8(), nullable=False),
        pa.field("crc32c", pa.uint32(), nullable=False),
        *(pa.field(f"bin{number}", pa.binary()) for number in range(1, CELLS + 1)),
    ]
)

_KEPT = ["shard_id", "morton", "scale", "x", "y", "z", "nbytes", "raw_nbytes", "codec", "crc32c"]


def cut(blocks: Any) -> Any:
    """The rows of some blocks, a `pyarrow.RecordBatch` with the columns of docs/flight.md, as one with those of a table."""
    sizes = blocks["nbytes"].to_numpy().astype(np.int64)
    counts = pc.list_value_length(blocks["supervoxels"]).to_numpy().astype(np.int64)
    parts = np.maximum(np.maximum(_ceil(sizes, ROW_BYTES), _ceil(counts, ROW_LABELS)), 1)
    most = int(parts.max(initial=1))
    if most > PARTS_MAX:
        raise FailedTaskError(f"a block of {most} rows in a table, and {PARTS_MAX} are the most")
    if most == 1:
        return _rows(blocks, sizes, 0, parts)
    pieces, order = [], []
    for part in range(most):
        chosen = np.flatnonzero(parts > part)
        pieces.append(_rows(blocks.take(pa.array(chosen)), sizes[chosen], part, parts[chosen]))
        order.append(np.stack([chosen, np.full(len(chosen), part)]))
    rows = pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
    places = np.concatenate(order, axis=1)
    return rows.take(pa.array(np.lexsort((places[1], places[0]))))


def _ceil(numbers: npt.NDArray[np.int64], unit: int) -> npt.NDArray[np.int64]:
    return -(-numbers // unit)


def _rows(blocks: Any, sizes: npt.NDArray[np.int64], part: int, parts: npt.NDArray[np.int64]) -> Any:
    """The rows with a number of some blocks that all have such a row."""
    columns = {name: blocks[name] for name in _KEPT}
    columns["part"] = pa.array(np.full(len(sizes), part, np.uint16))
    columns["parts"] = pa.array(parts.astype(np.uint16))
    for name in ("labels", "supervoxels"):
        column = blocks[name].cast(_LIST)
        whole = part == 0 and int(parts.max(initial=1)) == 1
        if not whole:
            column = pc.list_slice(column, part * ROW_LABELS, (part + 1) * ROW_LABELS, return_fixed_size_list=False)
        columns[name] = column
    for number in range(CELLS):
        start = part * ROW_BYTES + number * CELL_BYTES
        first = part == 0 and number == 0
        if first and int(sizes.max(initial=0)) <= CELL_BYTES:
            cell = blocks["data"]
        elif not first and int(sizes.max(initial=0)) <= start:
            cell = pa.nulls(len(sizes), pa.binary())
        else:
            cell = pc.binary_slice(blocks["data"], start, start + CELL_BYTES)
            if not first:
                # What would be empty is null; the first cell of an empty payload is empty.
                cell = pc.if_else(pa.array(sizes > start), cell, pa.scalar(None, pa.binary()))
        columns[f"bin{number + 1}"] = cell
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
