"""The machine and the versions of a run."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = [
    "bcolz-zipline",
    "blosc2",
    "bloscpack",
    "compressed-segmentation",
    "h5py",
    "icechunk",
    "numpy",
    "pylance",
    "tensorstore",
    "tiledb",
    "zarr",
    "zarrs",
]


def describe(bench: Path, load: float) -> dict[str, Any]:
    """Date, machine, its load before the run, command and versions."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["python", *sys.argv]),
        "machine": {
            "cpus": os.cpu_count(),
            "model": cpu_model(),
            "memory-bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "kernel": platform.release(),
            # Of the last minute: above zero means that other programs ran too.
            "load": load,
        },
        "versions": versions(bench),
    }


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def versions(bench: Path) -> dict[str, str]:
    found = {"python": platform.python_version(), "chunkyard": commit(bench)}
    for crate, name in (("zarrs", "zarrs"), ("array_format", "array-format")):
        lock = tomllib.loads((bench / crate / "Cargo.lock").read_text())
        used = [package["version"] for package in lock["package"] if package["name"] == name]
        found[f"{name} (crate)"] = " and ".join(sorted(used, key=release))
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def release(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def commit(bench: Path) -> str:
    command = ["git", "-C", str(bench), "describe", "--always", "--dirty"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
