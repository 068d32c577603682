"""Samples of one side of one workload, over all rounds, and their statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Measure:
    """All samples of one measure, in the order they were taken."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, wall: list[float], cpu: list[float]) -> None:
        self.wall += wall
        self.cpu += cpu

    def value(self, statistic: str) -> float | None:
        """`best`, `median` or `p99` of the wall time, in seconds."""
        return quantile(self.wall, {"best": 0.0, "median": 0.5, "p99": 0.99}[statistic])

    def cpu_value(self) -> float | None:
        """The least CPU time, in seconds."""
        return min(self.cpu, default=None)


def quantile(values: list[float], part: float) -> float | None:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else None


@dataclass
class Record:
    """The answers of one side in all rounds of one workload."""

    measures: dict[str, Measure] = field(default_factory=dict)
    cannot: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    wrong_data: bool = False

    def add(self, answer: dict[str, Any]) -> None:
        if "failed" in answer:
            self.cannot.setdefault("*", f"failed: {answer['failed']}")
            return
        for name, samples in answer["measures"].items():
            self.measures.setdefault(name, Measure()).add(samples["wall"], samples["cpu"])
        self.cannot.update(answer.get("cannot", {}))
        self.facts.update(answer["facts"])
        self.wrong_data = self.wrong_data or answer["equal"] is False

    def reason(self, measure: str) -> str:
        """Why there is no such measure."""
        return self.cannot.get(measure) or self.cannot.get("*") or "not measured"
