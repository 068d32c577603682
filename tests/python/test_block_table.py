"""docs/formats/block-table.md: a block table is read with pyarrow alone, and with DuckDB alone."""

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from conftest import ROOT

GOLDEN = ROOT / "testdata" / "block_table" / "blocks_s2.parquet"
CELL, ROW_LABELS = 126 * 1024, 16128


def payload(count: int) -> bytes:
    return bytes((at * 2654435761 >> 7) & 255 for at in range(count))


def joined(rows: list[dict]) -> bytes:
    return b"".join(row[f"bin{n}"] or b"" for row in rows for n in range(1, 5))


def test_blocks_are_joined_with_pyarrow():
    file = pq.ParquetFile(GOLDEN)
    assert [column.column_index for column in file.metadata.row_group(0).sorting_columns] == [0, 1, 2]
    rows = file.read().to_pylist()
    assert [(row["morton"], row["part"], row["parts"]) for row in rows] == [(1, 0, 1), (4, 0, 2), (4, 1, 2), (6, 0, 1)]
    assert {(row["shard_id"], row["scale"], row["codec"]) for row in rows} == {(0x41F9, 2, "zstd")}
    assert [(row["x"], row["y"], row["z"]) for row in rows] == [(0, -64, 128), (64, -64, 128), (64, -64, 128), (128, -64, 128)]
    assert joined(rows[:1]) == payload(CELL + 9) and len(rows[0]["bin1"]) == CELL
    assert joined(rows[1:3]) == payload(700) and rows[2]["bin1"] is None
    supervoxels = rows[1]["supervoxels"] + rows[2]["supervoxels"]
    assert supervoxels == [100 + at for at in range(ROW_LABELS + 2)]
    assert rows[1]["labels"] + rows[2]["labels"] == [label // 2 for label in supervoxels]
    assert rows[3]["bin1"] == b"" and rows[3]["bin2"] is None and rows[3]["nbytes"] == 0


def test_a_dataset_finds_a_block_by_its_place():
    found = ds.dataset(GOLDEN).to_table(filter=(ds.field("morton") == 4) & (ds.field("part") == 1))
    assert found.num_rows == 1 and found["nbytes"].to_pylist() == [700]


def test_blocks_are_joined_with_duckdb():
    cells = " || ".join(f"coalesce(bin{n}, ''::blob)" for n in range(1, 5))
    query = f"select morton, nbytes, octet_length({cells}) from '{GOLDEN}' where list_contains(labels, 50) order by all"
    assert duckdb.sql(query).fetchall() == [(1, CELL + 9, CELL + 9), (4, 700, 700)]
