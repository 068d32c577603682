"""Strict draft mode writes the Arrow schemas of the early Icechunk draft, and a repository that another program
wrote by the draft alone can be read and committed to."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import run


def described(name, kind, description, nullable=True):
    return pa.field(name, kind, nullable, metadata={"description": description})


def required(name, kind):
    return pa.field(name, kind, nullable=False)


U16 = pa.uint16()
GRID = pa.struct([required("chunk_shape", pa.list_(U16))])
ENCODING = pa.struct([required("separator", pa.string())])
ARRAY_METADATA = pa.struct(
    [
        required("shape", pa.list_(U16)),
        required("data_type", pa.string()),
        pa.field("fill_value", pa.binary()),
        pa.field("dimension_names", pa.list_(pa.string())),
        pa.field("chunk_grid", pa.struct([required("name", pa.string()), required("configuration", GRID)])),
        pa.field("chunk_key_encoding", pa.struct([required("name", pa.string()), required("configuration", ENCODING)])),
        pa.field("codecs", pa.list_(pa.struct([required("name", pa.string()), pa.field("configuration", pa.binary())]))),
    ]
)
ATTRS_REFERENCE = pa.struct([required("attrs_file", pa.string()), required("row", U16), pa.field("flags", U16)])
INVENTORY = pa.struct(
    [
        required("inventory_file", pa.string()),
        required("row", U16),
        required("extent", pa.list_(pa.list_(U16, 2))),
        pa.field("flags", U16),
    ]
)
# The draft shows the description of `attrs_reference` cut by four characters.
STRUCTURE = pa.schema(
    [
        described("id", U16, "unique identifier for the node", nullable=False),
        described("type", pa.string(), "array or group", nullable=False),
        described("path", pa.string(), "path to the node within the store", nullable=False),
        described("array_metadata", ARRAY_METADATA, "All the Zarr array metadata"),
        described("inline_attrs", pa.binary(), "user-defined attributes, stored inline with this entry"),
        described(
            "attrs_reference",
            ATTRS_REFERENCE,
            "user-defined attributes, stored in a separate attributes file",
        ),
        pa.field("inventories", pa.list_(INVENTORY)),
    ]
)
MANIFEST = pa.schema(
    [
        required("id", pa.uint32()),
        required("array_id", pa.uint32()),
        required("coord", pa.binary()),
        pa.field("inline_data", pa.binary()),
        pa.field("chunk_file", pa.string()),
        pa.field("offset", pa.uint64()),
        required("length", pa.uint32()),
    ]
)
# As the draft prints it.
EXTENT = "extent: list<item: fixed_size_list<item: uint16>[2]> not null"


@pytest.fixture
def strict(tmp_path):
    root = tmp_path / "strict"
    run("repo", "init", root, "--draft")
    np.save(tmp_path / "values.npy", np.arange(600, dtype="<f8").reshape(20, 30))
    run("repo", "set", root, "/group/field", tmp_path / "values.npy", "--chunks", "10,10", "-m", "one")
    np.save(tmp_path / "part.npy", np.zeros((5, 5)))
    run("repo", "set", root, "/group/field", tmp_path / "part.npy", "--region", "0:5,0:5", "-m", "two")
    return root


@pytest.mark.parametrize(("directory", "expected"), [("s", STRUCTURE), ("i", MANIFEST)])
def test_strict_mode_has_the_schemas_of_the_draft(strict, directory, expected):
    files = [path for path in (strict / directory).rglob("*") if path.is_file()]
    assert len(files) >= 2
    for path in files:
        found = pq.read_schema(path).remove_metadata()
        assert found.equals(expected, check_metadata=True), found
    if directory == "s":
        assert EXTENT in str(found)


def test_strict_mode_gives_the_same_rows_with_and_without_the_arrow_schema(strict):
    state = json.loads((strict / "state.json").read_text())
    for snapshot in state["snapshots"]:
        path = strict / "s" / snapshot["structure-file"]
        rows = pq.read_table(path).to_pylist()
        assert [row["path"] for row in rows] in (["/"], ["/", "/group", "/group/field"])


def opv(*index):
    assert all(component < 128 for component in index)
    return bytes(index)


def array_row(identifier, path, inventories):
    metadata = {
        "shape": [6],
        "data_type": "uint8",
        "fill_value": b"0",
        "dimension_names": None,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": None}],
    }
    return node_row(identifier, "array", path, metadata, inventories)


def node_row(identifier, kind, path, metadata=None, inventories=()):
    return {
        "id": identifier,
        "type": kind,
        "path": path,
        "array_metadata": metadata,
        "inline_attrs": None,
        "attrs_reference": None,
        "inventories": list(inventories),
    }


@pytest.fixture
def foreign(tmp_path):
    """Follows the draft alone, and differs from our files wherever the draft permits it."""
    root = tmp_path / "foreign"
    for directory in "sic":
        (root / directory).mkdir(parents=True)
    (root / "c" / "chunk").write_bytes(bytes([1, 2, 3, 4]))
    chunk = {"inline_data": None, "chunk_file": "chunk", "length": 2}
    rows = [
        {"id": 0, "array_id": 7, "coord": opv(2), "offset": 2, **chunk},
        {"id": 1, "array_id": 7, "coord": opv(0), "offset": 0, **chunk},
    ]
    pq.write_table(pa.Table.from_pylist(rows, MANIFEST), root / "i" / "manifest.parquet")
    entry = {"inventory_file": "manifest.parquet", "row": 0, "extent": [[0, 3]], "flags": None}
    first = [array_row(7, "/group/data", [])]
    second = [array_row(9, "/zero", []), array_row(7, "/group/data", [entry])]
    for name, nodes in [("one", first), ("two", second)]:
        pq.write_table(pa.Table.from_pylist(nodes, STRUCTURE), root / "s" / name)
    snapshots = [
        {"snapshot-id": "second", "parent-snapshot-id": "first", "timestamp-ms": 2000, "structure-file": "two"},
        {"snapshot-id": "first", "parent-snapshot-id": "unlisted", "timestamp-ms": 1000, "structure-file": "one"},
    ]
    trunk = {"name": "trunk", "snapshot-id": "second", "type": "branch"}
    state = {"id": "theirs", "generation": 4, "store_root": "", "snapshots": snapshots, "refs": {"trunk": trunk}}
    (root / "state.json").write_text(json.dumps(state, indent=2))
    return root


def values(root, tmp_path, *version):
    out = tmp_path / "out.npy"
    out.unlink(missing_ok=True)
    run("repo", "get", root, "/group/data", "-o", out, *version)
    return np.load(out).tolist()


def test_a_repository_of_another_program_is_read_and_committed_to(foreign, tmp_path):
    assert values(foreign, tmp_path) == [1, 2, 0, 0, 3, 4]
    assert values(foreign, tmp_path, "--snapshot", "first") == [0] * 6
    log = json.loads(run("--json", "repo", "log", foreign).stdout)
    assert [snapshot["snapshot-id"] for snapshot in log] == ["second", "first"]
    run("verify", foreign, "--level", "bytes")

    np.save(tmp_path / "part.npy", np.array([8, 9], dtype="u1"))
    run("repo", "set", foreign, "/group/data", tmp_path / "part.npy", "--region", "2:4", "-m", "ours")
    assert values(foreign, tmp_path) == [1, 2, 8, 9, 3, 4]
    assert values(foreign, tmp_path, "--snapshot", "second") == [1, 2, 0, 0, 3, 4]
    diff = json.loads(run("--json", "repo", "diff", foreign, "second", "trunk").stdout)
    assert (diff["added"], diff["removed"], diff["moved"]) == ([], [], [])
    assert [(chunks["path"], chunks["added"]) for chunks in diff["chunks"]] == [("/group/data", [[1]])]

    run("repo", "expire", foreign, "--keep-last", "1")
    run("repo", "gc", foreign, "--min-age", "0s")
    assert not (foreign / "s" / "one").exists()
    report = json.loads(run("--json", "verify", foreign, "--level", "bytes").stdout)
    assert (report["findings"], report["orphan-files"]) == ([], 0)
    assert values(foreign, tmp_path) == [1, 2, 8, 9, 3, 4]
