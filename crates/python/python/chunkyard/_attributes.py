"""Attributes with numbers that JSON does not have.

zarr-python writes NaN and the infinities into attributes. A repository keeps them as strings, and in a
member of the document which of its strings are numbers; `engine::repo::keys` has the rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_MEMBER = "chunkyard_non_finite"


def restored(document: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a document, with the numbers that it lists."""
    listed = set(document.get(_MEMBER, {}).get("attributes", ()))
    found: dict[str, Any] = _mapped(document.get("attributes", {}), "", listed, float)
    return found


def storable(attributes: Mapping[str, Any], document: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Attributes as JSON has them. A number that it has not is refused, where it is not listed."""
    listed = set((document or {}).get(_MEMBER, {}).get("attributes", ()))
    kept: dict[str, Any] = _mapped(attributes, "", listed, _word)
    _refuse(kept, "")
    return kept


def _mapped(value: Any, path: str, listed: set[str], change: Any) -> Any:
    if isinstance(value, Mapping):
        names = {key: str(key).replace("~", "~0").replace("/", "~1") for key in value}
        return {key: _mapped(value[key], f"{path}/{names[key]}", listed, change) for key in value}
    if isinstance(value, list | tuple):
        return [_mapped(item, f"{path}/{at}", listed, change) for at, item in enumerate(value)]
    return change(value) if path in listed else value


def _word(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _refuse(value: Any, path: str) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse(item, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            _refuse(item, f"{path}/{at}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"attribute {path} is {value}, which JSON cannot say; write it as text")
