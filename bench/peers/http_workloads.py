"""Chunks over HTTP, asked for at random by wrk on the same two cores."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import compressed_segmentation
import numpy as np

from peers.clock import Answer, Cannot, Samples
from peers.servers import Server, command, fetch
from peers.supervoxels import cells

Make = Callable[[], Server]
Options = dict[str, str]
CONNECTIONS, THREADS = 32, 2
# Voxels along each axis of what is served, and of its chunks.
EDGE, CHUNK, BLOCK = 256, 32, 64
SEED = 3
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def chunks(make: Make, directory: Path, options: Options) -> Answer:
    """Requests for random chunks, `repeats` times after a warm-up."""
    labels = options["kind"] == "labels"
    prepare(directory, options["kind"])
    values = np.load(directory / f"{options['kind']}.npy", mmap_mode="r")
    paths = volume_paths() if labels else zarr_paths()
    server = make()
    samples, p99 = Samples(), []
    try:
        base = server.start()
        equal = all(
            check(base, path, values, directory, labels) for path in paths[:: len(paths) // 8]
        )
        script = directory / "paths.lua"
        script.write_text(lua(base, paths))
        for repeat in range(max(1, int(options["repeats"])) + 1):
            before = server.cpu_seconds()
            count, seconds, slowest = wrk(
                base, script, 2 if repeat == 0 else int(options["seconds"])
            )
            if repeat > 0:
                samples.wall.append(seconds / count)
                samples.cpu.append((server.cpu_seconds() - before) / count)
                p99.append(slowest)
    finally:
        server.stop()
    facts = {
        "request-us": round(min(samples.wall) * 1e6),
        "requests-per-second": round(1 / min(samples.wall)),
        "p99-us": round(min(p99) * 1e6),
    }
    return Answer({"request": samples}, equal=equal, facts=facts)


def prepare(directory: Path, kind: str) -> None:
    """A repository and its chunks as files, or a labelmap; made once."""
    mark = directory / f"made-{kind}"
    if mark.exists():
        return
    directory.mkdir(parents=True, exist_ok=True)

    def run(*words: str) -> None:
        subprocess.run([command(), *words, "--quiet"], check=True, cwd=directory)

    if kind == "labels":
        np.save(directory / "labels.npy", cells(EDGE, 16, SEED))
        run("labels", "import", "labels", "labels.npy", "--path", "/seg")
    else:
        z, y, x = np.indices((EDGE,) * 3, dtype="f4")
        noise = np.random.default_rng(SEED).standard_normal((EDGE,) * 3).astype("f4")
        np.save(directory / "zarr.npy", np.sin(z / 9) * np.cos(y / 7) + x / EDGE + noise / 64)
        chunks, codec = f"{CHUNK},{CHUNK},{CHUNK}", "blosc:zstd:3:shuffle"
        run("repo", "init", "zarr")
        run(
            "repo", "set", "zarr", "/a", "zarr.npy", "--chunks", chunks, "--codec", codec, "-m", "a"
        )
        run("convert", "zarr", "files", "--to", "zarr3")
    mark.touch()


def zarr_paths() -> list[str]:
    count = EDGE // CHUNK
    return [f"a/c/{z}/{y}/{x}" for z, y, x in np.ndindex(count, count, count)]


def volume_paths() -> list[str]:
    def part(at: int) -> str:
        return f"{at * BLOCK}-{(at + 1) * BLOCK}"

    count = EDGE // BLOCK
    return [f"seg/s0/{part(x)}_{part(y)}_{part(z)}" for z, y, x in np.ndindex(count, count, count)]


def check(base: str, path: str, values: np.ndarray, directory: Path, labels: bool) -> bool:
    """Whether a chunk is right: the voxels of a volume, or the bytes of the file."""
    found = fetch(f"{base}/{path}")
    if not labels:
        return found == (directory / "files" / path).read_bytes()
    x, y, z = (slice(*map(int, part.split("-"))) for part in path.rpartition("/")[2].split("_"))
    voxels = compressed_segmentation.decompress(
        found, (BLOCK, BLOCK, BLOCK, 1), np.uint64, block_size=(8, 8, 8), order="F"
    )
    return np.array_equal(voxels[..., 0].T, values[z, y, x])


def lua(base: str, paths: list[str]) -> str:
    """Each thread asks for the paths in an order of its own."""
    prefix = "/" + base.split("/", 3)[3] if base.count("/") > 2 else ""
    listed = ",".join(f'"{prefix}/{path}"' for path in paths)
    return f"""local paths = {{{listed}}}
local requests, at = {{}}, 0
function init()
  math.randomseed(tonumber(tostring(requests):sub(8), 16) % 2147483647)
  for i, path in ipairs(paths) do requests[i] = wrk.format("GET", path) end
end
function request() return requests[math.random(#requests)] end
"""


def wrk(base: str, script: Path, seconds: int) -> tuple[int, float, float]:
    """Requests, their time, and the 99th percentile of their latency."""
    load = ("-t", str(THREADS), "-c", str(CONNECTIONS), "-d", f"{seconds}s")
    words = ["wrk", *load, "--latency", "-s", str(script), base]
    try:
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Cannot("wrk is not installed") from error
    said = done.stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise Cannot("some requests failed")
    total = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s)", said)
    slow = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    assert total is not None and slow is not None, said
    return (
        int(total[1]),
        float(total[2]) * UNITS[total[3]],
        float(slow[1]) * UNITS[slow[2]],
    )


def made(_make: Make, directory: Path, options: Options) -> Answer:
    prepare(directory, options["kind"])
    return Answer()


WORKLOADS = {"http-chunks": chunks, "http-prepare": made}
