"""The output of the command agrees with the files."""

import json
import shutil

import numpy as np
import pytest

from conftest import run


def get(built, path, *options):
    file = built.scratch / "got.npy"
    run("repo", "get", built.root, path, "-o", file, *options)
    return np.load(file)


def test_get_returns_the_values_that_were_set(built):
    for path, values in built.expected.items():
        found = get(built, path)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)


def test_get_returns_any_version(built, repo):
    for snapshot, expected in zip(repo.state["snapshots"][1:], built.versions, strict=True):
        found = get(built, "/field", "--snapshot", snapshot["snapshot-id"])
        np.testing.assert_array_equal(found, expected["/field"])


def test_get_returns_a_region(built):
    found = get(built, "/field", "--region", "7:31,13:64")
    np.testing.assert_array_equal(found, built.expected["/field"][7:31, 13:64])


def test_the_log_names_every_snapshot_of_the_branch(built, repo):
    text = run("repo", "log", built.root, "--json").stdout
    for snapshot in repo.state["snapshots"]:
        assert snapshot["snapshot-id"] in text


def test_diff_names_exactly_the_chunks_that_changed(built, repo):
    before, after = repo.state["snapshots"][-3:-1]
    done = run("repo", "diff", built.root, before["snapshot-id"], after["snapshot-id"], "--json")
    diff = json.loads(done.stdout)
    (chunks,) = diff["chunks"]
    assert chunks["path"] == "/field"
    # The region 25:32, 15:26 lies in two chunks of 20 by 20.
    assert sorted(chunks["replaced"]) == [[1, 0], [1, 1]]
    assert chunks["added"] == [] and chunks["removed"] == []
    assert diff["added"] == diff["removed"] == diff["moved"] == []


def test_info_is_json(built):
    assert json.loads(run("info", built.root, "--json").stdout)


def test_a_sound_repository_verifies(built):
    assert json.loads(run("verify", built.root, "--level", "bytes", "--json").stdout) is not None


@pytest.mark.parametrize("directory", ["s", "i", "c", "."])
def test_a_flipped_bit_is_found(built, tmp_path, directory):
    copy = tmp_path / "copy"
    shutil.copytree(built.root, copy)
    if directory == ".":
        victim = copy / "state.json"
    else:
        files = [path for path in (copy / directory).rglob("*") if path.is_file()]
        victim = max(files, key=lambda path: path.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 0x10
    victim.write_bytes(data)
    done = run("verify", copy, "--level", "bytes", "--json", check=False)
    assert done.returncode == 5, done.stdout + done.stderr


def test_a_missing_array_is_exit_code_3(built):
    done = run("repo", "get", built.root, "/nowhere", "-o", built.scratch / "x.npy", check=False)
    assert done.returncode == 3
