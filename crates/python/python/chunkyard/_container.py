"""Containers: many arrays in one file, and its layers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from chunkyard import _engine
from chunkyard._group import Group
from chunkyard.exceptions import UnsupportedError

_log = logging.getLogger("chunkyard")


@dataclass(frozen=True)
class Layer:
    """One file of a container."""

    number: int
    """0 is the base."""
    file: str
    bytes: int
    arrays: int
    """Arrays that it touches."""
    deleted: int
    """Arrays among them that it deletes."""
    chunks: int
    blocks: int
    checksums: bool
    """Whether it carries any; layers of other programs do not."""


@dataclass(frozen=True)
class Statistics:
    """Of an array, as of the last flush. Null elements equal the fill value, or were never written."""

    min: Any
    """The smallest element that is not null; `None` if there is none."""
    max: Any
    null_count: int
    row_count: int


@dataclass(frozen=True)
class Compacted:
    """The result of a compaction."""

    layers: int
    """Layers that became one, the base included."""
    bytes_before: int
    bytes_after: int


class Container(Group):
    """The root group of a container.

    If it is writable, changes wait until `flush`, which makes all of them visible in one step, as one
    more layer. A `with` statement flushes at its end; an exception discards the changes.

    >>> import chunkyard, numpy
    >>> with chunkyard.open("memory://many/x.af", mode="a") as container:
    ...     a = container.create_array("g/a", data=numpy.arange(6))
    >>> chunkyard.open("memory://many/x.af")["g/a"][2:4]
    array([2, 3])
    """

    _tree: _engine.Container | _engine.Source

    def __init__(self, tree: _engine.Container | _engine.Source) -> None:
        super().__init__(tree, "/")

    def __reduce__(self) -> Any:
        return (Container, (self._tree,))

    def layers(self) -> list[Layer]:
        """The layers, oldest first."""
        return [Layer(**layer) for layer in self._tree.layers()]

    def statistics(self, name: str) -> Statistics | None:
        """The statistics of an array as of the last flush; `None` if they are not known."""
        path = self._join(name)
        found = self._tree.statistics(path)
        if found is None:
            return None
        native = self._tree.array(path)
        low, high = (_element(found[key], native) for key in ("min", "max"))
        return Statistics(low, high, found["null_count"], found["row_count"])

    def attribute_types(self, name: str) -> dict[str, str]:
        """The types of the attributes of an array or a group, as they are stored: `Int8`, `String`.

        A value without a type in containers is text, under its key with `json:` in front.
        """
        return dict(self._writable.attribute_types(self._join(name)))

    def flush(self) -> int | None:
        """Makes all changes visible to all readers; gives the number of the new layer, if there is one.

        After an error the changes still wait. A `ConflictError` means that another writer was faster.
        """
        flushed = self._writable.flush()
        if flushed is None:
            return None
        layer, note = flushed
        if note is not None:
            _log.warning("%s", note)
        return layer

    def discard(self) -> None:
        """Drops all changes that are not flushed."""
        self._writable.discard()

    def compact(self, *, alone: bool = False) -> Compacted:
        """Merges all layers into one file; changes that wait are flushed first.

        `alone` promises that there is no other writer: large containers on object stores need it.
        """
        return Compacted(*self._writable.compact(alone))

    @property
    def _writable(self) -> _engine.Container:
        if isinstance(self._tree, _engine.Container):
            return self._tree
        raise UnsupportedError("this was opened for reading only")

    def __enter__(self) -> Container:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(self._tree, _engine.Container):
            return
        if kind is None:
            self.flush()
        else:
            self.discard()


def _element(value: Any, array: _engine.Array) -> Any:
    """A value of the statistics as an element of the array."""
    if isinstance(value, bytes) and array.data_type == "string":
        return value.decode(errors="replace")
    if isinstance(value, int) and array.data_type == "numpy.datetime64":
        return np.datetime64(value, "ns")
    return value
