"""Forgets files from the page cache, so that the next read comes from the disk."""

from __future__ import annotations

import os
from pathlib import Path


def drop(directory: Path) -> None:
    """Writes dirty pages out, then asks the kernel to forget the files; needs no privileges."""
    for file in directory.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
