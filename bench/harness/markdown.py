"""Results as Markdown tables, section by section."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harness.table import at_most, fact, mib, number, seconds
from rows.targets import AGAINST

Document = dict[str, Any]
# Words that keys of rows begin with.
SECTIONS = (
    "plain",
    "shards",
    "convert",
    "memory",
    "containers",
    "superchunks",
    "segmentations",
    "dvid",
    "exports",
    "http",
)


def table(head: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def of_result(document: Document) -> dict[str, str]:
    """Sections of a run: `run`, `limits`, `verdicts`, `commits`, `arrays`, `cpu` and so on."""
    rows: dict[str, list[Document]] = {}
    for row in document["rows"]:
        rows.setdefault(section_of(row["key"]), []).append(row)
    commits = rows.get("commits", [])
    return {
        "run": run(document),
        "limits": limits(document["limits"]),
        "verdicts": verdicts(document["rows"]),
        "commits": ratios(commits),
        "arrays": ratios(rows.get("arrays", [])),
        "plain": ratios(rows.get("plain", [])),
        "shards": ratios(rows.get("shards", [])),
        "convert": ratios(rows.get("convert", [])),
        "memory": memory(rows.get("memory", [])),
        "containers": ratios(rows.get("containers", [])),
        "container-facts": facts(about_facts(rows.get("containers", []))),
        "superchunks": ratios(rows.get("superchunks", [])),
        "superchunk-facts": facts(about_facts(rows.get("superchunks", []))),
        "segmentation-run": run(document) if "segmentations" in rows else "",
        "segmentations": ratios(rows.get("segmentations", []), cell=ratio_with_cpu),
        "segmentation-facts": facts(about_facts(rows.get("segmentations", []))),
        "dvid": ratios(timed(rows.get("dvid", [])), cell=ratio_with_cpu),
        "dvid-facts": facts(about_facts(rows.get("dvid", []))),
        "exports-run": run(document) if "exports" in rows else "",
        "exports": ratios(timed(rows.get("exports", [])), cell=ratio_with_cpu),
        "exports-facts": facts(about_facts(rows.get("exports", []))),
        "http": ratios(rows.get("http", []), cell=ratio_with_cpu),
        "http-facts": facts(about_facts(rows.get("http", []))),
        "cpu": cpu(document["rows"]),
        "facts": facts(commits),
        "cannot": cannot(document["rows"]),
    }


def of_python(document: Document) -> dict[str, str]:
    """Sections of a run with `--python`: each of ours against its rivals, in wall and CPU time."""
    rows: dict[str, list[Document]] = {}
    for row in document["rows"]:
        rows.setdefault(row["key"].split(maxsplit=1)[0], []).append(row)
    # Rows of both ways through a store have the same rivals, and are read side by side.
    store = rows.get("python-store", []) + rows.get("python-pipeline", [])
    return {
        "python-run": run(document),
        "python-verdicts": verdicts(document["rows"]),
        "python": ratios(rows.get("python", []), cell=ratio_with_cpu),
        "python-plain": ratios(rows.get("python-plain", []), cell=ratio_with_cpu),
        "python-store": ratios(store, cell=ratio_with_cpu),
        "python-shards": ratios(rows.get("python-shards", []), cell=ratio_with_cpu),
        "python-cannot": cannot(document["rows"]),
    }


def section_of(key: str) -> str:
    """Where a row is shown, by the first word of its key."""
    word = key.split(maxsplit=1)[0]
    return {"C1": "commits"}.get(word, word if word in SECTIONS else "arrays")


def run(document: Document) -> str:
    machine = document["machine"]
    gib = machine["memory-bytes"] / 2**30
    versions = ", ".join(f"{name} {what}" for name, what in document["versions"].items())
    return (
        f"The {document['size']} run of {document['date']}, `{portable(document['command'])}`: "
        f"{machine['cpus']} CPUs ({machine['model']}), {gib:.0f} GiB, "
        f"Linux {machine['kernel']}, load before the run {machine['load']:.1f}. "
        f"Versions: {versions}."
    )


def portable(command: str) -> str:
    """A command line without the directories of the machine it ran on."""
    command = re.sub(r" --(work|json)[= ]\S+", "", command)
    return re.sub(r"\S*/(?=\w+\.py)", "bench/", command)


def limits(found: Document) -> str:
    lines = []
    for name, limit in found.items():
        if "gb-per-s" in limit:
            lines.append([name, f"{number(limit['gb-per-s'])} GB/s"])
        elif "seconds" in limit:
            lines.append([name, seconds(limit["seconds"])])
    return table(["Limit", "Best"], lines)


def verdicts(rows: list[Document]) -> str:
    """Every row that has a target."""
    lines = []
    for row in rows:
        if "growth" in row:
            reached = f"{number(row['growth'])} of “{row['against']}”"
            must = f"at most {row['growth-max']}"
        elif "limit-part" in row:
            reached = f"{number(row['of-limit'])} of the limit"
            must = f"at least {row['limit-part']}"
        elif row.get("fact-value") is not None and "met" in row:
            reached, must = fact(row), at_most(row)
        elif row["target"] is not None:
            reached = f"{number(row.get('ratio'))} ({row.get('best-peer', 'no rival')})"
            must = f"at least {row['target']}"
        else:
            continue
        lines.append([row["key"], must, reached, verdict(bool(row.get("met")))])
    for row in rows:
        for rival, least in AGAINST.get(row["key"], {}).items():
            found = row["peers"].get(rival, {}).get("ratio")
            must = f"at least {number(least)} times {rival}"
            met = found is not None and found >= least
            lines.append([row["key"], must, number(found), verdict(met)])
    return table(["Row", "Must reach", "Reached", ""], lines)


def verdict(met: bool) -> str:
    return "met" if met else "**not met**"


def ratios(rows: list[Document], cell: Callable[[Document, str], str] | None = None) -> str:
    """Ours in absolute figures, and how many times longer each rival took."""
    cell = cell or ratio
    names = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    lines = []
    for row in rows:
        cells = [row["title"], absolute(row), number(row.get("of-limit"))]
        lines.append([*cells, *(cell(row, name) for name in names)])
    return table(["Workload", "Ours", "Of the limit", *names], lines)


def memory(rows: list[Document]) -> str:
    """Ours alone: peak memory and time."""
    lines = [
        [row["title"], mib(row["fact-value"]), absolute(row)]
        for row in rows
        if row.get("fact-value")
    ]
    return table(["Conversion", "Peak memory", "Time"], lines)


def absolute(row: Document) -> str:
    ours = row["ours"]
    if ours["seconds"] is None:
        return ours["cannot"]
    rate = f", {number(ours['gb-per-s'])} GB/s" if row["size"] else ""
    return seconds(ours["seconds"]) + rate


def ratio(row: Document, name: str) -> str:
    """A ratio; bold if the rival is faster, a dash if it does not take part or cannot."""
    value = row["peers"].get(name, {}).get("ratio")
    if value is None:
        return "–"
    text = number(value) + ("¹" if "apart" in row["peers"][name] else "")
    return f"**{text}**" if value < 1 else text


def ratio_with_cpu(row: Document, name: str) -> str:
    """Wall time, then CPU time."""
    of_cpu = row["peers"].get(name, {}).get("cpu-ratio")
    return ratio(row, name) + (f" / {number(of_cpu)}" if of_cpu is not None else "")


def cpu(rows: list[Document]) -> str:
    """GB per CPU second, or CPU time if no bytes are moved."""
    names = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    lines = []
    for row in rows:
        sides = [row["ours"], *(row["peers"].get(name, {}) for name in names)]
        lines.append([row["key"], *(cpu_cell(side) for side in sides)])
    return table(["Row", "Ours", *names], lines)


def cpu_cell(side: Document) -> str:
    if side.get("gb-per-cpu-s"):
        return f"{number(side['gb-per-cpu-s'])} GB"
    return seconds(side.get("cpu-seconds"))


def facts(rows: list[Document]) -> str:
    """Bytes and memory beside the times."""
    wanted = {
        "bytes-besides-chunks": "bytes written besides the chunks",
        "bytes-per-reference": "bytes per reference on disk",
        "memory-above-idle": "memory above idle, bytes",
        "files": "files",
        "memory-growth": "memory that it keeps, bytes",
        "requests": "requests",
        "memory": "peak memory, bytes",
        "open-files": "open files",
        "stored-bytes": "bytes of the files",
        "load-ms": "milliseconds",
        "bytes-per-row": "bytes of a row in memory",
        "sorted-ns": "nanoseconds of CPU",
    }
    lines = []
    for row in rows:
        if row["key"].endswith("returned"):
            continue
        sides = {"ours": row["ours"], **row["peers"]}
        for fact, title in wanted.items():
            known = {n: side.get("facts", {}).get(fact) for n, side in sides.items()}
            said = [f"{n} {number(v)}" for n, v in known.items() if v is not None]
            if said:
                lines.append([row["key"], title, ", ".join(said)])
    return table(["Row", "What", "Who"], lines)


def timed(rows: list[Document]) -> list[Document]:
    """Rows that are about a time."""
    return [row for row in rows if "fact" not in row]


def about_facts(rows: list[Document]) -> list[Document]:
    """Rows that are about a fact, and only that fact."""

    def only(side: Document, name: str) -> Document:
        return {**side, "facts": {name: side.get("facts", {}).get(name)}}

    return [
        {
            **row,
            "ours": only(row["ours"], row["fact"]),
            "peers": {name: only(side, row["fact"]) for name, side in row["peers"].items()},
        }
        for row in rows
        if "fact" in row
    ]


def cannot(rows: list[Document]) -> str:
    """Why cells are empty, and which rivals are shown but do not count."""
    said: dict[str, None] = {}
    for row in rows:
        for name, peer in row["peers"].items():
            if "cannot" in peer:
                said[f"- {row['key']}: {name}: {peer['cannot']}."] = None
            if "apart" in peer:
                said[
                    f"- ¹ {row['key']}: {name} does not count for the target: {peer['apart']}."
                ] = None
    return "\n".join(said) or "Every rival did every workload."


def of_scale(document: Document) -> dict[str, str]:
    """One table for each kind of scale: a step per line, a size per column."""
    found = {"scale-run": run({"size": "scale", **document})}
    steps = document["steps"]
    for of in dict.fromkeys(step["of"] for step in steps):
        mine = [step for step in steps if step["of"] == of]
        counts = sorted({step["count"] for step in mine})
        by = {(step["step"], step["count"]): step for step in mine}
        lines = [
            [name, *(scale_cell(by.get((name, count), {})) for count in counts)]
            for name in dict.fromkeys(step["step"] for step in mine)
        ]
        found[f"scale-{of}"] = table(["Step", *(f"{count:,}" for count in counts)], lines)
    return found


def scale_cell(step: Document) -> str:
    if "cannot" in step:
        return step["cannot"]
    if not step:
        return "–"
    moved = step.get("read-bytes", 0), step["written-bytes"]
    parts = [seconds(step["seconds"]), f"{seconds(step['cpu-seconds'])} CPU"]
    parts.append(f"{number(step['memory'] / 2**20)} MiB")
    parts += [f"{verb} {size(n)}" for verb, n in zip(("reads", "writes"), moved, strict=True) if n]
    if step.get("reached", step["count"]) < step["count"]:
        parts.append(f"stopped at {step['reached']:,}")
    return ", ".join(parts)


def size(count: int) -> str:
    """A number of bytes, as people read it."""
    for unit, factor in (("B", 1), ("kB", 1e3), ("MB", 1e6)):
        if count < 1000 * factor:
            return f"{number(count / factor) if factor > 1 else count} {unit}"
    return f"{number(count / 1e9)} GB"
