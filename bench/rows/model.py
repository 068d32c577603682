"""A workload is run; a row reports about it."""

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
    # Rounds of the many workloads on plain Zarr.
    plain_rounds: int
    # How many fields the volume of the memory rows is.
    volume_fields: int

    @property
    def field_bytes(self) -> int:
        return self.field_planes << 20

    @property
    def labels_bytes(self) -> int:
        return self.labels_planes << 21


FULL = Size(
    field_planes=1024,
    labels_planes=512,
    references=(100_000, 1_000_000),
    tiny_chunks=100_000,
    history_commits=1000,
    rounds=3,
    repeats=3,
    commits=10,
    plain_rounds=3,
    volume_fields=8,
)
SHORT = Size(
    field_planes=128,
    labels_planes=64,
    references=(100_000,),
    tiny_chunks=10_000,
    history_commits=100,
    rounds=2,
    repeats=1,
    commits=5,
    plain_rounds=1,
    volume_fields=8,
)
# Only to see that everything works.
SMOKE = Size(
    field_planes=16,
    labels_planes=64,
    references=(10_000,),
    tiny_chunks=1000,
    history_commits=40,
    rounds=1,
    repeats=1,
    commits=2,
    plain_rounds=1,
    volume_fields=4,
)


@dataclass(frozen=True)
class Source:
    """A directory that all sides of a workload read, made once by one of them."""

    place: str
    side: Side
    worker: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Workload:
    """One call of a worker per side and round; sides with equal `place` share a directory."""

    name: str
    worker: str
    place: str
    sides: tuple[Side, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    # The worker that makes the directory, if it is missing; without one, each call begins afresh.
    prepare: str | None = None
    # Its further options.
    prepare_options: Mapping[str, Any] = field(default_factory=dict)
    # The `source` of all sides.
    source: Source | None = None
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
    # Whether CPU time counts instead of wall time: the least of all samples.
    by_cpu: bool = False
    ours: str = "ours"
    # Decoded bytes that are moved, for GB/s and the limit; none for a commit.
    size: int = 0
    limit: Limit | None = None
    # How many times longer than ours the best rival must take.
    target: float | None = None
    # How near to the limit we must be: 1 is the limit itself.
    limit_part: float | None = None
    # A fact of ours that the row is about, and its limit: absolute, or as a part of the best
    # rival's value.
    fact: str | None = None
    fact_unit: str = "bytes"
    fact_max: int | None = None
    fact_part: float | None = None
    # The rivals that are shown; all of the workload, if none are named.
    rivals: tuple[str, ...] = ()
    # Rivals that are shown but do not count for the target, and why.
    apart: Mapping[str, str] = field(default_factory=dict)
    # Another row of ours, and the factor by which this one may exceed it.
    against: str | None = None
    against_max: float | None = None


Rows = Callable[[Size], list[Row]]
