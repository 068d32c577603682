"""Groups: arrays and groups by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from chunkyard import _engine
from chunkyard._attributes import restored
from chunkyard._lists import MEMBER, is_list
from chunkyard._values import typed
from chunkyard.exceptions import NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from chunkyard._array import Array
    from chunkyard._session import Session

Codecs = str | Sequence[Mapping[str, Any] | str]
"""Shorthand such as `"zstd:3"` or `"blosc:lz4:5:shuffle"`, or Zarr's documents."""


class Tree(Protocol):
    """A holder of nodes: a native session or source."""

    def nodes(self) -> list[tuple[str, bool]]: ...
    def is_array(self, path: str, /) -> bool | None: ...
    def document(self, path: str, /) -> str: ...
    def array(self, path: str, /) -> _engine.Array: ...
    def chunk_refs(self, path: str, /) -> dict[str, Any]: ...


class WritableTree(Tree, Protocol):
    """A holder that also takes changes."""

    def create_array(self, path: str, document: str, /) -> None: ...
    def create_group(self, path: str, attributes: dict[str, Any], /) -> None: ...
    def set_attributes(self, path: str, attributes: dict[str, Any], /) -> None: ...
    def resize(self, path: str, shape: list[int], /) -> None: ...
    def delete(self, path: str, /) -> None: ...


def writable(tree: Tree) -> WritableTree:
    """The same holder, if it takes changes."""
    if not hasattr(tree, "create_array"):
        raise UnsupportedError("this was opened for reading only")
    return cast(WritableTree, tree)


def retype(tree: WritableTree, path: str, types: list[tuple[str, str]]) -> None:
    """Gives attributes the types of their NumPy scalars, if the format has types."""
    if types and isinstance(tree, _engine.Container):
        tree.retype_attributes(path, types)


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or group; an assignment is stored at once.

    In a container a NumPy scalar gives an attribute its type; attributes that are not set keep theirs.
    """

    def __init__(self, tree: Tree, path: str) -> None:
        self._tree, self._path = tree, path

    def asdict(self) -> dict[str, Any]:
        """All of them."""
        return restored(self._document())

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._tree.document(self._path))
        return document

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replaces all of them in one step."""
        tree = writable(self._tree)
        plain, types = typed(attributes)
        tree.set_attributes(self._path, plain)
        retype(tree, self._path, types)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several in one step."""
        attributes = self.asdict()
        attributes.update(*args, **kwargs)
        self.put(attributes)

    def __getitem__(self, key: str) -> Any:
        return self.asdict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        attributes = self.asdict()
        del attributes[key]
        self.put(attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def __repr__(self) -> str:
        return f"Attributes({self.asdict()!r})"


class Node:
    """An array or a group: a place in a tree, and attributes."""

    def __init__(self, tree: Tree, path: str, session: Session | None = None) -> None:
        self._tree, self._path, self._session = tree, path, session

    @property
    def path(self) -> str:
        """Its absolute path; `/` is the root."""
        return self._path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._path.rsplit("/", 1)[-1]

    @property
    def attrs(self) -> Attributes:
        """The attributes."""
        return Attributes(self._tree, self._path)


class Group(Node, Mapping[str, "Array | Group"]):
    """Arrays and groups by name, like a dictionary; `group["a/b"]` looks deeper.

    The group is writable if it belongs to a writable session.
    """

    def _join(self, name: str) -> str:
        inner = name.strip("/")
        if not inner:
            return self._path
        return f"{self._path.rstrip('/')}/{inner}"

    def _below(self) -> Iterator[tuple[str, bool]]:
        """Nodes below this one, by their path from here."""
        prefix = self._path.rstrip("/") + "/"
        for path, is_array in self._tree.nodes():
            if path.startswith(prefix) and path != "/":
                yield path[len(prefix) :], is_array

    def __getitem__(self, name: str) -> Array | Group:
        from chunkyard._array import Array

        path = self._join(name)
        is_array = self._tree.is_array(path)
        if is_array is None:
            raise NotFoundError(f"there is nothing at {path}")
        return (Array if is_array else Group)(self._tree, path, session=self._session)

    def __delitem__(self, name: str) -> None:
        writable(self._tree).delete(self._join(name))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self._tree.is_array(self._join(name)) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._below() if "/" not in name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """The arrays in this group, by name."""
        from chunkyard._array import Array

        for name, is_array in self._below():
            if is_array and "/" not in name:
                yield name, Array(self._tree, self._join(name), session=self._session)

    def groups(self) -> Iterator[tuple[str, Group]]:
        """The groups in this group, by name."""
        for name, is_array in self._below():
            if not is_array and "/" not in name:
                yield name, Group(self._tree, self._join(name), session=self._session)

    def members(self) -> Iterator[tuple[str, Array | Group]]:
        """Everything below, at any depth, by path."""
        for name, _ in list(self._below()):
            yield name, self[name]

    def create_group(self, name: str, attributes: Mapping[str, Any] | None = None) -> Group:
        """Creates a group, and the groups above it."""
        path, tree = self._join(name), writable(self._tree)
        plain, types = typed(attributes or {})
        tree.create_group(path, plain)
        retype(tree, path, types)
        return Group(self._tree, path, session=self._session)

    def require_group(self, name: str) -> Group:
        """The group of that name, created if there is none."""
        if name not in self:
            return self.create_group(name)
        found = self[name]
        if not isinstance(found, Group):
            raise NotFoundError(f"{found.path} is an array, not a group")
        return found

    def create_array(
        self,
        name: str,
        *,
        shape: int | Sequence[int] | None = None,
        dtype: npt.DTypeLike | str | Mapping[str, Any] | None = None,
        data: npt.ArrayLike | None = None,
        chunks: int | Sequence[int] | None = None,
        shards: int | Sequence[int] | None = None,
        codecs: Codecs | None = None,
        fill_value: Any = None,
        attributes: Mapping[str, Any] | None = None,
        dimension_names: Sequence[str | None] | None = None,
        overwrite: bool = False,
    ) -> Array:
        """Creates an array, and the groups above it.

        Give `shape` and `dtype`, or `data`, which is written at once. Chunks are about a mebibyte if
        not given; `codecs` is shorthand (`"zstd:3"`, `"blosc:lz4:5:shuffle"`, `"none"`) or a list of
        Zarr's documents, Zstandard if not given.

        Elements of a container may be lists: `"list<int32>"`, `"list<string>"`. They come out as lists.
        """
        from chunkyard._array import Array, describe

        plain, types = typed(attributes or {})
        lists = data if is_list(dtype) else None
        if is_list(dtype):
            plain[MEMBER], dtype = dtype, "bytes"
            shape = len(lists) if shape is None and isinstance(lists, Sized) else shape
        values = None if data is None or lists is not None else np.asarray(data)
        if values is not None:
            shape = values.shape if shape is None else shape
            dtype = values.dtype if dtype is None else dtype
        if shape is None or dtype is None:
            raise ValueError("give shape and dtype, or data")
        document = describe(
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            shards=shards,
            codecs=codecs,
            fill_value=fill_value,
            attributes=plain,
            dimension_names=dimension_names,
        )
        tree, path = writable(self._tree), self._join(name)
        if overwrite and name in self:
            tree.delete(path)
        tree.create_array(path, document)
        retype(tree, path, types)
        array = Array(tree, path, session=self._session)
        if lists is not None or values is not None:
            array[...] = values if lists is None else lists
        return array

    def __reduce__(self) -> Any:
        if self._session is not None:
            return (_reopened, (self._session, self._path))
        return (type(self), (self._tree, self._path))

    def tree(self) -> str:
        """Everything below, drawn as a tree."""
        lines = [_shown(self._path)]
        for name, node in self.members():
            indent = "  " * (name.count("/") + 1)
            lines.append(f"{indent}{_shown(name.rsplit('/', 1)[-1])}{node._summary()}")
        return "\n".join(lines)

    def _summary(self) -> str:
        return "/"

    def __repr__(self) -> str:
        arrays = sum(1 for _, is_array in self._below() if is_array)
        return f"<chunkyard.Group {self._path!r}, {arrays} arrays below>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.tree())}</pre>"


def _shown(name: str) -> str:
    """A name from a file, in one line without control characters."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _reopened(session: Session, path: str) -> Group:
    return Group(session._native, path, session=session)
