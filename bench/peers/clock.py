"""Wall and CPU time of this process, and the line a worker prints."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, field, replace
from typing import Any


class Cannot(Exception):
    """A rival cannot do a workload; says why in a few words."""


def cpu_seconds() -> float:
    """User and system time of all threads, and of children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@dataclass
class Clock:
    """Both clocks, running until they are stopped."""

    wall: float = field(default_factory=lambda: -time.perf_counter())
    cpu: float = field(default_factory=lambda: -cpu_seconds())
    running: bool = True

    def stop(self) -> None:
        if self.running:
            self.wall += time.perf_counter()
            self.cpu += cpu_seconds()
            self.running = False

    def plus(self, other: Clock) -> Clock:
        """The sum of two stopped clocks."""
        return Clock(self.wall + other.wall, self.cpu + other.cpu, running=False)


@dataclass
class Samples:
    """Samples of one measure, in the order they were taken."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, clock: Clock, count: int = 1) -> None:
        """Adds the time of a clock, as the share of each of `count` operations. It runs on."""
        now = replace(clock)
        now.stop()
        self.wall.append(now.wall / count)
        self.cpu.append(now.cpu / count)


@dataclass
class Answer:
    """The output of a worker: all samples, whether the data was equal, and facts."""

    measures: dict[str, Samples] = field(default_factory=dict)
    equal: bool | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    cannot: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        measures = {name: {"wall": s.wall, "cpu": s.cpu} for name, s in self.measures.items()}
        return {
            "measures": measures,
            "equal": self.equal,
            "facts": self.facts,
            "cannot": self.cannot,
        }
