"""Opening a dataset of any format."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from chunkyard import _engine
from chunkyard._array import Array
from chunkyard._blz import Blz, open_blz
from chunkyard._container import Container
from chunkyard._group import Group, Tree
from chunkyard._options import Options, Url, url_of
from chunkyard._repository import version_at
from chunkyard._rows import Rows
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
    snapshot: str | int | None = None,
    as_of: datetime | str | float | None = None,
    allow: Iterable[str] = (),
    durable: bool = True,
    memory_bytes: int | None = None,
    requests: int | None = None,
    **storage: object,
) -> Array | Group | Rows:
    """Opens an array or group of any format, recognised by its content.

    Repositories, Zarr (version 3 and 2), HDF5 and NetCDF-4, containers (`.af`), BLZ, on disks and object
    stores. You can choose the version of a repository, and the layer of a container, as `snapshot=3`.
    It also takes a session; then the result is writable if the session is.

    Plain Zarr of version 3 can be changed in place: the mode `r+` needs an existing hierarchy, `a`
    creates a missing one. Each chunk then changes in one step, durable when a call returns, but a call
    that writes several chunks is not one step: for that there are repositories. `durable=False` is for
    scratch data that may be lost in a power failure.

    The same modes change a container; the result is a `Container`, and other readers see changes only
    after its `flush`.

    A BLZ array or table gives a `Blz`: the mode `a` allows adding rows and cutting them off at the end,
    `r+` also allows changing them. `create_blz` creates a dataset.
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
        return _changed(place, path, options, mode)
    source = _source(place, options, branch, tag, snapshot, as_of)
    native = source.blz()
    if native is None:
        return _at(source, path)
    return _rows_at(Blz(native, mode, (place, options)), path)


def open_nodes(
    url: Url | Session,
    path: str = "/",
    *,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | int | None = None,
    as_of: datetime | str | float | None = None,
    allow: Iterable[str] = (),
    **storage: object,
) -> Array | Group:
    """Opens for reading, in the one data model: a BLZ table is a group of its columns."""
    from chunkyard._session import Session

    if isinstance(url, Session):
        root: Group = url.root
        return root[path]
    source = _source(url_of(url), Options(storage, allow=allow), branch, tag, snapshot, as_of)
    return _at(source, path)


def _source(
    place: str,
    options: Options,
    branch: str | None,
    tag: str | None,
    snapshot: str | int | None,
    as_of: datetime | str | float | None,
) -> _engine.Source:
    snapshot = None if snapshot is None else str(snapshot)
    meant = version_at(place, options, branch, tag, snapshot, as_of)
    source = _engine.open_source(place, options.native(), meant)
    for caution in source.cautions():
        warnings.warn(caution, stacklevel=3)
    return source


def _changed(
    place: str, path: str, options: Options, mode: Literal["r+", "a"]
) -> Array | Group | Rows:
    """Opens a dataset to change it in place."""
    if place.rstrip("/").endswith(_CONTAINER):
        return _at(_engine.open_container(place, options.native(), mode == "a"), path)
    try:
        return _rows_at(open_blz(place, options, mode), path)
    except NotFoundError:
        if place.rstrip("/").endswith(_BLZ):
            raise NotFoundError(
                f"BLZ dataset not found: {place}; chunkyard.create_blz creates one"
            ) from None
    return _at(_editor(place, options, create=mode == "a"), path)


def _rows_at(rows: Blz, path: str) -> Rows:
    column: Rows = rows if path.strip("/") == "" else rows[path]
    return column


_BLZ = ".blz"
"""The usual ending of the names of BLZ datasets."""

_CONTAINER = ".af"
"""The ending of the names of all containers."""


def _at(tree: Tree, path: str) -> Array | Group:
    if path.strip("/") == "":
        if tree.is_array("/"):
            return Array(tree, "/")
        if isinstance(tree, _engine.Container) or (
            isinstance(tree, _engine.Source) and tree.format == "container"
        ):
            return Container(tree)
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
