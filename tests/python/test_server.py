"""docs/server.md: what the server says it answers is what it answers, and what many clients leave behind is nothing."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from conftest import run
from test_served import serve

# What schemathesis looks at. Handlers refuse much by 501, which the document says; a 500 is a defect.
CHECKS = "status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"
ASK = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@contextmanager
def running(places: dict[str, object], *options: str) -> Iterator[tuple[subprocess.Popen, str]]:
    process, url = serve(places, "--log", "quiet", *options)
    try:
        yield process, url
    finally:
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an array, and a labelmap."""
    yard = tmp_path_factory.mktemp("yard")
    np.save(yard / "labels.npy", np.arange(1, 64**3 + 1, dtype="u8").reshape(64, 64, 64) // 4096)
    np.save(yard / "field.npy", np.arange(4096, dtype="f4").reshape(64, 64))
    run("labels", "import", yard / "brain", yard / "labels.npy")
    run("repo", "init", yard / "weather")
    run("set", yard / "weather", "/field", yard / "field.npy", "-m", "a field")
    return yard


def test_answers_are_those_of_the_document(yard: Path, tmp_path: Path):
    places = {"brain": yard / "brain", "weather": yard / "weather"}
    with running(places, "--jobs", str(tmp_path / "jobs")) as (process, url):
        report = tmp_path / "report.ndjson"
        command = [
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json",
            "--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", "8", "--seed", "1",
            "--generation-deterministic", "--no-shrink", "--workers", "1",
            # One never ends, by design.
            "--exclude-path-regex", "/events/", "--warnings", "off", "--no-color",
            "--report-ndjson-path", str(report),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        # No handler has panicked, and none calls sound data damaged.
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            counts = answer.read().decode()
        defects = [line for line in counts.splitlines() if 'status="500"' in line]
        assert not defects, defects


def descriptors(process: subprocess.Popen) -> int:
    return len(os.listdir(f"/proc/{process.pid}/fd"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts descriptors in /proc")
def test_a_thousand_connections_at_a_time_leave_nothing(yard: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("processes may open too few files here")
    # The server inherits the limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    try:
        with running({"weather": yard / "weather"}) as (process, url):
            host, port = url.removeprefix("http://").split(":")
            before = descriptors(process)
            for _ in range(2):
                clients = [socket.create_connection((host, int(port)), timeout=60) for _ in range(1000)]
                for number, client in enumerate(clients):
                    # Some say nothing, some only a part.
                    client.sendall(ASK[: (0, 20, len(ASK), len(ASK))[number % 4]])
                for client in clients[2::4] + clients[3::4]:
                    assert client.recv(15) == b"HTTP/1.1 200 OK"
                for client in clients:
                    client.close()
            # The last closed connections are noticed a little later.
            deadline = time.monotonic() + 60
            while descriptors(process) > before and time.monotonic() < deadline:
                time.sleep(0.01)
            assert descriptors(process) <= before
            with urllib.request.urlopen(f"{url}/data/weather/zarr/field/zarr.json") as answer:
                assert json.load(answer)["shape"] == [64, 64]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


HOSTILE = ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "%00", "x" * 9000, "%ff%fe", "@", "@@", "a@..", "C:%5C", "~", "*", "."]


def test_hostile_values_of_every_parameter_are_refused(yard: Path):
    (yard / "secret.txt").write_text("a secret")
    places = {"brain": yard / "brain", "weather": yard / "weather"}
    with running(places) as (_process, url):
        with urllib.request.urlopen(f"{url}/openapi.json") as answer:
            paths = json.load(answer)["paths"]
        sound = {"{place}": "brain", "{look}": "zarr", "{uuid}": "brain:main", "{data}": "seg", "{key}": "zarr.json"}
        asked = 0
        for path, methods in paths.items():
            parts = path.split("/")
            for at, part in enumerate(parts):
                # Viewers may call themselves anything.
                if not part.startswith("{") or part == "{token}":
                    continue
                for value in HOSTILE:
                    filled = [sound.get(part, "1") if part.startswith("{") else part for part in parts]
                    filled[at] = value
                    for method in methods:
                        status, body = ask(method.upper(), url, "/".join(filled))
                        assert 400 <= status < 500 or status == 501, (method, filled, status, body[:200])
                        assert b"a secret" not in body and b"root:" not in body
                        asked += 1
        assert asked > 50
        assert ask("GET", url, "/healthz") == (200, b"ok\n")


def ask(method: str, url: str, path: str) -> tuple[int, bytes]:
    """Sent as it is: the library must not make the path sound."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as stream:
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        stream.sendall(head.encode())
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body
