"""Writes the results of `run.py` and `scale.py` into the documents: no number is typed by hand.

    render.py [--result FILE] [--python FILE] [--scale FILE] [--sections NAME …]

All tables go to `docs/benchmarks-annex.md`; the one table of `docs/benchmarks.md` is then made of
rows of the annex. The text between `<!-- begin NAME -->` and `<!-- end NAME -->` is replaced, the
rest stays. With `--sections` only those sections of the annex are replaced, for a run of some
rows; in the table of verdicts, rows that the run does not have stay.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from harness import markdown
from harness.summary import inside, summary
from harness.worker import BENCH

DOCS = BENCH.parent / "docs"
PAGE = DOCS / "benchmarks.md"
ANNEX = DOCS / "benchmarks-annex.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--result", type=Path, help="what run.py wrote")
    parser.add_argument("--python", type=Path, help="what run.py --python wrote")
    parser.add_argument("--scale", type=Path, help="what scale.py wrote")
    parser.add_argument("--sections", nargs="+", help="replace only these")
    return parser.parse_args()


def replace(document: str, name: str, text: str) -> str:
    """The document with a new section; a document without the section is an error."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(document):
        raise SystemExit(f"the document has no section {name!r}")
    return pattern.sub(lambda _: f"{begin}\n{text.rstrip()}\n{end}", document)


def merge_rows(old: str, new: str) -> str:
    """A table with the rows of another one, which replace rows with the same beginning."""
    rows = numbered(new)
    kept = [rows.pop(key, line) for key, line in numbered(old).items()]
    return "\n".join([*kept, *rows.values()])


def numbered(table: str) -> dict[tuple[str, int], str]:
    """Lines of a table by their beginning; a number tells equal beginnings apart."""
    found: dict[tuple[str, int], str] = {}
    for line in table.splitlines():
        name = line.split("|")[1].strip()
        found[name, sum(other == name for other, _ in found)] = line
    return found


def main() -> None:
    options = arguments()
    annex = ANNEX.read_text()
    sections: dict[str, str] = {}
    if options.result:
        sections |= markdown.of_result(load(options.result))
    if options.python:
        sections |= markdown.of_python(load(options.python))
    if options.scale:
        sections |= markdown.of_scale(load(options.scale))
    for name, text in sections.items():
        if options.sections and name not in options.sections:
            continue
        if options.sections and name.endswith("verdicts"):
            annex = replace(annex, name, merge_rows(inside(annex, name), text))
        else:
            annex = replace(annex, name, text)
    ANNEX.write_text(annex)
    PAGE.write_text(replace(PAGE.read_text(), "summary", summary(annex)))


def load(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


if __name__ == "__main__":
    main()
