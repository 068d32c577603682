"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import hypothesis
import pytest

# The same examples in every run: a change fails by what it does, and not by chance.
hypothesis.settings.register_profile("fixed", derandomize=True)
hypothesis.settings.load_profile("fixed")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> Iterator[None]:
    """A background job of a shell ignores Ctrl-C, and Python then installs no handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
