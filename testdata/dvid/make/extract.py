#!/usr/bin/env python3
"""Keeps the mutation logs of a run of drive_dvid.py, with the mapping that DVID answered at each version.

  extract.py RUN NAME        RUN is the --out of drive_dvid.py; writes ../mutlog/NAME/

`versions.json` lists the versions, parents first: label, file of the log (absent if nothing was logged), parent, and the mapping
as pairs [supervoxel, body].
"""
import json, pathlib, shutil, sys

run, name = pathlib.Path(sys.argv[1]), sys.argv[2]
target = pathlib.Path(__file__).parent.parent / "mutlog" / name
shutil.rmtree(target, ignore_errors=True)
target.mkdir(parents=True)

info = json.loads((run / "repos_info.json").read_text())
nodes = next(iter(info.values()))["DAG"]["Nodes"]
uuid_of = {node["VersionID"]: uuid for uuid, node in nodes.items()}
versions = []
for answers in (run / "answers").iterdir():
    version = json.loads((answers / "version.json").read_text()) if (answers / "version.json").exists() else None
    if version is None or version["data"] != "seg" or not (answers / "mappings.txt").exists():
        continue
    pairs = sorted([int(number) for number in line.split()] for line in (answers / "mappings.txt").read_text().splitlines())
    node = nodes[version["uuid"]]
    parents = [uuid_of[parent] for parent in node["Parents"]]
    versions.append((node["VersionID"], version, parents[0] if parents else None, pairs))

listed = []
for _, version, parent, pairs in sorted(versions, key=lambda found: found[0]):
    logs = list((run / "data" / "mutlog").glob(f"*-{version['uuid']}"))
    if logs:
        shutil.copyfile(logs[0], target / version["label"])
    listed.append({"label": version["label"], "uuid": version["uuid"], "parent": parent,
                   "log": version["label"] if logs else None, "mapping": pairs})
(target / "versions.json").write_text(json.dumps(listed, indent=0) + "\n")
print(name, len(listed), "versions")
