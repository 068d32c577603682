"""The limits of the machine in this run, and the least time that a workload can take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.samples import Record


@dataclass(frozen=True)
class Limits:
    """Measured limits. Speeds are bytes per second."""

    record: Record

    def seconds(self, name: str) -> float:
        measure = self.record.measures.get(name)
        best = measure.value("best") if measure else None
        if best is None:
            raise KeyError(f"no limit {name!r} was measured")
        return best

    def time(self, name: str, size: float) -> float:
        """Seconds for a number of bytes."""
        return size * self.seconds(name) / float(self.record.facts[name])

    def stored(self, data: str, size: float) -> float:
        """Bytes on disk for a number of bytes of data."""
        return size / float(self.record.facts[f"{data}-ratio"])

    def to_json(self) -> dict[str, Any]:
        """Speeds in GB/s, and seconds for limits without a size."""
        found: dict[str, Any] = {}
        for name, measure in self.record.measures.items():
            best = measure.value("best")
            size = self.record.facts.get(name)
            if best is not None:
                sized = {"gb-per-s": size / best / 1e9} if size else {}
                found[name] = {"seconds": best, **sized, "wall": measure.wall}
        found["ratios"] = {n: r for n, r in self.record.facts.items() if n.endswith("-ratio")}
        return found


# The least time for a number of decoded bytes. Of parts that can overlap, the slower counts.
Limit = Callable[[Limits, float], float]


def encode(data: str) -> Limit:
    """The codec alone, two threads, buffers reused."""
    return lambda limits, size: limits.time(f"{data}-encode-2", size)


def encode_durably(data: str) -> Limit:
    """The slower of the codec, and one file written and synced."""
    return lambda limits, size: max(
        encode(data)(limits, size), limits.time("file-write-fsync", limits.stored(data, size))
    )


def decode(data: str) -> Limit:
    """The codec alone, two threads, buffers reused."""
    return lambda limits, size: limits.time(f"{data}-decode-2", size)


def decode_fresh(data: str) -> Limit:
    """The slower of the codec, and memcpy into fresh huge pages."""
    return lambda limits, size: max(
        decode(data)(limits, size), limits.time("memcpy-huge-pages", size)
    )


def decode_cold(data: str) -> Limit:
    """The slower of that, and one cold file read."""
    return lambda limits, size: max(
        decode_fresh(data)(limits, size),
        limits.time("file-read-cold", limits.stored(data, size)),
    )


def decode_one(data: str) -> Limit:
    """The codec alone, one thread."""
    return lambda limits, size: limits.time(f"{data}-decode-1", size)


def copied(limits: Limits, size: float) -> float:
    """memcpy into memory that is reused, one thread."""
    return limits.time("memcpy-reused", size)


def transcode(limits: Limits, size: float) -> float:
    """Our codecs alone, decoding and encoding the field on all threads, buffers reused."""
    return limits.time("field-transcode", size)


def pack(data: str, codec: str) -> Limit:
    """Our block codec alone, two threads."""
    return lambda limits, size: limits.time(f"{data}-{codec}-pack-2", size)


def unpack_fresh(data: str, codec: str) -> Limit:
    """The slower of our block codec alone, two threads, and memcpy into fresh huge pages."""

    def least(limits: Limits, size: float) -> float:
        copied = limits.time("memcpy-huge-pages", size)
        if codec == "none":
            return copied
        return max(copied, limits.time(f"{data}-{codec}-unpack-2", size))

    return least


def blosc_encode(data: str, codec: str) -> Limit:
    """Our Blosc alone, two threads, buffers reused."""
    return lambda limits, size: limits.time(f"{data}-blosc-{codec}-encode-2", size)


def blosc_decode(data: str, codec: str) -> Limit:
    """Our Blosc alone, two threads, buffers reused."""
    return lambda limits, size: limits.time(f"{data}-blosc-{codec}-decode-2", size)


def blosc_decode_fresh(data: str, codec: str) -> Limit:
    """The slower of that, and memcpy into fresh huge pages."""
    return lambda limits, size: max(
        blosc_decode(data, codec)(limits, size), limits.time("memcpy-huge-pages", size)
    )


def write_durably(limits: Limits, size: float) -> float:
    """One file written and synced."""
    return limits.time("file-write-fsync", size)


def replace_durably(limits: Limits, _size: float) -> float:
    """A small file written, synced, renamed, and its directory synced."""
    return limits.seconds("replace-durably")


def decode_of_each(data: str, chunks: int, part: int) -> Limit:
    """The codec alone, two threads, on `part` bytes of each of a number of chunks."""
    return lambda limits, _size: limits.time(f"{data}-decode-2", chunks * part)
