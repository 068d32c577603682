"""What a labelmap says about bodies and edits, as plain objects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from chunkyard._ids import Ids

Box = tuple[slice, slice, slice]
"""A box of voxels, as slices along z, y and x."""


@dataclass(frozen=True)
class Body:
    """A body at a version."""

    id: int
    voxels: int
    supervoxels: int
    """How many it has."""
    bounds: Box
    """The smallest box around it; `array[body.bounds]` reads that box."""
    mutation: int
    """The last mutation that changed it; 0 if none did."""

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Body:
        box = document["bounds"]
        z, y, x = map(slice, box["start"], box["end"])
        return cls(
            id=document["body"],
            voxels=document["voxels"],
            supervoxels=document["supervoxels"],
            bounds=(z, y, x),
            mutation=document["mutation"],
        )


@dataclass(frozen=True)
class Mutation:
    """A row of the log: one edit."""

    id: int
    """Unique in all branches; later ones are greater."""
    kind: str
    """`merge`, `cleave`, `split-supervoxel`, `split-body`, `renumber`, `map` or `revert`."""
    body: int
    """The body that was edited: the one that stays, or is left. 0 if there is none."""
    other: int
    """The body or supervoxel that came of it, or the mutation that was undone. 0 if there is none."""
    bodies: tuple[int, ...]
    """All bodies that it touched."""
    supervoxels: tuple[int, ...]
    """All supervoxels that it touched."""
    time: datetime
    user: str
    note: str

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Mutation:
        return cls(
            id=document["mutation"],
            kind=document["kind"],
            body=document["body"],
            other=document["other"],
            bodies=tuple(document["bodies"]),
            supervoxels=tuple(document["supervoxels"]),
            time=datetime.fromtimestamp(document["time_ms"] / 1000, timezone.utc),
            user=document["user"],
            note=document["note"],
        )


@dataclass(frozen=True)
class Decision:
    """A mutation that decided where a supervoxel belongs."""

    mutation: Mutation
    before: int
    """The body it belonged to; 0 if the mutation made it."""
    after: int
    """The body it belongs to since; 0 if the mutation retired it."""


@dataclass(frozen=True)
class BodyChange:
    """A body that differs between two versions."""

    body: int
    """Its id; of a renamed body the id in the second version."""
    voxels_before: int
    voxels_after: int
    mutation: int
    """The last mutation that changed it; 0 if it is gone."""
    was: int | None = None
    """The id in the first version, if the body was renamed."""

    @classmethod
    def _of(cls, document: dict[str, Any]) -> BodyChange:
        return cls(
            body=document["body"],
            voxels_before=document["voxels-before"],
            voxels_after=document["voxels-after"],
            mutation=document["mutation"],
            was=document.get("was"),
        )


@dataclass(frozen=True, eq=False)
class LabelDiff:
    """What differs between two versions of a labelmap. An empty one is false."""

    appeared: tuple[BodyChange, ...]
    """Bodies only in the second version."""
    vanished: tuple[BodyChange, ...]
    """Bodies only in the first version."""
    grown: tuple[BodyChange, ...]
    """Bodies with more voxels in the second version."""
    shrunk: tuple[BodyChange, ...]
    """Bodies with fewer voxels in the second version."""
    changed: tuple[BodyChange, ...]
    """Bodies of the same size that were edited."""
    renamed: tuple[BodyChange, ...]
    """Bodies with another id."""
    blocks: Ids
    """Body, z, y and x of each block in which a body differs, one in a row."""
    mutations: tuple[Mutation, ...]
    """Mutations that are in the second version and not in the first, oldest first."""

    def __bool__(self) -> bool:
        changes = (self.appeared, self.vanished, self.grown, self.shrunk, self.changed, self.renamed)
        return any(changes) or bool(self.mutations) or len(self.blocks) > 0

    @classmethod
    def _of(cls, document: dict[str, Any], blocks: Ids) -> LabelDiff:
        def changes(key: str) -> tuple[BodyChange, ...]:
            return tuple(map(BodyChange._of, document[key]))

        return cls(
            appeared=changes("appeared"),
            vanished=changes("vanished"),
            grown=changes("grown"),
            shrunk=changes("shrunk"),
            changed=changes("changed"),
            renamed=changes("renamed"),
            blocks=blocks,
            mutations=tuple(map(Mutation._of, document["mutations"])),
        )


@dataclass(frozen=True)
class Merged:
    """What a merge of two branches did."""

    snapshot: str | None
    """The commit; `None` if there was nothing to merge."""
    taken: tuple[int, ...]
    """Mutations that came over."""
    left_out: tuple[int, ...]
    """Mutations of theirs that were left out."""
    given_up: tuple[int, ...]
    """Mutations of ours that were given up."""
    bodies: tuple[int, ...]
    """Bodies that changed."""

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Merged:
        return cls(
            snapshot=document["snapshot"],
            taken=tuple(document["taken"]),
            left_out=tuple(document["left-out"]),
            given_up=tuple(document["given-up"]),
            bodies=tuple(document["bodies"]),
        )


@dataclass(frozen=True)
class Verified:
    """What a verification of a labelmap found. It is true if all tables agree with the voxels."""

    blocks: int
    bodies: int
    supervoxels: int
    problems: tuple[str, ...]
    """What does not agree, the first hundred."""
    problem_count: int

    def __bool__(self) -> bool:
        return self.problem_count == 0

    @classmethod
    def _of(cls, document: dict[str, Any]) -> Verified:
        return cls(
            blocks=document["blocks"],
            bodies=document["bodies"],
            supervoxels=document["supervoxels"],
            problems=tuple(document["problems"]),
            problem_count=document["problem-count"],
        )
