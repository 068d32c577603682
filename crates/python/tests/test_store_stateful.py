"""zarr-python's state machines: random work on our store and on a dictionary, compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.strategies import node_names, np_array_and_chunks

from chunkyard import Repository
from chunkyard.zarr import Store

BOUNDED = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    # Shrinking takes minutes; to use it, delete this line.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def is_comparable(array_and_chunks: Any) -> bool:
    """Whether zarr-python and our store agree on what may be drawn.

    Zarr v3 has no empty chunks: the store refuses their document. zarr-python takes any two complex
    numbers with a NaN for equal, and drops a chunk that equals a fill value only so; ours keeps it.
    """
    array, chunks = array_and_chunks
    return 0 not in chunks and not (np.iscomplexobj(array) and bool(np.isnan(array).any()))


class Hierarchy(ZarrHierarchyStateMachine):
    """Draws only arrays on which both agree."""

    @rule(
        data=st.data(),
        name=node_names,
        array_and_chunks=np_array_and_chunks().filter(is_comparable),
    )
    def add_array(self, data: Any, name: str, array_and_chunks: Any) -> None:
        super().add_array(data, name, array_and_chunks)


class Committing(Hierarchy):
    """Also commits, and continues in a session that has read everything back."""

    store: Store

    @rule()
    def commit(self) -> None:
        session = self.store.session
        session.commit("so far", allow_empty=True)
        repo = Repository.open(session.repository.url, durable=False)
        self.store = repo.writable_session("main").store


pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")

Machine = type[ZarrStoreStateMachine] | type[ZarrHierarchyStateMachine]


def run(machine: Machine, directory: Path) -> None:
    repo = Repository.create(directory / "repo", durable=False)
    run_state_machine_as_test(
        lambda: machine(repo.writable_session("main").store), settings=BOUNDED
    )


@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, Hierarchy, Committing])
def test_a_store_behaves_like_a_dictionary(machine: Machine, tmp_path: Path) -> None:
    run(machine, tmp_path)


def test_a_store_behaves_like_a_dictionary_through_our_pipeline(tmp_path: Path) -> None:
    with zarr.config.set({"codec_pipeline.path": "chunkyard.zarr.CodecPipeline"}):
        run(Committing, tmp_path)
