"""Whole datasets: convert, link, verify, describe."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from chunkyard import _engine
from chunkyard._options import Options, Url, url_of
from chunkyard._progress import Shown, shown
from chunkyard._reports import Report
from chunkyard._repository import Repository, version_at

if TYPE_CHECKING:
    from distributed import Client

_log = logging.getLogger("chunkyard")

Shape = int | Sequence[int]


@dataclass(frozen=True)
class ConvertedArray:
    """How one array was converted."""

    source: str
    target: str
    movement: str
    """`copy`: bytes verbatim; `rewrite`: label blocks, not decoded; `transcode`: chunk by chunk; `regrid`: n chunks to m."""
    why: str
    nbytes: int


@dataclass(frozen=True)
class Converted:
    """The result of a conversion."""

    source_format: str
    target_format: str
    arrays: tuple[ConvertedArray, ...]
    packs: int
    """Pieces that are written, and resumed, as a whole."""
    packs_resumed: int
    """Packs that an earlier attempt finished."""
    chunks: int
    """Chunks that are stored."""
    nbytes: int
    """Bytes of the elements."""
    nbytes_stored: int
    """Bytes of the encoded chunks."""
    snapshot: str | None
    """The commit, if the target is a repository."""


@dataclass(frozen=True)
class Linked:
    """The result of a link."""

    arrays: int
    references: int
    nbytes: int
    """Encoded bytes that they refer to."""
    copied_chunks: int
    """Chunks that lie in the metadata of the source, and were copied."""
    copied_bytes: int
    snapshot: str
    allow: str
    """The place that readers must allow: `chunkyard.open(repository, allow=[...])`."""


@dataclass(frozen=True)
class ArrayInfo:
    """An array, described."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    chunks: tuple[int, ...]
    nbytes: int | None
    """Bytes of all elements, if these have a fixed size."""


@dataclass(frozen=True)
class Info:
    """A dataset at a URL, described."""

    url: str
    format: str
    groups: tuple[str, ...]
    arrays: tuple[ArrayInfo, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements of fixed size."""
        return sum(array.nbytes or 0 for array in self.arrays)

    def __str__(self) -> str:
        lines = [f"{self.url}: {self.format}, {len(self.arrays)} arrays, {self.nbytes} bytes"]
        lines += [
            f"  {array.path}  {array.dtype} {array.shape} in chunks of {array.chunks}"
            for array in self.arrays
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def convert(
    source: Url,
    target: Url,
    *,
    arrays: str | Iterable[str] = (),
    selection: str | slice | Sequence[slice] | None = None,
    chunks: Shape | None = None,
    shards: Shape | Literal["none"] | None = None,
    codecs: str | None = None,
    dtype: npt.DTypeLike | None = None,
    ids: Literal["bodies", "supervoxels"] | None = None,
    lossy: Iterable[str] = (),
    into: str = "",
    to: str | None = None,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
    to_branch: str | None = None,
    message: str | None = None,
    overwrite: bool = False,
    restart: bool = False,
    verify: bool = False,
    progress: Shown = None,
    client: Client | None = None,
    pack_bytes: int | None = None,
    allow: Iterable[str] = (),
    memory_bytes: int | None = None,
    requests: int | None = None,
    durable: bool = True,
    **storage: object,
) -> Converted:
    """Converts arrays from any format to any other.

    The source's format is recognised by its content. The target's format is `to`, or follows from
    existing data at that place, or from its name (`.zarr`, `.repo`, `.blz`, `.blp`). Properties that
    you do not name stay as they are. The target appears when it is complete, in one step; in a
    repository, as one commit. The same call, made again, continues an interrupted conversion, also
    after Ctrl-C.

    `arrays` are paths, of arrays or of groups for all in them; `selection` is a box of each, such as
    `np.s_[0:10, :, 5:]`; `branch`, `tag`, `snapshot` and `as_of` choose the version of a repository that
    is read; `ids` says whether the voxels of a segmentation become the bodies of that version or stay
    supervoxels; `lossy` accepts losses by the names that a refusal gives them; `verify` reads everything
    back and compares before anything is visible; `progress` is a function that gets the progress, or
    says whether to show it.

    With `client`, a `distributed.Client`, its workers write the packs and this process commits, once.
    They must reach both places by the same names; storage options are sent to them.

    >>> import numpy
    >>> repo = Repository.create("memory://convert-me")
    >>> session = repo.writable_session("main")
    >>> field = session.create_array("field", data=numpy.arange(6), chunks=2)
    >>> snapshot = session.commit("six numbers")
    >>> convert("memory://convert-me", "memory://converted.zarr", chunks=3).chunks
    2
    """
    options = Options(
        storage, allow=allow, durable=durable, memory_bytes=memory_bytes, requests=requests
    )
    rank_free = {"chunks": _shape(chunks)} if chunks is not None else {}
    wishes: dict[str, Any] = {
        "arrays": _listed(arrays),
        "region": _box(selection),
        "codec": codecs,
        "dtype": None if dtype is None else np.dtype(dtype).name,
        "ids": ids,
        "lossy": _listed(lossy),
        "into": into,
        "pack_bytes": pack_bytes,
        **rank_free,
    }
    if shards is not None:
        wishes["shards"] = None if shards == "none" else _shape(shards)
    place = url_of(source)
    read = version_at(place, options, branch, tag, snapshot, as_of)
    conversion = _engine.Conversion.prepare(
        place, url_of(target), options.native(), read, to, wishes
    )
    written = {"overwrite": overwrite, "restart": restart, "message": message, "branch": to_branch}
    with shown("converting", progress) as report:
        if client is None:
            outcome = conversion.run(written, verify, report)
        else:
            from chunkyard.dask import carry_out

            coordinator = conversion.hand_out(written, verify, report)
            outcome = carry_out(coordinator, client, options)
    plan = conversion.plan()
    moved = tuple(ConvertedArray(**array) for array in plan["arrays"])
    _log.info("converted %s to %s: %d arrays", place, url_of(target), len(moved))
    formats = {key: plan[key] for key in ("source_format", "target_format")}
    return Converted(arrays=moved, **formats, **outcome)


def link(
    source: Url,
    repository: Url,
    *,
    arrays: str | Iterable[str] = (),
    lossy: Iterable[str] = (),
    into: str = "",
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
    to_branch: str | None = None,
    message: str | None = None,
    overwrite: bool = False,
    progress: Shown = None,
    allow: Iterable[str] = (),
    durable: bool = True,
    **storage: object,
) -> Linked:
    """Puts existing data under version control without copying it, in one commit.

    Each chunk of the source becomes a reference to its place. Readers of the repository must allow
    that place. A source that changed since is an error, never old or mixed data.
    """
    options = Options(storage, allow=allow, durable=durable)
    place = url_of(source)
    wishes = {"arrays": _listed(arrays), "lossy": _listed(lossy), "into": into}
    written = {
        "overwrite": overwrite,
        "restart": False,
        "message": message if message is not None else f"link {place}",
        "branch": to_branch,
    }
    read = version_at(place, options, branch, tag, snapshot, as_of)
    with shown("linking", progress) as report:
        linked = _engine.link(
            place, url_of(repository), options.native(), read, wishes, written, report
        )
    return Linked(**linked)


def verify(
    url: Url,
    *,
    level: Literal["state", "metadata", "existence", "bytes"] | None = None,
    progress: Shown = None,
    allow: Iterable[str] = (),
    **storage: object,
) -> Report:
    """Checks a dataset of any format, and changes nothing. The report is true unless data is damaged.

    Without a level, a repository is checked for missing files; other formats are decoded in full.
    Data without a checksum cannot be checked: then the `verdict` is `readable` and not `sound`.
    """
    options = Options(storage, allow=allow)
    with shown("checking", progress) as report:
        found = _engine.verify(url_of(url), options.native(), None, level, report)
    return Report._of(found)


def info(
    url: Url,
    *,
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
    allow: Iterable[str] = (),
    **storage: object,
) -> Info:
    """Describes a dataset of any format, from its metadata alone."""
    options = Options(storage, allow=allow)
    place = url_of(url)
    read = version_at(place, options, branch, tag, snapshot, as_of)
    source = _engine.open_source(place, options.native(), read)
    nodes = source.nodes()
    return Info(
        url=place,
        format=source.format,
        groups=tuple(path for path, is_array in nodes if not is_array),
        arrays=tuple(_describe(source, path) for path, is_array in nodes if is_array),
    )


def _describe(source: _engine.Source, path: str) -> ArrayInfo:
    document = json.loads(source.document(path))
    shape = tuple(document["shape"])
    try:
        array = source.array(path)
    except NotImplementedError:
        # Its codecs are unknown here; the facts in the metadata still hold.
        data_type = document["data_type"]
        name = data_type if isinstance(data_type, str) else data_type["name"]
        grid = document["chunk_grid"].get("configuration", {})
        return ArrayInfo(path, shape, name, tuple(grid.get("chunk_shape", ())), None)
    size = array.item_size
    nbytes = None if size is None else size * int(np.prod(shape, dtype=object))
    return ArrayInfo(path, shape, array.data_type, tuple(array.chunks), nbytes)


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _box(selection: str | slice | Sequence[slice] | None) -> str | None:
    """Slices as the engine reads them."""
    if selection is None or isinstance(selection, str):
        return selection
    parts = [selection] if isinstance(selection, slice) else selection

    def text(part: slice) -> str:
        if part.step not in (None, 1):
            raise ValueError("a conversion takes boxes: slices without a step")
        return f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"

    return ",".join(text(part) for part in parts)


def _shape(shape: Shape) -> list[int]:
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(n) for n in shape]
