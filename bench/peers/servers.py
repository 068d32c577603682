"""Servers of chunks over HTTP, each with the workers that two cores can use."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path

from peers.clock import Cannot

WORKERS = 2


def command() -> str:
    """Our command; `BENCH_CHUNKYARD` names one that was built elsewhere."""
    built = Path(__file__).resolve().parents[2] / "target" / "release" / "chunkyard"
    return os.environ.get("BENCH_CHUNKYARD", str(built))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Server(ABC):
    """A process that serves a directory. Its children are in its group, and end with it."""

    def __init__(self, directory: Path, options: dict[str, str]) -> None:
        self.directory, self.options = directory, options
        self.process: subprocess.Popen[str] | None = None

    @abstractmethod
    def start(self) -> str:
        """Starts the server; the URL of the hierarchy or volume that it serves."""

    def run(self, *words: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )
        return self.process

    def wait(self, port: int) -> None:
        """Until it listens."""
        for _ in range(600):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise Cannot("it did not start")

    def cpu_seconds(self) -> float:
        """User and system time of all its processes."""
        assert self.process is not None
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[2]) == self.process.pid:
                ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(30)


class Ours(Server):
    """`chunkyard serve` of the repository itself; nothing was copied out of it."""

    def start(self) -> str:
        place = self.directory / self.options["kind"]
        process = self.run(
            command(),
            "serve",
            f"d={place}",
            "--http",
            "127.0.0.1:0",
            "--flight",
            "127.0.0.1:0",
            "--json",
        )
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["http"].rstrip("/")
        if self.options["kind"] == "labels":
            return f"{url}/data/d/precomputed"
        log = subprocess.run(
            [command(), "repo", "log", place, "--json"], check=True, capture_output=True, text=True
        )
        version = self.options.get("version", "")
        at = f"@{json.loads(log.stdout)[0]['snapshot-id']}" if version == "snapshot" else ""
        return f"{url}/data/d{at}/zarr"


class Nginx(Server):
    """The same bytes as files."""

    def start(self) -> str:
        port, folder = free_port(), self.directory / "nginx"
        folder.mkdir(exist_ok=True)
        config = folder / "nginx.conf"
        config.write_text(
            f"""daemon off; worker_processes {WORKERS}; pid {folder}/pid; error_log {folder}/error;
            user root;
            events {{ worker_connections 1024; }}
            http {{
              access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
              open_file_cache max=10000 inactive=60s; open_file_cache_valid 60s;
              client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
              fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
              scgi_temp_path {folder}/scgi;
              server {{ listen 127.0.0.1:{port}; root {self.directory}/files; }}
            }}"""
        )
        try:
            self.run("nginx", "-c", config)
        except FileNotFoundError as error:
            raise Cannot("nginx is not installed") from error
        self.wait(port)
        return f"http://127.0.0.1:{port}"


class ZarrHttpServer(Server):
    """zarr-http-server on uvicorn, a process for each core."""

    def start(self) -> str:
        port = free_port()
        self.run(
            sys.executable,
            "-m",
            "uvicorn",
            "--factory",
            "peers.servers:zarr_app",
            "--port",
            port,
            "--workers",
            WORKERS,
            "--no-access-log",
            "--log-level",
            "error",
            env={"BENCH_STORE": str(self.directory / "files")},
        )
        self.wait(port)
        return f"http://127.0.0.1:{port}"


def zarr_app() -> object:
    """What uvicorn runs."""
    import zarr
    from zarr_http_server import store_app

    return store_app(zarr.storage.LocalStore(os.environ["BENCH_STORE"], read_only=True))


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        found: bytes = answer.read()
        return found
