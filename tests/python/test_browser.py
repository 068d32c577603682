"""docs/views.md: the real Neuroglancer, served by a running server, in a browser: the voxels that it decoded are those of the array.

A failed request reads as zeros in the viewer, and so does a server that refuses everything. So voxels are compared one by
one, most of them are no zeros, and every chunk must have come.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import browser
from conftest import run
from test_served import BIG, serve

# Whether the viewer has drawn everything; the page of a server that fails never has.
READY = """
window.viewer !== undefined && window.viewer.layerManager.managedLayers.length === 1
  && window.viewer.layerManager.managedLayers[0].isReady() && window.viewer.isReady()
"""

# Reads all voxels of a scale with the viewer's own decoder.
READ = """
(async (scale) => {
  const layer = window.viewer.layerManager.managedLayers[0].layer;
  const multiscale = layer.renderLayers.find(one => one.multiscaleSource).multiscaleSource;
  const rank = multiscale.rank;
  const identity = new Float32Array(rank * rank);
  for (let axis = 0; axis < rank; ++axis) { identity[axis * rank + axis] = 1; }
  const sources = multiscale.getSources({
    discreteValues: true, displayRank: rank, modelChannelDimensionIndices: [], multiscaleToViewTransform: identity,
  })[0];
  const source = sources[scale].chunkSource;
  const size = Array.from(source.spec.upperVoxelBound), chunk = Array.from(source.spec.chunkDataSize);
  const voxels = new BigUint64Array(size.reduce((a, b) => a * b, 1));
  let missing = 0;
  const grid = size.map((extent, axis) => Math.ceil(extent / chunk[axis]));
  for (let cz = 0; cz < grid[2]; ++cz) for (let cy = 0; cy < grid[1]; ++cy) for (let cx = 0; cx < grid[0]; ++cx) {
    await source.fetchChunk(Float32Array.of(cx, cy, cz), found => {
      if (found.data === null) { ++missing; return; }
      const [width, height, depth] = found.chunkDataSize;
      for (let z = 0; z < depth; ++z) for (let y = 0; y < height; ++y) for (let x = 0; x < width; ++x) {
        const [gx, gy, gz] = [cx * chunk[0] + x, cy * chunk[1] + y, cz * chunk[2] + z];
        // Chunks of Zarr are padded.
        if (gx >= size[0] || gy >= size[1] || gz >= size[2]) { continue; }
        voxels[(gz * size[1] + gy) * size[0] + gx] = BigInt(found.getValueAt(Uint32Array.of(x, y, z)));
      }
    });
  }
  const bytes = new Uint8Array(voxels.buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) { text += String.fromCharCode(...bytes.subarray(at, at + 8192)); }
  return {scales: sources.length, size, missing, voxels: btoa(text)};
})(%d)
"""


def client() -> Path | None:
    """The built client of the package `neuroglancer`, which need not be imported."""
    package = importlib.util.find_spec("neuroglancer")
    folder = Path(package.origin).parent / "static" / "client" if package and package.origin else None
    return folder if folder and (folder / "index.html").exists() else None


pytestmark = [
    pytest.mark.skipif(browser.find() is None, reason="no Chromium is installed: see `make test-browser`"),
    pytest.mark.skipif(client() is None, reason="the package neuroglancer is not installed: see `make test-browser`"),
]


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    z, y, x = (places // step for places, step in zip(np.indices((70, 40, 90)), (9, 8, 10), strict=True))
    labels = (BIG + z * 64 + y * 8 + x).astype("u8")
    labels[:10, :10, :10] = 0
    return labels


@pytest.fixture(scope="module")
def yard(labels: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelmap `brain` and an `image`."""
    yard = tmp_path_factory.mktemp("viewed")
    np.save(yard / "labels.npy", labels)
    run("labels", "import", yard / "brain", yard / "labels.npy", "--path", "/seg", "--block", "32,32,32", "--quiet")
    run("labels", "merge-bodies", yard / "brain", BIG + 1, BIG + 2, "--path", "/seg")
    np.save(yard / "image.npy", (labels % 251).astype("u1"))
    run("repo", "init", yard / "image")
    run("repo", "set", yard / "image", "/grey", yard / "image.npy", "--chunks", "32,32,32", "--codec", "zstd:3", "-m", "grey")
    return yard


@pytest.fixture(scope="module")
def server(yard: Path) -> Iterator[str]:
    config = yard / "chunkyard.toml"
    config.write_text(f'neuroglancer = "{client()}"\n')
    process, url = serve({"brain": yard / "brain", "image": yard / "image"}, "--config", str(config))
    yield url
    process.terminate()
    assert process.wait(30) == 0


def expected(labels: np.ndarray) -> np.ndarray:
    return np.where(labels == BIG + 2, np.uint64(BIG + 1), labels)


def view(server: str, source: str, kind: str, scales: list[int]) -> list[np.ndarray]:
    """The voxels of some scales of a source, as the viewer decoded them."""
    layer = {"type": kind, "source": source, "name": "a"}
    state = quote(json.dumps({"layers": [layer], "layout": "xy"}))

    async def look() -> list[np.ndarray]:
        async with browser.opened(f"{server}/neuroglancer/v/1/#!{state}") as page:
            await page.until(READY)
            found = []
            for scale in scales:
                read = await page.evaluate(READ % scale)
                assert isinstance(read, dict)
                # A chunk that is missing reads as the fill value: only the corner may, and only as Zarr.
                assert read["missing"] == 0, read["missing"]
                x, y, z = map(int, read["size"][:3])
                voxels = np.frombuffer(base64.b64decode(read["voxels"]), "<u8")
                found.append(voxels.reshape(z, y, x))
            return found

    return asyncio.run(asyncio.wait_for(look(), 120))


def halved(labels: np.ndarray, server: str) -> np.ndarray:
    import zarr

    return np.asarray(zarr.open_array(f"{server}/data/brain/zarr-bodies/seg/s1", mode="r")[...])


def test_a_volume_of_bodies_at_two_scales(server: str, labels: np.ndarray):
    first, second = view(server, f"precomputed://{server}/data/brain/precomputed", "segmentation", [0, 1])
    assert np.array_equal(first, expected(labels))
    assert np.array_equal(second, halved(labels, server))


def test_zarr_of_bodies_at_two_scales(server: str, labels: np.ndarray):
    (first,) = view(server, f"zarr3://{server}/data/brain/zarr-bodies/seg/s0", "segmentation", [0])
    assert np.array_equal(first, expected(labels))
    (second,) = view(server, f"zarr3://{server}/data/brain/zarr-bodies/seg/s1", "segmentation", [0])
    assert np.array_equal(second, halved(labels, server))


def test_an_image_as_zarr_and_as_a_volume(server: str, labels: np.ndarray):
    for source in (f"zarr3://{server}/data/image/zarr/grey", f"precomputed://{server}/data/image/precomputed"):
        (found,) = view(server, source, "image", [0])
        assert np.array_equal(found, labels % 251), source


def test_a_labelmap_as_data_of_dvid_at_two_scales(server: str, yard: Path, labels: np.ndarray):
    version = json.loads(run("repo", "log", yard / "brain", "--json").stdout)[0]["snapshot-id"]
    found = view(server, f"dvid://{server}/{version}/seg", "segmentation", [0, 1])
    for voxels, wanted in zip(found, [expected(labels), halved(labels, server)], strict=True):
        # DVID's volumes are whole blocks of 64, and so the viewer sees them; beyond the labelmap there are zeros.
        padded = np.zeros(voxels.shape, "u8")
        padded[tuple(slice(extent) for extent in wanted.shape)] = wanted
        assert np.array_equal(voxels, padded)
