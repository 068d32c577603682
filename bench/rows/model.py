"""A workload is what is run; a row is what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.limits import Limit
from harness.worker import Side


@dataclass(frozen=True)
class Size:
    """How much a run does."""

    field_planes: int
    labels_planes: int
    references: tuple[int, ...]
    tiny_chunks: int
    history_commits: int
    rounds: int
    repeats: int
    # Commits per process.
    commits: int

    @property
    def field_bytes(self) -> int:
        return self.field_planes << 20

    @property
    def labels_bytes(self) -> int:
        return self.labels_planes << 21


FULL = Size(1024, 512, (100_000, 1_000_000), 100_000, 1000, rounds=3, repeats=3, commits=10)
SHORT = Size(128, 64, (100_000,), 10_000, 100, rounds=2, repeats=1, commits=5)
# Only to see that everything works.
SMOKE = Size(16, 64, (10_000,), 1000, 40, rounds=1, repeats=1, commits=2)


@dataclass(frozen=True)
class Workload:
    """One call of a worker per side and round; sides with equal `place` share a directory."""

    name: str
    worker: str
    place: str
    sides: tuple[Side, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    # The worker that makes the directory, if it is not there; without one, each call begins afresh.
    prepare: str | None = None
    # Whether the page cache is dropped before each call. Such a call gives one sample.
    cold: bool = False
    rounds_min: int = 1
    rounds_max: int = 9


@dataclass(frozen=True)
class Row:
    """One line of the table. Smaller is better; ratios say how many times longer a rival took."""

    key: str
    title: str
    workload: str
    measure: str
    statistic: str = "best"
    ours: str = "ours"
    # Decoded bytes that are moved, for GB/s and the limit; none for a commit.
    size: int = 0
    limit: Limit | None = None
    # How many times longer than we the best rival must take.
    target: float | None = None
    # Rivals that are shown but do not count for the target, and why.
    apart: Mapping[str, str] = field(default_factory=dict)
    # Another row of ours, and the factor by which this one may exceed it.
    against: str | None = None
    against_max: float | None = None


Rows = Callable[[Size], list[Row]]
