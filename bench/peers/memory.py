"""Peak memory above the level before."""

from __future__ import annotations

import contextlib
from pathlib import Path


class Idle:
    """Forgets earlier peaks, if the kernel allows it, and notes the resident memory now."""

    def __init__(self) -> None:
        # 5 resets the high-water mark; without the permission, earlier peaks stay in it.
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self.before = peak()

    def above(self) -> int:
        """How far the peak has risen since, in bytes."""
        return max(0, peak() - self.before)


def peak() -> int:
    """The peak resident memory of this process since, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
