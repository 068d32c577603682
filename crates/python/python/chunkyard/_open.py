"""Opening whatever is at a URL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from chunkyard import _engine
from chunkyard._array import Array
from chunkyard._group import Group, Tree
from chunkyard._options import Options, Url, url_of
from chunkyard._repository import version_at
from chunkyard.exceptions import AlreadyExistsError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from chunkyard._session import Session


def open(
    url: Url | Session,
    path: str = "/",
    *,
    mode: Literal["r", "r+", "a"] = "r",
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
    allow: Iterable[str] = (),
    durable: bool = True,
    memory_bytes: int | None = None,
    requests: int | None = None,
    **storage: object,
) -> Array | Group:
    """Opens an array or group of any format, recognised by its content.

    Repositories, Zarr (version 3 and 2), HDF5 and NetCDF-4, on disks and object stores. Of a repository
    the version can be chosen. A session can be given too, and then what comes out is writable if
    the session is.

    Plain Zarr of version 3 can be changed in place: with the mode `r+` if it is there, with `a` it is
    created if not. Each chunk then changes in one step, durable when a call returns, but a call that
    writes several is not one step: for that there are repositories. `durable=False` is for scratch
    data that may vanish with the power.
    """
    from chunkyard._session import Session

    if isinstance(url, Session):
        root: Group = url.root
        return root[path]
    place = url_of(url)
    options = Options(
        storage, allow=allow, durable=durable, memory_bytes=memory_bytes, requests=requests
    )
    if mode != "r":
        if any(chosen is not None for chosen in (branch, tag, snapshot, as_of)):
            raise ValueError("only what is read can be chosen by its version")
        return _at(_editor(place, options, create=mode == "a"), path)
    meant = version_at(place, options, branch, tag, snapshot, as_of)
    source = _engine.open_source(place, options.native(), meant)
    return _at(source, path)


def _at(tree: Tree, path: str) -> Array | Group:
    if path.strip("/") == "" and tree.is_array("/"):
        return Array(tree, "/")
    return Group(tree, "/")[path]


def _editor(place: str, options: Options, *, create: bool) -> _engine.Editor:
    try:
        return _engine.open_editor(place, options.native())
    except NotFoundError:
        if not create:
            raise
    try:
        return _engine.create_editor(place, options.native())
    except AlreadyExistsError:
        raise UnsupportedError(
            f"{place} is no Zarr hierarchy, and nothing else is changed in place; a repository is "
            "written through a session"
        ) from None
