"""Optional libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Imports that need an extra of the package; if it is missing, the error says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        error.add_note(f"{what} needs it: pip install 'chunkyard[{name}]'")
        raise
