"""The page cache: dropped files are read from the disk, and free memory is available at once."""

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


def free_memory() -> None:
    """Empties the page cache if that is permitted, so that every side gets memory at once.

    With a full cache the system first takes pages away from files: 128 MiB of fresh memory cost
    20 ms of CPU or 300, by chance.
    """
    os.sync()
    for name, value in (("drop_caches", "3"), ("compact_memory", "1")):
        try:
            Path("/proc/sys/vm", name).write_text(value)
        except OSError:
            return
