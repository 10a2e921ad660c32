"""Runs the small programs of the scenarios, and reads what they left through the lanescope command."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from background import wait_for_results  # noqa: E402

ROOT = HERE.parents[1]
SLOTS = 8
MB = 1_000_000
OWN_MOUNTS = "RELIABILITY_OWN_MOUNTS"  # set where the mounts of this process are its own and go with it


class Skip(Exception):
    """The scenario cannot run here; the text says why."""


class Broken(Exception):
    """A promise is broken; the text says which."""


def promise(holds, text):
    if not holds:
        raise Broken(text)


def find_lanescope():
    """The command and, for the build tree, the folder of its Python package."""
    named = os.environ.get("LANESCOPE_COMMAND")
    next_to_python = pathlib.Path(sys.executable).parent / "lanescope"
    if named:
        return pathlib.Path(named), None
    if next_to_python.exists():
        return next_to_python, None
    built = ROOT / "build" / "release"
    if (built / "src/lanescope/cli/lanescope").exists():
        return built / "src/lanescope/cli/lanescope", built / "python"
    sys.exit("run.py: no lanescope command found; install it (pip install .), build it (cmake --build --preset release) "
             "or name it in LANESCOPE_COMMAND")


LANESCOPE, PACKAGE = find_lanescope()


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("LANESCOPE_RECORD")}
    paths = [str(HERE)] + ([str(PACKAGE)] if PACKAGE else []) + ([env["PYTHONPATH"]] if env.get("PYTHONPATH") else [])
    env.update(PYTHONPATH=os.pathsep.join(paths), PATH=f"{LANESCOPE.parent}{os.pathsep}{env['PATH']}", PYTHONUNBUFFERED="1",
               OMP_NUM_THREADS="1", **more)
    return env


def has_module(name):
    return subprocess.run([sys.executable, "-c", f"import {name}"], env=environment(), capture_output=True,
                          check=False).returncode == 0


@functools.lru_cache(None)
def need_torch():
    if not has_module("torch"):
        raise Skip("needs torch")
    # Not in a scenario: a compiler has no room within its limits.
    subprocess.run([sys.executable, "-m", "lanescope.observer", "build"], env=environment(), capture_output=True, check=False)


@dataclasses.dataclass
class Ended:
    """One program that has ended: exit code (negative: the signal), what it printed, what it counted."""

    code: int
    out: str
    err: str
    counted: list
    ended_at: float
    converter_peak_bytes: int

    def number(self, word, at=1):
        found = [line.split() for line in self.out.splitlines() if line.startswith(word + " ")]
        promise(found, f"the program did not print '{word}': {self.err[-300:]}")
        return float(found[-1][at])


class Guest:
    """A running program: Python text, put after `from guest import *`, or the words of a command."""

    def __init__(self, code, out, record=None, prefix=(), preexec=None, env=None):
        self._counters = tempfile.NamedTemporaryFile(prefix="lanescope_counters_")  # pylint: disable=consider-using-with
        self._counters.truncate(8 * SLOTS)
        self.out = pathlib.Path(out)
        self._err = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        command = [sys.executable, "-c", "from guest import *\n" + code] if isinstance(code, str) else code
        if record is not None:
            command = [str(LANESCOPE), "record", "-o", str(out), *record, "--", *command]
        self.process = subprocess.Popen([*prefix, *command], stdout=subprocess.PIPE, stderr=self._err, preexec_fn=preexec,
                                        env=environment(RELIABILITY_COUNTERS=self._counters.name, RELIABILITY_OUT=str(out),
                                                        **(env or {})))
        self.pid = self.process.pid
        self._lines, self._ready = [], threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._peak = 0
        self._over = False
        self._converters = set()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.append(line.decode(errors="replace"))
            if line == b"ready\n":
                self._ready.set()
        self._ready.set()

    def _watch(self):
        """The largest memory of a process that converts what this one recorded: its parent is this one, until that ends."""
        while not self._over:
            with contextlib.suppress(OSError):
                children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
                self._converters.update(child for child in children
                                        if b"recover" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes())
            for child in self._converters:
                with contextlib.suppress(OSError):
                    peak = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{child}/status").read_text())
                    self._peak = max(self._peak, int(peak.group(1)) * 1024 if peak else 0)
            time.sleep(0.01)

    def wait_ready(self):
        promise(self._ready.wait(120), "the program did not begin within 120 s")

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def wait(self, timeout=900):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self._over = True
            self._watcher.join()
            for child in self._converters:
                with contextlib.suppress(OSError):
                    os.kill(int(child), signal.SIGKILL)
            raise Broken(f"the program did not end within {timeout} s") from None
        ended_at = time.monotonic()
        self._reader.join(60)
        self._err.seek(0)
        err = self._err.read().decode(errors="replace")
        wait_for_results(err, seconds=300)
        self._over = True
        self._watcher.join()
        self._counters.seek(0)
        counted = list(memoryview(self._counters.read()).cast("Q"))
        self._counters.close()
        return Ended(code, "".join(self._lines), err, counted, ended_at, self._peak)


def run(code, out, **options):
    return Guest(code, out, **options).wait()


def lanescope(*words, code=0):
    ran = subprocess.run([LANESCOPE, *map(str, words)], env=environment(), capture_output=True, text=True, check=False,
                         timeout=600)
    promise(ran.returncode == code, f"lanescope {words[0]} ended with {ran.returncode}: {ran.stderr[-300:]}")
    return ran.stdout


@dataclasses.dataclass
class Found:
    """What a recording or trace holds: calls by name, and what its writer counted as lost."""

    calls: dict
    dropped: int
    total_ns: dict
    window_ns: int

    def of(self, word):
        return sum(count for name, count in self.calls.items() if re.fullmatch(word, name))


def read(path):
    table = json.loads(lanescope("table", path, "--json"))
    issues = {issue["name"]: issue["count"] for issue in json.loads(lanescope("info", path, "--json"))["issues"]}
    calls = {row["name"]: row["count"] for row in table["rows"]}
    total = {row["name"]: row["cpu_time_total_ns"] for row in table["rows"]}
    return Found(calls, issues.get("dropped-records", 0), total, table["window_ns"])


def only(folder, pattern="*.lspool"):
    found = sorted(pathlib.Path(folder).glob(pattern))
    promise(len(found) == 1, f"expected one {pattern}, found {[path.name for path in found]}")
    return found[0]


def whole_or_absent(folder):
    """No file under a final name is half; every .json and .lspool can be read. Returns what is there, by ending."""
    there = {}
    for path in pathlib.Path(folder).iterdir():
        if path.name.endswith((".json", ".json.gz", ".lspool")):
            there[".json" if ".json" in path.name else ".lspool"] = read(path)
        else:
            promise(path.name.endswith(".txt"), f"a half-written file stayed: {path.name}")
            promise(path.read_text().strip(), f"{path.name} is empty")
    return there


def check_counts(found, counted, running=0):
    """Each range that was counted is there or counted as dropped; none is invented. `running`: begun, but not yet counted."""
    for slot, done in enumerate(counted):
        there = found.of(rf"t{slot}(_\d+)?")
        promise(there <= done + min(running, 1), f"{there} ranges of thread {slot} found, {done} were made")
        if found.dropped == 0:
            promise(there >= done, f"{there} ranges of thread {slot} found, {done} were counted, none dropped")
            for number in range(500, done + 1, 500):
                promise(found.calls.get(f"t{slot}_{number}") == 1, f"range t{slot}_{number} is missing")
    there, done = found.of(r"t\d+(_\d+)?"), sum(counted)
    promise(done <= there + found.dropped <= done + running, f"{done} counted, {there} found, {found.dropped} dropped")


@contextlib.contextmanager
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="lanescope_reliability_"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def mounted(path, kind, options="defaults"):
    """A file system on a folder, for a while."""
    ran = subprocess.run(["mount", "-t", kind, "-o", options, "none", path], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise Skip(f"needs the right to mount {kind}: {ran.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=False)


@contextlib.contextmanager
def disk(options):
    """A folder with a separate tmpfs."""
    with folder() as path, mounted(path, "tmpfs", options):
        yield path


class MemoryCgroup:
    """A memory cgroup of version 1 or 2."""

    def __init__(self, path, version):
        self.path, self._version = path, version

    def join(self):
        """Run in a child between fork and exec."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, size):
        """Memory that is needed beyond is taken back from the page cache, and when that is too little, a process is killed."""
        if self._version == 1:
            (self.path / "memory.limit_in_bytes").write_text(str(size))
            with contextlib.suppress(OSError):  # no account of swap
                (self.path / "memory.memsw.limit_in_bytes").write_text(str(size))
        else:
            (self.path / "memory.max").write_text(str(size))
            with contextlib.suppress(OSError):
                (self.path / "memory.swap.max").write_text("0")

    def _number(self, file, word):
        found = re.search(rf"^{word} (\d+)", (self.path / file).read_text(), re.MULTILINE)
        return int(found.group(1)) if found else 0

    def killed(self):
        """Processes that the kernel has killed for the limit."""
        return self._number("memory.oom_control" if self._version == 1 else "memory.events", "oom_kill")

    def peak_bytes(self):
        """The most that it held, with the pages of files; 0: this kernel does not say."""
        file = self.path / ("memory.max_usage_in_bytes" if self._version == 1 else "memory.peak")
        return int(file.read_text()) if file.exists() else 0


def _hierarchy(version, around):
    """The root of the memory cgroups of one version: where it is mounted, else mounted for a while (in mounts of our own)."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, path, kind, words = line.split()[:4]
        if (kind == "cgroup" and "memory" in words.split(",")) if version == 1 else kind == "cgroup2":
            return pathlib.Path(path)
    if OWN_MOUNTS not in os.environ:
        raise Skip(f"no cgroup of version {version} with memory is mounted, and mounting one needs root")
    return around.enter_context(mounted(around.enter_context(folder()), *(("cgroup", "memory") if version == 1 else ("cgroup2",))))


@contextlib.contextmanager
def memory_cgroup(version):
    with contextlib.ExitStack() as around:
        root = _hierarchy(version, around)
        if version == 2:
            if "memory" not in (root / "cgroup.controllers").read_text().split():
                raise Skip("memory is no controller of cgroup version 2 here: version 1 has it, or nobody")
            if "memory" not in (root / "cgroup.subtree_control").read_text().split():
                try:
                    (root / "cgroup.subtree_control").write_text("+memory")
                except OSError as error:
                    raise Skip(f"memory cannot be switched on for cgroups of version 2: {error}") from None
                around.callback((root / "cgroup.subtree_control").write_text, "-memory")
        group = root / f"lanescope_reliability_{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            raise Skip(f"needs the right to make a memory cgroup: {error}") from None
        try:
            yield MemoryCgroup(group, version)
        finally:
            for _ in range(50):
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
