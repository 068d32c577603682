"""docs/views.md: what other programs read from a running server, value by value."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numcodecs
import numpy as np
import pytest
import tensorstore as ts
import xarray as xr
import zarr
from cloudvolume import CloudVolume

from conftest import ROOT, run

# Ids that a JavaScript number cannot hold.
BIG = 2**53 + 1


@dataclass
class Served:
    """A running server, and what each of its places holds."""

    url: str
    fields: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    supervoxels: np.ndarray
    bodies: np.ndarray
    versions: list[tuple[str, np.ndarray]]

    def at(self, place: str, view: str = "zarr") -> str:
        return f"{self.url}/data/{place}/{view}"


def serve(places: dict[str, object], *options: str) -> tuple[subprocess.Popen, str]:
    """Starts a server on free ports; the process, and the URL of HTTP."""
    binary = os.environ.get("CHUNKYARD_BIN", str(ROOT / "target" / "debug" / "chunkyard"))
    named = [f"{name}={place}" for name, place in places.items()]
    command = [binary, "serve", *named, "--http", "127.0.0.1:0", "--flight", "127.0.0.1:0", "--json"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the server ended with {process.wait()}"
    return process, json.loads(line)["http"].rstrip("/")


def a_field() -> np.ndarray:
    values = np.random.default_rng(5).standard_normal((19, 23, 31)).astype("<f4")
    values[:8, :8, :] = 0
    return values


def some_labels() -> np.ndarray:
    """Bodies in boxes, with ids beyond 2^53, and a corner that holds nothing."""
    z, y, x = (places // step for places, step in zip(np.indices((40, 36, 50)), (10, 9, 8), strict=True))
    labels = (BIG + z * 64 + y * 8 + x).astype("u8")
    labels[:16, :16, :] = 0
    return labels


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yard = tmp_path_factory.mktemp("served")
    values, labels = a_field(), some_labels()

    v3 = yard / "three.zarr"
    zarr.create_array(v3, name="a/field", data=values, chunks=(8, 8, 16), dimension_names=["z", "y", "x"])
    group = zarr.open_group(v3, mode="a")
    group.create_array("labels", data=labels, chunks=(16, 16, 16), shards=(32, 32, 32), dimension_names=["z", "y", "x"])
    places: dict[str, object] = {"v3": v3}
    fields, volumes = {"v3": values}, {"v3": labels}

    v2 = zarr.open_group(yard / "two.zarr", mode="w", zarr_format=2)
    v2.create_array("a/field", data=values, chunks=(8, 8, 16), compressors=[numcodecs.Zlib(level=1)])
    v2.create_array("labels", data=labels, chunks=(16, 16, 16))
    places["v2"] = yard / "two.zarr"
    fields["v2"], volumes["v2"] = values, labels

    with h5py.File(yard / "file.h5", "w") as file:
        file.create_dataset("a/field", data=values, chunks=(8, 8, 16), compression="gzip", shuffle=True)
        file.create_dataset("labels", data=labels)
    places["hdf5"] = yard / "file.h5"
    fields["hdf5"], volumes["hdf5"] = values, labels

    for name, target in [("repo", "copy.repo"), ("container", "copy.af")]:
        run("convert", v3, yard / target, "--quiet")
        places[name] = yard / target
        fields[name], volumes[name] = values, labels
    run("convert", v3 / "a" / "field", yard / "copy.blz", "--quiet")
    places["blz"] = yard / "copy.blz"
    for name, options in [("precomputed", ["--shards", "none"]), ("shards", [])]:
        run("convert", v3, yard / name, "--to", "precomputed", "--array", "/labels", *options, "--quiet")
        places[name] = yard / name

    segments, raw = yard / "segments", yard / "labels.npy"
    np.save(raw, labels)
    run("labels", "import", segments, raw, "--path", "/seg", "--block", "16,16,16", "--quiet")
    first, second = (int(one) for one in np.unique(labels)[1:3])
    merged = labels.copy()
    merged[merged == second] = first
    run("labels", "merge-bodies", segments, first, second, "--path", "/seg")
    places["segments"] = segments

    history = yard / "history"
    run("repo", "init", history)
    versions = []
    for number in range(2):
        file = yard / "values.npy"
        np.save(file, values + number)
        chunks = ["--chunks", "8,8,16"] if number == 0 else []
        run("repo", "set", history, "/field", file, *chunks, "-m", f"version {number}")
        newest = json.loads(run("repo", "log", history, "--json").stdout)[0]
        versions.append((newest["snapshot-id"], values + number))
    places["history"] = history

    unpack(ROOT / "testdata" / "dvid" / "stores" / "basic.store", yard / "dvid")
    places["dvid"] = f"dvid+badger://{yard}/dvid/data/badger"
    run("convert", places["dvid"], yard / "dvid.zarr", "--quiet")
    run("convert", places["dvid"], yard / "supervoxels.zarr", "--supervoxels", "--quiet")
    places["dvid-copy"], places["dvid-supervoxels"] = yard / "dvid.zarr", yard / "supervoxels.zarr"

    process, url = serve(places)
    yield Served(url, fields, volumes, labels, merged, versions)
    process.terminate()
    assert process.wait(30) == 0


def unpack(packed: Path, target: Path) -> None:
    """A store that a real DVID wrote; testdata/dvid/make/pack_store.py packed it."""
    rest = memoryview(bytes(numcodecs.Zstd().decode(packed.read_bytes())))
    while rest:
        (length,) = struct.unpack_from("<H", rest)
        path, rest = target / bytes(rest[2 : 2 + length]).decode(), rest[2 + length :]
        size, extents = struct.unpack_from("<QI", rest)
        rest = rest[12:]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
            for _ in range(extents):
                offset, length = struct.unpack_from("<QQ", rest)
                file.seek(offset)
                file.write(rest[16 : 16 + length])
                rest = rest[16 + length :]


def tensorstore_zarr(url: str, path: str) -> ts.TensorStore:
    base, _, rest = url.partition("/data/")
    kvstore = {"driver": "http", "base_url": base, "path": f"/data/{rest}/{path}".rstrip("/") + "/"}
    return ts.open({"driver": "zarr3", "kvstore": kvstore}, read=True).result()


def tensorstore_volume(url: str, scale: int) -> np.ndarray:
    base, _, rest = url.partition("/data/")
    kvstore = {"driver": "http", "base_url": base, "path": f"/data/{rest}/"}
    spec = {"driver": "neuroglancer_precomputed", "kvstore": kvstore, "scale_index": scale}
    return ts.open(spec, read=True).result().read().result()[..., 0].T


def zarr_python(url: str, path: str) -> np.ndarray:
    return np.asarray(zarr.open_array(f"{url}/{path}".rstrip("/"), mode="r")[...])


FORMATS = ["v3", "v2", "hdf5", "repo", "container"]


@pytest.mark.parametrize("place", FORMATS)
def test_zarr_python_and_tensorstore_read_every_format(served: Served, place: str):
    for path, expected in [("a/field", served.fields[place]), ("labels", served.labels[place])]:
        found = zarr_python(served.at(place), path)
        assert found.dtype == expected.dtype and np.array_equal(found, expected), path
        found = tensorstore_zarr(served.at(place), path).read().result()
        assert np.array_equal(found, expected), path


def test_an_array_alone_is_the_root(served: Served):
    expected = served.fields["v3"]
    assert np.array_equal(zarr_python(served.at("blz"), ""), expected)
    assert np.array_equal(tensorstore_zarr(served.at("blz"), "").read().result(), expected)


@pytest.mark.parametrize("place", ["precomputed", "shards"])
def test_a_volume_is_zarr_too(served: Served, place: str):
    group = zarr.open_group(served.at(place), mode="r")
    (name, array), *others = sorted(group.arrays())
    assert not others
    assert np.array_equal(np.asarray(array[...]), served.supervoxels)
    assert np.array_equal(tensorstore_zarr(served.at(place), name).read().result(), served.supervoxels)


@pytest.mark.parametrize("place", [*FORMATS, "precomputed", "shards"])
def test_labels_of_every_format_are_a_volume(served: Served, place: str):
    folder = "/labels" if place in FORMATS else ""
    url = served.at(place, "precomputed") + folder
    assert np.array_equal(tensorstore_volume(url, 0), served.supervoxels)
    # Every chunk is there, also those that were never written.
    volume = CloudVolume(f"precomputed://{url}", mip=0, fill_missing=False, progress=False, cache=False)
    assert np.array_equal(np.asarray(volume[:, :, :])[..., 0].T, served.supervoxels)


def test_an_image_is_a_volume(served: Served):
    found = tensorstore_volume(served.at("repo", "precomputed") + "/a/field", 0)
    assert np.array_equal(found, served.fields["repo"])


def test_xarray_opens_a_group_by_its_consolidated_metadata(served: Served):
    dataset = xr.open_zarr(served.at("v3") + "/a", consolidated=True)
    assert dataset["field"].dims == ("z", "y", "x")
    assert np.array_equal(dataset["field"].values, served.fields["v3"])


def test_a_labelmap_has_supervoxels_and_bodies(served: Served):
    for view, expected in [
        ("zarr", served.supervoxels),
        ("zarr-supervoxels", served.supervoxels),
        ("zarr-bodies", served.bodies),
    ]:
        assert np.array_equal(zarr_python(served.at("segments", view), "seg/s0"), expected), view
        assert np.array_equal(tensorstore_zarr(served.at("segments", view), "seg/s0").read().result(), expected)
    for view, expected in [("precomputed", served.bodies), ("precomputed-supervoxels", served.supervoxels)]:
        url = served.at("segments", view)
        assert np.array_equal(tensorstore_volume(url, 0), expected), view
        volume = CloudVolume(f"precomputed://{url}", mip=0, fill_missing=False, progress=False, cache=False)
        assert np.array_equal(np.asarray(volume[:, :, :])[..., 0].T, expected), view


def test_the_scales_of_a_labelmap_are_the_scales_of_the_volume(served: Served):
    for scale in range(2):
        expected = zarr_python(served.at("segments", "zarr-bodies"), f"seg/s{scale}")
        found = tensorstore_volume(served.at("segments", "precomputed"), scale)
        assert np.array_equal(found, expected), scale


def test_two_versions_are_read_side_by_side(served: Served):
    for version, expected in served.versions:
        url = served.at(f"history@{version}")
        assert np.array_equal(zarr_python(url, "field"), expected)
        assert np.array_equal(tensorstore_zarr(url, "field").read().result(), expected)
    assert np.array_equal(zarr_python(served.at("history"), "field"), served.versions[-1][1])
    assert np.array_equal(zarr_python(served.at("history@main"), "field"), served.versions[-1][1])


def test_a_part_is_read_by_its_chunks(served: Served):
    expected = served.labels["v3"][5:30, 7:20, 3:49]
    array = tensorstore_zarr(served.at("repo"), "labels")
    assert np.array_equal(array[5:30, 7:20, 3:49].read().result(), expected)


def test_a_store_of_dvid_has_bodies_unless_supervoxels_are_asked_for(served: Served):
    bodies = zarr_python(served.at("dvid-copy"), "seg/s0")
    supervoxels = zarr_python(served.at("dvid-supervoxels"), "seg/s0")
    for view, expected in [("zarr", bodies), ("zarr-bodies", bodies), ("zarr-supervoxels", supervoxels)]:
        assert np.array_equal(zarr_python(served.at("dvid", view), "seg/s0"), expected), view
        assert np.array_equal(tensorstore_zarr(served.at("dvid", view), "seg/s0").read().result(), expected), view
    for view, expected in [("precomputed", bodies), ("precomputed-supervoxels", supervoxels)]:
        assert np.array_equal(tensorstore_volume(served.at("dvid", view), 0), expected), view
