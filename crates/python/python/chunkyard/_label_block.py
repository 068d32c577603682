"""The codec `chunkyard.label_block` for zarr-python.

zarr finds it by name, as an entry point of this package: nothing has to be imported.

>>> import numpy as np, zarr
>>> labels = np.full((16, 16, 16), 7, "u8")
>>> array = zarr.create_array({}, data=labels, chunks=(8, 16, 16), serializer=LabelBlock())
>>> array.metadata.codecs[0].to_dict()
{'name': 'chunkyard.label_block'}
>>> bool((array[:] == labels).all())
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import JSON, parse_named_configuration

from chunkyard import _engine

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

NAME = "chunkyard.label_block"


@dataclass(frozen=True)
class LabelBlock(ArrayBytesCodec):
    """A chunk of labels as a label block of DVID: `uint64` or `uint32`, axes z, y, x, extents of
    multiples of 8 up to 1024."""

    is_fixed_size = False

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        _, configuration = parse_named_configuration(data, NAME, require_configuration=False)
        if configuration:
            raise ValueError(f"{NAME} has nothing to configure, not {configuration}")
        return cls()

    def to_dict(self) -> dict[str, JSON]:
        return {"name": NAME}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        chunks = getattr(chunk_grid, "chunk_shape", None)
        if chunks is not None:
            _blocks(dtype.to_native_dtype(), chunks)

    def compute_encoded_size(self, input_byte_length: int, _chunk_spec: ArraySpec) -> int:
        raise NotImplementedError("the size of a label block depends on its labels")

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        dtype = chunk_spec.dtype.to_native_dtype()
        decoded = _blocks(dtype, chunk_spec.shape).decode(chunk_data.as_numpy_array())
        labels = np.frombuffer(decoded, dtype.newbyteorder("<")).reshape(chunk_spec.shape)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(labels.astype(dtype, copy=False))

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        labels = chunk_data.as_numpy_array()
        little = np.ascontiguousarray(labels, labels.dtype.newbyteorder("<"))
        blocks = _blocks(labels.dtype, chunk_spec.shape)
        return chunk_spec.prototype.buffer.from_bytes(blocks.encode(little.reshape(-1).view("u1")))


def _blocks(dtype: np.dtype[Any], shape: tuple[int, ...]) -> _engine.LabelBlocks:
    return _engine.LabelBlocks(dtype.name, list(shape))
