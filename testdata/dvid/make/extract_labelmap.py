#!/usr/bin/env python3
"""Keeps what DVID answered about a labelmap before and after edits: the volume, and per version indices and hashes of blocks.

  extract_labelmap.py RUN NAME        RUN is the --out of drive_dvid.py; writes ../labelmap/NAME/

`volume.blocks` is the first version before any edit, as DVID streams blocks: x, y, z, length (32-bit, little-endian), then gzip of a label
block. DVID recorded it after the edits; supervoxels that were split get their first id back in the tables of the blocks.
`<version>.indices.pb.gz` is DVID's answer to `indices`, `<version>.hashes.json` has for each scale and block the first 32 hex digits of the
sha256 of its supervoxels and of its bodies.
"""
import gzip, json, pathlib, shutil, struct, sys

run, name = pathlib.Path(sys.argv[1]), sys.argv[2]
target = pathlib.Path(__file__).parent.parent / "labelmap" / name
shutil.rmtree(target, ignore_errors=True)
target.mkdir(parents=True)


def pack(content):
    return gzip.compress(content, 9, mtime=0)


first = run / "answers" / "root"
origin = {}
splits = json.loads((first / "supervoxel-splits.json").read_text())
for listed in splits[1::2]:
    for _, supervoxel, remain, split in listed:
        origin[remain] = origin[split] = supervoxel
stream, at, out = (first / "blocks_s0_sv.bin").read_bytes(), 0, b""
while at < len(stream):
    x, y, z, length = struct.unpack_from("<3iI", stream, at)
    block = bytearray(gzip.decompress(stream[at + 16:at + 16 + length]))
    (count,) = struct.unpack_from("<I", block, 12)
    for entry in range(16, 16 + 8 * count, 8):
        (label,) = struct.unpack_from("<Q", block, entry)
        struct.pack_into("<Q", block, entry, origin.get(label, label))
    packed = pack(bytes(block))
    out += struct.pack("<3iI", x, y, z, len(packed)) + packed
    at += 16 + length
(target / "volume.blocks").write_bytes(out)
for answers in sorted((run / "answers").iterdir()):
    if not (answers / "indices.pb").exists():
        continue
    (target / f"{answers.name}.indices.pb.gz").write_bytes(pack((answers / "indices.pb").read_bytes()))
    hashes = json.loads((answers / "hashes.json").read_text())
    (target / f"{answers.name}.hashes.json").write_text(json.dumps(hashes, separators=(",", ":")) + "\n")
print(name, "done")
