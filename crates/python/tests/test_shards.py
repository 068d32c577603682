"""Arrow shards: files as the document describes them, DVID's own streams, disks and object stores."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from chunkyard import CorruptError, NotFoundError, UnsupportedError, _engine
from chunkyard.shards import ArrowShardReader, read_shard_with_index

EXPORTS = Path(__file__).parents[3] / "testdata" / "dvid" / "exports"
SIZE = 64
SHAPE = (SIZE, SIZE, SIZE)


def schema(codec: str = "zstd", **about: str) -> pa.Schema:
    labels = pa.list_(pa.uint64())
    block = pa.field("dvid_compressed_block", pa.binary(), nullable=False)
    return pa.schema(
        [
            pa.field("chunk_x", pa.int32(), nullable=False),
            pa.field("chunk_y", pa.int32(), nullable=False),
            pa.field("chunk_z", pa.int32(), nullable=False),
            pa.field("labels", labels, nullable=False),
            pa.field("supervoxels", labels, nullable=False),
            block.with_metadata({"codec": codec, **about}),
            pa.field("uncompressed_size", pa.uint32(), nullable=False),
        ]
    )


class Made:
    """Chunks along x with 3 supervoxels each, of which two are one body."""

    def __init__(self, count: int) -> None:
        random = np.random.default_rng(7)
        self.voxels = {}
        self.rows: list[dict[str, Any]] = []
        for x in range(count):
            voxels = random.integers(0, 3, SHAPE, "u8") + np.uint64(10 * x + 1)
            voxels[:, :, : 8 * (x + 1)] = 10 * x + 1
            self.voxels[(x * SIZE, 0, 2 * SIZE)] = voxels
            block = _engine.LabelBlocks("uint64", SHAPE).encode(voxels.reshape(-1).view("u1"))
            table = np.frombuffer(block, "<u8", int.from_bytes(block[12:16], "little"), 16)
            row = {
                "chunk_x": x,
                "chunk_y": 0,
                "chunk_z": 2,
                "labels": [self.body(int(label)) for label in table],
                "supervoxels": table.tolist(),
                "dvid_compressed_block": pa.Codec("zstd").compress(block, asbytes=True),
                "uncompressed_size": len(block),
            }
            self.rows.append(row)
        self.blocks = [self.unpacked(row) for row in self.rows]

    @staticmethod
    def unpacked(row: dict[str, Any]) -> bytes:
        packed, size = row["dvid_compressed_block"], row["uncompressed_size"]
        return pa.Codec("zstd").decompress(packed, size, asbytes=True)

    @staticmethod
    def body(supervoxel: int) -> int:
        return 1000 + supervoxel // 10 if supervoxel % 10 < 3 else supervoxel

    def bodies(self, at: tuple[int, int, int]) -> Any:
        return np.vectorize(self.body, otypes=["u8"])(self.voxels[at])

    def write(self, path: Path, per_batch: int = 1, of: pa.Schema | None = None) -> Path:
        of = schema() if of is None else of
        with pa.ipc.new_file(path, of) as writer:
            for at in range(0, len(self.rows), per_batch):
                rows = self.rows[at : at + per_batch]
                writer.write_batch(pa.RecordBatch.from_pylist(rows, of))
        keys = {"_".join(map(str, at)): number for number, at in enumerate(self.voxels)}
        path.with_suffix(".json").write_text(json.dumps(keys))
        return path

    def check(self, reader: ArrowShardReader) -> None:
        assert reader.list_chunks() == list(self.voxels) and len(reader) == len(self.voxels)
        for at, row in zip(self.voxels, self.rows, strict=True):
            assert reader.get_chunk(*at) == {
                "coordinates": at,
                "labels": row["labels"],
                "supervoxels": row["supervoxels"],
                "compressed_data": row["dvid_compressed_block"],
            }
            assert reader.get_labels_for_chunk(*at) == row["labels"]
            supervoxels = reader.get_voxels(*at, supervoxels=True)
            assert supervoxels is not None and (supervoxels == self.voxels[at]).all()
            bodies = reader.get_voxels(*at)
            assert bodies is not None and bodies.dtype == np.uint64
            assert (bodies == self.bodies(at)).all()
        assert reader.get_chunk(1, 2, 3) is None and reader.get_record(1, 2, 3) is None
        assert reader.get_labels_for_chunk(1, 2, 3) is None and reader.get_voxels(1, 2, 3) is None


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(5)


@pytest.mark.parametrize("per_batch", [1, 2, 5])
def test_a_file_is_read_chunk_by_chunk(made: Made, tmp_path: Path, per_batch: int) -> None:
    path = made.write(tmp_path / "0_0_128.arrow", per_batch)
    made.check(ArrowShardReader(path))
    made.check(ArrowShardReader(f"file://{path}"))


def test_the_whole_of_a_shard_is_a_table_and_an_index(made: Made, tmp_path: Path) -> None:
    path = made.write(tmp_path / "0_0_128.arrow")
    for place in (str(path), path, f"file://{path}"):
        table, index = read_shard_with_index(place)
        assert table.to_pylist() == made.rows
        at = index["64_0_128"]
        assert table["labels"][at].as_py() == made.rows[1]["labels"]
    path.with_suffix(".json").unlink()
    assert read_shard_with_index(path)[1] == {}


def test_nothing_is_copied_from_a_map_of_the_file(made: Made, tmp_path: Path) -> None:
    path = made.write(tmp_path / "0_0_128.arrow")
    reader = ArrowShardReader(path)
    before = pa.total_allocated_bytes()
    record = reader.get_record(0, 0, 128)
    buffers = record["dvid_compressed_block"].buffers()
    assert record.num_rows == 1
    assert pa.total_allocated_bytes() - before < len(made.rows[0]["dvid_compressed_block"])
    start = reader._bytes.buffer.address
    assert start <= buffers[2].address < start + os.path.getsize(path)


def test_of_an_object_only_ranges_are_read(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made.write(tmp_path / "0_0_128.arrow")
    reader = ArrowShardReader(f"file://{path}")
    read = []
    whole = type(reader._bytes).read

    def counted(self: Any, start: int, end: int) -> bytes:
        read.append(end - start)
        return whole(self, start, end)

    monkeypatch.setattr(type(reader._bytes), "read", counted)
    assert reader.get_labels_for_chunk(128, 0, 128) == made.rows[2]["labels"]
    assert 0 < sum(read) < os.path.getsize(path) / 2 and len(read) <= 3


def test_blocks_without_their_table_and_gzip_blocks_are_read(made: Made, tmp_path: Path) -> None:
    import gzip

    stripped, zipped, plain = (Made(2), Made(2), Made(2))
    for row, block in zip(stripped.rows, stripped.blocks, strict=True):
        bare = block[:16] + block[16 + 8 * len(row["labels"]) :]
        row["dvid_compressed_block"] = pa.Codec("zstd").compress(bare, asbytes=True)
        row["uncompressed_size"] = len(bare)
    for row, block in zip(zipped.rows, zipped.blocks, strict=True):
        row["dvid_compressed_block"] = gzip.compress(block)
    for row, block in zip(plain.rows, plain.blocks, strict=True):
        row["dvid_compressed_block"] = block
    path = tmp_path / "0_0_128.arrow"
    for shard, of in [
        (stripped, schema(labels="stripped")),
        (zipped, schema("gzip")),
        (plain, schema("none")),
    ]:
        shard.check(ArrowShardReader(shard.write(path, of=of)))
    with pytest.raises(UnsupportedError, match="xyz"):
        ArrowShardReader(plain.write(path, of=schema("xyz"))).get_voxels(0, 0, 128)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_stream_of_dvid_is_read_by_its_index(scheme: str) -> None:
    path = EXPORTS / "branches-other-root" / "s0" / "128_0_128.arrow"
    with pa.ipc.open_stream(path) as stream:
        expected = stream.read_all().to_pylist()
    reader = ArrowShardReader(f"{scheme}{path}")
    assert reader.table.to_pylist() == expected
    assert reader.list_chunks() == [tuple(SIZE * row[f"chunk_{axis}"] for axis in "xyz") for row in expected]
    for at, row in zip(reader.list_chunks(), expected, strict=True):
        chunk = reader.get_chunk(*at)
        assert chunk is not None and chunk["supervoxels"] == row["supervoxels"]
        voxels = reader.get_voxels(*at, supervoxels=True)
        assert voxels is not None and voxels.shape == SHAPE
        assert set(np.unique(voxels).tolist()) <= set(row["supervoxels"])
        bodies = reader.get_voxels(*at)
        assert bodies is not None
        assert set(np.unique(bodies).tolist()) <= set(row["labels"])


def test_damage_is_an_error(made: Made, tmp_path: Path) -> None:
    path = made.write(tmp_path / "0_0_128.arrow")
    sound, index = path.read_bytes(), path.with_suffix(".json").read_text()
    with pytest.raises(NotFoundError):
        ArrowShardReader(tmp_path / "nothing.arrow")
    with pytest.raises(NotFoundError):
        ArrowShardReader(f"file://{tmp_path}/nothing.arrow")
    for bytes_left in (0, 3, 8, 100, len(sound) - 1, len(sound) // 2):
        path.write_bytes(sound[:bytes_left])
        with pytest.raises(CorruptError):
            ArrowShardReader(path).get_chunk(0, 0, 128)
    path.write_bytes(sound)
    for wrong in ("", "[]", '{"0_0_128": "x"}', '{"0_0_128": true}'):
        path.with_suffix(".json").write_text(wrong)
        with pytest.raises(CorruptError):
            ArrowShardReader(path)
    path.with_suffix(".json").write_text('{"0_0_128": 77}')
    with pytest.raises(CorruptError):
        ArrowShardReader(path).get_chunk(0, 0, 128)
    path.with_suffix(".json").write_text(index)
    bad = Made(1)
    bad.rows[0]["uncompressed_size"] -= 1
    with pytest.raises(CorruptError):
        ArrowShardReader(bad.write(path)).get_voxels(0, 0, 128)
    bad = Made(1)
    bad.rows[0]["labels"].append(5)
    with pytest.raises(CorruptError):
        ArrowShardReader(bad.write(path)).get_voxels(0, 0, 128)


def test_a_damaged_index_of_a_stream_is_an_error(tmp_path: Path) -> None:
    shard = EXPORTS / "branches-other-root" / "s0" / "128_0_128.arrow"
    path = tmp_path / "128_0_128.arrow"
    path.write_bytes(shard.read_bytes())
    for rows in ("3,1,3,0,99999999,0", "3,1,3,-5,2,0", "3,1,3,0,8656,7", "3,1,3,5000,100,0"):
        path.with_suffix(".csv").write_text(f"# schema_size=0\nx,y,z,offset,size,batch_idx\n{rows}\n")
        with pytest.raises(CorruptError):
            ArrowShardReader(path).get_chunk(192, 64, 192)
    path.with_suffix(".csv").write_text("1,2\n")
    with pytest.raises(CorruptError, match="x,y,z"):
        ArrowShardReader(path)
