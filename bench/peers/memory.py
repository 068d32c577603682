"""Peak memory above what the process held before."""

from __future__ import annotations

import contextlib
from pathlib import Path


class Idle:
    """Forgets earlier peaks, where the kernel allows it, and notes what is resident now."""

    def __init__(self) -> None:
        # 5 resets the high-water mark; without the permission, earlier peaks stay in it.
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self.before = peak()

    def above(self) -> int:
        """How far the peak has risen since, in bytes."""
        return max(0, peak() - self.before)


def peak() -> int:
    """The most memory that this process had resident since, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
