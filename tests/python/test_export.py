"""Arrow shards, read with pyarrow: the document's own reader word for word, and a reader that follows BRAID's rules."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorstore as ts

from conftest import ROOT, run
from label_blocks import block_voxels

SHAPE = (140, 130, 200)  # z, y, x


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A labelmap whose bodies are not its supervoxels, exported in both forms, and the bodies of its voxels."""
    folder = tmp_path_factory.mktemp("export")
    z, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    volume = (1 + x // 20 + 20 * (y // 30) + 400 * (z // 40)).astype("u8")
    volume[:, :, 150:] = 0
    np.save(folder / "seg.npy", volume)
    run("labels", "import", folder / "brain", folder / "seg.npy", "--voxel-size", "8,8,8", "--unit", "nanometer")
    run("labels", "merge-bodies", folder / "brain", 1, 2, 3)
    run("export-shards", folder / "brain", folder / "out", "--emit", "arrow,precomputed")
    run("export-shards", folder / "brain", folder / "braid", "--stream", "--index", "csv")
    run("export-shards", folder / "brain", folder / "bare", "--strip-labels")
    bodies = volume.copy()
    bodies[np.isin(volume, (2, 3))] = 1
    return folder, bodies


def read_shard_with_index(arrow_filename):
    """
    Read Arrow shard file with chunk index from separate JSON file.

    Args:
        arrow_filename: Path to the .arrow file

    Returns:
        tuple: (pyarrow.Table, dict) - Arrow table and chunk coordinate index
    """
    # Read the Arrow data
    with pa.ipc.open_file(arrow_filename) as reader:
        table = reader.read_all()

    # Read the chunk index from corresponding JSON file
    json_filename = os.path.splitext(arrow_filename)[0] + '.json'
    chunk_index = {}
    if os.path.exists(json_filename):
        with open(json_filename, 'r') as f:
            chunk_index = json.load(f)

    return table, chunk_index


class ArrowShardReader:
    def __init__(self, arrow_filename):
        self.arrow_filename = arrow_filename
        self.table, self.chunk_index = read_shard_with_index(arrow_filename)

    def get_chunk(self, x, y, z):
        """Get chunk data by coordinates."""
        coord_key = f"{x}_{y}_{z}"
        if coord_key not in self.chunk_index:
            return None

        record_idx = self.chunk_index[coord_key]
        return {
            'coordinates': (x, y, z),
            'labels': self.table['labels'][record_idx].as_py(),
            'supervoxels': self.table['supervoxels'][record_idx].as_py(),
            'compressed_data': self.table['dvid_compressed_block'][record_idx].as_py()
        }

    def list_chunks(self):
        """List all available chunk coordinates."""
        return [(int(x), int(y), int(z))
                for coord_str in self.chunk_index.keys()
                for x, y, z in [coord_str.split('_')]]

    def get_labels_for_chunk(self, x, y, z):
        """Get just the labels for a specific chunk."""
        chunk = self.get_chunk(x, y, z)
        return chunk['labels'] if chunk else None


SCHEMA = pa.schema([
    pa.field('chunk_x', pa.int32(), nullable=False),
    pa.field('chunk_y', pa.int32(), nullable=False),
    pa.field('chunk_z', pa.int32(), nullable=False),
    pa.field('labels', pa.list_(pa.uint64()), nullable=False),
    pa.field('supervoxels', pa.list_(pa.uint64()), nullable=False),
    pa.field('dvid_compressed_block', pa.binary(), nullable=False)
])


def test_the_snippets_of_the_document_work(exported, monkeypatch, capsys):
    folder, bodies = exported
    monkeypatch.chdir(folder / "out")
    # Read shard file and its index
    table, chunk_index = read_shard_with_index('s0/0_0_0.arrow')

    # The chunk index was loaded from s0/0_0_0.json
    print(f"Shard contains {len(chunk_index)} chunks")

    # Access specific chunk by coordinates
    chunk_coord = "64_64_0"
    if chunk_coord in chunk_index:
        record_idx = chunk_index[chunk_coord]

        # Get the specific record
        chunk_x = table['chunk_x'][record_idx].as_py()
        chunk_y = table['chunk_y'][record_idx].as_py()
        chunk_z = table['chunk_z'][record_idx].as_py()
        labels = table['labels'][record_idx].as_py()
        supervoxels = table['supervoxels'][record_idx].as_py()
        compressed_data = table['dvid_compressed_block'][record_idx].as_py()

        print(f"Chunk ({chunk_x}, {chunk_y}, {chunk_z})")
        print(f"Labels: {labels}")
        print(f"Supervoxels: {supervoxels}")
    assert "Chunk (1, 1, 0)" in capsys.readouterr().out
    assert len(labels) == len(supervoxels) and compressed_data

    # Usage
    reader = ArrowShardReader('s0/0_0_0.arrow')
    chunks = reader.list_chunks()
    labels = reader.get_labels_for_chunk(64, 64, 0)
    assert set(labels) - {0} == set(np.unique(bodies[:64, 64:128, 64:128])) - {0}
    assert len(chunks) == len(chunk_index) == table.num_rows
    assert table.select(SCHEMA.names).schema.equals(SCHEMA)
    # Blocks of nothing but label 0 are not there.
    assert reader.get_chunk(192, 0, 0) is None


def voxels(row: dict, mapped: bool) -> np.ndarray:
    block = pa.decompress(row["dvid_compressed_block"], decompressed_size=row["uncompressed_size"], codec="zstd", asbytes=True)
    found = block_voxels(block)
    if mapped:
        bodies = dict(zip(row["supervoxels"], row["labels"], strict=True))
        found = np.vectorize(bodies.__getitem__, otypes=["u8"])(found)
    return found


def test_every_voxel_of_the_shards_is_the_body_it_belongs_to(exported):
    folder, bodies = exported
    out = np.zeros((192, 192, 256), "u8")
    for path in sorted((folder / "out" / "s0").glob("*.arrow")):
        table, _ = read_shard_with_index(path)
        for row in table.to_pylist():
            z, y, x = (64 * row[f"chunk_{axis}"] for axis in "zyx")
            out[z : z + 64, y : y + 64, x : x + 64] = voxels(row, mapped=True)
    np.testing.assert_array_equal(out[: SHAPE[0], : SHAPE[1], : SHAPE[2]], bodies)
    assert out.sum() == bodies.sum()


def test_tensorstore_sees_the_same_volume(exported):
    folder, bodies = exported
    for scale, key in enumerate(["8_8_8", "16_16_16"]):
        spec = {"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": f"{folder / 'out'}/"}, "scale_index": scale}
        found = ts.open(spec, read=True).result()
        assert found.spec().to_json()["scale_metadata"]["key"] == key
        array = found[..., 0].read().result()
        if scale == 0:
            np.testing.assert_array_equal(array.transpose(2, 1, 0), bodies)


class ShardRangeReader:
    """BRAID's five rules, as the sheet of requirements lists them, without a look at our code."""

    FIELDS = {"chunk_x", "chunk_y", "chunk_z", "labels", "supervoxels", "dvid_compressed_block", "uncompressed_size"}

    def __init__(self, path: Path):
        self.path = path
        lines = path.with_suffix(".csv").read_text().splitlines()
        self.schema_size = int(re.fullmatch(r"# schema_size=(\d+)", lines[0])[1])
        if self.schema_size <= 0:
            raise ValueError("schema_size of 0")
        assert lines[1] == "x,y,z,offset,size,batch_idx"
        numbers = [tuple(map(int, line.split(","))) for line in lines[2:]]
        self.index = {row[:3]: row[3:] for row in numbers}

    def read(self, at: tuple[int, int, int]) -> dict:
        offset, size, number = self.index[at]
        with self.path.open("rb") as file:
            schema = file.read(self.schema_size)
            file.seek(offset)
            batch = file.read(size)
        reader = pa.ipc.open_stream(io.BytesIO(schema + batch))
        batches = list(reader)
        assert len(batches) == 1 and set(reader.schema.names) >= self.FIELDS
        return batches[0].slice(number, 1).to_pylist()[0]


def check_by_the_rules(folder: Path) -> int:
    spec = json.loads((folder / "spec.json").read_text())
    count = 0
    for scale in range(len(spec["scales"])):
        for path in sorted((folder / f"s{scale}").glob("*.arrow")):
            reader = ShardRangeReader(path)
            with pa.ipc.open_stream(path) as stream:
                table = stream.read_all()
            places = set(zip(*(table[f"chunk_{axis}"].to_pylist() for axis in "xyz")))
            assert places == set(reader.index)
            origin = tuple(int(at) for at in path.stem.split("_"))
            assert all(at >= 0 and at % 64 == 0 for at in origin)
            assert all(64 * least >= at for least, at in zip(map(min, zip(*places)), origin, strict=True))
            for at in places:
                row = reader.read(at)
                assert (row["chunk_x"], row["chunk_y"], row["chunk_z"]) == at
                assert len(row["labels"]) == len(row["supervoxels"])
                assert voxels(row, mapped=False).shape == (64, 64, 64)
                count += 1
    return count


def test_a_reader_by_braids_rules_reads_the_streaming_form(exported):
    folder, _ = exported
    assert check_by_the_rules(folder / "braid") > 10


def test_what_dvid_wrote_is_refused_for_its_schema_size_alone():
    theirs = ROOT / "testdata" / "dvid" / "exports" / "branches-other-root" / "s0"
    path = next(theirs.glob("*.arrow"))
    with pytest.raises(ValueError, match="schema_size"):
        ShardRangeReader(path)
    with pa.ipc.open_stream(path) as stream:
        [row] = stream.read_all().to_pylist()
    assert voxels(row, mapped=False).shape == (64, 64, 64)


def test_a_block_without_its_table_is_whole_with_the_supervoxels(exported):
    folder, _ = exported
    whole, _ = read_shard_with_index(folder / "out" / "s0" / "0_0_0.arrow")
    bare, _ = read_shard_with_index(folder / "bare" / "s0" / "0_0_0.arrow")
    assert bare.schema.field("dvid_compressed_block").metadata[b"labels"] == b"stripped"
    for row, stripped in zip(whole.to_pylist(), bare.to_pylist(), strict=True):
        unpack = {"codec": "zstd", "asbytes": True}
        block = pa.decompress(row["dvid_compressed_block"], decompressed_size=row["uncompressed_size"], **unpack)
        rest = pa.decompress(stripped["dvid_compressed_block"], decompressed_size=stripped["uncompressed_size"], **unpack)
        table = np.array(stripped["supervoxels"], "<u8").tobytes()
        assert rest[:16] + table + rest[16:] == block


def test_a_record_is_read_as_the_page_says(exported, monkeypatch):
    folder, _ = exported
    monkeypatch.chdir(folder)
    (folder / "shards").symlink_to(folder / "out")
    page = (ROOT / "docs" / "export.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.S)[1]
    names: dict = {}
    exec(code, names)  # the page is ours
    assert names["record"].to_pylist()[0]["chunk_x"] == 1
