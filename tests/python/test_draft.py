"""A reader that knows only the early Icechunk draft reads our files, as long as values fit its types.

It uses the draft's keys and columns and nothing else: no checksums, no row counts, no identities.
"""

import json

import numcodecs
import numpy as np
import pyarrow.parquet as pq
import pytest

from reader import decode_coord


class DraftReader:
    """The early draft, nothing more."""

    def __init__(self, root):
        self.root = root
        state = json.loads((root / "state.json").read_text())
        self.snapshots = {s["snapshot-id"]: s for s in state["snapshots"]}
        self.refs = state["refs"]
        assert isinstance(state["id"], str) and isinstance(state["generation"], int)
        assert "store_root" not in state, "the data is beside the state file"

    def nodes(self, branch):
        snapshot = self.snapshots[self.refs[branch]["snapshot-id"]]
        columns = ["id", "type", "path", "array_metadata", "inline_attrs", "inventories"]
        table = pq.read_table(self.root / "s" / snapshot["structure-file"], columns=columns)
        return {row["path"]: row for row in table.to_pylist()}

    def chunks(self, node):
        rank = len(node["array_metadata"]["shape"])
        columns = ["array_id", "coord", "inline_data", "chunk_file", "offset", "length"]
        found = {}
        for entry in node["inventories"]:
            path = self.root / "i" / entry["inventory_file"]
            for row in pq.read_table(path, columns=columns).to_pylist()[entry["row"] :]:
                if row["array_id"] != node["id"]:
                    break
                found[decode_coord(row["coord"], rank)] = self.bytes(row)
        return found

    def bytes(self, row):
        if row["inline_data"] is not None:
            return row["inline_data"]
        if row["chunk_file"] is None:
            return None
        data = (self.root / "c" / row["chunk_file"]).read_bytes()
        return data[row["offset"] : row["offset"] + row["length"]]


@pytest.mark.parametrize("path", ["/field", "/group/sparse"])
def test_a_draft_reader_gets_the_values(built, path):
    reader = DraftReader(built.root)
    node = reader.nodes("main")[path]
    expected = built.expected[path]
    chunk_shape = node["array_metadata"]["chunk_grid"]["configuration"]["chunk_shape"]
    values = np.full(expected.shape, json.loads(node["array_metadata"]["fill_value"]), expected.dtype)
    for index, data in reader.chunks(node).items():
        if data is None:
            continue
        chunk = np.frombuffer(numcodecs.Zstd().decode(data), expected.dtype).reshape(chunk_shape)
        box = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, chunk_shape, strict=True))
        part = values[box]
        part[...] = chunk[tuple(slice(0, n) for n in part.shape)]
    np.testing.assert_array_equal(values, expected)


def test_a_draft_reader_sees_the_hierarchy(built):
    nodes = DraftReader(built.root).nodes("main")
    assert {path: node["type"] for path, node in nodes.items()} == {
        "/": "group",
        "/field": "array",
        "/group": "group",
        "/group/deep": "group",
        "/group/deep/large": "array",
        "/group/sparse": "array",
        "/line": "array",
    }
