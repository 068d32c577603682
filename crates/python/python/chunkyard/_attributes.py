"""Attributes with numbers that JSON does not have.

zarr-python writes NaN and the infinities into attributes. A document keeps them as strings, and lists
in a member which strings are numbers; `chunkyard_array::non_finite` has the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MEMBER = "chunkyard_non_finite"
_WORDS = ("NaN", "Infinity", "-Infinity")


def restored(document: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a document, with the numbers that it lists."""
    listed = set(document.get(_MEMBER, {}).get("attributes", ()))
    found: dict[str, Any] = _restored(document.get("attributes", {}), "", listed)
    return found


def _restored(value: Any, path: str, listed: set[str]) -> Any:
    if isinstance(value, Mapping):
        names = {key: str(key).replace("~", "~0").replace("/", "~1") for key in value}
        return {key: _restored(value[key], f"{path}/{names[key]}", listed) for key in value}
    if isinstance(value, list):
        return [_restored(item, f"{path}/{at}", listed) for at, item in enumerate(value)]
    return float(value) if path in listed and value in _WORDS else value
