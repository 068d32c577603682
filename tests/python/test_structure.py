"""docs/formats/repo.md, section 3."""

import json

import pyarrow as pa
import pytest
import zarr.core.metadata

from conftest import COMMITS
from reader import (
    CONTINUES,
    INLINE,
    OVERRIDES,
    REMOVALS,
    VIRTUAL,
    Reference,
    array_document,
    check_blocks,
    crc32c,
    decode_coord,
    key_values,
)

U32, U64 = pa.uint32(), pa.uint64()
CODEC = pa.struct([pa.field("name", pa.string(), False), pa.field("configuration", pa.binary())])
GRID = pa.struct([pa.field("chunk_shape", pa.list_(U64), False)])
KEYS = pa.struct([pa.field("separator", pa.string(), False)])
ARRAY_METADATA = {
    "shape": pa.list_(U64),
    "data_type": pa.string(),
    "fill_value": pa.binary(),
    "dimension_names": pa.list_(pa.string()),
    "chunk_grid": pa.struct(
        [pa.field("name", pa.string(), False), pa.field("configuration", GRID, False)]
    ),
    "chunk_key_encoding": pa.struct(
        [pa.field("name", pa.string(), False), pa.field("configuration", KEYS, False)]
    ),
    "codecs": pa.list_(CODEC),
}
ATTRS_REFERENCE = {"attrs_file": pa.string(), "row": U64, "flags": U32, "file_crc32c": U32}
INVENTORY = {
    "inventory_file": pa.string(),
    "row": U64,
    # Parquet has no lists of fixed length, and the file does not carry Arrow's own schema.
    "extent": pa.list_(pa.list_(U64)),
    "flags": U32,
    "rows": U64,
    "file_size": U64,
    "tail_size": U64,
    "tail_crc32c": U32,
    "coord_min": pa.binary(),
    "coord_max": pa.binary(),
}
COLUMNS = ["id", "uid", "type", "path", "array_metadata", "inline_attrs", "attrs_reference"]
COLUMNS += ["inventories", "extra_metadata", "refs_count"]


@pytest.fixture(params=range(COMMITS + 1))
def snapshot(request, repo):
    """Every version: the first and one per commit."""
    return repo.state["snapshots"][request.param]


def fields(struct: pa.StructType) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in struct}


def test_all_versions_are_looked_at(repo):
    assert len(repo.state["snapshots"]) == COMMITS + 1


def test_the_columns_are_the_documented_ones(repo, snapshot):
    schema = repo.structure_table(snapshot).schema
    assert schema.names == COLUMNS
    assert schema.field("id").type == U32 and not schema.field("id").nullable
    assert schema.field("uid").type == pa.binary(16)
    for name in ("type", "path"):
        assert schema.field(name).type == pa.string() and not schema.field(name).nullable
    assert fields(schema.field("array_metadata").type) == ARRAY_METADATA
    assert schema.field("inline_attrs").type == pa.binary()
    assert fields(schema.field("attrs_reference").type) == ATTRS_REFERENCE
    assert fields(schema.field("inventories").type.value_type) == INVENTORY
    assert schema.field("extra_metadata").type == pa.binary()
    assert schema.field("refs_count").type == U64


def test_rows_are_sorted_unique_and_have_their_groups(repo, snapshot):
    rows = repo.structure_table(snapshot).to_pylist()
    paths = [row["path"] for row in rows]
    assert paths[0] == "/" and paths == sorted(set(paths), key=str.encode)
    for column in ("id", "uid"):
        assert len({row[column] for row in rows}) == len(rows)
    types = {row["path"]: row["type"] for row in rows}
    assert types["/"] == "group"
    for path in paths[1:]:
        assert types[path.rpartition("/")[0] or "/"] == "group"


def test_the_file_says_what_it_is(repo, snapshot):
    pairs = key_values(repo.structure_path(snapshot))
    assert pairs["format"] == "structure"
    assert pairs["format-version"] == "1"
    assert pairs["dataset-id"] == repo.state["id"]
    assert pairs["writer"].startswith("chunkyard ")
    assert pairs["snapshot-id"] == snapshot["snapshot-id"]
    assert pairs.get("parent-snapshot-id") == snapshot["parent-snapshot-id"]
    assert int(pairs["timestamp-ms"]) == snapshot["timestamp-ms"]
    assert pairs["message"] == snapshot["message"]
    assert pairs.get("change-file") == snapshot["change-file"]
    assert pairs["branch"] == "main"
    ids = [node["id"] for node in repo.nodes(snapshot).values()]
    assert int(pairs["next-id"]) > max(ids)


def test_every_byte_is_covered_by_a_checksum(repo, snapshot):
    path = repo.structure_path(snapshot)
    data = path.read_bytes()
    assert len(data) == snapshot["structure-size"]
    assert crc32c(data) == snapshot["structure-crc32c"]
    check_blocks(path)


def test_identities_and_handles_stay(repo):
    known = {}
    for snapshot in repo.state["snapshots"]:
        for path, node in repo.nodes(snapshot).items():
            assert known.setdefault(path, (node["id"], node["uid"])) == (node["id"], node["uid"])


def test_zarr_accepts_the_array_documents(repo, built):
    for path, node in repo.nodes(repo.tip()).items():
        if node["type"] == "array":
            metadata = zarr.core.metadata.ArrayV3Metadata.from_dict(array_document(node))
            assert metadata.shape == built.expected[path].shape
            assert metadata.dtype.to_native_dtype() == built.expected[path].dtype
        else:
            assert node["array_metadata"] is None and node["refs_count"] is None
            assert not node["inventories"]


def test_attributes_are_inline_or_in_a_file(repo):
    for node in repo.nodes(repo.tip()).values():
        assert node["inline_attrs"] is None or node["attrs_reference"] is None
        if node["inline_attrs"] is not None:
            assert isinstance(json.loads(node["inline_attrs"]), dict)


def test_inventories_agree_with_the_manifests(repo, snapshot):
    for node in repo.nodes(snapshot).values():
        if node["type"] != "array":
            continue
        rank = len(node["array_metadata"]["shape"])
        for position, entry in enumerate(node["inventories"]):
            rows = repo.entry_rows(entry)
            assert len(rows) == entry["rows"] > 0
            assert {row["array_id"] for row in rows} == {node["id"]}
            assert entry["coord_min"] == rows[0]["coord"]
            assert entry["coord_max"] == rows[-1]["coord"]
            indices = [decode_coord(row["coord"], rank) for row in rows]
            extent = [[min(axis), max(axis) + 1] for axis in zip(*indices, strict=True)]
            assert [list(pair) for pair in entry["extent"]] == extent
            path = repo.manifest_path(entry["inventory_file"])
            assert path.stat().st_size == entry["file_size"]
            flags, kinds = entry["flags"], {Reference.of(row).kind for row in rows}
            assert bool(flags & REMOVALS) == ("removed" in kinds)
            assert bool(flags & INLINE) == ("inline" in kinds)
            assert bool(flags & VIRTUAL) == ("virtual" in kinds)
            if position == 0:
                assert not flags & (OVERRIDES | CONTINUES)
            else:
                assert flags & (OVERRIDES | CONTINUES)


def test_live_references_are_counted(repo, snapshot):
    for node in repo.nodes(snapshot).values():
        if node["type"] == "array":
            assert node["refs_count"] == len(repo.references(node))


def test_runs_are_merged(repo):
    entries = repo.nodes(repo.tip())["/field"]["inventories"]
    assert len(entries) < 7, "seven commits touched it"
    assert any(entry["flags"] >> 8 & 0xFF for entry in entries), "a run above level 0"
