"""docs/benchmarks.md shows figures of its annex, and no others."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from harness.summary import Chosen, inside, ratio, row, summary  # noqa: E402


def test_the_table_of_the_page_is_made_of_rows_of_the_annex():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    annex = (ROOT / "docs" / "benchmarks-annex.md").read_text()
    assert inside(page, "summary") == summary(annex)


ANNEX = """<!-- begin reads -->
| Workload | Ours | Of the limit | one | two | three |
| --- | --- | --- | --- | --- | --- |
| read | 1 ms | 0.5 | 3.00 | **0.90** | 0.10¹ |
| read | 2 ms | – | 1.50 | – | 2.00 |
<!-- end reads -->
"""


def test_the_best_rival_is_the_fastest_that_counts():
    first = row(ANNEX, Chosen("reads", "read", 0, "a read"))
    assert first == ["a read", "1 ms", "**0.90** (two)", "0.5"]
    second = row(ANNEX, Chosen("reads", "read", 1, "another"))
    assert second == ["another", "2 ms", "1.50 (one)", "–"]
    assert ratio("0.10¹") is None
    assert ratio("**0.80** / 1.20") == 0.8


def test_a_row_that_the_annex_lacks_is_an_error():
    with pytest.raises(SystemExit, match="no row 'read', number 2, in 'reads'"):
        row(ANNEX, Chosen("reads", "read", 2, "a third"))
