"""xarray: `xr.open_dataset(url, engine="chunkyard")`, for every format Chunkyard reads.

Variables are read lazily, and all cores decode chunks into the result. Names of dimensions come from
the metadata, from `_ARRAY_DIMENSIONS`, or are made up; times, scales and masks are decoded by the
conventions of CF, as xarray does for all its engines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

import chunkyard
from chunkyard._array import Array
from chunkyard._group import Group
from chunkyard._open import open_nodes
from chunkyard._session import Session
from chunkyard.exceptions import ChunkyardError

__all__ = ["ChunkyardBackend"]

_V2_DIMENSIONS = "_ARRAY_DIMENSIONS"


class ChunkyardBackend(BackendEntrypoint):
    """Opens every format that `chunkyard.open` opens."""

    description = "Open repositories, Zarr, HDF5 and NetCDF-4 with Chunkyard"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "group",
        "branch",
        "tag",
        "snapshot",
        "as_of",
        "allow",
        "storage_options",
    )
    supports_groups = True

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: str | os.PathLike[str] | Session,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str = "/",
        branch: str | None = None,
        tag: str | None = None,
        snapshot: str | None = None,
        as_of: datetime | str | float | None = None,
        allow: Iterable[str] = (),
        storage_options: dict[str, Any] | None = None,
    ) -> xr.Dataset:
        """The arrays of one group as a dataset."""
        found = open_nodes(
            filename_or_obj,
            group,
            branch=branch,
            tag=tag,
            snapshot=snapshot,
            as_of=as_of,
            allow=allow,
            **(storage_options or {}),
        )
        if isinstance(found, Array):
            variables = {found.name or "data": variable(found)}
            attributes: dict[str, Any] = {}
        else:
            variables = {name: variable(array) for name, array in found.arrays()}
            attributes = found.attrs.asdict()
        decoded, described, coordinates = xr.conventions.decode_cf_variables(
            variables,
            attributes,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        dataset = xr.Dataset(decoded, attrs=described)
        dataset = dataset.set_coords(coordinates.intersection(dataset.variables))
        dataset.encoding["source"] = str(filename_or_obj)
        return dataset

    def open_groups_as_dict(  # type: ignore[override]
        self, filename_or_obj: str | os.PathLike[str] | Session, *, group: str = "/", **options: Any
    ) -> dict[str, xr.Dataset]:
        """Every group below one, by its path, for `xr.open_datatree`."""
        keys = ("branch", "tag", "snapshot", "as_of", "allow")
        where = {key: options[key] for key in keys if key in options}
        storage = options.get("storage_options") or {}
        root = open_nodes(filename_or_obj, group, **where, **storage)
        if not isinstance(root, Group):
            raise ValueError(f"{group} is an array, not a group")
        names = ["", *(name for name, node in root.members() if isinstance(node, Group))]
        return {
            f"/{name}": self.open_dataset(
                filename_or_obj, group=f"{root.path.rstrip('/')}/{name}", **options
            )
            for name in names
        }

    def open_datatree(  # type: ignore[override]
        self, filename_or_obj: str | os.PathLike[str] | Session, **options: Any
    ) -> xr.DataTree:
        """A group and all below it."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Only repositories, which no other engine claims."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return isinstance(filename_or_obj, Session)
        try:
            return chunkyard.Repository.exists(filename_or_obj)
        except (ChunkyardError, ValueError):
            return False


def variable(array: Array) -> xr.Variable:
    """An array as a variable, read when its values are needed."""
    attributes = array.attrs.asdict()
    named = attributes.pop(_V2_DIMENSIONS, None)
    names = named if isinstance(named, list) else array.dimension_names
    made_up = [f"dim_{axis}" for axis in range(array.ndim)]
    names = [name or other for name, other in zip(names or made_up, made_up, strict=True)]
    encoding = {
        "chunks": array.chunks,
        "preferred_chunks": dict(zip(names, array.chunks, strict=True)),
        "dtype": array.dtype,
    }
    if isinstance(attributes.get("_FillValue"), str) and array.dtype.kind not in "TOUS":
        # Zarr has no room for a NaN in its attributes, so xarray writes the bytes of the value there.
        attributes["_FillValue"] = FillValueCoder.decode(attributes["_FillValue"], array.dtype)
    data = indexing.LazilyIndexedArray(_Lazy(array))
    return xr.Variable(names, data, attributes, encoding)


class _Lazy(BackendArray):
    """An array that xarray indexes until it needs values."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        # One support level for all three kinds: each is a selection that we read directly.
        if isinstance(key, indexing.VectorizedIndexer):
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.VECTORIZED, self._array.vindex.__getitem__
            )
        if isinstance(key, indexing.OuterIndexer):
            return np.asarray(self._array.oindex[key.tuple])
        return np.asarray(self._array[key.tuple])
