#!/usr/bin/env python3
"""Writes the files beside it with h5py and netCDF4, and expected.json with the values they read back.

    pip install h5py==3.16.0 hdf5plugin==7.1.0 netCDF4==1.7.5.1.post1 numpy==2.4.6
    ./make.py
"""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import h5py
import hdf5plugin
import netCDF4
import numpy as np

HERE = Path(__file__).resolve().parent
# 7 x 9 elements in chunks of 4 x 4: edges are padded along both axes.
GRID = np.arange(63, dtype="f4").reshape(7, 9) * 1.25 - 9
CHUNKS = (4, 4)


def low_level(file: h5py.File, name: str, values: np.ndarray, maxshape=None, **settings) -> None:
    """A dataset with a layout that h5py's own interface does not offer."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for setting, value in settings.items():
        getattr(plan, f"set_{setting}")(value)
    space = h5py.h5s.create_simple(values.shape, maxshape)
    kind = h5py.h5t.py_create(values.dtype, logical=True)
    h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, plan))[...] = values


def layouts(file: h5py.File) -> None:
    make = file.create_dataset
    make("contiguous", data=GRID)
    make("contiguous_empty", shape=(7, 9), dtype="i2", fillvalue=-3)
    low_level(file, "compact", np.arange(5, dtype="<i4"), layout=h5py.h5d.COMPACT)
    low_level(file, "early", GRID, chunk=CHUNKS, alloc_time=h5py.h5d.ALLOC_TIME_EARLY)
    low_level(file, "early_may_grow", GRID, (30, 50), chunk=CHUNKS, alloc_time=h5py.h5d.ALLOC_TIME_EARLY)
    make("fixed", data=GRID, chunks=CHUNKS)
    make("fixed_filtered", data=GRID, chunks=CHUNKS, compression="gzip")
    # The index counts chunks of the largest shape, not of the present one.
    make("fixed_may_grow", data=GRID, chunks=CHUNKS, maxshape=(30, 50))
    make("one_unlimited", data=GRID, chunks=CHUNKS, maxshape=(None, 9))
    make("other_unlimited", data=GRID, chunks=CHUNKS, maxshape=(20, None), compression="gzip")
    make("two_unlimited", data=GRID, chunks=CHUNKS, maxshape=(None, None))
    make("two_unlimited_filtered", data=GRID, chunks=CHUNKS, maxshape=(None, None), compression="gzip")
    make("single", data=GRID, chunks=GRID.shape)
    make("single_filtered", data=GRID, chunks=GRID.shape, compression="gzip")
    sparse = make("sparse", shape=(11, 8), chunks=(3, 3), dtype="<i4", fillvalue=7)
    sparse[0:3, 0:3] = 1
    sparse[10:, 6:] = 2
    make("never_written", shape=(11, 8), chunks=(3, 3), dtype="<u2", fillvalue=65535)
    shrunk = make("shrunk", data=GRID, chunks=CHUNKS, maxshape=(None, None))
    shrunk.resize((3, 5))
    make("empty", shape=(0, 4), maxshape=(None, 4), chunks=(2, 4), dtype="f8")
    make("scalar", data=3.5)
    file.create_virtual_dataset("virtual", h5py.VirtualLayout(shape=(5,), dtype="i8"))


def filters(file: h5py.File) -> None:
    def make(name: str, **options) -> None:
        file.create_dataset(name, data=GRID, chunks=CHUNKS, **options)

    make("shuffle", shuffle=True)
    make("shuffle_deflate", shuffle=True, compression="gzip", compression_opts=9)
    # Compressed chunks of even and of odd length under a checksum.
    make("all_fletcher32", shuffle=True, compression="gzip", fletcher32=True)
    make("fletcher32", fletcher32=True)
    make("zstd", **hdf5plugin.Zstd(clevel=5))
    make("bzip2", **hdf5plugin.BZip2())
    make("blosc_too_small", **hdf5plugin.Blosc())
    compressible = (np.arange(25 * 20, dtype="<i2") % 7).reshape(25, 20)
    for inner, shuffle in [("blosclz", 1), ("lz4", 0), ("lz4", 1), ("lz4", 2), ("lz4hc", 1), ("zlib", 1), ("zstd", 2)]:
        options = hdf5plugin.Blosc(cname=inner, shuffle=shuffle)
        file.create_dataset(f"blosc_{inner}_{shuffle}", data=compressible, chunks=(20, 16), **options)
    make("lz4", **hdf5plugin.LZ4())
    make("lzf", compression="lzf")
    make("bitshuffle", **hdf5plugin.Bitshuffle())
    file.create_dataset("scale_offset", data=GRID.astype("i4"), chunks=CHUNKS, scaleoffset=0)
    masked = file.create_dataset("unfiltered_chunk", shape=(4,), chunks=(2,), dtype="<i4", compression="gzip")
    masked.id.write_direct_chunk((0,), np.array([1, 2], dtype="<i4").tobytes(), filter_mask=1)
    masked[2:] = 5


def types(file: h5py.File) -> None:
    make = file.create_dataset
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"):
        for order in "<>":
            values = (np.arange(-3, 9) * 1.5).astype(f"{order}{code}")
            name = f"{code}_{'little' if order == '<' else 'big'}"
            make(name, data=values, chunks=(5,), fillvalue=values[1])
    make("bool", data=np.array([True, False, True]))
    make("enum", data=np.array([1, 2, 1], dtype="u1"), dtype=h5py.enum_dtype({"A": 1, "B": 2}, basetype="u1"))
    make("fixed_string", data=np.array([b"ab", b"cdefg", b""], dtype="S5"))
    make("opaque", data=np.array([b"\1\2\3", b"\4\0\6"], dtype="V3"))
    times = np.array(["2020-01-01T00:00:01", "1969-12-31"], dtype="<M8[s]")
    make("datetime", data=times.astype(h5py.opaque_dtype(times.dtype)))
    make("text", data=["a", "", "zwölf", "line\nbreak"], dtype=h5py.string_dtype())
    make("text_chunked", data=["x", "yy", "zzz"], chunks=(2,), dtype=h5py.string_dtype("ascii"), compression="gzip")
    make("nan", shape=(3,), dtype="f4", fillvalue=np.nan)
    make("compound", data=np.zeros(3, dtype=[("x", "f4"), ("y", "i8")]))
    make("reference", data=np.array([file["bool"].ref], dtype=h5py.ref_dtype))
    make("array", shape=(2,), dtype=np.dtype(("f4", (3,))))
    make("ragged", shape=(2,), dtype=h5py.vlen_dtype("i4"))
    make("null", data=h5py.Empty("f4"))
    make("long_double", data=np.zeros(2, dtype=np.longdouble))
    narrow = h5py.h5t.STD_I32LE.copy()
    narrow.set_precision(20)
    h5py.h5d.create(file.id, b"narrow", narrow, h5py.h5s.create_simple((2,)))
    brain = h5py.h5t.IEEE_F32LE.copy()
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_size(2)
    brain.set_ebias(127)
    h5py.h5d.create(file.id, b"bfloat16", brain, h5py.h5s.create_simple((2,)))
    file["named_type"] = np.dtype("f4")


def hierarchy(file: h5py.File) -> None:
    file.create_dataset("group/sub/x", data=np.arange(5, dtype="<i8"))
    file["second_name"] = file["group/sub/x"]
    file["soft"] = h5py.SoftLink(f"{file.name}/group/sub/x")
    file["soft_to_soft"] = h5py.SoftLink("soft")
    file["soft_group"] = h5py.SoftLink(f"{file.name}/group")
    file["broken"] = h5py.SoftLink("/nowhere")
    file["loop"] = h5py.SoftLink("loop")
    file["external"] = h5py.ExternalLink("other.h5", "/x")
    file["group/cycle"] = file["/"]
    for n in range(40):
        file.create_group(f"many/g{n:02}")
    root = file.attrs
    root["text"] = "hé"
    root["number"] = np.int64(-3)
    root["numbers"] = np.array([1.5, 2.0], dtype="f4")
    root["one_number"] = np.array([7], dtype="u2")
    root["matrix"] = np.arange(6, dtype=">i2").reshape(2, 3)
    root["bytes"] = np.bytes_("abc")
    root["texts"] = ["a", "", "ccc"]
    root["flag"] = True
    root["nothing"] = h5py.Empty("f4")
    root["not_a_number"] = np.float64("nan")
    root["reference"] = file["group/sub/x"].ref
    for n in range(20):
        file["group"].attrs[f"a{n:02}"] = n
    scale = file.create_dataset("scale", data=np.arange(9.0))
    scale.make_scale("a scale")
    scaled = file.create_dataset("scaled", data=GRID)
    scaled.dims[0].label = "label"
    scaled.dims[1].attach_scale(scale)
    half = file.create_dataset("half_named", data=GRID)
    half.dims[1].attach_scale(scale)


def unfiltered_edges(file: h5py.File, name: str, maxshape=None) -> None:
    """A dataset whose partial chunks go through no filter, an option that h5py does not offer."""
    library = next((Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*"))
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk(CHUNKS)
    plan.set_shuffle()
    dont_filter_partial_chunks = 2
    set_options = ctypes.CDLL(str(library)).H5Pset_chunk_opts
    set_options.argtypes = [ctypes.c_int64, ctypes.c_uint]
    assert set_options(plan.id, dont_filter_partial_chunks) == 0
    unlimited = maxshape and tuple(h5py.h5s.UNLIMITED if extent is None else extent for extent in maxshape)
    space = h5py.h5s.create_simple(GRID.shape, unlimited)
    dataset = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F32LE, space, plan))
    dataset[...] = GRID
    # A header of several blocks.
    for n in range(6):
        dataset.attrs[f"filler{n}"] = "x" * 100


def small(file: h5py.File) -> None:
    """One of each structure, for tests that change bytes."""
    file.attrs["text"] = "é"
    file.create_dataset("g/chunked", data=GRID, chunks=CHUNKS, compression="gzip", shuffle=True)
    file.create_dataset("grows", data=GRID[0], chunks=(4,), maxshape=(None,))
    file.create_dataset("grows_twice", data=GRID, chunks=(7, 4), maxshape=(None, None), compression="gzip")
    file.create_dataset("text", data=["a", "bc"], dtype=h5py.string_dtype())
    file["soft"] = h5py.SoftLink("/g/chunked")
    file["grows_twice"].dims[1].attach_scale(file["grows"])
    for n in range(10):
        file["g"].attrs[f"a{n}"] = n


def netcdf(file: netCDF4.Dataset) -> None:
    for name, size in {"time": None, "lat": 4, "lon": 6, "bare": 3, "clash": 2}.items():
        file.createDimension(name, size)
    file.title = "a title"
    file.empty = ""
    file.levels = np.array([1, 2, 3], dtype="i4")
    time = file.createVariable("time", "f8", ("time",))
    time.units = "days since 2000-01-01"
    time[:] = np.arange(5)
    file.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-45, 45, 4)
    temperature = file.createVariable(
        "temperature", "i2", ("time", "lat", "lon"), zlib=True, fill_value=-99, chunksizes=(2, 3, 4)
    )
    temperature.scale_factor = 0.5
    temperature.add_offset = 10.0
    temperature.set_auto_maskandscale(False)
    temperature[:] = np.arange(5 * 4 * 6).reshape(5, 4, 6)
    file.createVariable("on_bare", "f4", ("bare", "lat"), fill_value=np.nan)[:] = 1
    # A variable called like a dimension that it does not have, and a coordinate of two dimensions.
    file.createVariable("clash", "i4", ("lat", "bare"))[:] = np.arange(12).reshape(4, 3)
    file.createVariable("lon", "f4", ("lon", "lat"))[:] = np.arange(24).reshape(6, 4)
    names = file.createVariable("names", str, ("bare",))
    names[:] = np.array(["x", "yy", ""], dtype=object)
    file.createVariable("letters", "S1", ("bare", "clash"))[:] = np.array([[b"a", b"b"]] * 3)
    group = file.createGroup("inner")
    group.remark = "deep"
    group.createVariable("counts", "u8", ("lat",), compression="zstd", fletcher32=True)[:] = 3


def expected(path: Path) -> dict:
    """The expected data: little-endian bytes in C order as hex, or strings."""
    arrays = {}
    entered = set()

    def visit(group: h5py.Group) -> None:
        entered.add(group.id)
        for name in group:
            link = group.get(name, getlink=True)
            try:
                item = None if isinstance(link, h5py.ExternalLink) else group[name]
            except (KeyError, RuntimeError):
                continue
            here = f"{group.name.rstrip('/')}/{name}"
            if isinstance(item, h5py.Group) and item.id not in entered and isinstance(link, h5py.HardLink):
                visit(item)
            elif isinstance(item, h5py.Dataset) and item.shape is not None and not item.is_virtual:
                data = elements(item)
                if data is not None:
                    arrays[here] = {"shape": list(item.shape), "data": data}

    with h5py.File(path) as file:
        visit(file)
    return arrays


def elements(dataset: h5py.Dataset) -> str | list | None:
    try:
        text = h5py.check_string_dtype(dataset.dtype)
        if text and text.length is None:
            return dataset.asstr()[()].tolist()
        values = dataset[()]
    except (OSError, TypeError):
        return None
    kind = np.asarray(values).dtype
    if kind.hasobject or kind.names or kind.subdtype or kind.itemsize != dataset.id.get_type().get_size():
        return None
    return values.astype(kind.newbyteorder("<")).tobytes().hex()


def expected_netcdf(path: Path) -> dict:
    """The same for netCDF4, with the names of dimensions and the attributes."""
    arrays = {}

    def visit(group: netCDF4.Dataset) -> None:
        for name, variable in group.variables.items():
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            values = variable[...]
            text = values.dtype == object
            attributes = {key: variable.getncattr(key) for key in variable.ncattrs()}
            plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in attributes.items()}
            arrays[f"{group.path.rstrip('/')}/{name}"] = {
                "shape": list(variable.shape),
                "data": values.tolist() if text else values.astype(values.dtype.newbyteorder("<")).tobytes().hex(),
                "dimensions": list(variable.dimensions),
                "attributes": {key: "NaN" if value != value else value for key, value in plain.items()},
            }
        for inner in group.groups.values():
            visit(inner)

    with netCDF4.Dataset(path) as file:
        visit(file)
    return arrays


def render(everything: dict) -> str:
    """JSON with one array per line."""
    files = []
    for name, arrays in everything.items():
        lines = [f"  {json.dumps(path)}: {json.dumps(array, ensure_ascii=False)}" for path, array in arrays.items()]
        files.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(files) + "\n}\n"


def main() -> None:
    everything = {}
    for name, options in {
        "earliest.h5": {"libver": "earliest"},
        "latest.h5": {"libver": "latest"},
        "user_block.h5": {"userblock_size": 1024},
    }.items():
        with h5py.File(HERE / name, "w", **options) as file:
            layouts(file)
            if name != "user_block.h5":
                filters(file.create_group("filters"))
                types(file.create_group("types"))
                hierarchy(file.create_group("tree"))
        everything[name] = expected(HERE / name)
    for version in ("earliest", "latest"):
        path = HERE / f"small_{version}.h5"
        with h5py.File(path, "w", libver=version) as file:
            small(file)
            unfiltered_edges(file, "unfiltered_edges")
            unfiltered_edges(file, "unfiltered_edges_grow", (None, 9))
            unfiltered_edges(file, "unfiltered_edges_grow_twice", (None, None))
            low_level(file, "early", GRID, (8, 9), chunk=CHUNKS, alloc_time=h5py.h5d.ALLOC_TIME_EARLY)
        everything[path.name] = expected(path)
    with netCDF4.Dataset(HERE / "netcdf.nc", "w") as file:
        netcdf(file)
    everything["netcdf.nc"] = expected_netcdf(HERE / "netcdf.nc")
    (HERE / "expected.json").write_text(render(everything))


if __name__ == "__main__":
    main()
