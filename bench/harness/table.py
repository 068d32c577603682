"""The table on the terminal."""

from __future__ import annotations

from typing import Any


def seconds(value: float | None) -> str:
    """A time that reads well at any size."""
    if value is None:
        return "–"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1 or unit == "µs":
            return f"{number(value * factor)} {unit}"
    return "–"


def number(value: float | None) -> str:
    """Two or three digits, as many as matter; whole numbers when large."""
    if value is None:
        return "–"
    if value >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def verdict(row: dict[str, Any]) -> str:
    """`must reach 1.9: met`, or nothing if there is no target."""
    if "met" not in row:
        return ""
    word = "met" if row["met"] else "NOT MET"
    if "growth" in row:
        return f"{number(row['growth'])}x of {row['against']}, at most {row['growth-max']}: {word}"
    if "limit-part" in row:
        return f"must reach {row['limit-part']} of the limit: {word}"
    if "fact" in row:
        return f"{fact(row)}, {at_most(row)}: {word}"
    return f"must reach {row['target']}: {word}"


def fact(row: dict[str, Any]) -> str:
    """The fact that a row is about, and how it compares."""
    value = row["fact-value"]
    said = mib(value) if row["fact-unit"] == "bytes" else f"{value:,} {row['fact-unit']}"
    return f"{said}, {number(row['of-best-fact'])} of the best" if "of-best-fact" in row else said


def at_most(row: dict[str, Any]) -> str:
    """The limit for that fact."""
    if "fact-part" in row:
        return f"at most {row['fact-part']} of the best"
    return f"at most {mib(row['fact-max']) if row['fact-unit'] == 'bytes' else row['fact-max']}"


def mib(count: float) -> str:
    """Bytes of memory."""
    return f"{count / 2**20:,.0f} MiB"


def speed(side: dict[str, Any]) -> str:
    """GB per CPU second, or CPU time if no bytes are moved."""
    if side.get("gb-per-cpu-s"):
        return f"{number(side['gb-per-cpu-s'])} GB/CPU-s"
    return f"{seconds(side.get('cpu-seconds'))} CPU"


def show(row: dict[str, Any]) -> None:
    """Prints a row: ours, then every rival, the best first."""
    ours = row["ours"]
    print(f"{row['key']}: {row['title']}")
    if ours["seconds"] is None:
        print(f"    ours FAILED: {ours['cannot']}", flush=True)
        return
    rate = f", {number(ours['gb-per-s'])} GB/s" if row["size"] else ""
    limit = f", {number(row['of-limit'])} of the limit" if "of-limit" in row else ""
    print(f"    ours {seconds(ours['seconds'])}{rate}, {speed(ours)}{limit}")
    if ratio := row.get("ratio"):
        against = f"{number(ratio)}x faster than {row['best-peer']}"
        print("    " + ", ".join(part for part in (against, verdict(row)) if part))
    elif said := verdict(row):
        print(f"    {said}")
    if facts := ours["facts"]:
        print("    " + ", ".join(f"{name} {number(value)}" for name, value in facts.items()))
    peers = sorted(row["peers"].items(), key=lambda peer: peer[1].get("ratio", float("inf")))
    for name, peer in peers:
        if peer["seconds"] is None:
            print(f"      {name:<28} {peer['cannot']}")
        else:
            apart = f"  (apart: {peer['apart']})" if "apart" in peer else ""
            print(f"      {name:<28} {number(peer['ratio']):>6}x  {speed(peer)}{apart}")
    print(end="", flush=True)
