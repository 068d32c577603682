"""Arrays over Arrow Flight, with Arrow's own client: any region, and boxes that become a commit. Exports are in test_worker.py."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from conftest import ROOT, run

SHAPE = (30, 50, 70)
BINARY = os.environ.get("CHUNKYARD_BIN", str(ROOT / "target" / "debug" / "chunkyard"))


@pytest.fixture
def values(tmp_path: Path) -> np.ndarray:
    values = np.arange(np.prod(SHAPE), dtype="u4").reshape(SHAPE)
    np.save(tmp_path / "values.npy", values)
    run("repo", "init", tmp_path / "repo")
    run("repo", "set", tmp_path / "repo", "/a", tmp_path / "values.npy", "--chunks", "7,16,32", "-m", "values")
    return values


@pytest.fixture
def client(values: np.ndarray, tmp_path: Path) -> Iterator[flight.FlightClient]:
    command = [BINARY, "serve", f"weather={tmp_path / 'repo'}", "--http", "127.0.0.1:0", "--flight", "127.0.0.1:0", "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout is not None
        with flight.connect(json.loads(child.stdout.readline())["flight"]) as client:
            yield client
    finally:
        child.kill()
        child.communicate()


def read(client: flight.FlightClient, region: str) -> np.ndarray:
    """A region, put together from its boxes."""
    command = json.dumps({"array": {"source": "weather", "path": "/a", "region": region}})
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
    (endpoint,) = info.endpoints
    reader = client.do_get(endpoint.ticket)
    about = {key.decode(): value.decode() for key, value in reader.schema.metadata.items()}
    found = np.zeros(json.loads(about["shape"]), about["dtype"])
    seen = np.zeros(found.shape, "u1")
    for row in reader.read_all().to_pylist():
        place = tuple(slice(at - first, at - first + n) for at, first, n in zip(row["origin"], json.loads(about["origin"]), row["shape"], strict=True))
        found[place] = np.frombuffer(row["data"], about["dtype"]).reshape(row["shape"])
        seen[place] += 1
    assert (seen == 1).all()
    assert info.total_bytes == found.nbytes
    return found


def test_any_region_is_what_the_array_has(client: flight.FlightClient, values: np.ndarray) -> None:
    np.testing.assert_array_equal(read(client, ""), values)
    np.testing.assert_array_equal(read(client, "3:28,:,5"), values[3:28, :, 5:6])
    np.testing.assert_array_equal(read(client, "7:14,16:32,32:64"), values[7:14, 16:32, 32:64])
    with pytest.raises(pa.ArrowInvalid, match="out of bounds|extent"):
        read(client, "0:31")


def test_boxes_become_one_commit(client: flight.FlightClient, values: np.ndarray) -> None:
    target = {"array": {"source": "weather", "branch": "main", "path": "/a", "message": "two boxes"}}
    schema = pa.schema([("origin", pa.list_(pa.uint64())), ("shape", pa.list_(pa.uint64())), ("data", pa.binary())])
    writer, reader = client.do_put(flight.FlightDescriptor.for_command(json.dumps(target)), schema)
    expected, said = values.copy(), []
    for origin, shape in (((0, 0, 0), (2, 3, 4)), ((6, 15, 31), (3, 3, 3))):
        box = np.full(shape, 7, "u4")
        expected[tuple(slice(at, at + n) for at, n in zip(origin, shape, strict=True))] = box
        writer.write_batch(pa.record_batch([[list(origin)], [list(shape)], [box.tobytes()]], schema=schema))
        said.append(json.loads(reader.read().to_pybytes()))
        # Nothing is visible before the end.
        np.testing.assert_array_equal(read(client, ""), values)
    writer.done_writing()
    said.append(json.loads(reader.read().to_pybytes()))
    writer.close()
    assert [(answer["received"], answer["durable"]) for answer in said] == [(1, 0), (2, 0), (2, 2)]
    np.testing.assert_array_equal(read(client, ""), expected)
