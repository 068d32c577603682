#!/usr/bin/env python3
"""Keeps what DVID answered about every version of a store, as small as a test can use it.

  extract_answers.py RUN NAME         RUN is the --out of drive_dvid.py; writes ../answers/NAME.json

Per version: the UUID; per scale and block (`x,y,z`) the first 16 hex digits of the sha256 of its supervoxels, and of its bodies if these
differ; the mapping as [supervoxel, body, ...]; per body its voxels and the first 8 hex digits of the sha256 of its index. That is taken of
one line for each block and supervoxel, `z y x supervoxel voxels`, sorted as numbers. `supervoxels` has those bodies whose supervoxels DVID listed.
`mutations` is what DVID answered about the mutations of the version, without times.
"""
import hashlib, json, pathlib, struct, sys

run, name = pathlib.Path(sys.argv[1]), sys.argv[2]
target = pathlib.Path(__file__).parent.parent / "answers"
target.mkdir(parents=True, exist_ok=True)


def varint(buffer, at):
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(buffer):
    at = 0
    while at < len(buffer):
        tag, at = varint(buffer, at)
        if tag & 7 == 0:
            value, at = varint(buffer, at)
        else:
            length, at = varint(buffer, at)
            value, at = buffer[at:at + length], at + length
        yield tag >> 3, value


def pair(buffer, default):
    found = {1: 0, 2: default}
    found.update(fields(buffer))
    return found[1], found[2]


def axis(field):
    magnitude = field & 0xFFFFF
    return -magnitude if field & 0x100000 else magnitude


def index(buffer):
    label, rows = 0, []
    for number, value in fields(buffer):
        if number == 2:
            label = value
        if number == 1:
            key, counts = pair(value, b"")
            x, y, z = (axis(key >> shift & 0x1FFFFF) for shift in (0, 21, 42))
            for inner, entry in fields(counts):
                if inner == 1:
                    supervoxel, voxels = pair(entry, 0)
                    rows.append((z, y, x, supervoxel, voxels))
    text = "".join("%d %d %d %d %d\n" % row for row in sorted(rows))
    return label, sum(row[4] for row in rows), hashlib.sha256(text.encode()).hexdigest()[:8]


versions = {}
for answers in sorted((run / "answers").iterdir()):
    about = json.loads((answers / "version.json").read_text())
    scales = []
    for scale in json.loads((answers / "hashes.json").read_text()).values():
        blocks = {}
        for at, (supervoxels, bodies) in scale["blocks"].items():
            blocks[at] = [supervoxels[:16]] + ([bodies[:16]] if bodies != supervoxels else [])
        scales.append(blocks)
    stream = (answers / "mappings.bin").read_bytes()
    mapping = sorted(struct.iter_unpack("<QQ", stream))
    indices = [index(value) for number, value in fields((answers / "indices.pb").read_bytes()) if number == 1]
    sizes = json.loads((answers / "sizes.json").read_text())
    bodies = {}
    digests = {label: digest for label, voxels, digest in indices if voxels}
    for label, voxels in zip(sizes["labels"], sizes["sizes"]):
        bodies[label] = [voxels] + ([digests[label]] if label in digests else [])
    versions[about["label"]] = {
        "uuid": about["uuid"],
        "data": about["data"],
        "scales": scales,
        "mapping": [number for row in mapping for number in row],
        "bodies": bodies,
        "supervoxels": json.loads((answers / "supervoxels.json").read_text()),
        "mutations": [
            {name: value for name, value in mutation.items() if name not in ("Timestamp", "UUID", "Split")}
            for mutation in json.loads((answers / "mutations.json").read_text())
        ],
    }
(target / f"{name}.json").write_text(json.dumps(versions, separators=(",", ":")) + "\n")
print(name, len(versions), "versions")
