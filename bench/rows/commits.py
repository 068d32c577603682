"""C1: commits to arrays of many references.

Ours are durable when they return. The rivals' are not: `durable` rows add the time to sync their
files, all others count only what the rivals do by themselves.
"""

from __future__ import annotations

import math

from harness import limits
from harness.worker import Side
from rows.model import Row, Size, Workload
from rows.targets import INDEPENDENT_OF_HISTORY, INDEPENDENT_OF_REFERENCES, TARGETS

OURS = Side("ours", "ours")
ICECHUNK = Side("Icechunk", "icechunk")
SPLIT_2000 = Side("Icechunk, splits of 2,000", "icechunk", {"split": "2000"})
SPLIT_10000 = Side("Icechunk, splits of 10,000", "icechunk", {"split": "10000"})
TILEDB = Side("TileDB", "tiledb")
LANCE = Side("Lance", "lance")
ALL = (OURS, ICECHUNK, SPLIT_2000, SPLIT_10000, TILEDB, LANCE)
# Each begins with a fresh array; splits make no difference there.
PLAIN = (OURS, ICECHUNK, TILEDB, LANCE)


def power(count: int) -> str:
    """10^5 if it is a power of ten, else digits."""
    exponent = round(math.log10(count))
    return f"10^{exponent}" if 10**exponent == count else f"{count:,}"


def workloads(size: Size) -> list[Workload]:
    found = []
    for refs in size.references:
        place = f"references-{refs}"
        for chunks in (1, 100):
            options = {"refs": refs, "chunks": chunks, "repeats": size.commits}
            name = f"commit {chunks} of {refs}"
            found.append(Workload(name, "commit", place, ALL, options, prepare="prepare"))
        open_, warm = "open-chunk", {"refs": refs, "repeats": size.commits}
        found.append(Workload(f"open {refs}", open_, place, ALL, warm, prepare="prepare"))
        name, once = f"open {refs} cold", {"refs": refs, "repeats": 0}
        found.append(
            Workload(name, open_, place, ALL, once, prepare="prepare", cold=True, rounds_min=3)
        )
        found.append(
            Workload(f"bulk {refs}", "bulk", f"bulk-{refs}", PLAIN, {"refs": refs, "repeats": 1})
        )
    found.append(Workload("tiny", "tiny", "tiny", PLAIN, {"chunks": size.tiny_chunks}))
    history = {"commits": size.history_commits, "refs": 10_000}
    found.append(Workload("history", "history", "history", PLAIN, history, rounds_max=1))
    return found


def rows(size: Size) -> list[Row]:
    found = []
    floor, first = limits.replace_durably, power(size.references[0])
    appends = {"Lance": "appends rows of a table, no array"}
    whole = {"TileDB": "writes the chunks themselves"}
    for refs in size.references:
        count = power(refs)
        for chunks, what in ((1, "one chunk"), (100, "100 scattered chunks")):
            key = f"C1 {what}, {count}"
            name, apart = f"commit {chunks} of {refs}", appends if chunks > 1 else {}
            found.append(
                Row(
                    key,
                    f"commit {what} of {count} references, durable",
                    name,
                    "durable",
                    limit=floor,
                    target=TARGETS.get(key),
                    apart=apart,
                )
            )
            found.append(
                Row(
                    f"{key}, returned",
                    "the same, rivals not durable",
                    name,
                    "returned",
                    limit=floor,
                    apart=apart,
                )
            )
        if refs != size.references[0]:
            found.append(
                Row(
                    f"C1 one chunk, {count} against {first}",
                    f"one chunk at {count} references against {first}",
                    f"commit 1 of {refs}",
                    "durable",
                    against=f"C1 one chunk, {first}",
                    against_max=INDEPENDENT_OF_REFERENCES,
                )
            )
        found.append(
            Row(
                f"C1 open, {count}",
                f"open and read one chunk, {count} references",
                f"open {refs}",
                "open",
                target=TARGETS.get(f"C1 open, {count}"),
            )
        )
        found.append(
            Row(f"C1 open cold, {count}", "the same, cold", f"open {refs} cold", "open"),
        )
        found.append(
            Row(
                f"C1 bulk, {count}",
                f"stage and commit {count} references, durable",
                f"bulk {refs}",
                "durable",
                limit=floor,
                target=TARGETS.get(f"C1 bulk, {count}"),
                apart=whole,
            )
        )
    tiny = size.tiny_chunks * 4096
    found.append(
        Row(
            "C1 tiny",
            f"{power(size.tiny_chunks)} chunks of 4 KiB in one commit",
            "tiny",
            "tiny",
            size=tiny,
            limit=limits.write_durably,
        )
    )
    commits = f"{size.history_commits:,}"
    found.append(
        Row(
            "C1 early",
            "commit after 10 commits, median of 20",
            "history",
            "early",
            statistic="median",
            limit=floor,
        )
    )
    found.append(
        Row(
            "C1 late",
            f"commit after {commits} commits, median of 20",
            "history",
            "late",
            statistic="median",
            limit=floor,
            against="C1 early",
            against_max=INDEPENDENT_OF_HISTORY,
        )
    )
    return found
