"""A connection to a server, and the calls of docs/flight.md."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar

from pyarrow import flight

from chunkyard.worker._errors import RefusedError, UnreachableError, WorkerError, sort_error

T = TypeVar("T")

_CALL_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_PAUSE_SECONDS_MAX = 10.0

# Without the first, gRPC reads 50 to 190 MB ahead of a worker that writes slower than the server sends. The rest finds out that
# a server is gone, and back again, within seconds.
_OPTIONS = [
    ("grpc.http2.bdp_probe", 0),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


@dataclass(frozen=True)
class Access:
    """Where a server is, and how it knows the worker."""

    url: str
    """`grpc://host:8002`, or `grpc+tls://` with TLS."""
    token: str | None = None
    certificates: bytes | None = None
    """Authorities to trust instead of those of the system, as PEM."""


class Server:
    """A connection to a server. Calls may come from several threads."""

    def __init__(self, access: Access) -> None:
        more: dict[str, Any] = {}
        if access.certificates is not None:
            more["tls_root_certs"] = access.certificates
        try:
            self._client = flight.connect(access.url, generic_options=_OPTIONS, **more)
        except Exception as error:
            raise RefusedError(f"{access.url}: {error}; a server is named grpc://host:8002 or grpc+tls://host:8002") from error
        token = access.token
        self._headers = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]

    def call(self, name: str, body: dict[str, Any], wait_seconds: float = 0.0) -> dict[str, Any]:
        """One action. `wait_seconds` is how long the server may take by intent."""
        options = flight.FlightCallOptions(timeout=_CALL_SECONDS + wait_seconds, headers=self._headers)
        action = flight.Action(name, json.dumps(body).encode())
        try:
            results = list(self._client.do_action(action, options))
        except Exception as error:
            raise sort_error(error) from error
        if len(results) != 1:
            raise WorkerError(f"{name}: one result is expected, and {len(results)} came")
        answer = json.loads(results[0].body.to_pybytes())
        if not isinstance(answer, dict):
            raise WorkerError(f"{name}: an object is expected, and this came: {answer!r}")
        return answer

    def stream(self, ticket: bytes) -> Any:
        """The stream of a ticket, as a `FlightStreamReader`."""
        options = flight.FlightCallOptions(headers=self._headers)
        try:
            return self._client.do_get(flight.Ticket(ticket), options)
        except Exception as error:
            raise sort_error(error) from error

    def close(self) -> None:
        self._client.close()


class Patience:
    """Repeats what fails because the server is away, for so long."""

    def __init__(self, seconds: float, stop: Event, tell: Callable[[str], None]) -> None:
        self._seconds, self._stop, self._tell = seconds, stop, tell

    def __call__(self, call: Callable[[], T]) -> T:
        """Calls until it succeeds. Raises the last error when patience is at its end, or when told to stop."""
        pause, waited = _PAUSE_SECONDS, 0.0
        while True:
            try:
                result = call()
            except UnreachableError as error:
                if waited >= self._seconds:
                    raise
                if waited == 0.0:
                    self._tell(f"waiting for the server: {error}")
                nap = pause * random.uniform(0.5, 1.0)
                if self._stop.wait(nap):
                    raise
                waited += nap
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)
            else:
                if waited:
                    self._tell("the server is there again")
                return result
