"""Builds one repository with the command line, for all tests to look at."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from reader import Repository

ROOT = Path(__file__).resolve().parents[2]
# How many commits `built` makes.
COMMITS = 11


def run(*arguments: object, check: bool = True) -> subprocess.CompletedProcess:
    """Runs the command; its binary is named by CHUNKYARD_BIN."""
    binary = os.environ.get("CHUNKYARD_BIN", str(ROOT / "target" / "debug" / "chunkyard"))
    command = [binary, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if check and done.returncode != 0:
        pytest.fail(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


@dataclass
class Built:
    """A repository on disk and its expected content, version by version."""

    root: Path
    scratch: Path
    expected: dict[str, np.ndarray] = field(default_factory=dict)
    versions: list[dict[str, np.ndarray]] = field(default_factory=list)
    commits: int = 0

    def set(self, path: str, values: np.ndarray, *options: str, region=None) -> None:
        file = self.scratch / "values.npy"
        np.save(file, values)
        if region is None:
            self.expected[path] = values
        else:
            self.expected[path] = self.expected[path].copy()
            self.expected[path][region] = values
            text = ",".join(f"{part.start}:{part.stop}" for part in region)
            options = (*options, "--region", text)
        self.commits += 1
        run("repo", "set", self.root, path, file, *options, "-m", f"commit {self.commits}")
        self.versions.append(dict(self.expected))

    def open(self) -> Repository:
        return Repository(self.root)


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Built:
    scratch = tmp_path_factory.mktemp("scratch")
    built = Built(scratch / "repository", scratch)
    random = np.random.default_rng(7)
    run("repo", "init", built.root)

    # Chunks of 3,200 bytes that do not compress, but for the padded ones at the edges: they share packs.
    packed = random.standard_normal((45, 70))
    built.set("/field", packed, "--chunks", "20,20", "--codec", "zstd:3")
    # Chunks below 512 bytes: inline. Half of them are all fill value and have no reference.
    sparse = np.zeros((40, 50), dtype="<i2")
    sparse[:15, :] = random.integers(1, 1000, (15, 50))
    built.set("/group/sparse", sparse, "--chunks", "10,10", "--codec", "zstd:3")
    # Chunks of 2 MiB: a file each.
    large = random.integers(0, 2**63, (512, 1024), dtype="<u8")
    built.set("/group/deep/large", large, "--chunks", "512,512", "--codec", "none")
    # Another codec, one dimension, more than 127 chunks: coordinates of two bytes.
    line = np.arange(600, dtype="<f4")
    built.set("/line", line, "--chunks", "3", "--codec", "blosc:lz4:5:shuffle")
    # Small changes, enough of them to merge runs.
    for at in range(6):
        region = (slice(5 * at, 5 * at + 7), slice(3 * at, 3 * at + 11))
        built.set("/field", random.standard_normal((7, 11)), region=region)
    # A chunk that becomes all fill value is removed.
    built.set("/group/sparse", np.zeros((10, 10), dtype="<i2"), region=(slice(0, 10), slice(0, 10)))
    assert built.commits == COMMITS
    return built


@pytest.fixture(scope="session")
def repo(built) -> Repository:
    return built.open()
