"""A reader of repositories that shares no code with Chunkyard.

Written from docs/formats/repo.md with the standard library and pyarrow. Slow and plain on purpose: it is the
second opinion on every byte that the engine writes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

BLOCK = 16 << 10
OVERRIDES, REMOVALS, INLINE, VIRTUAL, CONTINUES = 1, 2, 4, 8, 16


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


# Section 4: coordinates.

BASE = [0]
for _n in range(1, 9):
    BASE.append(BASE[-1] + (1 << 7 * _n))


def decode_coord(data: bytes, rank: int) -> tuple[int, ...]:
    """Decodes a chunk index of that rank."""
    index, at = [], 0
    for _ in range(rank):
        if at == len(data):
            raise ValueError("truncated")
        ones = 0
        while ones < 8 and data[at] & 0x80 >> ones:
            ones += 1
        n = ones + 1
        piece = data[at : at + n]
        if len(piece) != n:
            raise ValueError("truncated")
        if n == 9:
            payload = int.from_bytes(piece[1:], "big")
        else:
            payload = int.from_bytes(piece, "big") & (1 << 7 * n) - 1
        value = payload + BASE[n - 1]
        if value >= 1 << 64:
            raise ValueError("too large")
        index.append(value)
        at += n
    if at != len(data):
        raise ValueError("trailing bytes")
    return tuple(index)


# Section 2: the state file.


def parse_state(data: bytes) -> dict:
    """Parses a state file and compares its checksum (2.2)."""
    covered, found, ending = data.rpartition(b',"crc32c":')
    assert found, "no checksum"
    assert ending.endswith(b"}") and ending[:-1].isdigit()
    assert crc32c(covered) == int(ending[:-1]), "the state's checksum"
    return json.loads(data)


def read_state(root: Path) -> dict:
    """Follows the reading rule (2.5)."""
    while True:
        latest = state = parse_state((root / "state.json").read_bytes())
        while (claim := claim_path(root, latest["generation"] + 1)).exists():
            data = claim.read_bytes()
            if not data:
                break
            latest = parse_state(data)
        again = parse_state((root / "state.json").read_bytes())
        if latest is state or again["generation"] <= latest["generation"]:
            return latest


def claim_path(root: Path, generation: int) -> Path:
    return root / "g" / f"{generation:020d}.json"


# Section 1: what every Parquet file says about itself.


def key_values(path: Path) -> dict[str, str]:
    pairs = pq.read_metadata(path).metadata or {}
    return {key.decode(): value.decode() for key, value in pairs.items()}


def check_blocks(path: Path, tail_size: int | None = None) -> None:
    """Compares the checksum of each block of the data before the tail.

    Without `tail_size` the data's end is searched: the last block is the only one of unknown length.
    """
    data = path.read_bytes()
    digits = key_values(path)["block-crc32c"]
    assert len(digits) % 8 == 0
    expected = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    if tail_size is None:
        data = data[: _end_of_pages(path)]
    else:
        data = data[: len(data) - tail_size]
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    assert [crc32c(block) for block in blocks] == expected, f"blocks of {path}"


def _end_of_pages(path: Path) -> int:
    metadata = pq.read_metadata(path)
    end = 4  # the leading magic
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page:
                start = min(start, chunk.dictionary_page_offset)
            end = max(end, start + chunk.total_compressed_size)
    return end


# Sections 3 and 6: nodes and references.


@dataclass
class Reference:
    """One row of a manifest."""

    kind: str
    row: dict

    @staticmethod
    def of(row: dict) -> "Reference":
        inline, file, offset = row["inline_data"], row["chunk_file"], row["offset"]
        if inline is not None:
            assert file is None and offset is None and row["length"] == len(inline) > 0
            return Reference("inline", row)
        if file is None:
            assert offset is None and row["length"] == 0
            return Reference("removed", row)
        assert offset is not None and row["length"] > 0
        return Reference("virtual" if "://" in file else "native", row)


class Repository:
    """One repository directory, read by the document."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = read_state(root)
        self._manifests: dict[str, list[dict]] = {}

    def snapshot(self, snapshot_id: str) -> dict:
        return next(s for s in self.state["snapshots"] if s["snapshot-id"] == snapshot_id)

    def tip(self, branch: str = "main") -> dict:
        return self.snapshot(self.state["refs"][branch]["snapshot-id"])

    def structure_path(self, snapshot: dict) -> Path:
        return self.root / "s" / snapshot["structure-file"]

    def structure_table(self, snapshot: dict) -> pa.Table:
        return pq.read_table(self.structure_path(snapshot))

    def nodes(self, snapshot: dict) -> dict[str, dict]:
        return {row["path"]: row for row in self.structure_table(snapshot).to_pylist()}

    def manifest_path(self, name: str) -> Path:
        return self.root / "i" / name

    def manifest(self, name: str) -> list[dict]:
        if name not in self._manifests:
            self._manifests[name] = pq.read_table(self.manifest_path(name)).to_pylist()
        return self._manifests[name]

    def entry_rows(self, entry: dict) -> list[dict]:
        return self.manifest(entry["inventory_file"])[entry["row"] : entry["row"] + entry["rows"]]

    def references(self, node: dict) -> dict[tuple[int, ...], Reference]:
        """The live references of an array: later entries override earlier ones."""
        rank = len(node["array_metadata"]["shape"])
        found = {}
        for entry in node["inventories"]:
            for row in self.entry_rows(entry):
                assert row["array_id"] == node["id"]
                found[decode_coord(row["coord"], rank)] = Reference.of(row)
        return {index: ref for index, ref in found.items() if ref.kind != "removed"}

    def chunk_bytes(self, reference: Reference) -> bytes:
        """The encoded bytes of a chunk, checked."""
        row = reference.row
        if reference.kind == "inline":
            data = row["inline_data"]
        else:
            assert reference.kind == "native"
            with open(self.root / "c" / row["chunk_file"], "rb") as file:
                file.seek(row["offset"])
                data = file.read(row["length"])
        assert len(data) == row["length"]
        assert crc32c(data) == row["crc32c"]
        return data


def array_document(node: dict) -> dict:
    """Rebuilds the Zarr document of an array (3.2)."""
    columns = node["array_metadata"]
    data_type = columns["data_type"]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": columns["shape"],
        "data_type": json.loads(data_type) if data_type.startswith("{") else data_type,
        "chunk_grid": columns["chunk_grid"],
        "chunk_key_encoding": columns["chunk_key_encoding"],
        "fill_value": json.loads(columns["fill_value"]),
        "codecs": [
            {"name": codec["name"]}
            if codec["configuration"] is None
            else {"name": codec["name"], "configuration": json.loads(codec["configuration"])}
            for codec in columns["codecs"]
        ],
    }
    if columns["dimension_names"] is not None:
        document["dimension_names"] = columns["dimension_names"]
    if node["extra_metadata"] is not None:
        document.update(json.loads(node["extra_metadata"]))
    return document


# Section 6.6: packs.

MAGIC = b"CYPACK\x00\x01"


def parse_trailer(data: bytes) -> list[dict] | None:
    """The entries of a pack, or None for a chunk in a file of its own."""
    if not data.endswith(MAGIC):
        return None
    (size,) = struct.unpack("<Q", data[-16:-8])
    index = data[len(data) - 16 - size : -16]
    body, (crc,) = index[:-4], struct.unpack("<I", index[-4:])
    assert crc32c(body) == crc, "the pack index's checksum"
    (count,) = struct.unpack_from("<Q", body)
    entries, at = [], 8
    for _ in range(count):
        uid, offset, length, chunk_crc, n = struct.unpack_from("<16sQQII", body, at)
        at += 40
        coord, at = body[at : at + n], at + n
        entries.append(
            {"uid": uid, "offset": offset, "length": length, "crc32c": chunk_crc, "coord": coord}
        )
    assert at == len(body)
    return entries
