"""How arrays look in a notebook: a table of facts, and a drawing of the chunk grid."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunkyard._array import Array

_SIDE = 160
"""Pixels of the longer side of the drawing."""
_LINES = 40
"""Lines drawn along an axis; a finer grid is drawn coarser."""


def size(count: float) -> str:
    """A number of bytes, as people read it."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def array_html(array: Array) -> str:
    """A table of facts beside the grid."""
    names = array.dimension_names
    facts = {
        "path": array.path,
        "shape": " × ".join(map(str, array.shape)) or "scalar",
        "dimensions": ", ".join(str(name) for name in names) if names else "",
        "data type": str(array.dtype),
        "bytes": size(array.nbytes),
        "chunks": f"{array.nchunks} of {' × '.join(map(str, array.chunks)) or 'one element'}",
        "fill value": repr(array.fill_value),
        "codecs": " → ".join(codec["name"] for codec in array.metadata["codecs"]),
    }
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
        if value
    )
    return f"<div style='display:flex;gap:2em'><table>{rows}</table>{_grid(array)}</div>"


def _grid(array: Array) -> str:
    """The last two axes, cut along the chunks; the axes before them are counted."""
    if not array.shape or 0 in array.shape:
        return ""
    shape = (1, *array.shape)[-2:]
    counts = (1, *array.cdata_shape)[-2:]
    chunks = (1, *array.chunks)[-2:]
    scale = _SIDE / max(shape)
    height, width = (max(extent * scale, 12.0) for extent in shape)
    lines = []
    for axis, (extent, count, chunk) in enumerate(zip(shape, counts, chunks, strict=True)):
        step = -(-count // _LINES)
        for at in range(step, count, step):
            place = min(at * chunk / extent, 1.0)
            x, y = (place * width, place * height)
            ends = f"x1='0' x2='{width:.1f}' y1='{y:.1f}' y2='{y:.1f}'"
            if axis == 1:
                ends = f"x1='{x:.1f}' x2='{x:.1f}' y1='0' y2='{height:.1f}'"
            lines.append(f"<line {ends} stroke='#8a8a8a' stroke-width='0.6'/>")
    outer = array.cdata_shape[:-2]
    above = f"<div>{' × '.join(map(str, outer))} ×</div>" if outer else ""
    return (
        f"<div>{above}<svg width='{width + 2:.0f}' height='{height + 2:.0f}'>"
        f"<g transform='translate(1,1)'>"
        f"<rect width='{width:.1f}' height='{height:.1f}' fill='#e8eef7' stroke='#4a4a4a'/>"
        f"{''.join(lines)}</g></svg></div>"
    )
