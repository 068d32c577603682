"""Makes the golden hierarchies in this directory: plain Zarr as zarr-python 3.1 writes it.

    python make.py

`v3.zarr` and `v2.zarr` have consolidated metadata, `bare.zarr` has none. Beside each hierarchy lies
`<hierarchy>-<array>.npy` for every array: its elements in C order, little-endian.
"""

import pathlib
import shutil
import warnings

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ShardingCodec, ZstdCodec

HERE = pathlib.Path(__file__).parent
warnings.simplefilter("ignore")


def field(shape, dtype):
    """Smooth enough to compress, and different everywhere."""
    count = int(np.prod(shape, dtype=int))
    return (np.arange(count) * 7 % 251).reshape(shape).astype(dtype)


def keep(hierarchy, array, values):
    array[...] = values
    read = np.asarray(array[...])
    little = read.astype(read.dtype.newbyteorder("<"), order="C")
    np.save(HERE / f"{hierarchy}-{array.path.replace('/', '-')}.npy", little)


def begin(hierarchy, **options):
    path = HERE / f"{hierarchy}.zarr"
    shutil.rmtree(path, ignore_errors=True)
    return zarr.create_group(path, attributes={"title": "golden", "nested": {"a": [1, None]}}, **options)


def version_3():
    root = begin("v3", zarr_format=3)
    plain = root.create_array(
        "plain", shape=(37, 29), chunks=(10, 10), dtype="float32", compressors=ZstdCodec(level=3),
        fill_value=np.nan, dimension_names=("y", "x"), attributes={"units": "K"},
    )
    values = field((37, 29), "float32")
    # Chunks that hold the fill value only are not written.
    values[20:, :10] = np.nan
    keep("v3", plain, values)
    sharded = root.create_array(
        "deep/sharded", shape=(40, 30), chunks=(5, 5), shards=(20, 15), dtype="uint16",
        compressors=BloscCodec(cname="lz4", clevel=5),
    )
    values = field((40, 30), "uint16")
    values[:5, :5] = 0
    keep("v3", sharded, values)
    start = root.create_array(
        "deep/start", shape=(16,), chunks=(16,), dtype="int64", compressors=None, filters=None,
        serializer=ShardingCodec(chunk_shape=(4,), codecs=[zarr.codecs.BytesCodec(), GzipCodec(level=5)],
                                 index_location="start"),
    )
    keep("v3", start, field((16,), "int64"))
    scalar = root.create_array("scalar", shape=(), chunks=(), dtype="complex64")
    keep("v3", scalar, np.complex64(1 - 2j))
    zarr.consolidate_metadata(root.store)


def version_2():
    root = begin("v2", zarr_format=2)
    dots = root.create_array(
        "dots", shape=(13, 17), chunks=(5, 6), dtype=">i4", attributes={"_ARRAY_DIMENSIONS": ["y", "x"]},
        compressors=numcodecs.Blosc(cname="zstd", clevel=3),
    )
    keep("v2", dots, field((13, 17), ">i4"))
    slashes = root.create_array(
        "deep/slashes", shape=(9, 11), chunks=(4, 4), dtype="<f8", order="F",
        chunk_key_encoding={"name": "v2", "separator": "/"},
        filters=[numcodecs.Shuffle(elementsize=8)], compressors=numcodecs.Zlib(level=5),
    )
    keep("v2", slashes, field((9, 11), "<f8"))
    zarr.consolidate_metadata(root.store)


def without_consolidated_metadata():
    root = begin("bare", zarr_format=3)
    array = root.create_array("a/b/c", shape=(6, 6), chunks=(3, 3), dtype="uint8", compressors=GzipCodec(level=1))
    keep("bare", array, field((6, 6), "uint8"))


if __name__ == "__main__":
    version_3()
    version_2()
    without_consolidated_metadata()
