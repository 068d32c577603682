#!/usr/bin/env python3
"""Fills an empty DVID server for the tests that read from it, and prints what is where as NAME=VALUE.

  fill_dvid.py HOST:PORT

| variable CHUNKYARD_TEST_DVID_… | version |
|---|---|
| ROOT | locked: `seg` is ../labelmap/edits/volume.blocks at four scales; `sparse`, `empty`, `packed` and `notes` as below |
| CHILD | made from ROOT, open, on the branch `work`: two bodies of `seg` merged, one supervoxel cleaved off |
| JOINED | made from ROOT by two branches that both changed block (0, 0, 0) of `contested` |

`sparse` has four blocks far apart, two of them at negative coordinates; `empty` is a labelmap without any; `packed` is one that is
stored with LZ4; `notes` is of another type. MERGED is "to,from" of the merge, CLEAVED is "from,supervoxel,to" of the cleave.
"""
import json, pathlib, struct, sys, urllib.request

address = sys.argv[1]
volume = (pathlib.Path(__file__).parent.parent / "labelmap/edits/volume.blocks").read_bytes()
SPARSE = [(-3, 0, -1), (-1, -2, -3), (2, 1, 0), (90, 3, 17)]


def call(method, path, body=None):
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    request = urllib.request.Request(f"http://{address}/api/{path}", data=body, method=method)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return answer.read()


def post(path, body=b""):
    answer = call("POST", path, body)
    try:
        return json.loads(answer)
    except ValueError:
        return answer


records, at = [], 0
while at < len(volume):
    length = struct.unpack_from("<I", volume, at + 12)[0]
    records.append(volume[at + 16:at + 16 + length])
    at += 16 + length


def record(block, payload):
    return struct.pack("<3iI", *block, len(payload)) + payload


def commit(uuid):
    post(f"node/{uuid}/commit", {"note": "", "log": []})


root = post("repos", {"alias": "test", "description": ""})["root"]
for name, extra in [
    ("seg", {"MaxDownresLevel": "3"}),
    ("sparse", {"MaxDownresLevel": "1"}),
    ("empty", {"MaxDownresLevel": "1"}),
    ("contested", {"MaxDownresLevel": "0"}),
    ("packed", {"MaxDownresLevel": "0", "Compression": "lz4"}),
]:
    post(f"repo/{root}/instance", {"typename": "labelmap", "dataname": name, "BlockSize": "64,64,64", **extra})
post(f"repo/{root}/instance", {"typename": "keyvalue", "dataname": "notes"})

post(f"node/{root}/seg/blocks?downres=true&compression=blocks", volume)
post(f"node/{root}/sparse/blocks?compression=blocks", b"".join(map(record, SPARSE, records)))
commit(root)

child = post(f"node/{root}/branch", {"branch": "work"})["child"]
numbers = call("GET", f"node/{child}/seg/listlabels?sizes=true")
bodies = sorted(struct.iter_unpack("<2Q", numbers), key=lambda body: -body[1])
to, other = bodies[0][0], bodies[1][0]
post(f"node/{child}/seg/merge", [to, other])
post(f"node/{child}/seg/merge", [to, bodies[2][0]])
cleaved = post(f"node/{child}/seg/cleave/{to}", [other])["CleavedLabel"]

sides = [post(f"node/{root}/branch", {"branch": name})["child"] for name in ("left", "right")]
for uuid, payload in zip(sides, records):
    post(f"node/{uuid}/contested/blocks?compression=blocks", record((0, 0, 0), payload))
    commit(uuid)
joined = post(f"repo/{root}/merge", {"mergeType": "conflict-free", "parents": sides, "note": ""})["child"]

for name, value in {
    "ROOT": root,
    "CHILD": child,
    "JOINED": joined,
    "MERGED": f"{to},{bodies[2][0]}",
    "CLEAVED": f"{to},{other},{cleaved}",
}.items():
    print(f"CHUNKYARD_TEST_DVID_{name}={value}")
