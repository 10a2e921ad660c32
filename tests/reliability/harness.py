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
ROOT = HERE.parents[1]
SLOTS = 8
MB = 1_000_000


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
    beside = pathlib.Path(sys.executable).parent / "lanescope"
    if named:
        return pathlib.Path(named), None
    if beside.exists():
        return beside, None
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
    """A running program: Python text that begins with `from guest import *`."""

    def __init__(self, code, out, record=None, prefix=(), preexec=None, env=None):
        self._counters = tempfile.NamedTemporaryFile(prefix="lanescope_counters_")  # pylint: disable=consider-using-with
        self._counters.truncate(8 * SLOTS)
        self.out = pathlib.Path(out)
        self._err = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        command = [sys.executable, "-c", "from guest import *\n" + code]
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
        found = set()
        while not self._over:
            with contextlib.suppress(OSError):
                children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
                found.update(child for child in children if b"recover" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes())
            for child in found:
                with contextlib.suppress(OSError):
                    peak = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{child}/status").read_text())
                    self._peak = max(self._peak, int(peak.group(1)) * 1024 if peak else 0)
            time.sleep(0.01)

    def wait_ready(self):
        promise(self._ready.wait(120), "the program did not begin within 120 s")

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def wait(self, timeout=300):
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Broken(f"the program did not end within {timeout} s") from None
        ended_at = time.monotonic()
        self._reader.join(60)
        self._err.seek(0)
        err = self._err.read().decode(errors="replace")
        for pid in re.findall(r"is being written by process (\d+)", err):  # it goes on by itself
            until = time.monotonic() + 300
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
                time.sleep(0.05)
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
def disk(options):
    """A folder with a tmpfs of its own."""
    with folder() as path:
        ran = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise Skip(f"needs the right to mount: {ran.stderr.strip()}")
        try:
            yield path
        finally:
            subprocess.run(["umount", "-l", path], check=False)


@contextlib.contextmanager
def memory_cgroup(limit):
    """A folder of a memory cgroup with a limit, version 1 or 2."""
    name = f"lanescope_reliability_{os.getpid()}"
    for parent, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(parent, name)
        try:
            group.mkdir()
        except OSError as error:
            problem = str(error)
            continue
        try:
            (group / file).write_text(str(limit))
        except OSError as error:
            problem = str(error)
            group.rmdir()
            continue
        try:
            yield group
        finally:
            for _ in range(50):
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
        return
    raise Skip(f"needs the right to make a memory cgroup: {problem}")


