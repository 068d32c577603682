"""A repository, two commits, and the values of before. NumPy is all it needs."""

import numpy as np

import chunkyard

repo = chunkyard.Repository.create("weather")

# Other readers see a session's changes after its commit, all of them or none.
session = repo.writable_session("main")
session.create_array("temperature", data=np.full((4, 6), 20.0), chunks=(2, 3))
session.commit("first day")
repo.create_tag("v1")

session = repo.writable_session("main")
session["temperature"][0:2, 0:3] = np.nan
session.commit("mask a broken sensor")

for snapshot in repo.ancestry("main"):
    print(snapshot.message)
print(repo.diff("v1", "main"))

before = repo.readonly_session(tag="v1")["temperature"]
now = repo.readonly_session("main")["temperature"]
print(before[0], now[0])
assert before[0].tolist() == [20.0] * 6
assert np.isnan(now[0]).tolist() == [True] * 3 + [False] * 3
