"""A worker: claims a task, streams it, writes it, acknowledges it, and begins again."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from chunkyard.worker._errors import (
    CancelledError,
    FailedTaskError,
    LostClaimError,
    RefusedError,
    UnreachableError,
    WorkerError,
    sort_error,
)
from chunkyard.worker._server import Access, Patience, Server
from chunkyard.worker._sink import ShardWriter, Sink
from chunkyard.worker._sums import Sums, check_schema, name_of

# A claim waits so long at the server, which is how long a worker takes to notice that it is to stop.
_WAIT_MS = 1_000
# So many tasks in a row that cannot be written, and the worker gives up.
_FAILURES_MAX = 5


@dataclass(frozen=True)
class Done:
    """A task that was acknowledged."""

    job: str
    task: int
    shards: int
    rows: int
    bytes: int
    job_shards: int
    """Shards of the whole job."""


class Worker:
    """One worker: one connection, one task at a time."""

    def __init__(
        self,
        access: Access,
        sink: Sink,
        name: str,
        *,
        job: str | None = None,
        once: bool = False,
        patience_seconds: float = 600.0,
        stop: Event | None = None,
        tell: Callable[[str], None] = lambda _: None,
        done: Callable[[Done], None] = lambda _: None,
    ) -> None:
        """`job` is the only job that it works for. With `once`, the first job is. It ends when that job is over.

        `tell` gets messages for people, `done` each task when it is acknowledged.
        """
        self._access, self._sink, self._name = access, sink, name
        self._job, self._once = job, once
        self._stop = stop or Event()
        self._tell, self._done = tell, done
        self._patiently = Patience(patience_seconds, self._stop, tell)
        self._server = Server(access)
        self._cancel: Callable[[], None] = lambda: None
        # Jobs that this worker had a part in, until they are known to be over.
        self._jobs: set[str] = set()
        # Whether a task was done since there was nothing to do.
        self._busy = False
        self._waited = True

    def stop(self) -> None:
        """Ends soon, from any thread: gives the task back and returns from `run`."""
        self._stop.set()
        self._cancel()

    def run(self) -> None:
        """Works until it is stopped or the job is over."""
        failures = 0
        try:
            while not self._stop.is_set():
                try:
                    answer = self._claim()
                except UnreachableError:
                    if self._stop.is_set():
                        return
                    raise
                if answer["state"] == "claimed":
                    if self._once:
                        self._job = answer["job"]
                    failures = 0 if self._do(answer) else failures + 1
                    if failures >= _FAILURES_MAX:
                        raise WorkerError(f"{failures} tasks in a row could not be done; the last message says why")
                    # Whatever fails for all of them is not repeated in haste.
                    self._stop.wait(min(0.1 * 4**failures, 10.0) if failures else 0.0)
                elif answer["state"] == "wait":
                    self._look_for_ends()
                    # A claim that did not wait is followed by one that does.
                    if self._waited:
                        self._stop.wait(answer["retry_ms"] / 1000)
                elif answer["state"] == "cancelled":
                    raise CancelledError(f"the job {answer['job']} was cancelled")
                else:
                    self._sink.conclude(answer["job"])
                    return
        finally:
            self._server.close()

    def _look_for_ends(self) -> None:
        """Concludes the jobs that are over. A worker that waits for any job is not told that one is."""
        for job in sorted(self._jobs):
            with contextlib.suppress(UnreachableError, RefusedError):
                state = self._server.call("export.status", {"job": job})["state"]
                if state == "over":
                    self._sink.conclude(job)
                if state != "running":
                    self._jobs.discard(job)

    def _claim(self) -> dict[str, Any]:
        # After a task, the job may be over: that is looked for at once, and not after a wait.
        wait_ms, self._busy = 0 if self._busy else _WAIT_MS, False
        self._waited = wait_ms > 0
        request = {"worker": self._name, "job": self._job, "wait_ms": wait_ms}
        return self._patiently(lambda: self._server.call("export.claim", request, wait_ms / 1000))

    def _do(self, claim: dict[str, Any]) -> bool:
        """Does a task. Whether nothing was wrong with the task itself."""
        task = {"worker": self._name, "job": claim["job"], "task": claim["task"], "epoch": claim["epoch"]}
        about = claim["about"]
        try:
            with self._beat(task, claim["lease_ms"]) as lost:
                self._patiently(lambda: self._sink.open_job(claim["job"], about))
                markers = self._patiently(lambda: self._fetch(claim, lost))
                self._acknowledge(task, markers)
        except (LostClaimError, CancelledError) as error:
            if self._stop.is_set():
                self._give_back(task, "the worker was stopped")
            else:
                self._tell(f"task {claim['task']} is no longer this worker's: {error}")
            return True
        except RefusedError as error:
            self._give_back(task, str(error))
            raise
        except UnreachableError:
            if not self._stop.is_set():
                raise
            self._give_back(task, "the worker was stopped")
            return True
        except FailedTaskError as error:
            self._tell(f"task {claim['task']} is given back: {error}")
            self._give_back(task, str(error))
            return False
        self._jobs.add(claim["job"])
        self._busy = True
        rows, size = (sum(marker[name] for marker in markers) for name in ("rows", "bytes"))
        shards = sum(marker["stream"] == "blocks" for marker in markers)
        self._done(Done(claim["job"], claim["task"], shards, rows, size, about["shards"]))
        return True

    def _fetch(self, claim: dict[str, Any], lost: Event) -> list[dict[str, Any]]:
        """Writes the shards of a task, and gives their markers."""
        reader = self._server.stream(base64.b64decode(claim["ticket"]))
        self._cancel = reader.cancel
        writer: ShardWriter | None = None
        expected = claim["shards"]
        markers: list[dict[str, Any]] = []
        sums: Sums | None = None
        try:
            for batch, marker in _chunks(reader, expected[0]["stream"]):
                if self._stop.is_set() or lost.is_set():
                    raise LostClaimError("the worker stops" if self._stop.is_set() else "the lease has run out")
                if len(markers) == len(expected):
                    raise FailedTaskError(f"more than the {len(expected)} shards of the task came")
                shard = expected[len(markers)]
                if sums is None or writer is None:
                    sums, writer = Sums(shard), self._sink.begin(claim["about"], shard)
                sums.add(batch)
                writer.write(batch)
                if marker is not None:
                    _compare_names(shard, marker)
                    sums.compare(marker)
                    writer.finish()
                    markers.append(marker)
                    sums = writer = None
            if len(markers) < len(expected):
                raise UnreachableError(f"the stream ended before {name_of(expected[len(markers)])} was complete")
        except BaseException:
            if writer is not None:
                writer.abort()
            if lost.is_set():
                raise LostClaimError("the lease has run out") from None
            raise
        finally:
            self._cancel = lambda: None
            with contextlib.suppress(Exception):
                reader.cancel()
        return markers

    def _acknowledge(self, task: dict[str, Any], markers: list[dict[str, Any]]) -> None:
        """Tells the server that the shards are durable. A lost reply makes no difference: the same again gets the same answer."""
        try:
            self._patiently(lambda: self._server.call("export.ack", {**task, "shards": markers}))
        except RefusedError as error:
            raise FailedTaskError(f"the server refused the acknowledgement: {error}") from error

    def _give_back(self, task: dict[str, Any], why: str) -> None:
        """Gives a task back. Where that fails, its lease runs out."""
        with contextlib.suppress(WorkerError):
            self._server.call("export.fail", {**task, "error": why[:1000]})

    @contextlib.contextmanager
    def _beat(self, task: dict[str, Any], lease_ms: int) -> Iterator[Event]:
        """Renews the lease while a task is done, from a connection and a thread of its own. The event says that it is lost."""
        lost, over = Event(), Event()

        def beat() -> None:
            server = Server(self._access)
            try:
                while not over.wait(max(lease_ms / 4000, 0.01)):
                    try:
                        answer = server.call("export.beat", task)
                    except UnreachableError:
                        continue
                    except WorkerError:
                        answer = {"ok": False}
                    if not answer.get("ok") or answer.get("cancelled"):
                        lost.set()
                        self._cancel()
                        return
            finally:
                server.close()

        thread = Thread(target=beat, name="beat", daemon=True)
        thread.start()
        try:
            yield lost
        finally:
            over.set()
            thread.join()


def _chunks(reader: Any, stream: str) -> Iterator[tuple[Any, dict[str, Any] | None]]:
    """The batches of a stream, the last of each shard with its marker."""
    try:
        check_schema(reader.schema, stream)
        while True:
            chunk = reader.read_chunk()
            marker = None
            if chunk.app_metadata is not None:
                marker = json.loads(chunk.app_metadata.to_pybytes())
            yield chunk.data, marker
    except StopIteration:
        return
    except WorkerError:
        raise
    except GeneratorExit:
        raise
    except Exception as error:
        raise sort_error(error) from error


def _compare_names(shard: dict[str, Any], marker: dict[str, Any]) -> None:
    for name in ("stream", "scale", "shard", "part"):
        if shard.get(name) != marker.get(name):
            raise FailedTaskError(f"{name_of(shard)} is expected, and the end of {name_of(marker)} came")
