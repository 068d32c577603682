"""Requests as DVID's Python clients make them, against `chunkyard serve`.

neuclease and dvidtools send JSON bodies with GET, take streams apart by struct, and post runs of voxels. What they get is
decoded here by numpy and by packages that know nothing of Chunkyard.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import compressed_segmentation
import numpy as np
import pytest
import requests

from conftest import ROOT, run
from label_blocks import block_voxels

BIG = 2**53


class Server:
    """A server, and a session that asks it as dvidtools does."""

    def __init__(self, place):
        binary = os.environ.get("CHUNKYARD_BIN", str(ROOT / "target" / "debug" / "chunkyard"))
        command = [binary, "serve", f"brain={place}", "--http", "127.0.0.1:0"]
        command += ["--flight", "127.0.0.1:0", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["http"].rstrip("/")
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.params = {"u": "ada", "app": "test"}

    def call(self, method, path, status=200, **options):
        answer = self.session.request(method, f"{self.url}/api/{path}", timeout=60, **options)
        assert answer.status_code == status, answer.text
        return answer

    def get(self, path, **options):
        return self.call("GET", f"node/main/seg/{path}", **options)

    def post(self, path, **options):
        return self.call("POST", f"node/main/seg/{path}", **options)

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0


@pytest.fixture
def volume():
    """96 × 70 × 130 voxels with ids that a double has not, some of them 0."""
    z, y, x = np.indices((96, 70, 130), dtype="u8")
    labels = BIG + 1 + x // 26 + 5 * (z // 40)
    labels[(x + y + z) % 97 == 0] = 0
    return labels


@pytest.fixture
def server(tmp_path, volume):
    np.save(tmp_path / "volume.npy", volume)
    run("labels", "import", tmp_path / "brain", tmp_path / "volume.npy", "--path", "/seg")
    server = Server(tmp_path / "brain")
    yield server
    server.stop()


def boxed(volume, start, shape):
    """A box x, y, z of a volume z, y, x; zeros outside."""
    out = np.zeros(shape[::-1], "u8")
    low = [max(at, 0) for at in start]
    high = [min(at + n, extent) for at, n, extent in zip(start, shape, volume.shape[::-1])]
    if all(a < b for a, b in zip(low, high)):
        to = tuple(slice(a - at, b - at) for a, b, at in zip(low, high, start))[::-1]
        out[to] = volume[tuple(map(slice, low, high))[::-1]]
    return out


def halved(volume):
    """Half the resolution: zeros do not vote, the smaller label wins a tie."""
    even = np.pad(volume, [(0, n % 2) for n in volume.shape])
    z, y, x = (n // 2 for n in even.shape)
    eight = np.sort(even.reshape(z, 2, y, 2, x, 2).transpose(0, 2, 4, 1, 3, 5).reshape(-1, 8))
    count = (eight[:, :, None] == eight[:, None, :]).sum(2)
    count[eight == 0] = 0
    return eight[np.arange(len(eight)), count.argmax(1)].reshape(z, y, x)


def test_neuroglancer_finds_the_data_and_decodes_its_chunks(server, volume):
    repos = server.call("GET", "repos/info").json()
    ((_, repo),) = repos.items()
    data = repo["DataInstances"]["seg"]
    assert data["Base"]["TypeName"] == "labelmap"
    assert data["Extended"]["MinPoint"] == [0, 0, 0]
    assert data["Extended"]["MaxPoint"] == [129, 69, 95]
    assert [key for key in repo["DAG"]["Nodes"] if key.startswith("main")] == ["main"]
    scales = [volume, halved(volume)]
    for scale, labels in enumerate(scales):
        for start in [(0, 0, 0), (64, 0, 0), (64, 64, 64), (128, 64, 64), (640, 0, 0)]:
            place = "_".join(map(str, start))
            query = f"compression=googlegzip&scale={scale}"
            answer = server.get(f"raw/0_1_2/64_64_64/{place}?{query}")
            assert answer.headers["content-encoding"] == "gzip"
            # requests has taken the gzip off, as a browser does.
            decoded = compressed_segmentation.decompress(
                answer.content, (64, 64, 64), "u8", (8, 8, 8), order="F"
            )
            np.testing.assert_array_equal(decoded.T, boxed(labels, start, (64, 64, 64)))


def test_boxes_and_streams_of_blocks_have_the_voxels(server, volume):
    for start, shape in [((0, 0, 0), (130, 70, 96)), ((-9, 60, 90), (50, 20, 9))]:
        path = "raw/0_1_2/{}_{}_{}/{}_{}_{}".format(*shape, *start)
        plain = np.frombuffer(server.get(path).content, "<u8").reshape(shape[::-1])
        np.testing.assert_array_equal(plain, boxed(volume, start, shape))
        packed = server.get(f"{path}?compression=gzip").content
        assert gzip.decompress(packed) == plain.tobytes()
    stream = server.get("blocks/192_128_128/0_0_0?compression=blocks").content
    at = count = 0
    while at < len(stream):
        x, y, z, length = struct.unpack_from("<3iI", stream, at)
        block = block_voxels(gzip.decompress(stream[at + 16 : at + 16 + length]))
        expected = boxed(volume, (64 * x, 64 * y, 64 * z), (64, 64, 64))
        np.testing.assert_array_equal(block, expected)
        at, count = at + 16 + length, count + 1
    assert count == 3 * 2 * 2
    points = [[0, 1, 0], [129, 69, 95], [26, 0, 0], [-1, 0, 0], [130, 0, 0]]
    expected = [int(boxed(volume, point, (1, 1, 1)).item()) for point in points]
    assert server.get("labels", json=points).json() == expected


def listed(server):
    raw = server.get("listlabels?sizes=true").content
    return {int(a): int(b) for a, b in np.frombuffer(raw, "<u8").reshape(-1, 2)}


def test_bodies_are_edited_as_proofreading_tools_do(server, volume):
    ids, counts = np.unique(volume[volume != 0], return_counts=True)
    sizes = dict(zip(ids.tolist(), counts.tolist()))
    assert listed(server) == sizes
    one, two, three = sorted(sizes)[:3]
    merged = server.post("merge", json=[one, two, three]).json()
    assert set(merged) == {"MutationID"}
    assert server.get(f"size/{one}").json() == {"voxels": sum(sizes[id] for id in (one, two, three))}
    assert sorted(server.get(f"supervoxels/{one}").json()) == [one, two, three]
    assert server.get("mapping", json=[one, two, 5]).json() == [one, one, 0]
    about = server.get(f"supervoxel-sizes/{one}").json()
    assert dict(zip(about["supervoxels"], about["sizes"])) == {id: sizes[id] for id in (one, two, three)}
    cleaved = server.post(f"cleave/{one}", json=[two]).json()
    body = cleaved["CleavedLabel"]
    assert cleaved["MutationID"] > merged["MutationID"]
    assert server.get("sizes", json=[one, body, two]).json() == [sizes[one] + sizes[three], sizes[two], 0]
    # The lower half of a supervoxel along z, as runs.
    runs = np.frombuffer(server.get(f"sparsevol/{two}?supervoxels=true").content[12:], "<i4").reshape(-1, 4)
    assert runs[:, 3].sum() == sizes[two]
    half = runs[runs[:, 2] < 20]
    sent = struct.pack("<BBBBII", 0, 3, 0, 0, 0, len(half)) + half.astype("<i4").tobytes()
    split = server.post(f"split-supervoxel/{two}", data=sent).json()
    assert server.get(f"size/{split['SplitSupervoxel']}?supervoxels=true").json() == {"voxels": int(half[:, 3].sum())}
    assert sorted(server.get(f"supervoxels/{body}").json()) == sorted(
        [split["SplitSupervoxel"], split["RemainSupervoxel"]]
    )
    assert server.get(f"lastmod/{body}").json()["last mod user"] == "ada"
    lines = server.get("mappings").text.splitlines()
    assert f"{two} 0" in lines and f"{three} {one}" in lines
    server.post("merge", status=404, json=[one, 12345])
    server.post("merge", status=400, data="not json")
    before = server.call("GET", "repos/info").json()
    tip = next(iter(before.values()))["DAG"]["Nodes"]
    locked = [uuid for uuid, node in tip.items() if node["Locked"]]
    for uuid in locked:
        answer = server.session.post(f"{server.url}/api/node/{uuid}/seg/merge", json=[one, three], timeout=60)
        assert answer.status_code in (400, 404)


def test_many_clients_at_once_lose_nothing(server, volume):
    bodies = sorted(listed(server))
    voxels = sum(listed(server).values())

    def merge(body):
        return server.post("merge", json=[bodies[0], body]).json()["MutationID"]

    with ThreadPoolExecutor(4) as pool:
        mutations = list(pool.map(merge, bodies[1:]))
    assert len(set(mutations)) == len(bodies) - 1
    assert listed(server) == {bodies[0]: voxels}
