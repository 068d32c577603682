"""docs/formats/repo.md, section 2."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from reader import claim_path, crc32c, parse_state

NAME = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")


def test_the_checksum_is_the_standard_one():
    assert crc32c(b"123456789") == 0xE3069283


def test_the_state_has_the_documented_keys(repo):
    state = repo.state
    assert NAME.fullmatch(state["id"])
    assert state["format-version"] == 1
    assert state["swap"] == "generation-claim"
    assert state["default-branch"] == "main"
    assert state["status"]["mode"] == "online"
    assert state["recent-write-ids"][-1] == state["write-id"]
    assert len(state["recent-write-ids"]) <= 64
    assert set(state["required-features"]) <= {
        "delta-inventories",
        "removals",
        "virtual",
        "wide-ints",
    }
    assert list(state)[-1] == "crc32c"


SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "formats" / "state.schema.json"


def test_the_state_obeys_its_schema_and_the_schema_refuses_a_broken_one(repo):
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(repo.state, schema)
    broken = {**repo.state, "snapshots": [{**repo.state["snapshots"][0], "structure-file": "../x"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_each_commit_is_one_generation(built, repo):
    assert repo.state["generation"] == built.commits
    assert len(repo.state["snapshots"]) == built.commits + 1


def test_parents_stand_first_and_time_goes_forward(repo):
    seen = {}
    for snapshot in repo.state["snapshots"]:
        parent = snapshot["parent-snapshot-id"]
        if parent is None:
            assert not seen
        else:
            assert snapshot["timestamp-ms"] > seen[parent]
            assert snapshot["change-base"] == parent
        seen[snapshot["snapshot-id"]] = snapshot["timestamp-ms"]


def test_references_name_listed_snapshots(repo):
    listed = {snapshot["snapshot-id"] for snapshot in repo.state["snapshots"]}
    for name, reference in repo.state["refs"].items():
        assert reference["name"] == name
        assert reference["type"] in ("branch", "tag")
        assert reference["snapshot-id"] in listed
    assert repo.state["refs"]["main"]["type"] == "branch"


def test_messages_are_kept(built, repo):
    messages = [snapshot["message"] for snapshot in repo.state["snapshots"][1:]]
    assert messages == [f"commit {n + 1}" for n in range(built.commits)]


def test_the_published_state_is_its_own_claim(built):
    published = (built.root / "state.json").read_bytes()
    generation = parse_state(published)["generation"]
    assert claim_path(built.root, generation).read_bytes() == published
    assert not claim_path(built.root, generation + 1).exists()


def test_claims_follow_each_other(built):
    claims = sorted((built.root / "g").iterdir())
    assert claims
    for claim in claims:
        assert re.fullmatch(r"\d{20}\.json", claim.name)
        data = claim.read_bytes()
        if data:
            assert parse_state(data)["generation"] == int(claim.stem)


def test_a_flipped_bit_of_the_state_is_found(built):
    data = bytearray((built.root / "state.json").read_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises((AssertionError, json.JSONDecodeError, UnicodeDecodeError)):
        parse_state(bytes(data))


def test_the_root_holds_only_documented_names(built):
    locks = {"state.lock", "state.next", "state.turn"}
    documented = {"state.json", *locks, "s", "i", "a", "c", "g", "gc", ".tmp"}
    assert {entry.name for entry in built.root.iterdir()} <= documented
