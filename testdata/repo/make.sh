#!/usr/bin/env bash
# Makes a golden repository: `make.sh CHUNKYARD PYTHON DIRECTORY`. One directory per format version; a
# directory that was released is never made again, and every later version must read it.
set -euo pipefail

chunkyard=${1:?usage: make.sh CHUNKYARD PYTHON DIRECTORY}
python=${2:?usage: make.sh CHUNKYARD PYTHON DIRECTORY}
target=${3:?usage: make.sh CHUNKYARD PYTHON DIRECTORY}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" - "$work" <<'PYTHON'
import sys

import numpy as np

work = sys.argv[1]
random = np.random.default_rng(1)
np.save(f"{work}/field.npy", random.normal(size=(20, 30)).astype("<f4"))
np.save(f"{work}/patch.npy", np.full((4, 5), np.float32(7)))
np.save(f"{work}/labels.npy", np.arange(64, dtype="<u8").reshape(4, 4, 4) // 8)
np.save(f"{work}/noise.npy", random.integers(0, 255, (64, 64), dtype="u1"))
PYTHON

repo="$target/repository"
"$chunkyard" repo init "$repo" --property title=golden
"$chunkyard" repo set "$repo" /climate/field "$work/field.npy" --chunks 8,8 --codec zstd:3 --dims y,x -m "field"
"$chunkyard" repo set "$repo" /labels "$work/labels.npy" --chunks 2,2,2 --codec gzip:5 -m "labels"
"$chunkyard" repo set "$repo" /noise "$work/noise.npy" --chunks 32,32 --codec none -m "noise, in a pack"
"$chunkyard" repo tag "$repo" create v1
"$chunkyard" repo branch "$repo" create side
"$chunkyard" repo set "$repo" /climate/field "$work/patch.npy" --region 3:7,4:9 --branch side -m "patch"
long=$("$python" -c 'print("long " * 1000)')
"$chunkyard" repo attrs "$repo" /noise --set "{\"history\": \"$long\"}" -m "attributes in a file"
"$chunkyard" repo mv "$repo" /labels /segmentation/labels -m "move"
for version in "--branch main" "--branch side" "--tag v1"; do
    for path in climate/field noise; do
        # shellcheck disable=SC2086  # an option and its value
        "$chunkyard" repo get "$repo" "/$path" $version -o "$target/${version##* }-${path//\//-}.npy"
    done
done
"$chunkyard" verify "$repo" --level bytes
