"""Assigned values: converted and broadcast before the engine gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]


def convert(values: Any, dtype: np.dtype[Any]) -> NDArray:
    """Values as elements of a data type, or an error if they would change.

    NumPy's rule `same_kind`, except that integers go into any integer type that can hold them. So a
    float never silently loses its fraction, and no integer wraps around.
    """
    if dtype.kind not in "biufcmMSU":
        return np.asarray(values, dtype=dtype)
    found = np.asarray(values)
    if found.dtype == dtype:
        return found
    if not isinstance(values, (np.ndarray, np.generic)) and found.dtype.kind == "O":
        # Python integers that fit in no type of NumPy by default.
        return np.asarray(values, dtype=dtype)
    if found.dtype.kind in "biu" and dtype.kind in "biu":
        converted = found.astype(dtype)
        # To NumPy it is the same kind, even if information is lost.
        if np.can_cast(found.dtype, dtype, "safe") or bool((converted == found).all()):
            return converted
        raise OverflowError(f"integers of {found.dtype} that do not fit into {dtype}")
    if np.can_cast(found.dtype, dtype, "same_kind"):
        return found.astype(dtype)
    raise TypeError(
        f"cannot cast from {found.dtype!r} to {dtype!r} according to the rule 'same_kind'; "
        "convert with astype() first if that is meant"
    )


def typed(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Attributes as plain values, and the types of those that were NumPy scalars."""
    plain: dict[str, Any] = {}
    types: list[tuple[str, str]] = []
    for key, value in attributes.items():
        if isinstance(value, np.generic):
            # Other floats have no type of their own in a container.
            if value.dtype.kind in "biu" or value.dtype.name in ("float32", "float64"):
                types.append((key, value.dtype.name))
            value = value.item()
        plain[key] = value
    return plain, types


def spread(values: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Values broadcast to a shape by NumPy's rules."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    if values.shape == shape:
        return values
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"could not broadcast input array from shape {values.shape} into shape {shape}"
        ) from None
