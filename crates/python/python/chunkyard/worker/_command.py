"""The command line: one worker, or several processes of them."""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from chunkyard.worker._errors import CancelledError, RefusedError, UnreachableError
from chunkyard.worker._server import Access
from chunkyard.worker._sink import open_sink
from chunkyard.worker._work import Done, Worker

TOKEN = "CHUNKYARD_TOKEN"
_LANES = 2

_EPILOG = """\
examples:
  python -m chunkyard.worker grpc://host:8002 --sink parquet:/data/brain
  python -m chunkyard.worker grpc://host:8002 --sink parquet:/data/brain --workers 8 --once
  python -m chunkyard.worker grpc+tls://host:8002 --token-file token --sink 'parquet:/data/{job}'
  python -m chunkyard.worker grpc://host:8002 --sink vastdb:http://vast/bucket/schema

exit codes: 0 the job is over, or told to stop by SIGTERM; 1 the server or the sink is away; 2 refused; 4 the job was cancelled;
130 interrupted
"""

_CODES: list[tuple[type[Exception], int]] = [(RefusedError, 2), (CancelledError, 4), (UnreachableError, 1)]


@dataclass(frozen=True)
class Options:
    """What the workers of a process are told."""

    access: Access
    sink: str
    register: str | None
    job: str | None
    once: bool
    patience_seconds: float


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="chunkyard worker",
        description="Fetch exports from a server, shard by shard, and write them durably.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("server", help="grpc://HOST:8002, or grpc+tls://HOST:8002")
    parser.add_argument("--sink", required=True, help="where to write: parquet:DIR, or vastdb:http://HOST/BUCKET/SCHEMA; {job} in DIR is the id of the job")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="how many processes (1)")
    parser.add_argument("--job", metavar="ID", help="work for this job only, and end when it is over")
    parser.add_argument("--once", action="store_true", help="work for the first job that has tasks, and end when it is over")
    parser.add_argument("--token", help=f"the token; the environment variable {TOKEN} is not seen by other users")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="a file with the token")
    parser.add_argument("--certificates", type=Path, metavar="FILE", help="authorities to trust instead of those of the system, as PEM")
    parser.add_argument("--patience", type=float, default=600.0, metavar="SECONDS", help="how long to wait for a server that is away (600)")
    parser.add_argument("--register", metavar="CATALOG:TABLE", help="an Iceberg table that gets the Parquet files when the job is over")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each task, and one at the end")
    parser.add_argument("--quiet", action="store_true", help="no progress and no messages")
    return parser


def _token(given: argparse.Namespace) -> str | None:
    """The token: the option, the file, the environment."""
    if given.token is not None:
        return str(given.token)
    if given.token_file is not None:
        return str(given.token_file.read_text()).strip()
    return os.environ.get(TOKEN) or None


def main(arguments: list[str] | None = None) -> int:
    """Runs workers; the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.workers < 1:
        parser.error("--workers is 1 or more")
    show = _Show(as_json=given.json, quiet=given.quiet)
    try:
        certificates = given.certificates.read_bytes() if given.certificates else None
        options = Options(
            access=Access(given.server, _token(given), certificates),
            sink=given.sink,
            register=given.register,
            job=given.job,
            once=given.once,
            patience_seconds=given.patience,
        )
        # Whatever is wrong with the sink is said before a task is claimed.
        open_sink(options.sink, register=options.register).close()
        code = _alone(options, show) if given.workers == 1 else _fleet(options, given.workers, show)
    except (RefusedError, OSError) as error:
        show.tell(f"error: {error}")
        code = 2 if isinstance(error, RefusedError) else 1
    show.end()
    return code


class _Signals:
    """SIGINT and SIGTERM tell to stop; the second one ends the process at once."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.code: int | None = None
        self._stop = stop
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, _frame: object) -> None:
        if self.code is not None:
            os._exit(128 + number)
        self.code = 128 + number if number == signal.SIGINT else 0
        self._stop()


def _alone(options: Options, show: _Show) -> int:
    """The workers of this process alone."""
    lanes = _Lanes(options, show.tell, show.done)
    signals = _Signals(lanes.stop)
    code = lanes.wait(lambda: False)
    return code if signals.code is None else signals.code


class _Lanes:
    """The workers of a process, in threads, so that signals are heard while they wait for the network. There are two: one fetches while
    the other waits for its disk."""

    def __init__(self, options: Options, tell: Callable[[str], None], done: Callable[[Done], None]) -> None:
        self._codes: list[int] = []
        self._stop = Event()
        self._tell, self._done = tell, done
        self._lock = Lock()
        self._workers: list[Worker] = []
        self._threads = [Thread(target=self._run, args=(options,), name=f"worker {lane}", daemon=True) for lane in range(_LANES)]
        for thread in self._threads:
            thread.start()

    def _run(self, options: Options) -> None:
        name = f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        code = 0
        try:
            with contextlib.closing(open_sink(options.sink, register=options.register)) as sink:
                worker = Worker(
                    options.access,
                    sink,
                    name,
                    job=options.job,
                    once=options.once,
                    patience_seconds=options.patience_seconds,
                    stop=self._stop,
                    tell=self._say,
                    done=self._count,
                )
                self._workers.append(worker)
                worker.run()
            if options.once:
                # The others may have had no part of the job, and would wait for the next one.
                self.stop()
        except Exception as error:
            code = next((code for kind, code in _CODES if isinstance(error, kind)), 1)
            # What is wrong for one is wrong for all, and is said once.
            if not self._stop.is_set():
                self._say(f"error: {error}")
            self.stop()
        self._codes.append(code)

    def _say(self, text: str) -> None:
        with self._lock:
            self._tell(text)

    def _count(self, done: Done) -> None:
        with self._lock:
            self._done(done)

    def stop(self) -> None:
        self._stop.set()
        for worker in list(self._workers):
            worker.stop()

    def wait(self, is_to_stop: Callable[[], bool]) -> int:
        """Waits for the end of all of them; the exit code."""
        while any(thread.is_alive() for thread in self._threads):
            for thread in self._threads:
                thread.join(0.05)
            if not self._stop.is_set() and is_to_stop():
                self.stop()
        return max(self._codes, default=1)


def _member(options: Options, stop: Any, pipe: Connection) -> None:
    """A process of a fleet. It stops when told to, or when the first process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def send(kind: str, content: object) -> None:
        # Without the first process there is no one to tell.
        with contextlib.suppress(OSError):
            pipe.send((kind, content))

    lanes = _Lanes(options, lambda text: send("tell", text), lambda done: send("done", done))
    signal.signal(signal.SIGTERM, lambda *_: lanes.stop())
    sys.exit(lanes.wait(lambda: stop.is_set() or (parent is not None and not parent.is_alive())))


def _fleet(options: Options, count: int, show: _Show) -> int:
    """Several processes. One that dies is not replaced: its task goes to another one."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    signals = _Signals(stop.set)
    members: dict[Any, Any] = {}
    for _ in range(count):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_member, args=(options, stop, theirs))
        process.start()
        theirs.close()
        members[ours] = process
    codes = []
    while members:
        ready: list[Any] = multiprocessing.connection.wait(list(members), 0.2)
        for pipe in ready:
            try:
                kind, content = pipe.recv()
            except (EOFError, OSError):
                process = members.pop(pipe)
                process.join()
                codes.append(process.exitcode)
                if options.once and process.exitcode == 0:
                    stop.set()
                if process.exitcode < 0:
                    show.tell(f"a worker was killed by signal {-process.exitcode}; {len(members)} are left")
                continue
            show.tell(content) if kind == "tell" else show.done(content)
    if signals.code is not None:
        return signals.code
    # The job is over if any of them has seen that it is.
    return 0 if 0 in codes else max((code if code > 0 else 1) for code in codes)


class _Show:
    """Progress on standard error, results on standard output."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._json, self._quiet = as_json, quiet
        self._bar = sys.stderr.isatty() and not quiet and not as_json
        self._total = {"tasks": 0, "shards": 0, "rows": 0, "bytes": 0}
        self._jobs: dict[str, int] = {}
        self._began = time.monotonic()
        self._width = 0

    def tell(self, text: str) -> None:
        if self._quiet and not text.startswith("error: "):
            return
        self._clear()
        print(text, file=sys.stderr, flush=True)

    def done(self, done: Done) -> None:
        for name in ("shards", "rows", "bytes"):
            self._total[name] += getattr(done, name)
        self._total["tasks"] += 1
        self._jobs[done.job] = done.job_shards
        if self._json:
            print(json.dumps({"event": "acknowledged", **asdict(done)}), flush=True)
        elif self._bar:
            self._line()

    def end(self) -> None:
        self._clear()
        seconds = round(time.monotonic() - self._began, 3)
        if self._json:
            print(json.dumps({"event": "end", **self._total, "seconds": seconds}), flush=True)
        elif not self._quiet:
            print(f"{self._text()} in {seconds:.1f} s", file=sys.stderr, flush=True)

    def _text(self) -> str:
        total = self._total
        return f"{total['shards']} shards, {total['rows']} rows, {total['bytes'] >> 20} MiB"

    def _line(self) -> None:
        total, done = sum(self._jobs.values()), self._total["shards"]
        width = 30
        filled = min(width * done // total, width) if total else 0
        rate = self._total["bytes"] / max(time.monotonic() - self._began, 0.001) / 1e6
        text = f"{'━' * filled}{'─' * (width - filled)} {self._text()} of {total} shards, {rate:.0f} MB/s"
        self._width = max(self._width, len(text))
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0
