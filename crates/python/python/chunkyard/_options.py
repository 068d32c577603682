"""Options for opening places, as the engine takes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, TypeAlias

Version: TypeAlias = tuple[str, *tuple[Any, ...]]
"""A version; see `Version` in the native module."""

Url: TypeAlias = str | os.PathLike[str]


class Options:
    """How a place is opened. It can be pickled, so that a worker opens the same place."""

    __slots__ = ("_items",)

    def __init__(
        self,
        storage: Mapping[str, object],
        *,
        allow: Iterable[str] = (),
        check_chunks: bool = True,
        cache_bytes: int = 128 << 20,
        durable: bool = True,
        memory_bytes: int | None = None,
        requests: int | None = None,
    ) -> None:
        self._items: dict[str, Any] = {
            "storage": {key: _text(value) for key, value in storage.items()},
            "allow": [allow] if isinstance(allow, str) else [str(url) for url in allow],
            "check_chunks": check_chunks,
            "cache_bytes": cache_bytes,
            "durable": durable,
            "memory_bytes": memory_bytes,
            "requests": requests,
        }

    def native(self) -> dict[str, Any]:
        """The dictionary that native functions take."""
        return self._items

    def __reduce__(self) -> Any:
        items = dict(self._items)
        return (_restore, (items,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self._items == other._items

    def __hash__(self) -> int:
        return hash(tuple(self._items["allow"]))


def _restore(items: dict[str, Any]) -> Options:
    return Options(items.pop("storage"), **items)


def _text(value: object) -> str:
    """Object stores take text; `True` is `true` there."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def url_of(url: Url) -> str:
    """A URL or path as text."""
    return os.fspath(url)


def milliseconds(time: datetime | str | int | float) -> int:
    """Milliseconds since 1970 of a time. A time without a zone is in UTC."""
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    if isinstance(time, datetime):
        if time.tzinfo is None:
            time = time.replace(tzinfo=timezone.utc)
        return round(time.timestamp() * 1000)
    return round(time * 1000)


def version(
    branch: str | None = None,
    tag: str | None = None,
    snapshot: str | None = None,
    as_of: datetime | str | float | None = None,
) -> Version | None:
    """The version that keyword arguments name; `None` if they name none."""
    named = [name for name in (branch, tag, snapshot) if name is not None]
    if len(named) > 1 or (as_of is not None and (tag or snapshot)):
        raise ValueError("give one of branch, tag and snapshot; as_of goes with a branch only")
    if as_of is not None:
        return ("as_of", branch, milliseconds(as_of))
    if branch is not None:
        return ("branch", branch)
    if tag is not None:
        return ("tag", tag)
    if snapshot is not None:
        return ("snapshot", snapshot)
    return None
