"""What the end-to-end tests share: the built command, small traces, a terminal."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pathlib
import pty
import select
import subprocess
import time
from typing import Callable, Dict, List, Optional

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = SOURCE / "tests" / "data"
# Real traces that are no part of the repository. What matters is tested on those of DATA too.
SHARED_TRACES = pathlib.Path(os.environ.get("LANESCOPE_SHARED_TRACES", SOURCE.parent / "shared" / "traces"))
NEEDS_SHARED_TRACES = f"needs the collection of real traces (LANESCOPE_SHARED_TRACES names its folder; {SHARED_TRACES} is not there)"


def find_binary() -> pathlib.Path:
    """LANESCOPE_BINARY, else the newest `lanescope` of the build folders."""
    named = os.environ.get("LANESCOPE_BINARY")
    if named:
        return pathlib.Path(named)
    built = sorted(SOURCE.glob("build/*/src/lanescope/cli/lanescope"), key=lambda path: path.stat().st_mtime)
    if not built:
        pytest.exit("no lanescope command: build it (cmake --build ... --target lanescope_command) "
                    "or name it in LANESCOPE_BINARY", returncode=2)
    return built[-1]


@dataclasses.dataclass
class Ran:
    """One run of the command: exit code (negative: the signal) and what it printed, as bytes and as text."""

    code: int
    out_bytes: bytes
    err_bytes: bytes

    @property
    def out(self) -> str:
        return self.out_bytes.decode("utf-8", "surrogateescape")

    @property
    def err(self) -> str:
        return self.err_bytes.decode("utf-8", "surrogateescape")

    def complaint(self) -> str:
        """The one line of the error; the test fails when there are more or none."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("lanescope: "), self.err
        return lines[0]


def clean_environment(extra: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("LANESCOPE_RECORD") and k != "NO_COLOR"}
    env.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    env.update(extra or {})
    return env


@pytest.fixture(scope="session")
def binary() -> str:
    return str(find_binary())


@pytest.fixture
def run(binary: str, tmp_path: pathlib.Path) -> Callable[..., Ran]:
    """run("table", "x.json", stdin=b"...") in an empty folder, standard output and error into pipes."""

    def go(*arguments: str, stdin: bytes = b"", env: Optional[Dict[str, str]] = None,
           cwd: Optional[pathlib.Path] = None, timeout: float = 300) -> Ran:
        done = subprocess.run([binary, *map(os.fspath, arguments)], input=stdin, capture_output=True,
                              env=clean_environment(env), cwd=cwd or tmp_path, timeout=timeout, check=False)
        return Ran(done.returncode, done.stdout, done.stderr)

    return go


@pytest.fixture
def run_in_terminal(binary: str, tmp_path: pathlib.Path) -> Callable[..., Ran]:
    """The same on a pseudo terminal; out_bytes is all that reached the screen, standard error included."""

    def go(*arguments: str, env: Optional[Dict[str, str]] = None, stdin_from: Optional[int] = None,
           while_running: Optional[Callable[[], None]] = None, timeout: float = 300) -> Ran:
        master, slave = pty.openpty()
        child = subprocess.Popen([binary, *map(os.fspath, arguments)], stdin=stdin_from if stdin_from is not None else slave,
                                 stdout=slave, stderr=slave, env=clean_environment(env), cwd=tmp_path,
                                 start_new_session=True)
        os.close(slave)
        if while_running:
            while_running()
        screen = bytearray()
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            ready, _, _ = select.select([master], [], [], 0.2)
            if ready:
                try:
                    chunk = os.read(master, 65536)
                except OSError as error:  # the last holder of the terminal went away
                    assert error.errno == errno.EIO
                    break
                if not chunk:
                    break
                screen += chunk
            elif child.poll() is not None:
                break
        os.close(master)
        return Ran(child.wait(timeout=300), bytes(screen).replace(b"\r\n", b"\n"), b"")

    return go


def slice_event(cat: str, name: str, ts: float, dur: float, tid: object = 100, pid: object = 100, **args: object) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def matmul_events(kernel: str = "gemm_kernel") -> List[dict]:
    """Microseconds. Step 3 holds matmul -> mm -> cudaLaunchKernel, which starts a kernel of 7 us on stream 7."""
    return [
        slice_event("user_annotation", "ProfilerStep#3", 100, 80),
        slice_event("cpu_op", "aten::matmul", 110, 50, **{"External id": 1}),
        slice_event("cpu_op", "aten::mm", 115, 40, **{"External id": 2}),
        slice_event("cuda_runtime", "cudaLaunchKernel", 130, 10, **{"External id": 2, "correlation": 9}),
        slice_event("kernel", kernel, 150, 7, tid=7, pid=0,
                    **{"External id": 2, "correlation": 9, "device": 0, "stream": 7}),
    ]


def trace_json(events: List[dict]) -> dict:
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}


@pytest.fixture
def matmul_trace(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "matmul.json"
    path.write_text(json.dumps(trace_json(matmul_events())))
    return path


@pytest.fixture
def own_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """What commands keep for the next question lies in a folder of this test, and begins empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LANESCOPE_INDEX", raising=False)
    return tmp_path / "cache" / "lanescope"


@pytest.fixture
def shared_traces() -> pathlib.Path:
    if not SHARED_TRACES.is_dir():
        pytest.skip(f"{NEEDS_SHARED_TRACES}; without it: the same test on the shipped traces")
    return SHARED_TRACES
