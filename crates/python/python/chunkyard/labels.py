"""Segmentations under version control: supervoxels, bodies, edits, and their history.

`Labelmap` is a segmentation in a session. `diff` compares two versions body by body, and `merge` brings
two branches of edits together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from chunkyard import _engine
from chunkyard._ids import id_of, numbers
from chunkyard._label_reports import (
    Body,
    BodyChange,
    Box,
    Decision,
    LabelDiff,
    Merged,
    Mutation,
    Verified,
)
from chunkyard._labels import TABLES, Labelmap
from chunkyard._repository import Repository

__all__ = [
    "TABLES",
    "Body",
    "BodyChange",
    "Box",
    "Decision",
    "LabelDiff",
    "Labelmap",
    "Merged",
    "Mutation",
    "Verified",
    "diff",
    "merge",
]


def diff(repo: Repository, before: str, after: str, path: str) -> LabelDiff:
    """The difference between two versions of a labelmap, each a branch, a tag or a snapshot. The cost
    follows what differs, not the size of the segmentation."""
    document, blocks = _engine.diff_labels(
        repo._native, ("named", before), ("named", after), path
    )
    return LabelDiff._of(document, numbers(blocks, 4))


def merge(
    repo: Repository,
    branch: str,
    theirs: str,
    path: str,
    *,
    ours: Iterable[int] = (),
    theirs_bodies: Iterable[int] = (),
    others: Literal["ours", "theirs"] | None = None,
    user: str = "",
    note: str = "",
) -> Merged:
    """Brings the edits of a version, `theirs`, into a branch, as one commit.

    Edits that touch common bodies belong together. If both sides edited the same bodies, it raises a
    `ConflictError` that names them, unless the caller says whose edits stay: the branch's for the bodies
    in `ours`, the version's for those in `theirs_bodies`, and `others` for all that neither lists.
    """
    sides = {id_of(body): "ours" for body in ours}
    for body in map(id_of, theirs_bodies):
        if sides.setdefault(body, "theirs") == "ours":
            raise ValueError(f"body {body} is in ours and in theirs_bodies")
    merged = _engine.merge_labels(
        repo._native, branch, ("named", theirs), path, sides, others, (user, note)
    )
    return Merged._of(merged)
