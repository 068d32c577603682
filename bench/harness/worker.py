"""Starts one worker process and reads the line it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent.parent
TIMEOUT_S = 1800


@dataclass(frozen=True)
class Side:
    """A side: ours, or a rival, perhaps in a certain configuration."""

    name: str
    program: str
    options: Mapping[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        """The worker. `BENCH_OURS`, `BENCH_ZARRS`, `BENCH_ARRAY_FORMAT` and `BENCH_BADGER` name
        binaries built elsewhere."""
        if self.program == "ours":
            default = BENCH / "ours" / "target" / "release" / "chunkyard-bench"
            return [os.environ.get("BENCH_OURS", str(default))]
        if self.program == "zarrs":
            default = BENCH / "zarrs" / "target" / "release" / "zarrs-bench"
            return [os.environ.get("BENCH_ZARRS", str(default))]
        if self.program == "array-format":
            default = BENCH / "array_format" / "target" / "release" / "array-format-bench"
            return [os.environ.get("BENCH_ARRAY_FORMAT", str(default))]
        if self.program == "badger":
            default = BENCH / "badger" / "target" / "badger-bench"
            return [os.environ.get("BENCH_BADGER", str(default))]
        return [sys.executable, "-m", "peers.worker", self.program]


def call(
    side: Side,
    workload: str,
    place: Path,
    options: Mapping[str, Any],
    memory_max: int | None = None,
) -> dict[str, Any]:
    """The worker's answer; a failure is an answer that says so."""
    place.parent.mkdir(parents=True, exist_ok=True)
    pairs = [f"{key}={value}" for key, value in {**options, **side.options}.items()]
    command = [*side.command(), workload, str(place), *pairs]
    if memory_max is not None:
        # Limits the address space, so that a runaway process cannot take the machine down.
        command = ["prlimit", f"--as={memory_max}", *command]
    quiet = {"ICECHUNK_LOG": "off", "RUST_LOG": "off", "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **quiet},
            cwd=BENCH,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"failed": str(error)}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        said = (done.stderr or done.stdout).strip().splitlines()
        return {"failed": said[-1] if said else f"exit {done.returncode}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer
