"""zarr-python's state machines: random work on our store and on a dictionary, compared."""

from __future__ import annotations

from pathlib import Path

import pytest
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


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, ZarrHierarchyStateMachine, Committing])
def test_a_store_does_what_a_dictionary_does(
    machine: type[ZarrStoreStateMachine] | type[ZarrHierarchyStateMachine], tmp_path: Path
) -> None:
    repo = Repository.create(tmp_path / "repo", durable=False)
    start = lambda: machine(repo.writable_session("main").store)  # noqa: E731
    run_state_machine_as_test(start, settings=BOUNDED)
