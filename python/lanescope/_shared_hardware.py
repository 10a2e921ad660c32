"""One sampling process for all ranks of a launcher on a host: the first rank starts it, and it ends with the last one.

The ranks meet in a folder. `lock` is held while a rank joins. `input` is a FIFO that the process reads: it samples as long as a rank
holds the other end, which a killed rank lets go as well. It writes one file for each GPU, and a rank has a link to that of its GPU next to
its recording. A GPU's counters can be sampled only once at a time, so ranks that share a GPU share its file, too.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from typing import IO, Dict, List, Set

from ._hardware import ENDING, READY_SECONDS, HardwareSampler

_TOGETHER_SECONDS = 2.0  # ranks that end so close to each other have one complete file
_MEETINGS = 3  # tries
_BLOCK = struct.Struct("<IHHII")  # codec/counter_file.h: magic, kind, device, bytes, values
_FILE_HEAD_BYTES, _BLOCK_MAGIC = 16, 0x4B4C4248

_inputs: Set[int] = set()  # a forked child must not hold the process
_ending_later: List["subprocess.Popen[bytes]"] = []  # started by this rank, and still used by others


def _close_in_child() -> None:
    for file in _inputs:
        os.close(file)
    _inputs.clear()


os.register_at_fork(after_in_child=_close_in_child)


def is_shared(environ: Dict[str, str]) -> bool:
    """True under a launcher that has started several ranks on this host."""
    rank, ranks = environ.get("LOCAL_RANK", ""), environ.get("LOCAL_WORLD_SIZE", "")
    return rank.isdigit() and ranks.isdigit() and int(ranks) > 1


def meeting_place(directory: str, interval_ns: int, environ: Dict[str, str]) -> str:
    """The folder of the ranks that have the same parent, see the same GPUs and want the same interval."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", encoding="ascii", errors="replace") as file:
            started = file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = ""
    words = (socket.gethostname(), os.getuid(), parent, started, environ.get("CUDA_VISIBLE_DEVICES", "all"), interval_ns)
    name = hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:16]
    return os.path.join(directory or tempfile.gettempdir(), f".lanescope_hardware_{name}")


def whole_bytes(path: str) -> int:
    """Up to the end of the last whole block of a file that may still grow."""
    if os.path.getsize(path) < _FILE_HEAD_BYTES:
        return 0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = _FILE_HEAD_BYTES
        while at + _BLOCK.size <= len(data):
            magic, _, _, size, _ = _BLOCK.unpack_from(data, at)
            if magic != _BLOCK_MAGIC or at + _BLOCK.size + size > len(data):
                break
            at += _BLOCK.size + size
        return at


class SharedSampler:
    """One rank's part in the process, with the methods of HardwareSampler. ``problem`` says what is missing."""

    def __init__(self, interval_ns: int, max_bytes: int, directory: str, environ: Dict[str, str]) -> None:
        self._sampler = HardwareSampler(interval_ns, max_bytes)
        self._folder = meeting_place(directory, interval_ns, environ)
        self._rank, self._ranks = int(environ["LOCAL_RANK"]), int(environ["LOCAL_WORLD_SIZE"])
        self._input, self._owner = -1, 0
        self._own = ""  # the file next to the recording
        self.problem = ""

    def start(self, command: str = "") -> None:
        """Joins the process, or starts it and waits until it samples."""
        self._owner = os.getpid()
        for _ in range(_MEETINGS):
            try:
                self._meet(command)
                return
            except FileNotFoundError as error:  # a process has just ended, and removed the folder
                problem = error.strerror
            except OSError as error:
                problem = error.strerror
                break
        self.problem = f"the ranks of this host cannot meet in {self._folder} to share one sampler: {problem}"

    def path(self) -> str:
        """The samples of this rank's GPU, "" if there are none. A rank that sees one GPU only knows it as number 0."""
        for number in (self._rank, 0):
            path = os.path.join(self._folder, f"{number}{ENDING}")
            if self._input >= 0 and os.path.exists(path):
                return path
        return ""

    def give_name(self, path: str, recording: str) -> str:
        """Links the file next to its recording; returns why that failed, or ""."""
        try:
            os.link(path, recording + ENDING)
        except OSError as error:
            return f"{path} cannot be linked next to the recording: {error}"
        self._own = recording + ENDING
        return ""

    def stop(self) -> None:
        """Leaves the process, and waits until the file of this rank is complete. In a forked child it does nothing."""
        if self._owner != os.getpid():
            return
        if self._input < 0:
            self._remove_folder()
            return
        self._let_go()
        deadline = time.monotonic() + _TOGETHER_SECONDS
        while self._is_sampling():
            if time.monotonic() > deadline:
                self._keep_until_now()
                break
            time.sleep(0.02)
        process = self._sampler.give_away()
        if process is not None:
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                _ending_later.append(process)

    def _meet(self, command: str) -> None:
        os.makedirs(self._folder, 0o700, exist_ok=True)
        if os.lstat(self._folder).st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "it belongs to another user")
        with open(os.path.join(self._folder, "lock"), "wb") as lock:
            self._join(lock, command)

    def _join(self, lock: "IO[bytes]", command: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    self.problem = f"another rank of this host did not start the sampler within {READY_SECONDS:.0f} s"
                    return
                time.sleep(0.02)
        state = os.path.join(self._folder, "state")
        if self._take_input():
            with open(state, encoding="utf-8") as file:
                self.problem = file.read()
            return
        self._start_process(command)
        if self.problem and not self._sampler.is_running():
            self._let_go()
        with open(state, "w", encoding="utf-8") as file:
            file.write(self.problem)

    def _start_process(self, command: str) -> None:
        name = os.path.join(self._folder, "input")
        if os.path.lexists(name):
            os.unlink(name)
        os.mkfifo(name, 0o600)
        reading = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._take_input()
            devices = ",".join(map(str, range(self._ranks)))
            self._sampler.start(self._folder + os.sep, command, devices, reading)
            self._sampler.wait()
            self.problem = self._sampler.problem
        finally:
            os.close(reading)

    def _open_input(self) -> int:
        """The writing end of the FIFO; -1: nobody reads it, so there is no process."""
        try:
            return os.open(os.path.join(self._folder, "input"), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENOENT):
                return -1
            raise

    def _take_input(self) -> bool:
        self._input = self._open_input()
        if self._input >= 0:
            _inputs.add(self._input)
        return self._input >= 0

    def _let_go(self) -> None:
        if self._input >= 0:
            _inputs.discard(self._input)
            os.close(self._input)
        self._input = -1

    def _is_sampling(self) -> bool:
        file = self._open_input()
        if file >= 0:
            os.close(file)
        return file >= 0

    def _remove_folder(self) -> None:
        """A process would have removed it, but none started. Not while another rank joins."""
        try:
            with open(os.path.join(self._folder, "lock"), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._is_sampling():
                    for name in os.listdir(self._folder):
                        os.unlink(os.path.join(self._folder, name))
                    os.rmdir(self._folder)
        except OSError:  # another rank is there, or has removed it
            pass

    def _keep_until_now(self) -> None:
        """Other ranks go on, and the file grows: this rank's recording gets a copy of what there is."""
        if not self._own:
            return
        part = self._own + ".part"
        try:
            with open(self._own, "rb") as source, open(part, "wb") as target:
                shutil.copyfileobj(source, target)
            with open(part, "r+b") as target:
                target.truncate(whole_bytes(part))
            os.replace(part, self._own)
        except OSError as error:
            self.problem = f"{self._own} also has what was sampled after this rank's end; a copy failed: {error}"
