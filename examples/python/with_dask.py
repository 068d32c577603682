"""Dask writes an array block by block, one commit makes it visible, and Dask reads it again."""

import dask.array as da
import numpy as np

import chunkyard
from chunkyard.dask import from_array, to_repo

repo = chunkyard.Repository.create("field")
session = repo.writable_session("main")

# Each block is written by a task, through a fork of the session: by threads here, by a cluster elsewhere.
field = da.arange(10_000, chunks=1_000, dtype="f8").reshape(100, 100).rechunk((25, 50))
to_repo(field, session, "field", chunks=(25, 25))
assert "field" not in repo.readonly_session("main").root
session.commit("written by eight tasks")

stored = from_array(repo.readonly_session("main")["field"])
mean = float(stored.mean().compute())
print(stored, "mean", mean)
assert mean == np.arange(10_000).mean()
