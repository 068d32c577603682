#!/usr/bin/env python3
"""Keeps what DVID's own export-shards wrote, as small as a test can use it.

  extract_exports.py GOLDEN           GOLDEN has SCENARIO/export/NAME/{spec.json,export.log,s0/,s1/,...}; writes ../exports/SCENARIO-NAME.json

Needs pyarrow. Per export: the UUID, the specification, and per scale and block (`x,y,z`, in blocks) the file it is in and the first 16 hex
digits of the sha256 of its labels, of its supervoxels (each as little-endian u64) and of the label block. A file that is no readable
stream is listed in `unreadable`, and its blocks are missing.
"""
import hashlib, json, pathlib, re, struct, sys

import pyarrow as pa

golden = pathlib.Path(sys.argv[1])
target = pathlib.Path(__file__).parent.parent / "exports"
target.mkdir(exist_ok=True)


def short(data):
    return hashlib.sha256(data).hexdigest()[:16]


def numbers(values):
    return short(struct.pack(f"<{len(values)}Q", *values))


for export in sorted(golden.glob("*/export/*")):
    log = (export / "export.log").read_text()
    kept = {"uuid": re.search(r"UUID:\s+(\w+)", log)[1], "spec": json.loads((export / "spec.json").read_text()), "scales": [], "unreadable": []}
    for scale in range(len(list(export.glob("s[0-9]*")))):
        blocks = {}
        for file in sorted((export / f"s{scale}").glob("*.arrow")):
            try:
                with pa.ipc.open_stream(file) as reader:
                    rows = reader.read_all().to_pylist()
            except (pa.ArrowInvalid, OSError):
                kept["unreadable"].append(f"s{scale}/{file.name}")
                continue
            for row in rows:
                block = pa.decompress(row["dvid_compressed_block"], decompressed_size=row["uncompressed_size"], codec="zstd", asbytes=True)
                place = f"{row['chunk_x']},{row['chunk_y']},{row['chunk_z']}"
                assert place not in blocks
                blocks[place] = [file.stem, numbers(row["labels"]), numbers(row["supervoxels"]), short(block)]
        kept["scales"].append(dict(sorted(blocks.items())))
    name = f"{export.parent.parent.name}-{export.name}"
    (target / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(name, [len(blocks) for blocks in kept["scales"]], kept["unreadable"])
