"""Writes cases.json: small arrays of Zarr version 2 as zarr-python writes them.

Each case is an array of one chunk: its `.zarray`, its `.zattrs`, the bytes of the chunk, and the
elements in C order and the fill value, little-endian (strings as a list). Needs zarr 3 and numcodecs:

    python make.py > cases.json
"""

import asyncio
import json
import sys
import warnings

import numcodecs
import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

warnings.simplefilter("ignore")
RANDOM = np.random.default_rng(7)


def fetch(store, key):
    found = asyncio.run(store.get(key, prototype=default_buffer_prototype()))
    return None if found is None else found.to_bytes()


def case(name, data, **options):
    store = MemoryStore()
    array = zarr.create_array(
        store, shape=data.shape, chunks=data.shape, zarr_format=2, dtype=options.pop("dtype", data.dtype),
        attributes=options.pop("attributes", {}), **options,
    )
    array[...] = data
    back = array[...]
    separator = array.metadata.dimension_separator
    chunk = fetch(store, separator.join("0" * data.ndim) or "0")
    if back.dtype.kind in "OT":
        fill = None
        decoded = [item if isinstance(item, str) else item.hex() for item in back.ravel().tolist()]
    else:
        kind = back.dtype.newbyteorder("<")
        fill = np.array(array.fill_value, dtype=kind).tobytes().hex()
        decoded = np.ascontiguousarray(back).astype(kind).tobytes().hex()
    attributes = fetch(store, ".zattrs")
    return {
        "name": name,
        "zarray": fetch(store, ".zarray").decode(),
        "zattrs": attributes and attributes.decode(),
        "chunk": chunk.hex(),
        "decoded": decoded,
        "fill": fill,
    }


def cases():
    counting = np.arange(24).reshape(4, 6)
    for kind in ["i1", "u1", "<i2", ">i2", "<u4", ">u8", "<f2", ">f4", "<f8", "<c8", ">c16", "|b1"]:
        data = (counting % 2 if kind == "|b1" else counting - (kind[1] == "i")).astype(kind)
        yield case(f"type {kind}", data, compressors=None)
    for order in "CF":
        for kind in ["<u2", ">f8"]:
            cube = np.arange(24).reshape(2, 3, 4).astype(kind)
            yield case(f"order {order} {kind}", cube, order=order, compressors=numcodecs.Zstd(3))
    yield case("order F line", np.arange(5, dtype="<u2"), order="F", compressors=None)
    yield case("scalar", np.array(7, dtype="<i4"), compressors=None)

    noise = RANDOM.integers(0, 1000, (8, 9)).astype("<u4")
    for compressor in [
        numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE),
        numcodecs.Blosc("zstd", 3, numcodecs.Blosc.BITSHUFFLE),
        numcodecs.Blosc("zstd", 3, numcodecs.Blosc.NOSHUFFLE),
        numcodecs.Blosc("blosclz", 3, numcodecs.Blosc.AUTOSHUFFLE),
        numcodecs.Zlib(3), numcodecs.GZip(3), numcodecs.BZ2(3), numcodecs.LZ4(2),
        numcodecs.Zstd(3), numcodecs.Zstd(3, checksum=True),
    ]:
        yield case(f"compressor {json.dumps(compressor.get_config())}", noise, compressors=compressor)

    waves = np.round(np.sin(np.arange(40.0)), 1) + 1000
    for filters, data in [
        ([numcodecs.Shuffle(4)], noise),
        ([numcodecs.Fletcher32()], noise),
        ([numcodecs.Adler32()], noise),
        ([numcodecs.CRC32C()], noise),
        ([numcodecs.FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype="<i2")], waves),
        ([numcodecs.FixedScaleOffset(offset=999, scale=100, dtype="<f8", astype="|u1")], waves),
        ([numcodecs.FixedScaleOffset(offset=1000, scale=10, dtype=">f8", astype="<i4")], waves.astype(">f8")),
        ([numcodecs.FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype=">i4")], waves),
        ([numcodecs.Quantize(digits=2, dtype="<f8")], waves / 3),
        ([numcodecs.BitRound(keepbits=5)], (waves / 3).astype("<f4")),
    ]:
        config = json.dumps([codec.get_config() for codec in filters])
        yield case(f"filters {config}", data, filters=filters, compressors=numcodecs.Zlib(1))

    words = np.array(["", "a", "né", "日本語", "x" * 40, "NaN"])
    fixed = words.astype("<U5")
    yield case("text <U5", fixed, compressors=numcodecs.Zstd(1))
    yield case("text >U5", fixed.astype(">U5"), dtype=np.dtype(">U5"), compressors=None)
    yield case("text |S5", np.array([b"", b"abc", b"defgh", b"\xff\0x"]), dtype="|S5", compressors=None)
    yield case("text |O", words.astype(object), dtype=str, compressors=None)
    yield case("text |O compressed", words.astype(object), dtype=str, compressors=numcodecs.Blosc("lz4", 5, 1))
    plane = words.astype(object).reshape(2, 3)
    yield case("text |O order F", plane, dtype=str, order="F", compressors=numcodecs.Zstd(1))
    raw = np.array([b"abcde", b"\0\1\2\3\4"], dtype="V5")
    yield case("raw |V5", raw, compressors=None, fill_value=np.void(b"\1\2\3\4\5"))
    times = np.array(["2020-01-01", "NaT", "1969-12-31T23:59:59"], dtype="<M8[s]")
    yield case("time <M8[s]", times, compressors=None, fill_value=np.datetime64("NaT", "s"))
    yield case("time >M8[25ms]", times.astype(">M8[25ms]"), compressors=None)
    yield case("time <m8[D]", np.array([1, -1, 0], dtype="<m8[D]"), compressors=None)

    for fill in [float("nan"), float("inf"), -float("inf"), -0.0, 1e300, 0.1]:
        yield case(f"fill {fill}", waves, fill_value=fill, compressors=None)
    yield case("fill complex", np.array([1j, 2]), fill_value=complex(float("nan"), -1.5), compressors=None)
    yield case("fill largest", np.array([1], dtype="<u8"), fill_value=2**64 - 1, compressors=None)
    yield case("fill |S3", np.array([b"abc"]), fill_value=b"xyz", compressors=None)
    yield case(
        "named", noise, compressors=None,
        attributes={"_ARRAY_DIMENSIONS": ["y", "x"], "_FillValue": float("nan"), "units": "m"},
        chunk_key_encoding={"name": "v2", "separator": "/"},
    )


if __name__ == "__main__":
    json.dump(list(cases()), sys.stdout, indent=1, ensure_ascii=True)
    print()
