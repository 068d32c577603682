"""Bloscpack files and directories of BLZ and bcolz, written by the programs themselves.

    pip install numpy==1.26.4 bloscpack==0.16.0 blosc==1.11.4 bcolz-zipline==1.13.0
    python make.py

with CPython 3.11 or 3.12 writes the directories beside this file again, the same to the byte.

No program writes versions 2 and 3 "interim" any more: this script builds them from chunks of Blosc,
as the formats lay them out. BLZ 0.6 does not run any more either: its directories are bcolz
directories with the metadata of BLZ. Expected elements are `.npy` files of the same name.
"""

import collections
import collections.abc
import json
import pathlib
import shutil
import struct
import zlib

import numpy as np

# bloscpack 0.16 is from 2018: it uses names that newer releases of Python and NumPy have moved.
collections.MutableMapping = collections.abc.MutableMapping

import bcolz  # noqa: E402
import blosc  # noqa: E402
import bloscpack  # noqa: E402
from bloscpack.args import BloscArgs, BloscpackArgs, MetadataArgs  # noqa: E402
from bloscpack.checksums import CHECKSUMS_AVAIL  # noqa: E402

NUMBERS = np.arange(40, dtype="<i4")
CHUNK_BYTES = 64
METADATA = {"dtype": "<i4"}
BARE = b'{"dtype":"<i4"}'
ROWS = np.array(
    [(number, number / 4, bytes([97 + number % 26]) * 2, [number, -number]) for number in range(30)],
    dtype=[("a", "<i4"), ("b", ">f8"), ("s", "S3"), ("p", "<i2", (2,))],
)


def chunks() -> list[bytes]:
    """NUMBERS in Blosc chunks of 64 bytes, the last of them shorter."""
    data = NUMBERS.tobytes()
    parts = [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]
    return [blosc.compress(part, typesize=4, clevel=7, shuffle=1, cname="blosclz") for part in parts]


def hand_made(version: int, options: int, metadata: bytes) -> bytes:
    """A file of version 2, or of version 3 as the BLZ document has it: with offsets and Adler-32."""
    parts = chunks()
    header = struct.pack("<4sBBBBiiqii", b"blpk", version, options, 1, 4, CHUNK_BYTES, 32, len(parts), len(metadata), 0)
    head = len(header) + len(metadata) + 8 * len(parts)
    ends = np.cumsum([len(part) + 4 for part in parts])
    offsets = [head, *(int(head + end) for end in ends[:-1])]
    body = b"".join(part + struct.pack("<I", zlib.adler32(part)) for part in parts)
    return header + metadata + struct.pack(f"<{len(parts)}q", *offsets) + body


def make_files(target: pathlib.Path) -> None:
    target.mkdir()
    np.save(target / "numbers.npy", NUMBERS)
    np.save(target / "struct.npy", ROWS)

    def keep(name: str, data: bytes) -> None:
        (target / name).write_bytes(data)

    def tool(**options) -> bytes:
        arguments = BloscpackArgs(**{"offsets": True, "checksum": "adler32", "max_app_chunks": 2, **options})
        return bloscpack.pack_bytes_to_bytes(
            NUMBERS.tobytes(),
            chunk_size=CHUNK_BYTES,
            metadata=METADATA,
            blosc_args=BloscArgs(typesize=4),
            bloscpack_args=arguments,
            metadata_args=MetadataArgs(max_meta_size=32),
        )

    for checksum in CHECKSUMS_AVAIL:
        keep(f"final-{checksum.lower()}.blp", tool(checksum=checksum))
    keep("final-no-offsets.blp", tool(offsets=False, max_app_chunks=0))
    plain = BloscpackArgs(checksum="crc32")
    sizes = {"chunk_size": CHUNK_BYTES, "blosc_args": BloscArgs(typesize=4)}
    keep("final-no-metadata.blp", bloscpack.pack_bytes_to_bytes(NUMBERS.tobytes(), bloscpack_args=plain, **sizes))
    keep("final-empty.blp", bloscpack.pack_bytes_to_bytes(b"", bloscpack_args=plain))
    keep("final-numpy.blp", bloscpack.pack_ndarray_to_bytes(NUMBERS, chunk_size=CHUNK_BYTES))
    keep("final-struct.blp", bloscpack.pack_ndarray_to_bytes(ROWS, chunk_size=ROWS.itemsize * 8))
    long = {"dtype": "<i4", "text": "many words " * 20}
    keep("final-deflated.blp", bloscpack.pack_bytes_to_bytes(NUMBERS.tobytes(), metadata=long, **sizes))

    parts = chunks()
    keep("v1.blp", struct.pack("<4sBBBBq", b"blpk", 1, 0, 0, 0, len(parts)) + b"".join(parts))
    keep("v2.blp", hand_made(2, 1, b""))
    keep("interim.blp", hand_made(3, 3, BARE))
    keep("interim-deflated.blp", hand_made(3, 7, zlib.compress(BARE, 6)))


def make_directories(target: pathlib.Path) -> None:
    target.mkdir()

    def keep(name: str, array, expected=None) -> None:
        array.flush()
        np.save(target / f"{name}.npy", array[:] if expected is None else expected)

    def new(name: str, data: np.ndarray, chunklen: int, cname="lz4", shuffle=1, **options):
        root = str(target / name)
        parameters = bcolz.cparams(clevel=5, shuffle=shuffle, cname=cname)
        return bcolz.carray(data, rootdir=root, mode="w", chunklen=chunklen, cparams=parameters, **options)

    count = np.arange(350)
    wave = np.sin(count / 9)
    line = new("line", wave, 100, dflt=1.5)
    line.attrs["temperature"] = 11.4
    line.attrs["scale"] = "°C"
    keep("line", line)
    keep("whole", new("whole", wave[:200], 100, dflt=np.nan))
    keep("cube", new("cube", count[:300].astype("<i2").reshape(50, 2, 3), 20))
    keep("swapped", new("swapped", wave.astype(">f8"), 128))
    keep("bytes", new("bytes", np.array([b"a" * (n % 4) for n in range(70)], "S3"), 32))
    keep("text", new("text", np.array(["né"[: n % 3] for n in range(70)], "<U5"), 32))
    keep("truth", new("truth", count[:70] % 3 == 0, 32))
    keep("dates", new("dates", count.astype("<M8[ns]"), 100))
    keep("struct", new("struct", ROWS[["a", "b"]].astype([("a", "<i4"), ("b", "<f8")]), 8))
    for name in ("blosclz-1", "lz4-0", "lz4-2", "lz4hc-1", "zlib-2", "zstd-1"):
        cname, shuffle = name.split("-")
        keep(name, new(name, (count * 7).astype("<i4"), 256, cname, int(shuffle)))

    trimmed = new("trimmed", wave, 100)
    trimmed.trim(120)
    keep("trimmed", trimmed, wave[:230])
    grown = new("grown", wave[:130], 100, dflt=2.5)
    grown.resize(270)
    keep("grown", grown, np.concatenate([wave[:130], np.full(140, 2.5)]))
    shrunk = new("shrunk", wave, 100)
    shrunk.resize(200)
    keep("shrunk", shrunk, wave[:200])
    appended = new("appended", wave[:130], 100)
    appended.append(wave[130:])
    keep("appended", appended, wave)

    table = bcolz.ctable(
        columns=[count.astype("<i4"), wave, np.array([b"x" * (n % 4) for n in count], "S3")],
        names=["number", "wave", "word"],
        rootdir=str(target / "table"),
        mode="w",
        chunklen=100,
    )
    table.flush()
    rows = np.empty(350, [("number", "<i4"), ("wave", "<f8"), ("word", "S3")])
    for name in rows.dtype.names:
        rows[name] = table[name][:]
    np.save(target / "table.npy", rows)


def rewrite(file: pathlib.Path, change) -> None:
    """Changes the JSON of a file as Python writes it."""
    document = json.loads(file.read_text())
    file.write_text(json.dumps(change(document)) + "\n")


def as_blz(root: pathlib.Path) -> None:
    """Gives an array of bcolz the metadata of BLZ 0.6, which does not name the codec."""

    def change(storage):
        shuffle = bool(storage["cparams"]["shuffle"])
        order = ("dtype", "bparams", "chunklen", "dflt", "expectedlen")
        storage["bparams"] = {"clevel": storage["cparams"]["clevel"], "shuffle": shuffle}
        return {key: storage[key] for key in order}

    rewrite(root / "meta" / "storage", change)


def make_blz(source: pathlib.Path, target: pathlib.Path) -> None:
    target.mkdir()
    for name in ("line", "cube", "table"):
        shutil.copytree(source / name, target / name)
        shutil.copy(source / f"{name}.npy", target)
    as_blz(target / "line")
    as_blz(target / "cube")
    # A fill value of BLZ has the shape of a row.
    rewrite(target / "cube" / "meta" / "storage", lambda storage: {**storage, "dflt": np.zeros((2, 3), int).tolist()})
    names = json.loads((target / "table" / "__rootdirs__").read_text())["names"]
    for name in names:
        as_blz(target / "table" / name)
    dirs = {name: f"data/table/{name}" for name in names}
    rewrite(target / "table" / "__rootdirs__", lambda table: {**table, "dirs": dirs})


def main() -> None:
    target = pathlib.Path(__file__).resolve().parent
    for name in ("bloscpack", "bcolz", "blz"):
        shutil.rmtree(target / name, ignore_errors=True)
    # Threads write the blocks of a chunk in any order.
    blosc.set_nthreads(1)
    bcolz.set_nthreads(1)
    make_files(target / "bloscpack")
    make_directories(target / "bcolz")
    make_blz(target / "bcolz", target / "blz")


if __name__ == "__main__":
    main()
