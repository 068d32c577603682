"""docs/formats/repo.md, section 4."""

import pytest

from reader import decode_coord

VALUES = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8000",
    255: "807f",
    256: "8080",
    300: "80ac",
    16_511: "bfff",
    16_512: "c00000",
    65_535: "c0bf7f",
    1_000_000: "cf01c0",
    2_113_663: "dfffff",
    2_113_664: "e0000000",
    2**32 - 1: "f0efdfbf7f",
    2**32: "f0efdfbf80",
    72_624_976_668_147_839: "feffffffffffffff",
    72_624_976_668_147_840: "ff0000000000000000",
    2**63: "ff7efdfbf7efdfbf80",
    2**64 - 1: "fffefdfbf7efdfbf7f",
}
TUPLES = {
    (): "",
    (0,): "00",
    (5, 30, 10): "051e0a",
    (5, 30, 11): "051e0b",
    (5, 31, 0): "051f00",
    (5, 128, 0): "05800000",
    (127, 999): "7f8367",
    (128, 0): "800000",
    (128, 1): "800001",
    (365, 16_511, 16_512): "80edbfffc00000",
    (0, 0, 0, 0): "00000000",
}


@pytest.mark.parametrize("value, encoded", VALUES.items())
def test_a_value_of_the_document_decodes(value, encoded):
    assert decode_coord(bytes.fromhex(encoded), 1) == (value,)


@pytest.mark.parametrize("index, encoded", TUPLES.items())
def test_a_tuple_of_the_document_decodes(index, encoded):
    assert decode_coord(bytes.fromhex(encoded), len(index)) == index


def test_bytes_sort_like_values():
    encoded = [bytes.fromhex(text) for _, text in sorted(VALUES.items())]
    assert encoded == sorted(encoded)


@pytest.mark.parametrize("encoded", ["", "80", "0000", "ff" * 9])
def test_unsound_bytes_are_refused(encoded):
    with pytest.raises(ValueError):
        decode_coord(bytes.fromhex(encoded), 1)


def test_every_stored_coordinate_lies_in_its_grid(repo):
    seen = 0
    for node in repo.nodes(repo.tip()).values():
        if node["type"] != "array":
            continue
        metadata = node["array_metadata"]
        shape, chunks = metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
        grid = [-(-size // chunk) for size, chunk in zip(shape, chunks, strict=True)]
        for index in repo.references(node):
            assert all(0 <= i < n for i, n in zip(index, grid, strict=True))
            seen += 1
    assert seen > 200
