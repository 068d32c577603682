"""The table of the page: a dozen rows of the annex, each against the best rival and the limit."""

from __future__ import annotations

from typing import NamedTuple


class Chosen(NamedTuple):
    """A row of the annex that the page shows."""

    section: str
    # The row there; equal titles are told apart by their number.
    title: str
    number: int
    # What the page calls it.
    shown: str


CHOSEN = (
    Chosen(
        "commits",
        "commit one chunk of 10^5 references, durable",
        0,
        "repository: commit one chunk of 10^5, durable",
    ),
    Chosen(
        "commits",
        "open and read one chunk, 10^5 references",
        0,
        "repository: open, read one chunk of 10^5",
    ),
    Chosen(
        "commits",
        "stage and commit 10^6 references, durable",
        0,
        "repository: commit 10^6 references, durable",
    ),
    Chosen(
        "commits",
        "10^5 chunks of 4 KiB in one commit",
        0,
        "repository: 10^5 chunks of 4 KiB in one commit",
    ),
    Chosen("arrays", "the same, durable", 0, "repository: write 1 GiB float32, durable"),
    Chosen("arrays", "read it all, warm, fresh memory", 0, "repository: read 1 GiB float32, warm"),
    Chosen(
        "arrays",
        "random chunk of 1 MiB into a reused buffer, median",
        0,
        "repository: a random chunk of 1 MiB, median",
    ),
    Chosen("plain", "the same, durable", 0, "plain Zarr: write 1 GiB float32, durable"),
    Chosen("plain", "read it all, warm", 0, "plain Zarr: read 1 GiB float32, warm"),
    Chosen(
        "convert",
        "1 GiB float32, plain Zarr, zstd-3 to lz4-5, both with shuffle, returned",
        0,
        "convert: 1 GiB, zstd to lz4",
    ),
    Chosen(
        "convert",
        "512 × 512 × 512 uint64, zstd-3, 64³ to 128 × 128 × 32, returned",
        0,
        "convert: 1 GiB of labels to other chunks",
    ),
    Chosen(
        "containers",
        "open, one changed chunk of 1 MiB of 64, flush",
        0,
        "container: open, change one chunk, flush",
    ),
    Chosen(
        "containers",
        "write 10,000 chunks of 64 bytes",
        0,
        "container: write 10,000 chunks of 64 bytes",
    ),
    Chosen("superchunks", "read it all, warm", 2, "superchunk: read a 1 GiB random walk, lz4"),
    Chosen(
        "superchunks",
        "append 1,000,000 rows in batches of 1,000, durable after each batch",
        0,
        "superchunk: append 1,000 batches, each durable",
    ),
)


def inside(document: str, name: str) -> str:
    """The present text of a section."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    return document.partition(begin)[2].partition(end)[0].strip()


def cells(line: str) -> list[str]:
    """The cells of one line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def wall(cell: str) -> str:
    """Of wall time and CPU time the first."""
    return cell.partition(" / ")[0]


def ratio(cell: str) -> float | None:
    """The figure of a cell; none for a rival that could not, or that does not count (¹)."""
    figure = wall(cell).replace("*", "")
    return None if figure == "–" or figure.endswith("¹") else float(figure)


def row(annex: str, chosen: Chosen) -> list[str]:
    """One row of the page: title, ours, ours / best rival, ours / limit."""
    lines = inside(annex, chosen.section).splitlines()
    head = cells(lines[0])
    same = [line for line in lines[2:] if cells(line)[0] == chosen.title]
    if len(same) <= chosen.number:
        raise SystemExit(
            f"the annex has no row {chosen.title!r}, number {chosen.number}, in {chosen.section!r}"
        )
    _, ours, limit, *rivals = cells(same[chosen.number])
    counted = [
        (found, f"{wall(cell)} ({name})")
        for name, cell in zip(head[3:], rivals, strict=True)
        if (found := ratio(cell)) is not None
    ]
    return [chosen.shown, ours, min(counted)[1], limit]


def summary(annex: str) -> str:
    """The table of the page."""
    rows = [
        ["Workload", "Ours", "Best rival", "Of the limit"],
        ["---"] * 4,
        *(row(annex, chosen) for chosen in CHOSEN),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in rows)
