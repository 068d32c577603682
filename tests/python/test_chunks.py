"""docs/formats/repo.md, sections 6.5 and 6.6: chunk bytes, decoded by other programs."""

import json
from collections import defaultdict

import numpy as np
import numcodecs
import pyarrow.parquet as pq
import pytest
import zarr

from conftest import COMMITS
from reader import Reference, array_document, decode_coord, parse_trailer


@pytest.fixture(params=range(COMMITS))
def version(request, repo, built):
    """A commit and the values that were in the repository after it."""
    return repo.state["snapshots"][request.param + 1], built.versions[request.param]


def test_zarr_decodes_every_version(repo, version, tmp_path):
    snapshot, expected = version
    nodes = repo.nodes(snapshot)
    assert {path for path, node in nodes.items() if node["type"] == "array"} == set(expected)
    for path, values in expected.items():
        # A plain Zarr v3 array made from our document and our chunk bytes, read by zarr-python.
        store = tmp_path / path.strip("/")
        store.mkdir(parents=True)
        document = array_document(nodes[path])
        assert document["chunk_key_encoding"]["configuration"]["separator"] == "/"
        (store / "zarr.json").write_text(json.dumps({**document, "attributes": {}}))
        for index, reference in repo.references(nodes[path]).items():
            file = store.joinpath("c", *map(str, index))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(repo.chunk_bytes(reference))
        found = zarr.open_array(str(store), mode="r")[...]
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)


def test_a_zstd_chunk_decodes_without_zarr(repo, built):
    node = repo.nodes(repo.tip())["/field"]
    names = [codec["name"] for codec in node["array_metadata"]["codecs"]]
    assert names == ["bytes", "zstd"]
    values = built.expected["/field"]
    for (i, j), reference in repo.references(node).items():
        decoded = np.frombuffer(numcodecs.Zstd().decode(repo.chunk_bytes(reference)), "<f8")
        block = values[20 * i : 20 * (i + 1), 20 * j : 20 * (j + 1)]
        inside = decoded.reshape(20, 20)[: block.shape[0], : block.shape[1]]
        np.testing.assert_array_equal(inside, block)


def test_chunks_are_placed_by_size(repo):
    nodes = repo.nodes(repo.tip())
    packed = set()
    for path in ("/field", "/group/sparse", "/line"):
        for reference in repo.references(nodes[path]).values():
            row = reference.row
            assert reference.kind == ("inline" if row["length"] <= 512 else "native")
            if reference.kind == "native":
                packed.add((row["chunk_file"], row["offset"]))
    assert len(packed) > len({file for file, _ in packed}), "small chunks share a file"
    large = [reference.row for reference in repo.references(nodes["/group/deep/large"]).values()]
    assert len({row["chunk_file"] for row in large}) == len(large) == 2
    assert all(row["offset"] == 0 and row["length"] == 2 << 20 for row in large)


def test_chunks_of_only_the_fill_value_are_not_stored(repo, built):
    references = repo.references(repo.nodes(repo.tip())["/group/sparse"])
    values = built.expected["/group/sparse"]
    stored = {
        (i, j)
        for i in range(4)
        for j in range(5)
        if values[10 * i : 10 * (i + 1), 10 * j : 10 * (j + 1)].any()
    }
    assert set(references) == stored
    assert (0, 0) not in stored


def test_pack_trailers_agree_with_the_manifests(repo, built):
    uids, ranks, native = {}, {}, defaultdict(dict)
    for snapshot in repo.state["snapshots"]:
        for node in repo.nodes(snapshot).values():
            uids[node["id"]] = node["uid"]
            if node["type"] == "array":
                ranks[node["uid"]] = len(node["array_metadata"]["shape"])
    for manifest in (built.root / "i").rglob("*"):
        for row in pq.read_table(manifest).to_pylist():
            if Reference.of(row).kind == "native":
                key = (row["offset"], row["length"])
                native[row["chunk_file"]][key] = (uids[row["array_id"]], row["coord"], row["crc32c"])
    packs = 0
    for name, told in native.items():
        data = (built.root / "c" / name).read_bytes()
        entries = parse_trailer(data)
        if entries is None:
            assert told.keys() == {(0, len(data))}
            continue
        packs += 1
        offset = 0
        for entry in entries:
            assert entry["offset"] == offset, "chunks lie back to back"
            offset += entry["length"]
            decode_coord(entry["coord"], ranks[entry["uid"]])
        found = {
            (e["offset"], e["length"]): (e["uid"], e["coord"], e["crc32c"]) for e in entries
        }
        # A chunk that was written twice in one session stays in the pack without a reference.
        assert told.items() <= found.items()
    assert packs >= 1
    directory = built.root / "c"
    files = [path for path in directory.rglob("*") if path.is_file()]
    on_disk = {path.relative_to(directory).as_posix() for path in files}
    assert on_disk == set(native), "no chunk file without a reference"
