"""Hardware lanes: a separate process samples the GPU's counters, clocks and power for a recording.

It writes ``<recording>.counters``, which readers add to the trace (docs/formats/counters.md).
"""

from __future__ import annotations

import errno
import glob
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Dict, Optional, Union

DEFAULT_INTERVAL = "100us"
ENDING = ".counters"
_SECONDS = {"us": 1e-6, "ms": 1e-3}
_INTERVAL = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms)")
_LEAST_NS, _MOST_NS = 50_000, 100_000_000
READY_SECONDS = 20.0  # a driver without persistence mode starts for many seconds
_END_SECONDS = 10.0
WRITE_SECONDS = 0.1  # after so long a sample is in the file: it is read every 40 ms


def parse_interval(interval: Union[str, bool]) -> int:
    """Nanoseconds between two samples, of ``"100us"``, ``"1ms"`` or True (100 us); ValueError says what is expected."""
    text = DEFAULT_INTERVAL if interval is True else interval
    found = _INTERVAL.fullmatch(text) if isinstance(text, str) else None
    ns = round(float(found.group(1)) * _SECONDS[found.group(2)] * 1e9) if found else 0
    if not _LEAST_NS <= ns <= _MOST_NS:
        raise ValueError(f"expected an interval from 50us to 100ms, such as 100us or 1ms; found {interval!r}")
    return ns


def sampler_command() -> str:
    """The ``lanescope`` command next to this Python, or in PATH; "" if none."""
    from .record import results_command

    return results_command()


def _cupti_of_packages() -> str:
    """The libcupti that came with torch or as a package; "" if none."""
    for folder in sys.path:
        for pattern in ("nvidia/cu1[3-9]/lib/libcupti.so.1[0-9]", "nvidia/cuda_cupti/lib/libcupti.so.1[0-9]"):
            found = sorted(glob.glob(os.path.join(folder or ".", pattern)))
            if found:
                return found[-1]
    return ""


def devices_of(environ: Dict[str, str]) -> str:
    """The device numbers to sample: under a launcher that of this local rank; "": all that are visible."""
    rank = environ.get("LOCAL_RANK", "")
    return rank if rank.isdigit() else ""


def own_path(directory: str) -> str:
    """A free name for the file until the recording has its name."""
    return os.path.join(directory or tempfile.gettempdir(), f".lanescope_{os.getpid()}_{uuid.uuid4().hex}{ENDING}")


def give_name(path: str, recording: str) -> str:
    """Moves the file next to its recording; returns why that failed, or ""."""
    try:
        try:
            os.rename(path, recording + ENDING)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            os.symlink(path, recording + ENDING)
    except OSError as error:
        return f"{path} cannot be moved next to the recording: {error}"
    return ""


class HardwareSampler:
    """One sampling process. ``start`` and ``wait`` never raise; ``problem`` says what is missing."""

    def __init__(self, interval_ns: int, max_bytes: int) -> None:
        self._interval_ns = interval_ns
        self._max_bytes = max_bytes
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._owner = 0
        self._is_ready = False
        self.problem = ""

    def start(self, path: str, command: str = "", devices: Optional[str] = None, reading: int = subprocess.PIPE) -> None:
        """Starts the process, which writes ``path`` until ``reading`` ends (a pipe of ours); does not wait for it."""
        command = command or sampler_command()
        if not command:
            self.problem = "the command `lanescope` was not found next to this Python or in PATH; install the package"
            return
        env = dict(os.environ)
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD"):
            env.pop(name, None)
        if not env.get("LANESCOPE_CUPTI_LIBRARY"):
            cupti = _cupti_of_packages()
            if cupti:
                env["LANESCOPE_CUPTI_LIBRARY"] = cupti
        numbers = devices_of(env) if devices is None else devices
        arguments = [path, str(self._interval_ns), numbers, str(self._max_bytes)]
        try:
            self._process = subprocess.Popen(
                [command, "_hardware", *arguments],
                stdin=reading,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env,
                start_new_session=True,  # Ctrl-C ends the program, which ends this
            )
            self._owner = os.getpid()
        except OSError as error:
            self.problem = f"{command} could not be started: {error}"

    def wait(self) -> None:
        """Waits until it samples, or says that it cannot."""
        process = self._process
        if process is None or process.stdout is None or self._is_ready:
            return
        self._is_ready = True
        line = b""
        deadline = time.monotonic() + READY_SECONDS
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.problem = f"the process that samples did not start within {READY_SECONDS:.0f} s"
                self._kill()
                return
            part = os.read(process.stdout.fileno(), 4096)
            if not part:
                break
            line += part
        text = line.decode(errors="replace").strip()
        if text != "ready":
            self.problem = text.partition(": ")[2] or "the process that samples ended at once"
        if not text.startswith("ready"):
            self._kill()

    def stop(self) -> None:
        """Ends the process and waits until its file is complete. In a forked child it does nothing."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        try:
            if process.stdin is not None:  # forked children may hold its other copies open
                process.stdin.write(b"stop\n")
                process.stdin.close()
            process.wait(_END_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
            self.problem = f"the process that samples did not end within {_END_SECONDS:.0f} s; its last samples may be missing"
        if process.stdout is not None:
            process.stdout.close()

    def is_running(self) -> bool:
        return self._process is not None

    def give_away(self) -> "Optional[subprocess.Popen[bytes]]":
        """The process, for which this object no longer cares."""
        process, self._process = self._process, None
        return process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
