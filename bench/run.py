"""Runs the workloads, ours and the rivals' in turn, and prints ratios.

    run.py [--full] [--only WORD] [--json FILE]

Each sample is a fresh process; ours and each peer alternate over the rounds; the best of all rounds
counts. Ratios are to the best peer of the row, above 1 is ours faster.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE / ".work"
OURS = HERE / "ours" / "target" / "release" / "chunkyard-bench"
PYTHON = sys.executable
ARRAY_PEERS = ["tensorstore", "zarr+zarrs", "zarr", "icechunk", "blosc2", "h5py"]


def call(command: list[str]) -> dict:
    environment = {**os.environ, "ICECHUNK_LOG": "off", "RUST_LOG": "off"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"error": (done.stderr or done.stdout).strip().splitlines()[-1:]}
    return json.loads(lines[-1])


def ours(workload: str, place: Path, **options) -> dict:
    return call([str(OURS), workload, str(place), *(f"{k}={v}" for k, v in options.items())])


def icechunk(workload: str, place: Path, **options) -> dict:
    script = HERE / "peers" / "commits.py"
    pairs = [f"{k}={v}" for k, v in options.items()]
    return call([PYTHON, str(script), workload, str(place), *pairs])


def array_peer(peer: str, workload: str, repeats: int) -> dict:
    script = HERE / "peers" / "arrays.py"
    command = [PYTHON, str(script), peer, workload, str(WORK / "data"), str(WORK / "arrays")]
    return call([*command, str(repeats)])


def fresh(name: str) -> Path:
    place = WORK / name
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def pick(result: dict, path: str):
    for key in path.split("."):
        result = result.get(key) if isinstance(result, dict) else None
    return result


class Table:
    def __init__(self, only: str | None):
        self.only, self.rows = only, []

    def wants(self, name: str) -> bool:
        return self.only is None or self.only in name

    def row(self, name: str, mine: list[dict], peers: dict[str, list[dict]], path="best"):
        """Best of the rounds per side; smaller is better."""
        best = min((v for r in mine if (v := pick(r, path)) is not None), default=None)
        others = {}
        for peer, results in peers.items():
            values = [v for r in results if (v := pick(r, path)) is not None]
            if values:
                others[peer] = min(values)
        wrong = [r for r in [*mine, *sum(peers.values(), [])] if r.get("equal") is False]
        row = {"name": name, "ours": best, "peers": others, "raw": mine}
        if wrong:
            row["wrong-data"] = True
        if best and others:
            rival = min(others, key=others.get)
            row |= {"best-peer": rival, "ratio": others[rival] / best}
        self.rows.append(row)
        self.show(row)

    def show(self, row: dict):
        if row["ours"] is None:
            print(f"{row['name']:<52} FAILED {row['raw'][-1]}", flush=True)
            return
        ms = f"{row['ours'] * 1e3:10.2f} ms"
        peers = ", ".join(
            f"{peer} {value / row['ours']:.2f}x" for peer, value in sorted(row["peers"].items(), key=lambda p: p[1])
        )
        flag = " WRONG DATA" if row.get("wrong-data") else ""
        print(f"{row['name']:<52} {ms}   {peers}{flag}", flush=True)

    def note(self, text: str):
        print(f"    {text}", flush=True)


def commits(table: Table, full: bool):
    sizes = [100_000, 1_000_000] if full else [100_000]
    for refs in sizes:
        if not table.wants("commit") and not table.wants("open"):
            return
        place, rival, split = fresh(f"ours-{refs}"), fresh(f"ice-{refs}"), fresh(f"split-{refs}")
        ours("prepare-refs", place, refs=refs)
        icechunk("prepare-refs", rival, refs=refs)
        icechunk("prepare-refs", split, refs=refs, split=2000)
        for chunks in (1, 100):
            mine, peers = [], {"icechunk": [], "icechunk split 2000": []}
            for _ in range(3 if full else 2):
                mine.append(ours("commit-one", place, refs=refs, chunks=chunks, repeats=20))
                peers["icechunk"].append(
                    icechunk("commit-one", rival, refs=refs, chunks=chunks, repeats=2)
                )
                peers["icechunk split 2000"].append(
                    icechunk("commit-one", split, refs=refs, chunks=chunks, split=2000)
                )
            table.row(f"commit of {chunks} of {refs} references", mine, peers)
            table.note(f"written besides the chunks: {mine[-1].get('bytes-besides-chunks')} bytes")
        mine, peers = [], {"icechunk": []}
        for _ in range(3):
            mine.append(ours("open-first-chunk", place, refs=refs))
            peers["icechunk"].append(icechunk("open-first-chunk", rival, refs=refs))
        table.row(f"open and read a chunk, {refs} references", mine, peers)
        mine, peers = [], {"icechunk": []}
        for _ in range(2):
            mine.append(ours("commit-bulk", fresh("bulk"), refs=refs))
            peers["icechunk"].append(icechunk("commit-bulk", fresh("bulk-ice"), refs=refs))
        table.row(f"stage and commit {refs} references", mine, peers)
        memory = mine[-1].get("memory-above-idle", 0) / 2**20
        table.note(f"{mine[-1].get('bytes-per-reference'):.2f} B/reference, {memory:.0f} MiB above idle")
    tiny = 100_000 if full else 20_000
    if table.wants("tiny"):
        mine = [ours("write-tiny", fresh("tiny"), chunks=tiny) for _ in range(2)]
        rival = [icechunk("write-tiny", fresh("tiny-ice"), chunks=tiny)]
        table.row(f"write {tiny} tiny chunks of 4 KiB and commit", mine, {"icechunk": rival})
    if table.wants("history"):
        count = 1000 if full else 200
        mine = ours("history", fresh("history"), commits=count)
        table.row(f"history: commit after {count} commits", [mine], {}, "late")
        if mine.get("early"):
            table.note(f"{mine['late'] / mine['early']:.2f}x the latency after 10 commits")


def arrays(table: Table, full: bool):
    rounds, repeats = (3, 3) if full else (1, 2)
    data = WORK / "data"
    if not any(map(table.wants, ("write", "read", "series", "labels"))):
        return
    if (data / "short").exists() == full:
        shutil.rmtree(data, ignore_errors=True)
    if not (data / "labels").exists():
        short = [] if full else ["--short"]
        subprocess.run([PYTHON, HERE / "peers" / "data.py", data, *short], check=True)
    home = fresh("arrays")
    home.mkdir(parents=True)
    for suffix in ("", "-labels"):
        label = "labels uint64 zstd" if suffix else "field float32 zstd+shuffle"
        mine = []
        peers = {peer: [] for peer in ARRAY_PEERS}
        for _ in range(rounds):
            shutil.rmtree(home / "ours", ignore_errors=True)
            mine.append(ours(f"write{suffix}", home / "ours", data=data, repeats=repeats))
            for peer in ARRAY_PEERS:
                peers[peer].append(array_peer(peer, f"write{suffix}", repeats))
        table.row(f"write {label}, returned", mine, peers, "returned.best")
        table.row(f"write {label}, durable", mine, peers, "durable.best")
        kept = mine[-1].get("kept")
        mine, peers = [], {peer: [] for peer in ARRAY_PEERS}
        for _ in range(rounds):
            mine.append(ours(f"read{suffix}", Path(kept), data=data, repeats=repeats))
            for peer in ARRAY_PEERS:
                peers[peer].append(array_peer(peer, f"read{suffix}", repeats))
        table.row(f"read {label}, fresh memory", mine, peers, "fresh.best")
        if suffix:
            continue
        for workload, path in (("read-chunk", "latency.median"), ("read-series", "best")):
            mine, peers = [], {peer: [] for peer in ARRAY_PEERS}
            for _ in range(rounds):
                mine.append(ours(workload, Path(kept)))
                for peer in ARRAY_PEERS:
                    peers[peer].append(array_peer(peer, workload, repeats))
            table.row(f"{workload}: {label}", mine, peers, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all sizes, more rounds")
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--json", help="write the rows here", default=str(WORK / "result.json"))
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    limits = ours("limits", fresh("limits"))
    print("limits of this machine:", json.dumps(limits))
    table = Table(options.only)
    commits(table, options.full)
    arrays(table, options.full)
    Path(options.json).write_text(json.dumps({"limits": limits, "rows": table.rows}, indent=1))
    print(f"rows as JSON: {options.json}")


main()
