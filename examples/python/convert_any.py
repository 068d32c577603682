"""One dataset through four formats, verified at each step, and linked without a copy at the end."""

import numpy as np

import chunkyard

session = chunkyard.Repository.create("volume").writable_session("main")
labels = np.arange(64, dtype="u4").reshape(4, 4, 4)
session.create_array("labels", data=labels, chunks=(2, 2, 2))
session.commit("labels of a small volume")

# The ending of the target says its format; the source is recognised by its content.
chunkyard.convert("volume", "volume.af", verify=True)
chunkyard.convert("volume.af", "volume.zarr", chunks=(2, 2, 2), shards=(4, 4, 4), verify=True)
chunkyard.convert("volume.zarr", "labels.blz", arrays="labels", verify=True)

for place in ("volume", "volume.af", "volume.zarr", "labels.blz"):
    print(chunkyard.info(place))
    assert chunkyard.verify(place)
assert np.array_equal(chunkyard.open("volume.zarr", "labels")[...], labels)

# References to the chunks of the Zarr files; a reader says which places it allows.
linked = chunkyard.link("volume.zarr", "archive")
archive = chunkyard.open("archive", "labels", allow=linked.allow)
print("linked:", linked.references, "references")
assert archive[1, 2, 3] == labels[1, 2, 3]
