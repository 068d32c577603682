"""Chunked n-dimensional arrays: under version control, in few large objects, between all formats.

>>> import chunkyard, numpy
>>> repo = chunkyard.Repository.create("memory://example")
>>> session = repo.writable_session("main")
>>> field = session.create_array("field", data=numpy.arange(12).reshape(3, 4), chunks=(2, 2))
>>> snapshot = session.commit("a field")
>>> chunkyard.open(repo.readonly_session("main"), "field")[...].sum()
np.int64(66)
"""

from __future__ import annotations

import atexit

from chunkyard import exceptions, labels
from chunkyard._array import Array
from chunkyard._blz import Blz, create_blz
from chunkyard._container import Compacted, Container, Layer, Statistics
from chunkyard._convert import (
    ArrayInfo,
    Converted,
    ConvertedArray,
    Info,
    Linked,
    convert,
    info,
    link,
    verify,
)
from chunkyard._engine import __version__, shut_down
from chunkyard._group import Attributes, Group
from chunkyard._open import open
from chunkyard._progress import Progress
from chunkyard._reports import ChunkChanges, Collected, Diff, Expired, Finding, Report, Snapshot
from chunkyard._repository import Repository
from chunkyard._rows import Rows
from chunkyard._session import ForkSession, Rebase, Session
from chunkyard.exceptions import (
    AlreadyExistsError,
    ChunkyardError,
    Conflict,
    ConflictError,
    CorruptError,
    InvalidError,
    NotFoundError,
    OutcomeUnknownError,
    SessionExpiredError,
    StoreError,
    UnsupportedError,
    VirtualSourceChangedError,
)

# The threads of the engine end before the interpreter does.
atexit.register(shut_down)

__all__ = [
    "AlreadyExistsError",
    "Array",
    "ArrayInfo",
    "Attributes",
    "Blz",
    "ChunkChanges",
    "ChunkyardError",
    "Collected",
    "Compacted",
    "Conflict",
    "ConflictError",
    "Container",
    "Converted",
    "ConvertedArray",
    "CorruptError",
    "Diff",
    "Expired",
    "Finding",
    "ForkSession",
    "Group",
    "Info",
    "InvalidError",
    "Layer",
    "Linked",
    "NotFoundError",
    "OutcomeUnknownError",
    "Progress",
    "Rebase",
    "Report",
    "Repository",
    "Rows",
    "Session",
    "SessionExpiredError",
    "Snapshot",
    "Statistics",
    "StoreError",
    "UnsupportedError",
    "VirtualSourceChangedError",
    "__version__",
    "convert",
    "create_blz",
    "exceptions",
    "info",
    "labels",
    "link",
    "open",
    "verify",
]
