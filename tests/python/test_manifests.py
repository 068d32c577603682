"""docs/formats/repo.md, sections 6.1 to 6.4."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reader import Reference, check_blocks, crc32c, decode_coord, key_values

COLUMNS = {
    "id": (pa.uint32(), False),
    "array_id": (pa.uint32(), False),
    "coord": (pa.binary(), False),
    "inline_data": (pa.binary(), True),
    "chunk_file": (pa.string(), True),
    "offset": (pa.uint64(), True),
    "length": (pa.uint64(), False),
    "crc32c": (pa.uint32(), True),
    "etag": (pa.string(), True),
    "last_modified_ms": (pa.int64(), True),
}


@pytest.fixture
def manifests(built):
    """All manifests on disk."""
    found = sorted((built.root / "i").rglob("*"))
    assert len(found) >= built.commits
    return found


@pytest.fixture
def entries(repo):
    """All inventory entries of all versions."""
    return [
        entry
        for snapshot in repo.state["snapshots"]
        for node in repo.nodes(snapshot).values()
        for entry in node["inventories"] or []
    ]


def test_the_columns_are_the_documented_ones(manifests):
    for path in manifests:
        schema = pq.read_schema(path)
        assert {field.name: (field.type, field.nullable) for field in schema} == COLUMNS
        assert schema.names == list(COLUMNS)


def test_the_files_say_what_they_are(repo, manifests):
    for path in manifests:
        pairs = key_values(path)
        assert pairs["format"] == "manifest"
        assert pairs["format-version"] == "1"
        assert pairs["dataset-id"] == repo.state["id"]
        assert int(pairs["created-ms"]) > 0


def test_rows_are_sorted_numbered_and_of_a_legal_kind(manifests):
    for path in manifests:
        rows = pq.read_table(path).to_pylist()
        keys = [(row["array_id"], row["coord"]) for row in rows]
        assert keys == sorted(set(keys))
        assert [row["id"] for row in rows] == list(range(len(rows)))
        for row in rows:
            kind = Reference.of(row).kind
            assert (row["crc32c"] is not None) == (kind in ("inline", "native"))
            assert row["etag"] is None and row["last_modified_ms"] is None


def test_the_layout_serves_lookups(manifests):
    for path in manifests:
        metadata = pq.read_metadata(path)
        assert metadata.num_rows > 0
        for at in range(metadata.num_row_groups):
            group = metadata.row_group(at)
            assert group.num_rows <= 65_536
            assert [column.column_index for column in group.sorting_columns] == [1, 2]
            for column in range(group.num_columns):
                chunk = group.column(column)
                assert chunk.compression in ("ZSTD", "UNCOMPRESSED")
                assert chunk.has_offset_index
                if chunk.path_in_schema in ("array_id", "coord"):
                    assert chunk.has_column_index


def test_every_byte_is_covered_by_a_checksum(repo, entries):
    seen = {}
    for entry in entries:
        facts = (entry["file_size"], entry["tail_size"], entry["tail_crc32c"])
        assert seen.setdefault(entry["inventory_file"], facts) == facts
    for name, (size, tail_size, tail_crc) in seen.items():
        path = repo.manifest_path(name)
        data = path.read_bytes()
        assert len(data) == size
        assert crc32c(data[size - tail_size :]) == tail_crc
        check_blocks(path, tail_size)


def test_a_change_file_holds_exactly_the_changes_of_its_commit(repo):
    snapshots = {s["snapshot-id"]: s for s in repo.state["snapshots"]}
    for snapshot in repo.state["snapshots"][1:]:
        data = repo.manifest_path(snapshot["change-file"]).read_bytes()
        assert len(data) == snapshot["change-size"]
        assert crc32c(data) == snapshot["change-crc32c"]
        before = repo.nodes(snapshots[snapshot["parent-snapshot-id"]])
        changed = {}
        for row in repo.manifest(snapshot["change-file"]):
            changed.setdefault(row["array_id"], set()).add(row["coord"])
        for path, node in repo.nodes(snapshot).items():
            if node["type"] != "array":
                continue
            rank = len(node["array_metadata"]["shape"])
            touched = {decode_coord(c, rank) for c in changed.pop(node["id"], set())}
            old = repo.references(before[path]) if path in before else {}
            new = repo.references(node)
            differing = {i for i in old.keys() | new.keys() if place(old, i) != place(new, i)}
            assert touched == differing
        assert not changed, "rows of no array"


def place(references, index):
    """Where a chunk is, independent of the manifest."""
    if index not in references:
        return None
    row = references[index].row
    return row["inline_data"], row["chunk_file"], row["offset"], row["length"], row["crc32c"]


def test_the_summary_counts(repo):
    for snapshot in repo.state["snapshots"][1:]:
        kinds = [Reference.of(row).kind for row in repo.manifest(snapshot["change-file"])]
        summary = snapshot["summary"]
        assert summary["refs-removed"] == kinds.count("removed")
        assert summary["refs-added"] == len(kinds) - kinds.count("removed")
        assert summary["nodes"] == len(repo.nodes(snapshot))
