"""Errors of a worker, sorted by what it does about them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import flight


class WorkerError(Exception):
    """Something a worker cannot go on with by itself."""


class UnreachableError(WorkerError):
    """The server, or its store, is away or has too much to do: wait, and repeat."""


class LostClaimError(WorkerError):
    """The task is no longer the worker's: throw away what there is of it, and claim again."""


class CancelledError(WorkerError):
    """The job was cancelled."""


class RefusedError(WorkerError):
    """The request is wrong, and stays so."""


class FailedTaskError(WorkerError):
    """The task cannot be done now: give it back."""


class SinkError(FailedTaskError):
    """The shard cannot be written now."""


# How pyarrow names the codes for which it has no exception of their own.
_BY_TEXT: list[tuple[str, type[WorkerError]]] = [
    ("precondition failed error", LostClaimError),
    ("aborted error", LostClaimError),
    ("resource exhausted error", UnreachableError),
    ("data loss error", FailedTaskError),
    ("out-of-range error", RefusedError),
]


def sort_error(error: Exception) -> WorkerError:
    """What an error of a call means to a worker."""
    text = str(error)
    found: type[WorkerError] = FailedTaskError
    by_text = [kind for name, kind in _BY_TEXT if f"gRPC returned {name}" in text]
    classes: list[tuple[tuple[Any, ...], type[WorkerError]]] = [
        ((flight.FlightUnavailableError, flight.FlightTimedOutError), UnreachableError),
        ((flight.FlightCancelledError,), CancelledError),
        ((flight.FlightUnauthenticatedError, flight.FlightUnauthorizedError), RefusedError),
        ((flight.FlightInternalError, flight.FlightServerError), FailedTaskError),
        ((KeyError, pa.ArrowInvalid, NotImplementedError), RefusedError),
    ]
    if by_text:
        found = by_text[0]
    else:
        found = next((kind for kinds, kind in classes if isinstance(error, kinds)), FailedTaskError)
    sorted_error = found(_short(text))
    sorted_error.__cause__ = error
    return sorted_error


def _short(text: str) -> str:
    """The message of the server, without what gRPC puts around it."""
    for mark in (". Detail:", "gRPC client debug context", ". Client context:"):
        text = text.split(mark)[0]
    return text.strip()
