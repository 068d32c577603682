"""Opening whatever is at a URL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from chunkyard import _engine
from chunkyard._array import Array
from chunkyard._group import Group
from chunkyard._options import Options, Url, url_of, version
from chunkyard._repository import Repository

if TYPE_CHECKING:
    from chunkyard._session import Session


def open(
    url: Url | Session,
    path: str = "/",
    *,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
    allow: Iterable[str] = (),
    memory_bytes: int | None = None,
    requests: int | None = None,
    **storage: object,
) -> Array | Group:
    """Opens an array or group of any format, recognised by its content.

    Repositories, Zarr (version 3 and 2), HDF5 and NetCDF-4, on disks and object stores. Of a repository
    the version can be chosen. A session can be given too, and then what comes out is writable if
    the session is.
    """
    from chunkyard._session import Session

    if isinstance(url, Session):
        root: Group = url.root
        return root[path]
    place = url_of(url)
    options = Options(storage, allow=allow, memory_bytes=memory_bytes, requests=requests)
    if as_of is not None and branch is None:
        branch = Repository._open(place, options).default_branch
    source = _engine.open_source(place, options.native(), version(branch, tag, snapshot, as_of))
    if path.strip("/") == "" and source.is_array("/"):
        return Array(source, "/")
    return Group(source, "/")[path]
