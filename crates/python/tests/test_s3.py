"""The package on a bucket of a real server; `make test-python` starts one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid

import numpy as np
import pytest
import xarray as xr

import chunkyard
from chunkyard import Repository

BUCKET = os.environ.get("CHUNKYARD_TEST_S3")
pytestmark = pytest.mark.skipif(BUCKET is None, reason="needs an S3 server; see `make test-python`")


@pytest.fixture
def url() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Server and credentials as arguments, and none in the environment."""
    options = {
        "endpoint": os.environ["AWS_ENDPOINT_URL"],
        "region": os.environ["AWS_REGION"],
        "access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
    }
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    return options


def test_a_dataset_is_committed_to_a_bucket_and_read(url: str, options: dict[str, str]) -> None:
    ds = xr.Dataset({"t": (("x", "y"), np.random.default_rng(0).random((20, 30)))})
    repo = Repository.create(url, **options)
    with repo.transaction(message="t") as store:
        ds.to_zarr(store, zarr_format=3, consolidated=False, encoding={"t": {"chunks": (8, 8)}})
    xr.testing.assert_identical(xr.open_zarr(repo.readonly_session().store, consolidated=False), ds)
    found = xr.open_dataset(url, engine="chunkyard", storage_options=options)
    xr.testing.assert_identical(found.load(), ds)


def test_the_options_travel_to_another_process(url: str, options: dict[str, str]) -> None:
    repo = Repository.create(url, **options)
    session = repo.writable_session()
    session.create_array("a", shape=4, dtype="i4", chunks=2)
    script = """if True:
        import pickle, sys
        fork = pickle.load(sys.stdin.buffer)
        fork["a"][2:4] = 7
        pickle.dump(fork, sys.stdout.buffer)
    """
    done = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(session.fork()), capture_output=True, check=True
    )
    session.merge(pickle.loads(done.stdout))
    session.commit("from afar")
    np.testing.assert_array_equal(chunkyard.open(url, "a", **options)[...], [0, 0, 7, 7])


def test_a_conversion_between_buckets_and_disks(url: str, options: dict[str, str], tmp_path) -> None:  # type: ignore[no-untyped-def]
    values = np.arange(600).reshape(20, 30)
    group = chunkyard.open(f"{url}/a.zarr", mode="a", **options)
    group.create_array("x", data=values, chunks=(7, 7))
    chunkyard.convert(f"{url}/a.zarr", tmp_path / "b.zarr", chunks=(5, 30), verify=True, **options)
    np.testing.assert_array_equal(chunkyard.open(tmp_path / "b.zarr", "x")[::3], values[::3])


def test_wrong_credentials_are_an_error_at_once(url: str, options: dict[str, str]) -> None:
    with pytest.raises(OSError):
        Repository.create(url, **{**options, "secret_access_key": "wrong"})
