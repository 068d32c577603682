"""Targets: how many times longer than ours the best rival takes, in the same run.

Targets are written only here. Rows on plain Zarr and from Python have the targets of the same
workload. If the aim is an absolute time, the target is the best rival's time divided by it, on the
machine where the aim was set.
"""

from __future__ import annotations

DATA = ("field", "labels")
CODECS = ("none", "lz4", "zstd")
# How many supervoxels meet in a block.
BLOCKS = ("tens", "hundreds", "thousands")
# Rows of exports as volumes, and the edges of the volumes in voxels.
EXPORTED, CPU, EDGES = ("", " of a labelmap"), ("", " cpu"), (256, 512, 1024)

TARGETS: dict[str, float] = {
    "W1 returned": 1.9,  # 1.25 GB/s against 0.67
    "W1 durable": 1.6,  # 0.9 GB/s against 0.55
    "R1 warm": 1.7,  # 3.3 GB/s against 1.98
    "R1 cold": 2.0,  # 2.8 GB/s against 1.42
    "R2 median": 1.49,  # 430 µs against 640
    "R2 p99": 1.86,  # 700 µs against 1,303
    "R2 two clients": 2.1,  # 4,000 reads/s against 1,882
    "R3 codec of our choice": 3.95,  # 20 ms against 79
    "R3 same codec": 1.5,  # of the best rival that decodes whole chunks
    "S1 write": 1.56,  # 3 GB/s against 1.92
    "S1 read": 1.85,  # 4.5 GB/s against 2.43
    "C1 one chunk, 10^5": 1.03,  # 3 ms against 3.1
    "C1 bulk, 10^5": 2.2,  # 40 ms against 89
    "C1 open, 10^5": 1.4,  # 1 ms against 1.4
    "convert copy durable": 0.7,  # of cp -r, durable
    "convert regrid returned": 1.5,  # of TensorStore
    "containers 16 values": 100,
    "containers open chunks": 10,
    "containers open arrays": 10,
    **{f"segmentations decode {name}": 2 for name in BLOCKS},
    **{f"segmentations encode {name}": 2.5 for name in BLOCKS},
    **{f"segmentations transcode {name}": 4 for name in BLOCKS},
    **{f"segmentations half {name}": 3 for name in BLOCKS},
    "segmentations import": 1.5,  # of TensorStore, which writes one scale and no tables
    "dvid cold": 1.5,  # of Badger with as many goroutines as cores
    "dvid labels": 2,
    "exports arrow": 2.5,  # of what DVID does with its libraries
    "exports arrow cpu": 2.5,
    "exports arrow of the codec": 0.8,  # of inflating and compressing alone
    "exports arrow zstd-1": 4,
    "exports arrow zstd-1 cpu": 4,
    "exports arrow kept": 10,
    "exports arrow kept cpu": 10,
    **{f"exports volume{of}{cpu} {edge}": 4 for of in EXPORTED for cpu in CPU for edge in EDGES},
    "exports fleet": 0.6,  # of export-shards, which sends nothing
    "exports work": 1.7,  # of one process
    "random records": 5,  # of the reader of the document, which loads whole tables
    **{f"containers write {data} {codec}": 5 for data in DATA for codec in CODECS},
    **{f"containers read {data} {codec}": 2 for data in DATA for codec in CODECS},
}

# From Python, if no other target is given: ahead of every rival.
PYTHON_TARGET = 1.0

# How near to the limit a row must be.
LIMIT_PARTS: dict[str, float] = {
    "convert transcode returned": 0.9,  # of decoding and encoding alone
}

# The memory that a conversion may take by default, at any size.
MEMORY_MAX = 1 << 30

# The cost of a commit must not grow with the repository: ours against ours.
INDEPENDENT_OF_REFERENCES = 1.25
INDEPENDENT_OF_HISTORY = 1.25

# Reading a container: how near to its codec alone, on two cores.
CODEC_PART = 0.8

# The memory that an open container may keep, as a part of the best rival's.
MEMORY_PART = 0.25

# A chunk under many layers against one under a single one, and ten times as many tiny chunks.
INDEPENDENT_OF_LAYERS = 1.2
LINEAR = 12.0

# Superchunks: how near to their codec alone, on two cores.
SUPERCHUNK_CODEC_PART = 0.9

# A batch that is appended late against an early one.
APPEND_GROWTH = 1.25

# The memory for writing a superchunk dataset of any size, and the most files for 10 GB.
SUPERCHUNK_MEMORY_MAX = 256 << 20
FILES_MAX = 128

# The mapping of a segmentation with 10^7 rows: loaded, kept, and asked by one core.
LOAD_MS_MAX = 500
MAPPING_BYTES_MAX = 20
LOOKUP_NS_MAX = 20

# An edit beside a larger mapping, and a comparison among more bodies that do not differ.
INDEPENDENT_OF_MAPPING = 1.5
INDEPENDENT_OF_BODIES = 1.5

# A store of DVID: an import against reading and parsing alone, and the memory of any of it.
DVID_IMPORT_MAX = 2.0
DVID_MEMORY_MAX = 512 << 20

# An export of any size: its memory, and the files that it has open at once.
EXPORT_MEMORY_MAX = 1 << 30
EXPORT_FILES_MAX = 256

# The shards of a volume, as a part of the best rival's bytes.
EXPORT_SIZE_PART = 1.05

# The time for blocks of many labels must not grow more than their bytes.
AS_BYTES = 1.0

# A chunk of a volume from a labelmap over HTTP: 2,000 a second, by a client on the same two cores.
HTTP_LABELS_US_MAX = 500

# Targets against single rivals. Our commits are durable, the rival's are not.
AGAINST: dict[str, dict[str, float]] = {
    "C1 one chunk, 10^6, returned": {"Icechunk": 400},
    "C1 one chunk, 10^5, returned": {"Icechunk, splits of 2,000": 1},
    "C1 100 scattered chunks, 10^6, returned": {"Icechunk, splits of 10,000": 50},
    "C1 bulk, 10^5": {"Icechunk": 2},
    "C1 bulk, 10^6": {"Icechunk": 2},
    "C1 open cold, 10^6": {"Icechunk": 15},
    "C1 tiny": {"Icechunk": 20},
    "containers 16 values": {"array-format 0.9": 1000},
    "containers change": {"array-format 0.9": 20},
    "containers tiny": {"array-format 0.9": 50},
    **{
        f"superchunks {row} {data} {codec}{durable}": {"blosc2": 1.2, "bcolz": 3, "Bloscpack": 3}
        for row, durable in (("write", ""), ("write", " durable"), ("read", ""))
        for data in ("linspace", "walk", "labels")
        for codec in ("lz4", "zstd")
    },
    **{
        f"superchunks {row} {data} {codec}": {"blosc2": 1, "bcolz": 4}
        for row in ("row", "chunk")
        for data in ("linspace", "walk", "labels")
        for codec in ("lz4", "zstd")
    },
    "http zarr": {"zarr-http-server": 3, "nginx": 0.5},
    "dvid cold": {"files read in order": 0.8},
    "superchunks append at the end": {"bcolz": 5},
    "superchunks append after each batch": {"bcolz": 5},
}
