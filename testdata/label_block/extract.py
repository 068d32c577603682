#!/usr/bin/env python3
"""Choose the files of this directory from a DVID's recorded answers. README.md says what each is.

  extract.py ANSWERS STORE DVID

ANSWERS holds `basic`, `edits` and `branches`: directories of answers of a DVID 1.0.0 server, a directory per version, with
the streams of `GET blocks?compression=blocks` and in hashes.json the SHA-256 of the voxels that `GET raw` answered. STORE is the
Badger directory of `branches`. DVID is a checkout of DVID's repository. Every block is decoded here, without Chunkyard, and must
have the voxels that DVID answered; then their CRC-32 is written to expected.json.
"""
import gzip, hashlib, json, os, shutil, struct, sys, zlib

CHOSEN = {  # file: (answers, stream, position in hashes, blocks)
    "basic_s0.blocks": ("basic/answers/root", "blocks_s0_sv.bin", "s0", 0, {(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)}),
    "basic_s1.blocks": ("basic/answers/root", "blocks_s1_sv.bin", "s1", 0, {(0, 0, 0)}),
    "many_s0.blocks": ("basic/answers/root", "blocks_s0_sv.bin", "s0", 0, {(x, y, z) for x in (2, 3) for y in (0, 1) for z in (2, 3)}),
    "many_s1.blocks": ("basic/answers/root", "blocks_s1_sv.bin", "s1", 0, {(1, 0, 1)}),
    "mapped_s0.blocks": ("edits/answers/v2", "blocks_s0_map.bin", "s0", 1, {(2, 2, 3), (1, 1, 1)}),
}
SAMPLES = ["fib19-64x64x64-sample1", "fib19-64x64x64-sample1-block", "fib19-64x64x64-sample2", "cx-64x64x64-sample1", "cx-64x64x64-sample2"]


def records(data):
    at = 0
    while at < len(data):
        *coord, length = struct.unpack_from("<4i", data, at)
        yield tuple(coord), data[at : at + 16 + length]
        at += 16 + length


def voxels(block):
    """The voxels of a block, as little-endian bytes, x fastest."""
    gx, gy, gz, count = struct.unpack_from("<4I", block)
    table = struct.unpack_from(f"<{count}Q", block, 16)
    out = [0] * (gx * gy * gz * 512)
    if count == 1:
        return struct.pack("<Q", table[0]) * len(out)
    cells = gx * gy * gz
    at = 16 + 8 * count
    counts = struct.unpack_from(f"<{cells}H", block, at)
    at += 2 * cells
    indices = struct.unpack_from(f"<{sum(counts)}I", block, at)
    at += 4 * len(indices)
    first = 0
    for cell, n in enumerate(counts):
        labels = [table[index] for index in indices[first : first + n]]
        first += n
        bits = (n - 1).bit_length() if n > 1 else 0
        word = int.from_bytes(block[at : at + 64 * bits], "big")
        at += 64 * bits
        cx, cy, cz = cell % gx, cell // gx % gy, cell // gx // gy
        for voxel in range(512):
            label = labels[word >> (511 - voxel) * bits & (1 << bits) - 1]
            x, y, z = voxel % 8, voxel // 8 % 8, voxel // 64
            out[((cz * 8 + z) * gy * 8 + cy * 8 + y) * gx * 8 + cx * 8 + x] = label
    assert at == len(block)
    return struct.pack(f"<{len(out)}Q", *out)


def entries(log):
    """Keys and values of a Badger value log."""

    def number(at):
        value = shift = 0
        while True:
            byte = log[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at

    at = 20
    while at < len(log) and log[at : at + 8] != bytes(8):
        key_length, after = number(at + 2)
        value_length, after = number(after)
        _, after = number(after)
        yield log[after + key_length : after + key_length + value_length]
        at = after + key_length + value_length + 4


def main(answers, store, dvid):
    here = os.path.dirname(os.path.abspath(__file__))
    expected = {}
    for name, (directory, stream, scale, which, wanted) in CHOSEN.items():
        hashes = json.load(open(os.path.join(answers, directory, "hashes.json")))[scale]["blocks"]
        expected[name] = {}
        with open(os.path.join(here, name), "wb") as out:
            for coord, record in sorted(records(open(os.path.join(answers, directory, stream), "rb").read())):
                if coord in wanted:
                    plain = voxels(gzip.decompress(record[16:]))
                    text = ",".join(map(str, coord))
                    assert hashlib.sha256(plain).hexdigest()[:32] == hashes[text][which], (name, coord)
                    expected[name][text] = zlib.crc32(plain)
                    out.write(record)
    values = list(entries(open(os.path.join(store, "000001.vlog"), "rb").read()))
    for name, first in [("value-gzip", b"\x40\x1f\x8b"), ("value-lz4", b"\x80")]:
        found = min((value for value in values if value.startswith(first) and len(value) > 1000), key=len)
        open(os.path.join(here, name), "wb").write(found)
    json.dump(expected, open(os.path.join(here, "expected.json"), "w"), indent=1)
    for sample in SAMPLES:
        shutil.copyfile(os.path.join(dvid, "test_data", sample + ".dat.gz"), os.path.join(here, sample + ".gz"))
    shutil.copyfile(os.path.join(dvid, "LICENSE.txt"), os.path.join(here, "LICENSE-DVID"))


main(*sys.argv[1:])
