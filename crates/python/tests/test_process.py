"""Effects of the package on its process: Ctrl-C, threads, forks, exit, logging."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PREAMBLE = """
import os, signal, sys, threading, time
import numpy as np
import chunkyard

# Needed if the tests themselves run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)

def slow(session):
    # One call that takes long: noise, compressed as hard as possible.
    values = np.random.default_rng(0).integers(0, 1 << 20, (64, 512, 512)).astype("i4")
    session.create_array("slow", data=values, chunks=(8, 128, 128), codecs="zstd:22")
"""


def script(body: str) -> list[str]:
    return [sys.executable, "-c", PREAMBLE + textwrap.dedent(body)]


def run(body: str) -> str:
    done = subprocess.run(script(body), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ctrl_c_ends_a_long_call(tmp_path: Path) -> None:
    body = f"""
        repo = chunkyard.Repository.create({str(tmp_path / "repo")!r})
        session = repo.writable_session()
        print("started", flush=True)
        try:
            slow(session)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert repo.verify()
    """
    process = subprocess.Popen(script(body), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n" and process.returncode == 0


def test_other_threads_run_while_one_waits(tmp_path: Path) -> None:
    out = run(f"""
        repo = chunkyard.Repository.create({str(tmp_path / "repo")!r})
        session = repo.writable_session()
        writing = threading.Thread(target=slow, args=(session,), daemon=True)
        writing.start()
        turns = 0
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline and writing.is_alive():
            turns += 1
        assert writing.is_alive(), "too quick to tell"
        print("ran" if turns > 100 else "starved")
        sys.stdout.flush()
        os._exit(0)
    """)
    assert out == "ran\n"


def test_a_fork_is_an_error_and_not_a_hang() -> None:
    out = run("""
        chunkyard.Repository.create("memory://before")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                chunkyard.Repository.create("memory://after")
            except RuntimeError as error:
                print("refused" if "spawn" in str(error) else error, flush=True)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0
        print("parent goes on", chunkyard.Repository.create("memory://after"))
    """)
    assert out.startswith("refused\nparent goes on")


def test_a_fork_before_the_first_use_works() -> None:
    out = run("""
        child = os.fork()
        chunkyard.Repository.create("memory://x")
        if child:
            os.waitpid(child, 0)
        print("fine", flush=True)
    """)
    assert out == "fine\nfine\n"


def test_no_thread_of_the_runtime_outlives_the_interpreter() -> None:
    out = run("""
        import atexit, pathlib

        def names():
            return [task.joinpath("comm").read_text().strip()
                    for task in pathlib.Path("/proc/self/task").iterdir()]

        # Handlers run in reverse order, and this one must run after the package's own: unregister
        # that one and register it again.
        atexit.register(lambda: print("chunkyard" in " ".join(names())))
        atexit.unregister(chunkyard.shut_down)
        atexit.register(chunkyard.shut_down)
        chunkyard.Repository.create("memory://x")
        # A thread names itself some time after it starts.
        while "chunkyard" not in " ".join(names()):
            time.sleep(0.01)
        print("running")
    """)
    assert out == "running\nFalse\n"


def test_calls_during_the_exit_are_refused() -> None:
    out = run("""
        import atexit
        repo = chunkyard.Repository.create("memory://x")

        def late():
            try:
                repo.list_branches()
            except RuntimeError as error:
                print(error, flush=True)

        atexit.unregister(chunkyard.shut_down)
        atexit.register(late)
        atexit.register(chunkyard.shut_down)
    """)
    assert "shutting down" in out


def test_a_missing_library_is_named_with_its_install_command() -> None:
    out = run("""
        sys.modules["zarr"] = None
        try:
            chunkyard.Repository.create("memory://x").writable_session().store
        except ImportError as error:
            print(error.__notes__)
    """)
    assert "pip install 'chunkyard[zarr]'" in out


def test_commits_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    import chunkyard

    repo = chunkyard.Repository.create("memory://logged")
    session = repo.writable_session()
    session.create_group("g")
    with caplog.at_level("INFO", logger="chunkyard"):
        snapshot = session.commit("a group")
    assert snapshot in caplog.text
