#!/usr/bin/env python3
"""Pack the store of a run of drive_dvid.py, or any folder with data/badger, into one small file.

    pack_store.py RUN OUT.store

Packed are data/badger (without DISCARD, 1 MiB of garbage statistics), data/mutlog and repos_info.json, as far as they are there. Holes of sparse files are
left out: a running server has a value log of 2 GiB with next to nothing in it. The file is a Zstandard frame of

    repeat: u16 length of the path | path | u64 size of the file | u32 number of extents
            each extent: u64 offset | u64 length | bytes                              little-endian

`chunkyard_test_support::dvid_store` unpacks it. Needs the command zstd.
"""

import os
import struct
import subprocess
import sys
from pathlib import Path

PAGE = 4096


def extents(file: Path):
    """The parts of a file that are not zeros, in pages."""
    size = file.stat().st_size
    with open(file, "rb") as opened:
        at = 0
        while at < size:
            try:
                at = os.lseek(opened.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                return
            end = os.lseek(opened.fileno(), at, os.SEEK_HOLE)
            at -= at % PAGE
            start = None
            while at < end:
                page = os.pread(opened.fileno(), PAGE, at)
                if any(page) and start is None:
                    start = at
                if not any(page) and start is not None:
                    yield start, os.pread(opened.fileno(), at - start, start)
                    start = None
                at += PAGE
            if start is not None:
                yield start, os.pread(opened.fileno(), end - start, start)


def main():
    run, out = Path(sys.argv[1]), Path(sys.argv[2])
    files = [file for file in [run / "repos_info.json"] if file.exists()]
    for folder in ("badger", "mutlog"):
        found = sorted((run / "data" / folder).glob("*"))
        files += [file for file in found if file.is_file() and file.name != "DISCARD"]
    packed = bytearray()
    for file in files:
        path = str(file.relative_to(run)).encode()
        parts = list(extents(file))
        packed += struct.pack("<H", len(path)) + path
        packed += struct.pack("<QI", file.stat().st_size, len(parts))
        for offset, data in parts:
            packed += struct.pack("<QQ", offset, len(data)) + data
    zstd = subprocess.run(["zstd", "-19", "-q", "-c"], input=packed, stdout=subprocess.PIPE, check=True)
    out.write_bytes(zstd.stdout)


main()
