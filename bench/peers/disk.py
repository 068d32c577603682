"""The files of a directory, and the bytes that a workload added. Files are told apart by inode."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Disk:
    """Path, size and time of the last change, by inode."""

    files: dict[int, tuple[Path, int, int]]

    @classmethod
    def of(cls, directory: Path) -> Disk:
        found = {}
        for root, _, names in os.walk(directory):
            for name in names:
                path = Path(root, name)
                stat = path.stat()
                found[stat.st_ino] = (path, stat.st_size, stat.st_mtime_ns)
        return cls(found)

    def changed_since(self, earlier: Disk) -> list[Path]:
        """The files that are new or different."""
        return [file[0] for inode, file in self.files.items() if earlier.files.get(inode) != file]

    def written_since(self, earlier: Disk) -> int:
        """New files whole, files that grew by their growth, files changed in place whole."""
        total = 0
        for inode, file in self.files.items():
            before = earlier.files.get(inode)
            if before != file:
                grown = before is not None and file[1] > before[1]
                total += file[1] - before[1] if before and grown else file[1]
        return total


def sync(files: list[Path]) -> None:
    """Makes files and the directories they are in durable."""
    for path in [*files, *dict.fromkeys(file.parent for file in files)]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def sync_all(directory: Path) -> None:
    """Makes everything below a directory durable."""
    for root, _, names in os.walk(directory):
        sync([Path(root, name) for name in names] or [Path(root, ".")])
