"""The data that every side writes and reads, made once: `data.py DIRECTORY [--short]`."""

import sys
from pathlib import Path

import numpy as np

# Short runs use a quarter of the data.
FULL = {"field": (1024, 512, 512), "labels": (512, 512, 512)}
SHORT = {"field": (256, 512, 512), "labels": (256, 512, 512)}
FIELD_CHUNK = (1, 512, 512)
LABELS_CHUNK = (64, 64, 64)


def shapes(directory: Path) -> dict:
    return SHORT if (directory / "short").exists() else FULL


def make(directory: Path, short: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if short:
        (directory / "short").touch()
    sizes = shapes(directory)
    random = np.random.default_rng(7)
    t, y, x = sizes["field"]
    yy, xx = np.meshgrid(np.linspace(0, 6, y), np.linspace(0, 9, x), indexing="ij")
    with open(directory / "field", "wb") as file:
        for step in range(t):
            smooth = 280 + 20 * np.sin(yy + step * 0.01) * np.cos(xx - step * 0.02)
            noise = random.normal(0, 0.02, (y, x))
            file.write((smooth + noise).astype("<f4").tobytes())
    z, y, x = sizes["labels"]
    zz, yy, xx = np.ogrid[:z, :y, :x]
    with open(directory / "labels", "wb") as file:
        for step in range(z):
            # Cells with wavy borders, each with a large random-looking id.
            cell = (step // 37) * 1_000_003 + ((yy[0] + step // 5) // 41) * 10_007
            cell = cell + (xx[0] + (yy[0] // 3)) // 29
            file.write((cell.astype(np.uint64) * np.uint64(2654435761)).astype("<u8").tobytes())


def load(directory: Path, name: str) -> np.ndarray:
    dtype = "<f4" if name == "field" else "<u8"
    return np.fromfile(directory / name, dtype=dtype).reshape(shapes(directory)[name])


if __name__ == "__main__":
    make(Path(sys.argv[1]), "--short" in sys.argv)
