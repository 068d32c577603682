"""docs/formats/block-table.md: a block table is read with pyarrow alone, and with DuckDB alone."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from conftest import ROOT, run

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


def test_tables_of_an_export_are_read_by_pyarrow_and_duckdb(tmp_path: Path) -> None:
    z, y, x = np.ogrid[:70, :80, :200]
    volume = (1 + x // 20 + 20 * (y // 30) + 400 * (z // 40)).astype("u8")
    np.save(tmp_path / "seg.npy", volume)
    run("labels", "import", tmp_path / "brain", tmp_path / "seg.npy")
    run("labels", "merge-bodies", tmp_path / "brain", 1, 2)
    run("export-shards", tmp_path / "brain", tmp_path / "out", "--scales", 1, "--emit", "arrow,precomputed,table")
    (shard,) = (tmp_path / "out" / "blocks_s0").iterdir()
    assert shard.name == "shard=00000000.parquet"
    rows = pq.read_table(shard).to_pylist()
    with pa.ipc.open_file(tmp_path / "out" / "s0" / "0_0_0.arrow") as reader:
        arrow = reader.read_all().to_pylist()
    records = {tuple(64 * record[f"chunk_{axis}"] for axis in "xyz"): record for record in arrow}
    assert len(rows) == len(records) == 16
    for row in rows:
        record = records[row["x"], row["y"], row["z"]]
        assert (row["labels"], row["supervoxels"]) == (record["labels"], record["supervoxels"])
        assert joined([row]) == record["dvid_compressed_block"] and row["codec"] == "zstd"
    found = duckdb.sql(f"select x, y, z from '{shard}' where list_contains(supervoxels, 2) order by all").fetchall()
    assert found == [(0, 0, 0)]
