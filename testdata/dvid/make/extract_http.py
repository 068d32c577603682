#!/usr/bin/env python3
"""Keeps what DVID answered over HTTP about one version, as the tests of the HTTP source replay it.

  extract_http.py RUN NAME VERSION SCALES        RUN is the --out of drive_dvid.py; writes ../http/NAME/

  extract_http.py /tmp/run basic root 0,1,2
  extract_http.py /tmp/run edits v2 1,2,3
  extract_http.py /tmp/run offset-live root 0

`blocks_s<N>.bin` is the answer to `blocks` with supervoxels, `mappings.bin`, `mappings.txt`, `info.json` and `repos_info.json` are as
DVID sent them. `indices.bin` is the answer to `indices-compressed` for all labels of `listlabels.json`, and one label that does not
exist. `listlabels.json` has [label, voxels] for each body; `hashes.json` has, for each scale and block, the first 32 hex digits of the
sha256 of its supervoxels and of its bodies. `questions.json` has points with the labels there, some supervoxels with their bodies (all that
are mapped, and each twentieth), and the greatest label.
"""
import json, pathlib, shutil, sys

run, name, version, scales = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
answers = run / "answers" / version
target = pathlib.Path(__file__).parent.parent / "http" / name
shutil.rmtree(target, ignore_errors=True)
target.mkdir(parents=True)

for scale in scales.split(","):
    shutil.copy(answers / f"blocks_s{scale}_sv.bin", target / f"blocks_s{scale}.bin")
for kept in ["info.json", "mappings.bin", "mappings.txt", "listlabels.json", "hashes.json", "version.json"]:
    shutil.copy(answers / kept, target / kept)
shutil.copy(answers / "indices-compressed.bin", target / "indices.bin")
shutil.copy(run / "repos_info.json", target / "repos_info.json")
points, mapping = (json.loads((answers / f"{kept}.json").read_text()) for kept in ["points", "mapping"])
rows = list(zip(mapping["supervoxels"], mapping["labels"], mapping["nolookup"]))
rows = [row for number, row in enumerate(rows) if number % 20 == 0 or row[0] != row[1]]
questions = {
    "points": points["points"],
    "labels": points["labels"],
    "supervoxels": points["supervoxels"],
    "mapping": {name: list(column) for name, column in zip(["supervoxels", "labels", "nolookup"], zip(*rows))},
    "maxlabel": json.loads((answers / "maxlabel.json").read_text())["maxlabel"],
}
(target / "questions.json").write_text(json.dumps(questions))
for document in target.glob("*.json"):
    document.write_text(json.dumps(json.loads(document.read_text()), separators=(",", ":")) + "\n")
for file in target.iterdir():
    file.chmod(0o644)
