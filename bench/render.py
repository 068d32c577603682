"""Writes what `run.py` and `scale.py` found into a document: no number is typed by hand.

    render.py DOCUMENT [--result FILE] [--scale FILE]

What stands between `<!-- begin NAME -->` and `<!-- end NAME -->` is replaced, the rest is left
alone.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from harness import markdown


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=Path)
    parser.add_argument("--result", type=Path, help="what run.py wrote")
    parser.add_argument("--scale", type=Path, help="what scale.py wrote")
    return parser.parse_args()


def replace(document: str, name: str, text: str) -> str:
    """The document with a new section; a document without the section is an error."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(document):
        raise SystemExit(f"the document has no section {name!r}")
    return pattern.sub(lambda _: f"{begin}\n{text.rstrip()}\n{end}", document)


def main() -> None:
    options = arguments()
    document = options.document.read_text()
    sections: dict[str, str] = {}
    if options.result:
        sections |= markdown.of_result(load(options.result))
    if options.scale:
        sections |= markdown.of_scale(load(options.scale))
    for name, text in sections.items():
        document = replace(document, name, text)
    options.document.write_text(document)


def load(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


if __name__ == "__main__":
    main()
