"""From records to the results of rows: ratios to the best rival, to the limit, and the target."""

from __future__ import annotations

from typing import Any

from harness.limits import Limits
from harness.samples import Record
from rows.model import Row

Records = dict[str, dict[str, Record]]


def result(row: Row, records: Records, limits: Limits, earlier: dict[str, Any]) -> dict[str, Any]:
    """One row. `earlier` holds the results of rows before it, by key."""
    sides = records[row.workload]
    ours = of_side(row, sides[row.ours])
    shown = [name for name in sides if name in row.rivals or not (row.rivals or is_ours(name))]
    peers = {name: of_side(row, sides[name]) for name in shown}
    for name, reason in row.apart.items():
        if name in peers:
            peers[name]["apart"] = reason
    found: dict[str, Any] = {
        "key": row.key,
        "title": row.title,
        "workload": row.workload,
        "measure": row.measure,
        "statistic": row.statistic,
        "size": row.size,
        "target": row.target,
        "ours": ours,
        "peers": peers,
    }
    if row.fact is not None:
        found |= {
            "fact": row.fact,
            "fact-unit": row.fact_unit,
            "fact-max": row.fact_max,
            "fact-value": ours.get("facts", {}).get(row.fact),
        }
    if ours["seconds"] is not None:
        compare(found, row, limits, earlier)
    return found


def is_ours(side: str) -> bool:
    return side.startswith("ours")


def of_side(row: Row, record: Record) -> dict[str, Any]:
    measure = record.measures.get(row.measure)
    seconds = measure.value(row.statistic) if measure else None
    if measure is None or seconds is None or record.wrong_data:
        reason = "wrong data" if record.wrong_data else record.reason(row.measure)
        return {"seconds": None, "cannot": reason}
    cpu = measure.cpu_value()
    if row.by_cpu:
        if cpu is None:
            return {"seconds": None, "cannot": "no CPU time"}
        seconds = cpu
    found: dict[str, Any] = {"seconds": seconds, "cpu-seconds": cpu, "samples": len(measure.wall)}
    if row.size:
        found["gb-per-s"] = row.size / seconds / 1e9
        found["gb-per-cpu-s"] = row.size / cpu / 1e9 if cpu else None
    return {**found, "facts": record.facts}


def compare(found: dict[str, Any], row: Row, limits: Limits, earlier: dict[str, Any]) -> None:
    """Adds ratios. Above 1 the rival takes longer than we do."""
    seconds, cpu = found["ours"]["seconds"], found["ours"]["cpu-seconds"]
    for peer in found["peers"].values():
        if peer["seconds"] is not None:
            peer["ratio"] = peer["seconds"] / seconds
            peer["cpu-ratio"] = peer["cpu-seconds"] / cpu if cpu else None
    counted = {
        name: peer["ratio"]
        for name, peer in found["peers"].items()
        if "ratio" in peer and "apart" not in peer
    }
    if counted:
        best = min(counted, key=lambda name: counted[name])
        found |= {"best-peer": best, "ratio": counted[best]}
        if row.target is not None:
            found["met"] = counted[best] >= row.target
    if row.limit is not None:
        least = row.limit(limits, row.size)
        found |= {"limit-seconds": least, "of-limit": least / seconds}
        if row.limit_part is not None:
            found |= {"limit-part": row.limit_part, "met": least / seconds >= row.limit_part}
    before = earlier.get(row.against or "", {}).get("ours", {}).get("seconds")
    if row.against_max is not None and before:
        growth = seconds / before
        found |= {"against": row.against, "growth": growth, "growth-max": row.against_max}
        found["met"] = growth <= row.against_max
    if row.fact is not None and found["fact-value"] is not None:
        compare_facts(found, row)


def compare_facts(found: dict[str, Any], row: Row) -> None:
    """Adds whether a fact is as small as it must be."""
    if row.fact_max is not None:
        found["met"] = found["fact-value"] <= row.fact_max
    theirs = [peer.get("facts", {}).get(row.fact) for peer in found["peers"].values()]
    known = [value for value in theirs if value]
    if row.fact_part is not None and known:
        part = found["fact-value"] / min(known)
        found |= {"fact-part": row.fact_part, "of-best-fact": part, "met": part <= row.fact_part}
