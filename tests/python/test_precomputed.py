"""docs/formats/precomputed.md: volumes of Neuroglancer, read and written by TensorStore and cloud-volume as well."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tensorstore as ts
import zarr
from cloudvolume import CloudVolume

from conftest import run

SHARDED = {
    "@type": "neuroglancer_uint64_sharded_v1",
    "hash": "identity",
    "preshift_bits": 1,
    "minishard_bits": 1,
    "shard_bits": 4,
    "minishard_index_encoding": "gzip",
    "data_encoding": "gzip",
}
RAW_SHARDS = {**SHARDED, "minishard_index_encoding": "raw", "data_encoding": "raw"}
HASHED = {**SHARDED, "hash": "murmurhash3_x86_128"}
LABELS = {"encoding": "compressed_segmentation", "compressed_segmentation_block_size": [8, 8, 8]}
BEYOND_DOUBLES = (1 << 63) + 1


def labels(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Labels in lumps, with a chunk of zeros, from the same seed every time."""
    random = np.random.default_rng(17)
    coarse = random.integers(0, 9, [-(-n // 4) for n in shape], dtype)
    values = coarse.repeat(4, 0).repeat(4, 1).repeat(4, 2)[tuple(map(slice, shape))]
    values = np.where(values > 5, values + dtype_max(dtype) - 9, values).astype(dtype)
    values[:16, :16, :16] = 0
    return values


def dtype_max(dtype: str) -> np.integer:
    return np.array(min(np.iinfo(dtype).max, BEYOND_DOUBLES), dtype)


def image(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(4).integers(0, 100, shape).astype(dtype)


def write_zarr(path: Path, values: np.ndarray, **attributes: object) -> None:
    """An array `a` in a group, in C order: z, y, x, and channels before these."""
    group = zarr.open_group(path, mode="w")
    chunks = (*values.shape[:-3], 16, 16, 16)
    names = ["c", "z", "y", "x"][-values.ndim :]
    array = group.create_array(
        "a", shape=values.shape, dtype=values.dtype, chunks=chunks, dimension_names=names, attributes=attributes
    )
    array[...] = values


def open_tensorstore(path: Path, scale: int = 0, **more: object) -> ts.TensorStore:
    spec = {
        "driver": "neuroglancer_precomputed",
        "kvstore": {"driver": "file", "path": str(path)},
        "scale_index": scale,
        **more,
    }
    return ts.open(spec).result()


def write_tensorstore(path: Path, values: np.ndarray, scale: dict) -> None:
    """One more scale of a volume, from values in our order."""
    kind = "segmentation" if scale["encoding"] == "compressed_segmentation" else "image"
    store = ts.open(
        {
            "driver": "neuroglancer_precomputed",
            "kvstore": {"driver": "file", "path": str(path)},
            "multiscale_metadata": {"data_type": str(values.dtype), "num_channels": 1, "type": kind},
            "scale_metadata": {"size": list(values.shape[::-1]), "chunk_size": [16, 16, 16], **scale},
            "create": True,
        }
    ).result()
    store[..., 0].write(values.transpose()).result()


def read_tensorstore(path: Path, scale: int = 0) -> np.ndarray:
    """All of a scale in our order: channels, z, y, x."""
    return open_tensorstore(path, scale).read().result().transpose()


def read_cloudvolume(path: Path, scale: int = 0) -> np.ndarray:
    volume = CloudVolume(f"file://{path}", mip=scale, fill_missing=True, progress=False)
    return np.asarray(volume[:]).transpose()


def by_us(path: Path, array: str, scratch: Path) -> np.ndarray:
    out = scratch / "out.npy"
    run("get", path, array, "-o", out)
    return np.load(out)


def expect(found: np.ndarray, values: np.ndarray) -> None:
    wanted = values if values.ndim == 4 else values[None]
    assert found.dtype == values.dtype
    assert np.array_equal(found if found.ndim == 4 else found[None], wanted)


@pytest.mark.parametrize("shards", [None, "32,32,32", "16,16,16", "64,64,64"])
@pytest.mark.parametrize("codec", [None, "none"])
@pytest.mark.parametrize(
    "values",
    [
        labels((37, 41, 53), "uint64"),
        labels((16, 16, 16), "uint32"),
        labels((7, 5, 3), "uint64"),
        image((19, 33, 47), "uint8"),
        image((16, 32, 8), "float32"),
        image((3, 17, 20, 40), "uint16"),
    ],
    ids=lambda values: f"{values.dtype}-{'x'.join(map(str, values.shape))}",
)
def test_volumes_of_ours_are_read_by_all(tmp_path: Path, values: np.ndarray, shards, codec) -> None:
    write_zarr(tmp_path / "a.zarr", values)
    target = tmp_path / "a.precomputed"
    if shards and values.ndim == 4:
        shards = f"{values.shape[0]},{shards}"
    options = [*(["--shards", shards] if shards else []), *(["--codec", codec] if codec else [])]
    run("convert", tmp_path / "a.zarr", target, "--verify", *options)
    info = json.loads((target / "info").read_text())
    assert ("sharding" in info["scales"][0]) == bool(shards)
    expect(read_tensorstore(target), values)
    expect(read_cloudvolume(target), values)
    expect(by_us(target, "/a", tmp_path), values)
    run("verify", target)
    run("convert", target, tmp_path / "back.zarr")
    expect(np.asarray(zarr.open_array(tmp_path / "back.zarr" / "a", mode="r")[...]), values)


@pytest.mark.parametrize("sharding", [None, SHARDED, RAW_SHARDS, HASHED], ids=["files", "gzip", "raw", "murmur"])
@pytest.mark.parametrize(
    ("dtype", "encoding"),
    [("uint64", LABELS), ("uint32", LABELS), ("uint64", {"encoding": "raw"}), ("uint8", {"encoding": "raw"})],
    ids=["u64", "u32", "raw64", "raw8"],
)
def test_volumes_of_tensorstore_are_read(tmp_path: Path, sharding, dtype: str, encoding: dict) -> None:
    values = labels((37, 41, 53), dtype) if dtype != "uint8" else image((37, 41, 53), dtype)
    target = tmp_path / "theirs"
    scale = {
        "key": "8_8_8",
        "voxel_offset": [-16, 7, 0],
        "resolution": [8, 8, 40.5],
        **encoding,
        **({"sharding": sharding} if sharding else {}),
    }
    write_tensorstore(target, values, scale)
    expect(by_us(target, "/8_8_8", tmp_path), values)
    run("verify", target)
    described = json.loads(run("info", target, "--json").stdout)
    assert "-16" in json.dumps(described)
    # And on to another volume, with offset and resolution.
    again = tmp_path / "again.precomputed"
    run("convert", target, again, "--verify")
    expect(read_tensorstore(again), values)
    copied = json.loads((again / "info").read_text())["scales"][0]
    for member in ("voxel_offset", "resolution", "size", "key", "chunk_sizes", "encoding"):
        theirs = json.loads((target / "info").read_text())["scales"][0]
        assert copied[member] == theirs[member], member


@pytest.mark.parametrize("compress", ["gzip", False])
def test_volumes_of_cloudvolume_are_read(tmp_path: Path, compress: str | bool) -> None:
    values = labels((32, 32, 64), "uint64")
    info = CloudVolume.create_new_info(
        num_channels=1,
        layer_type="segmentation",
        data_type="uint64",
        encoding="compressed_segmentation",
        resolution=[4, 4, 40],
        voxel_offset=[32, 0, -32],
        volume_size=[64, 32, 32],
        chunk_size=[16, 16, 16],
    )
    target = tmp_path / "theirs"
    volume = CloudVolume(f"file://{target}", info=info, progress=False, compress=compress)
    volume.commit_info()
    volume[:] = values.transpose()[..., None]
    expect(by_us(target, f"/{volume.key}", tmp_path), values)
    run("verify", target)


def test_a_pyramid_keeps_its_scales(tmp_path: Path) -> None:
    fine, coarse = labels((32, 32, 32), "uint64"), labels((16, 16, 16), "uint64")
    target = tmp_path / "theirs"
    for number, values in enumerate([fine, coarse]):
        factor = 2**number
        scale = {"key": f"s{number}", "voxel_offset": [64 // factor, 0, 0], "resolution": [8 * factor] * 3, **LABELS}
        write_tensorstore(target, values, scale)
    run("convert", target, tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="r")
    levels = group.attrs["ome"]["multiscales"][0]["datasets"]
    assert [level["path"] for level in levels] == ["s0", "s1"]
    assert levels[1]["coordinateTransformations"][0]["scale"] == [16, 16, 16]
    back = tmp_path / "back.precomputed"
    run("convert", tmp_path / "p.zarr", back)
    for number, values in enumerate([fine, coarse]):
        expect(read_tensorstore(back, number), values)
        expect(read_cloudvolume(back, number), values)
    scales = [json.loads((path / "info").read_text())["scales"] for path in (target, back)]
    for theirs, ours in zip(*scales, strict=True):
        assert ours == theirs


def test_a_shard_is_byte_for_byte_that_of_tensorstore(tmp_path: Path) -> None:
    values = np.arange(1, 17, dtype="uint8").reshape(2, 2, 4)
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    array = group.create_array("1_1_1", shape=values.shape, dtype="uint8", chunks=(2, 2, 2), compressors=None)
    array[...] = values
    ours = tmp_path / "ours.precomputed"
    run("convert", tmp_path / "a.zarr", ours, "--shards", "2,2,4", "--codec", "none")
    # The preshift is ours to choose: one minishard with both chunks.
    written = json.loads((ours / "info").read_text())["scales"][0]
    theirs = tmp_path / "theirs"
    scale = {"key": "1_1_1", "resolution": [1, 1, 1], "chunk_size": [2, 2, 2], "encoding": "raw"}
    write_tensorstore(theirs, values, {**scale, "sharding": written["sharding"]})
    found, expected = ((path / "1_1_1" / "0.shard").read_bytes() for path in (ours, theirs))
    # Chunks and their places are equal; the index of the minishard is gzip by another program.
    assert found[16 : 16 + 16] == expected[16 : 16 + 16]
    expect(read_tensorstore(ours), values)


def test_what_a_volume_cannot_hold_is_refused(tmp_path: Path) -> None:
    write_zarr(tmp_path / "wide.zarr", image((4, 4, 4), "float64"))
    done = run("convert", tmp_path / "wide.zarr", tmp_path / "x.precomputed", check=False)
    assert done.returncode == 6
    assert "float64" in done.stderr
    assert not (tmp_path / "x.precomputed").exists()


def test_label_blocks_are_rewritten_and_clipped(tmp_path: Path) -> None:
    """No voxel is decoded, and the bytes are those that TensorStore writes for the same voxels."""
    values = labels((37, 41, 53), "uint64")
    write_zarr(tmp_path / "a.zarr", values)
    blocks = tmp_path / "blocks.zarr"
    run("convert", tmp_path / "a.zarr", blocks, "--codec", "label_block+zstd:1")
    target = tmp_path / "a.precomputed"
    planned = run("convert", blocks, target, "--dry-run")
    assert "rewrite" in planned.stdout + planned.stderr
    run("convert", blocks, target, "--verify")
    expect(read_tensorstore(target), values)
    theirs = tmp_path / "theirs"
    write_tensorstore(theirs, values, {"key": "a", "resolution": [1, 1, 1], **LABELS})
    names = sorted(path.name for path in (theirs / "a").iterdir())
    assert names == sorted(path.name for path in (target / "a").iterdir())
    assert names
    for name in names:
        assert (target / "a" / name).read_bytes() == (theirs / "a" / name).read_bytes(), name
    # A shard takes them as well, compressed.
    sharded = tmp_path / "sharded.precomputed"
    run("convert", blocks, sharded, "--shards", "32,32,64")
    expect(read_tensorstore(sharded), values)
    expect(read_cloudvolume(sharded), values)


def scene(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Brightness that changes slowly, in each channel another way."""
    places = np.indices(shape).astype("f8")
    waves = np.sin(places[-1] / 9) + np.cos(places[-2] / 11) + np.sin(places[-3] / 7)
    if len(shape) > 3:
        waves += places[0]
    return (np.clip(waves / 6 + 0.5, 0, 1) * np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize("shards", [None, "32,32,32"])
@pytest.mark.parametrize(
    ("codec", "values"),
    [
        ("png", scene((37, 41, 53), "uint8")),
        ("png", scene((19, 33, 47), "uint16")),
        ("png", scene((3, 17, 20, 40), "uint8")),
        ("png", scene((4, 17, 20, 40), "uint16")),
        ("jpeg:95", scene((37, 41, 53), "uint8")),
        ("jpeg:95", scene((3, 17, 20, 40), "uint8")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.dtype}-{'x'.join(map(str, value.shape))}",
)
def test_pictures_of_ours_are_read_by_tensorstore(tmp_path: Path, codec: str, values: np.ndarray, shards: str | None) -> None:
    write_zarr(tmp_path / "a.zarr", values)
    target = tmp_path / "a.precomputed"
    if shards and values.ndim == 4:
        shards = f"{values.shape[0]},{shards}"
    run("convert", tmp_path / "a.zarr", target, "--codec", codec, *(["--shards", shards] if shards else []))
    [scale] = json.loads((target / "info").read_text())["scales"]
    assert (scale["encoding"], "sharding" in scale) == (codec.split(":")[0], bool(shards))
    far = 40 if codec.startswith("jpeg") else 0
    for found in (read_tensorstore(target), by_us(target, "/a", tmp_path)):
        assert found.dtype == values.dtype
        difference = found.astype(int).reshape(values.shape) - values
        assert np.abs(difference).max() <= far and np.abs(difference).mean() <= far / 10
    run("verify", target)
    # Elsewhere it is no picture, and nothing more is lost.
    run("convert", target, tmp_path / "back.zarr")
    expect(np.asarray(zarr.open_array(tmp_path / "back.zarr" / "a", mode="r")[...]), by_us(target, "/a", tmp_path))


@pytest.mark.parametrize("sharding", [None, SHARDED], ids=["files", "sharded"])
@pytest.mark.parametrize(("encoding", "dtype"), [("png", "uint8"), ("png", "uint16"), ("jpeg", "uint8")])
def test_pictures_of_tensorstore_are_read(tmp_path: Path, sharding, encoding: str, dtype: str) -> None:
    values, target = scene((37, 41, 53), dtype), tmp_path / "theirs"
    scale = {"key": "8_8_8", "resolution": [8, 8, 8], "encoding": encoding}
    write_tensorstore(target, values, scale | ({"sharding": sharding} if sharding else {}))
    theirs = read_tensorstore(target)
    ours = by_us(target, "/8_8_8", tmp_path)
    far = 2 if encoding == "jpeg" else 0
    assert np.abs(ours.astype(int).reshape(values.shape) - theirs.astype(int).reshape(values.shape)).max() <= far
    run("verify", target)
