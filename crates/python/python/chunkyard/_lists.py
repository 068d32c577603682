"""Elements that are lists, which only containers have: `list<int32>`, `list<string>`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from chunkyard import _engine

MEMBER = "_chunkyard_list"
"""The attribute that names the type of the elements."""


def is_list(dtype: Any) -> bool:
    """Whether a data type is a type of lists."""
    return isinstance(dtype, str) and dtype.startswith("list<")


def list_type(attributes: Mapping[str, Any]) -> str | None:
    """The type of the elements, if they are lists."""
    dtype = attributes.get(MEMBER)
    return dtype if is_list(dtype) else None


def decoded(dtype: str, elements: list[bytes]) -> list[Any]:
    """Elements as lists."""
    return [json.loads(_engine.list_json(dtype, element)) for element in elements]


def encoded(dtype: str, elements: npt.NDArray[Any]) -> list[bytes]:
    """Lists as elements."""
    return [_engine.list_element(dtype, json.dumps(element, default=_plain)) for element in elements.flat]


def gathered(values: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Lists, by position, as an array of objects."""
    if isinstance(values, np.ndarray) and values.dtype == object and values.shape == shape:
        return values
    out = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        value = values
        for at in index:
            value = value[at]
        out[index] = value
    return out


def _plain(value: Any) -> Any:
    """Values that JSON lacks."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind == "M":
            times: Any = value
            return np.datetime_as_string(times, unit="ns").tolist()
        return value.tolist()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{value!r} is no element of a list")
