"""zarr-python's state machines: random work on our store and on a dictionary, compared."""

from __future__ import annotations

from pathlib import Path

import pytest
import zarr
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import rule, run_state_machine_as_test
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine

from chunkyard import InvalidError, Repository
from chunkyard.zarr import Store

BOUNDED = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    # Shrinking takes minutes; whoever needs it leaves this line out.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Committing(ZarrHierarchyStateMachine):
    """Also commits, and goes on in a session that has read everything back."""

    store: Store

    @rule()
    def commit(self) -> None:
        session = self.store.session
        try:
            session.commit("so far", allow_empty=True)
        except InvalidError as error:
            # zarr-python gives an array without elements chunks without extent, which Zarr v3 does
            # not have. Such a document waits, and the commit says so.
            assert "contains a zero" in str(error)
            return
        repo = Repository.open(session.repository.url, durable=False)
        self.store = repo.writable_session("main").store


pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")

Machine = type[ZarrStoreStateMachine] | type[ZarrHierarchyStateMachine]


def run(machine: Machine, directory: Path) -> None:
    repo = Repository.create(directory / "repo", durable=False)
    run_state_machine_as_test(
        lambda: machine(repo.writable_session("main").store), settings=BOUNDED
    )


@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, ZarrHierarchyStateMachine, Committing])
def test_a_store_does_what_a_dictionary_does(machine: Machine, tmp_path: Path) -> None:
    run(machine, tmp_path)


def test_so_it_does_through_our_pipeline(tmp_path: Path) -> None:
    with zarr.config.set({"codec_pipeline.path": "chunkyard.zarr.CodecPipeline"}):
        run(Committing, tmp_path)
