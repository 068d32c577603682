"""`cp -r`: the cost of copying the same bytes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from peers import zarr_python
from peers.base import Change


class Arrays(zarr_python.Arrays):
    """Read by zarr-python, to see that the copy is whole."""

    def convert(self, source: Path, change: Change) -> None:
        assert change == Change(), "cp changes nothing"
        subprocess.run(["cp", "-r", f"{source}/.", str(self.path)], check=True)
