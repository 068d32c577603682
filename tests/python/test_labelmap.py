"""docs/formats/labels.md: the tables of a version, read by pyarrow alone and by DuckDB alone."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from conftest import run
from reader import Repository

SHAPE, BLOCK = (20, 40, 70), 16
BOX = ["z0", "y0", "x0", "z1", "y1", "x1"]


@dataclass
class Model:
    """A segmentation as two plain things, and what its tables must say."""

    voxels: np.ndarray
    body_of: dict[int, int] = field(default_factory=dict)

    def copy(self) -> "Model":
        return Model(self.voxels.copy(), dict(self.body_of))

    def bodies(self) -> np.ndarray:
        ids, places = np.unique(self.voxels, return_inverse=True)
        mapped = np.array([self.body_of.get(int(one), int(one)) for one in ids], "u8")
        return mapped[places].reshape(SHAPE)

    @staticmethod
    def rows(labels: np.ndarray) -> dict[int, tuple[int, ...]]:
        """Label, voxels and box of each label."""
        found = {}
        for label in np.unique(labels[labels > 0]).tolist():
            at = np.argwhere(labels == label)
            found[label] = (len(at), *at.min(0).tolist(), *(at.max(0) + 1).tolist())
        return found

    def index(self) -> dict[tuple[int, ...], dict[int, int]]:
        """Body and block to supervoxel to voxels."""
        found: dict[tuple[int, ...], dict[int, int]] = {}
        bodies = self.bodies()
        at = np.argwhere(self.voxels > 0)
        columns = [bodies[tuple(at.T)], *(at.T // BLOCK).astype("u8"), self.voxels[tuple(at.T)]]
        rows, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
        for (*key, supervoxel), count in zip(rows.T.tolist(), counts.tolist(), strict=True):
            found.setdefault(tuple(key), {})[supervoxel] = count
        return found


@dataclass
class Labelmap:
    root: Path
    versions: dict[str, Model] = field(default_factory=dict)


@pytest.fixture(scope="module")
def labelmap(tmp_path_factory) -> Labelmap:
    """Edits of all kinds, a version after each."""
    scratch = tmp_path_factory.mktemp("labelmap")
    made = Labelmap(scratch / "brain")
    z, y, x = np.indices(SHAPE)
    model = Model((1 + z // 9 * 20 + y // 11 * 5 + x // 17).astype("u8"))
    model.voxels[:4, :9, :30] = 0
    model.voxels[model.voxels == 8] = 2**63 + 8
    np.save(scratch / "volume.npy", model.voxels)

    def step(*arguments: object) -> None:
        run("labels", *arguments)
        tip = Repository(made.root).tip()["snapshot-id"]
        made.versions[tip] = model.copy()

    step("import", made.root, scratch / "volume.npy", "--block", f"{BLOCK},{BLOCK},{BLOCK}")
    step("create", made.root, "--path", "/empty", "--shape", "9,9,9")
    model.body_of |= {2: 1, 2**63 + 8: 1, 22: 1}
    step("merge-bodies", made.root, 1, 2, 2**63 + 8, 22, "--path", "/labels")
    model.body_of |= {22: 900, 900: 0}
    step("cleave", made.root, 1, 22, "--new-body", 900, "--path", "/labels")
    mask = np.zeros(SHAPE, bool)
    mask[:, ::2] = True
    np.save(scratch / "mask.npy", mask)
    cut = model.voxels == 27
    model.voxels[cut & mask], model.voxels[cut & ~mask] = 901, 902
    model.body_of |= {27: 0, 901: 27, 902: 27}
    split = ["split-supervoxel", made.root, 27, "--mask", scratch / "mask.npy", "--part", 901, "--rest", 902]
    step(*split, "--path", "/labels")
    return made


def at_each_version(labelmap: Labelmap):
    """The nodes of a version, and what they must hold."""
    repo = Repository(labelmap.root)
    assert len(labelmap.versions) == 5
    for snapshot, model in labelmap.versions.items():
        yield repo, repo.nodes(repo.snapshot(snapshot)), model


def newest(repo: Repository, node: dict) -> dict[tuple, dict]:
    """The rows of a table by key: later runs win, and may delete."""
    schema = json.loads(node["extra_metadata"])["table"]
    key = [column["name"] for column in schema["columns"]][: schema["key"]]
    rows = {}
    for entry in node["inventories"]:
        for row in pq.read_table(repo.root / "i" / entry["inventory_file"]).to_pylist():
            rows[tuple(row[name] for name in key)] = row
    return {key: row for key, row in rows.items() if not row.get("_removed")}


def check_bodies(found: dict[int, tuple[int, ...]], model: Model) -> None:
    assert found == Model.rows(model.bodies())


def test_pyarrow_reads_the_tables_of_every_version(labelmap: Labelmap) -> None:
    for repo, nodes, model in at_each_version(labelmap):
        tables = {
            name: newest(repo, nodes[f"/labels/{name}"])
            for name in ("mapping", "index", "bodies", "supervoxels")
        }
        bodies, mapping = tables["bodies"].values(), tables["mapping"].values()
        check_bodies({row["body"]: (row["voxels"], *(row[at] for at in BOX)) for row in bodies}, model)
        assert {row["supervoxel"]: row["body"] for row in mapping} == model.body_of
        index = {
            key: dict(zip(row["supervoxels"], row["counts"], strict=True))
            for key, row in tables["index"].items()
        }
        assert index == model.index()
        live, retired = {}, set()
        for row in tables["supervoxels"].values():
            if row["voxels"]:
                live[row["supervoxel"]] = (row["voxels"], *(row[at] for at in BOX))
                assert row["body"] == model.body_of.get(row["supervoxel"], row["supervoxel"])
            else:
                assert (row["body"], [row[at] for at in BOX]) == (0, [0] * 6)
                retired.add(row["supervoxel"])
        assert live == Model.rows(model.voxels)
        assert retired == ({27} if 27 in model.body_of else set())


def view(repo: Repository, name: str, node: dict) -> str:
    """A view of DuckDB on the runs of a table."""
    schema = json.loads(node["extra_metadata"])["table"]
    names = [f'"{column["name"]}"' for column in schema["columns"]]
    runs = " UNION ALL BY NAME ".join(
        f"SELECT *, {age} AS _age FROM read_parquet('{repo.root / 'i' / entry['inventory_file']}')"
        for age, entry in enumerate(node["inventories"])
    )
    return f"""CREATE VIEW {name} AS SELECT {", ".join(names)} FROM
        (SELECT * FROM (SELECT NULL::BOOLEAN AS _removed LIMIT 0) UNION ALL BY NAME {runs})
        QUALIFY row_number() OVER (PARTITION BY {", ".join(names[: schema["key"]])} ORDER BY _age DESC) = 1
        AND _removed IS NOT true"""


def test_duckdb_reads_the_tables_of_every_version(labelmap: Labelmap) -> None:
    for repo, nodes, model in at_each_version(labelmap):
        with duckdb.connect() as connection:
            for name in ("bodies", "supervoxels"):
                connection.execute(view(repo, name, nodes[f"/labels/{name}"]))
            found = connection.sql(f"SELECT body, voxels, {', '.join(BOX)} FROM bodies").fetchall()
            check_bodies({body: tuple(rest) for body, *rest in found}, model)
            differ = connection.sql("""
                SELECT count(*) FROM bodies FULL JOIN
                    (SELECT body, sum(voxels) AS voxels, count(*) AS n FROM supervoxels WHERE voxels > 0 GROUP BY body) s
                USING (body) WHERE bodies.voxels IS DISTINCT FROM s.voxels OR supervoxels IS DISTINCT FROM n
            """)
            assert differ.fetchall() == [(0,)]


def test_a_table_leaves_as_one_file_that_both_read(labelmap: Labelmap, tmp_path: Path) -> None:
    for snapshot, model in labelmap.versions.items():
        file = tmp_path / "bodies.parquet"
        where = ["--path", "/labels", "--snapshot", snapshot]
        run("labels", "table", labelmap.root, "bodies", "-o", file, *where)
        rows = pq.read_table(file, columns=["body", "voxels", *BOX]).to_pylist()
        check_bodies({row.pop("body"): tuple(row.values()) for row in rows}, model)
        [(total,)] = duckdb.sql(f"SELECT sum(voxels) FROM '{file}'").fetchall()
        assert total == np.count_nonzero(model.voxels)
    empty = tmp_path / "empty.parquet"
    run("labels", "table", labelmap.root, "mapping", "-o", empty, "--path", "/empty")
    assert pq.read_table(empty).num_rows == 0


def test_the_program_of_duckdb_answers_queries(labelmap: Labelmap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    query = "select body, voxels from bodies where supervoxels > 1 order by body"
    for snapshot, model in labelmap.versions.items():
        where = ["--path", "/labels", "--snapshot", snapshot, "--json"]
        found = json.loads(run("labels", "sql", labelmap.root, query, *where).stdout)
        mapped = model.bodies()
        expected = [
            {"body": body, "voxels": int(np.count_nonzero(mapped == body))}
            for body in np.unique(mapped[mapped > 0]).tolist()
            if len(np.unique(model.voxels[mapped == body])) > 1
        ]
        # It prints 64-bit numbers as texts, which JSON cannot round.
        assert [{name: int(value) for name, value in row.items()} for row in found] == expected
    refused = run("labels", "sql", labelmap.root, "select nothing from bodies", "--path", "/labels", check=False)
    assert refused.returncode == 2
    assert "nothing" in refused.stderr
