"""docs/formats/repo.md, section 6.8: a table is read with pyarrow alone, and with DuckDB alone."""

import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT
from reader import CONTINUES, REMOVALS, Repository, check_blocks, key_values

GOLDEN = ROOT / "testdata" / "table"
TYPES = {"utf8": pa.string(), "int32": pa.int32(), "uint64": pa.uint64(), "float64": pa.float64()}


@pytest.fixture
def golden():
    """The golden repository, and its table."""
    repo = Repository(GOLDEN / "repository")
    return repo, repo.nodes(repo.tip())["/seg/bodies"]


def encoded(name: str, at: int) -> bytes:
    """A key as bytes that sort like it."""
    return name.encode().replace(b"\0", b"\0\xff") + b"\0\0" + (at + 2**31).to_bytes(4, "big")


def test_readers_must_know_tables(golden):
    repo, node = golden
    assert "tables" in repo.state["required-features"]
    assert node["type"] == "table"
    assert node["array_metadata"] is None


def test_the_newest_run_wins(golden):
    repo, node = golden
    schema = json.loads(node["extra_metadata"])["table"]
    names = [column["name"] for column in schema["columns"]]
    rows = {}
    for entry in node["inventories"]:
        for row in pq.read_table(repo.root / "i" / entry["inventory_file"]).to_pylist():
            key = tuple(row[name] for name in names[: schema["key"]])
            rows[key] = None if row.get("_removed") else [row[name] for name in names]
    live = [rows[key] for key in sorted(rows, key=lambda key: encoded(*key)) if rows[key]]
    assert live == json.loads((GOLDEN / "expected.json").read_text())
    assert node["refs_count"] >= len(live)


def test_the_files_are_as_documented(golden):
    repo, node = golden
    schema = json.loads(node["extra_metadata"])["table"]
    marked = 0
    for entry in node["inventories"]:
        path = repo.root / "i" / entry["inventory_file"]
        pairs = key_values(path)
        assert pairs["format"] == "table"
        assert pairs["key"] == str(schema["key"])
        check_blocks(path, entry["tail_size"])
        found = pq.read_schema(path)
        expected = [(c["name"], TYPES[c["type"]], c["nullable"]) for c in schema["columns"]]
        if entry["flags"] & REMOVALS:
            expected.append(("_removed", pa.bool_(), False))
            marked += 1
        assert [(field.name, field.type, field.nullable) for field in found] == expected
        rows = pq.read_table(path).to_pylist()
        keys = [encoded(row["name"], row["at"]) for row in rows]
        assert keys == sorted(set(keys))
        assert (keys[0], keys[-1]) == (entry["coord_min"], entry["coord_max"])
        assert (entry["row"], entry["rows"], entry["extent"]) == (0, len(rows), [])
        assert not entry["flags"] & CONTINUES
        assert any(row.get("_removed") for row in rows) == bool(entry["flags"] & REMOVALS)
    assert marked == 2


def test_one_query_of_duckdb_reads_the_table(golden):
    repo, node = golden
    schema = json.loads(node["extra_metadata"])["table"]
    names = [f'"{column["name"]}"' for column in schema["columns"]]
    key = ", ".join(names[: schema["key"]])
    runs = " UNION ALL BY NAME ".join(
        f"SELECT *, {age} AS _age FROM read_parquet('{repo.root / 'i' / entry['inventory_file']}')"
        for age, entry in enumerate(node["inventories"])
    )
    found = duckdb.sql(f"""
        SELECT {", ".join(names)} FROM ({runs})
        QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY _age DESC) = 1 AND _removed IS NOT true
        ORDER BY {key}
    """)
    assert [list(row) for row in found.fetchall()] == json.loads((GOLDEN / "expected.json").read_text())
