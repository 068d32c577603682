"""The progress of a long call, shown in a notebook or terminal, or passed to a function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

Report: TypeAlias = Callable[[int, int, int, int], None]
"""Native functions call it with bytes done, bytes in all, packs done, packs in all."""

_LINE_EVERY_SECONDS = 0.2


@dataclass(frozen=True)
class Progress:
    """The progress of a long call."""

    bytes_done: int
    bytes_total: int
    """As far as known yet."""
    packs_done: int
    packs_total: int
    """Zero if the call has no packs."""


Shown: TypeAlias = bool | Callable[[Progress], None] | None
"""Whether to show progress: `None` means in a terminal or notebook; or a function that gets it."""


@contextmanager
def shown(what: str, progress: Shown) -> Iterator[Report | None]:
    """Gives the function to report progress to, while the call runs."""
    if callable(progress):
        tell = progress

        def report(done: int, total: int, packs: int, packs_total: int) -> None:
            tell(Progress(done, total, packs, packs_total))

        yield report
        return
    if progress is False or (progress is None and not _is_watched()):
        yield None
        return
    bar = _bar(what)
    try:
        yield bar.report
    finally:
        bar.close()


def _is_watched() -> bool:
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_ipython is None else get_ipython()
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


def _bar(what: str) -> _Tqdm | _Line:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(what)
    return _Tqdm(tqdm(desc=what, unit="B", unit_scale=True, unit_divisor=1024))


class _Tqdm:
    """A bar of tqdm, which tells terminals from notebooks."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def report(self, done: int, total: int, packs: int, packs_total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        if packs_total:
            self._bar.set_postfix_str(f"{packs}/{packs_total} packs", refresh=False)

    def close(self) -> None:
        self._bar.close()


class _Line:
    """A line that is overwritten each time."""

    def __init__(self, what: str) -> None:
        self._what, self._width, self._next = what, 0, 0.0

    def report(self, done: int, total: int, packs: int, packs_total: int) -> None:
        now = time.monotonic()
        if now < self._next and done < total:
            return
        self._next = now + _LINE_EVERY_SECONDS
        share = f"{100 * done // total}%" if total else "…"
        text = f"{self._what}: {share}, {done >> 20} of {total >> 20} MiB"
        if packs_total:
            text += f", {packs} of {packs_total} packs"
        self._width = max(self._width, len(text))
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\n")
