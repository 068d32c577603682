"""Icechunk on a directory. Its commits are not durable."""

from __future__ import annotations

from typing import Any

import icechunk
import numpy as np
import zarr

from peers.base import CommitPeer
from peers.data import Data
from peers.zarr_python import Arrays as ZarrArrays

PREFIX = "s3://bucket/data/"


class Arrays(ZarrArrays):
    def store(self) -> Any:
        return self.session.store

    def create(self, data: Data) -> None:
        repo = icechunk.Repository.create(icechunk.local_filesystem_storage(str(self.path)))
        self.session = repo.writable_session("main")
        super().create(data)

    def open(self) -> None:
        repo = icechunk.Repository.open(icechunk.local_filesystem_storage(str(self.path)))
        self.session = repo.readonly_session("main")
        super().open()

    def finish(self) -> None:
        self.session.commit("all")


class Commits(CommitPeer):
    """Virtual references; `split=N` makes a manifest for every N of them."""

    def config(self) -> icechunk.RepositoryConfig:
        config = icechunk.RepositoryConfig.default()
        store = icechunk.s3_store(region="us-east-1")
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(PREFIX, store))
        if split := int(self.options.get("split", "0")):
            # The array is (n, 1000, 1): axis 0 counts planes of 1,000 references.
            axis = icechunk.ManifestSplitDimCondition.Axis(0)
            sizes: dict[Any, Any] = {
                icechunk.ManifestSplitCondition.AnyArray(): {axis: max(split // 1000, 1)}
            }
            splitting = icechunk.ManifestSplittingConfig.from_dict(sizes)
            config.manifest = icechunk.ManifestConfig(splitting=splitting)
        return config

    def storage(self) -> icechunk.Storage:
        return icechunk.local_filesystem_storage(str(self.path))

    def create(self) -> None:
        self.repo = icechunk.Repository.create(self.storage(), config=self.config())
        self.session = self.repo.writable_session("main")
        planes = -(-self.refs // 1000)
        new_array(self.session, (planes, 1000, 1000), (1, 1, 1000))

    def bulk(self) -> None:
        specs = [
            icechunk.VirtualChunkSpec([n // 1000, n % 1000, 0], PREFIX + "file.nc", n * 1000, 1000)
            for n in range(self.refs)
        ]
        self.session.store.set_virtual_refs("a", specs, validate_containers=False)
        self.session.commit("all references")

    def open(self) -> None:
        self.repo = icechunk.Repository.open(self.storage(), config=self.config())

    def change(self, targets: list[int], value: int) -> None:
        session = self.repo.writable_session("main")
        array = zarr.open_array(session.store, path="a", mode="r+")
        for n in targets:
            array[n // 1000, n % 1000, :] = np.full(1000, value, "uint8")
        session.commit("some chunks")

    def open_chunk(self, target: int) -> Any:
        session = icechunk.Repository.open(self.storage()).readonly_session("main")
        array = zarr.open_array(session.store, path="a", mode="r")
        return array[target // 1000, target % 1000, 0]

    def create_tiny(self, chunks: int) -> None:
        self.session = icechunk.Repository.create(self.storage()).writable_session("main")
        self.array = new_array(self.session, (chunks * 4096,), (4096,))

    def tiny(self, data: np.ndarray) -> None:
        self.array[:] = data
        self.session.commit("tiny chunks")

    def read_tiny(self) -> np.ndarray:
        session = icechunk.Repository.open(self.storage()).readonly_session("main")
        return np.asarray(zarr.open_array(session.store, path="a", mode="r")[:])


def new_array(session: icechunk.Session, shape: tuple[int, ...], chunks: tuple[int, ...]) -> Any:
    return zarr.create_array(
        session.store,
        name="a",
        shape=shape,
        chunks=chunks,
        dtype="uint8",
        compressors=None,
        filters=None,
    )
