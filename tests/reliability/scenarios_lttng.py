"""Peers: what LTTng-UST keeps when the same is done to it. Its program is lttng_counter.c, compiled here.

Daemons, sockets and shared memory live in mounts of their own, so a daemon of the machine is neither used nor disturbed, and
nothing stays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

from harness import HERE, OWN_MOUNTS, Guest, Skip, folder, mounted, promise

PACKAGES = "apt-get install lttng-tools liblttng-ust-dev babeltrace2"
THREADS = 3
# Each thread's events a second: together about as many as the ranges of kill_9, then as many as the program can make.
RATES = {"paced": 300_000, "unpaced": 0}


@functools.lru_cache(None)
def counter_program():
    """Compiles lttng_counter.c once; the folder is removed with this process."""
    for tool in ("lttng", "lttng-sessiond", "lttng-crash", "babeltrace2"):
        if shutil.which(tool) is None:
            raise Skip(f"needs {tool} ({PACKAGES})")
    compiler = shutil.which("cc")
    if compiler is None:
        raise Skip("needs a C compiler called cc")
    keep = tempfile.TemporaryDirectory(prefix="lanescope_reliability_")  # pylint: disable=consider-using-with
    program = pathlib.Path(keep.name) / "lttng_counter"
    ran = subprocess.run([compiler, "-O2", "-I", HERE, HERE / "lttng_counter.c", "-o", program, "-llttng-ust", "-lpthread", "-ldl"],
                         capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        if "lttng/tracepoint.h" in ran.stderr or "-llttng-ust" in ran.stderr:
            raise Skip(f"needs LTTng-UST's headers and library ({PACKAGES})")
        promise(False, f"lttng_counter.c does not compile: {ran.stderr[-300:]}")
    return program, keep


def alive(group):
    """The processes of a process group that have not ended."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = path.read_text().rsplit(")", 1)
            state, _, its_group = rest.split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(name.split("(", 1)[1])
    return found


class Session:
    """A separate session daemon with one recording session and one channel."""

    def __init__(self, out, mode, shm_path):
        self.trace, self.shm, self._out = out / "trace", out / "shm" if shm_path else None, out
        self._own = {"LTTNG_HOME": str(out), "LTTNG_UST_REGISTER_TIMEOUT": "20000"}
        self._env = {**os.environ, **self._own}
        self._daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self._env, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, preexec_fn=os.setpgrp)
        self._group = self._daemon.pid
        try:
            until = time.monotonic() + 20
            while subprocess.run(["lttng", "-n", "list"], env=self._env, capture_output=True, check=False).returncode != 0:
                if self._daemon.poll() is not None or time.monotonic() > until:
                    self._daemon.kill()
                    raise Skip(f"lttng-sessiond does not run here: {self._daemon.stderr.read().decode(errors='replace')[-300:]}")
                time.sleep(0.05)
            self.lttng("create", "reliability", f"--output={self.trace}", *([f"--shm-path={self.shm}"] if shm_path else []))
            self.lttng("enable-channel", "--userspace", f"--{mode}", "channel")
            self.lttng("enable-event", "--userspace", "--channel=channel", "reliability:done")
            self.lttng("start")
        except BaseException:
            self.close()
            raise

    def lttng(self, *words):
        ran = subprocess.run(["lttng", "-n", *words], env=self._env, capture_output=True, text=True, check=False, timeout=60)
        promise(ran.returncode == 0, f"lttng {words[0]} ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-300:]}")

    def program(self, threads=THREADS, events=0, rate=0):
        path, _ = counter_program()
        return Guest([path, str(threads), str(events), str(rate)], self._out, env=self._own,
                     preexec=lambda: os.setpgid(0, self._group))

    def kill_all(self):
        """The program and the daemons at once, as when a container is killed."""
        os.killpg(self._group, signal.SIGKILL)

    def daemons(self):
        return alive(self._group)

    def stop(self):
        """Writes out what is in the buffers. (`lttng destroy` would add nothing, and waits long after a kill.)"""
        self.lttng("stop")

    def close(self):
        """Ends the daemons: by SIGTERM, and when they wait long (see stop), by SIGKILL."""
        for number, seconds in ((signal.SIGTERM, 1), (signal.SIGKILL, 20)):
            with contextlib.suppress(ProcessLookupError):
                if number == signal.SIGTERM:
                    self._daemon.send_signal(number)  # it ends the others
                else:
                    os.killpg(self._group, number)
            until = time.monotonic() + seconds
            while alive(self._group) and time.monotonic() < until:
                self._daemon.poll()
                time.sleep(0.02)
        self._daemon.wait()
        self._daemon.stderr.close()
        promise(not alive(self._group), f"did not end: {alive(self._group)}")


@contextlib.contextmanager
def session(mode, shm_path=False):
    counter_program()
    if OWN_MOUNTS not in os.environ:
        raise Skip("needs the right to make mounts of its own (root), so that no daemon of the machine is disturbed")
    with folder() as out, mounted("/run", "tmpfs", "size=16m"), mounted("/dev/shm", "tmpfs", "size=256m"):
        made = Session(out, mode, shm_path)
        try:
            yield made
        finally:
            made.close()


@dataclasses.dataclass
class Events:
    """What babeltrace2 reads: the numbers of the events by thread, and how many the tracer says that it discarded."""

    numbers: dict
    discarded: int
    wrong: int = 0  # of the tracer's numbers, those that are no numbers of events (above 2**63)

    def count(self):
        return sum(len(each) for each in self.numbers.values())

    def add(self, other):
        for slot, numbers in other.numbers.items():
            self.numbers.setdefault(slot, set()).update(numbers)
        self.discarded += other.discarded
        self.wrong += other.wrong


def read_events(path):
    found = Events({}, 0)
    if not any(each.is_file() for each in path.rglob("*")):
        return found
    with tempfile.TemporaryFile() as err:
        with subprocess.Popen(["babeltrace2", "--no-delta", "--names=none", path], stdout=subprocess.PIPE, stderr=err) as reader:
            for line in reader.stdout:  # ... { 0 }, { SLOT, NUMBER }
                slot, number = line[line.rindex(b"{") + 1:line.rindex(b"}")].split(b",")
                found.numbers.setdefault(int(slot), set()).add(int(number))
        err.seek(0)
        text = err.read().decode(errors="replace")
    promise(reader.returncode == 0, f"babeltrace2 ended with {reader.returncode}: {text[-300:]}")
    said = [int(number) for number in re.findall(r"discarded (\d+) event", text)]
    found.discarded = sum(number for number in said if number < 1 << 63)
    found.wrong = sum(number >= 1 << 63 for number in said)
    return found


def crash_events(made, out):
    """The buffers that outlived everything, made a trace by lttng-crash. With its metadata the daemons' trace can be read, too."""
    ran = subprocess.run(["lttng-crash", "--extract", out, made.shm], capture_output=True, text=True, check=False, timeout=120)
    promise(ran.returncode == 0, f"lttng-crash ended with {ran.returncode}: {ran.stderr[-300:]}")
    (metadata,) = out.rglob("metadata")
    for unwritten in made.trace.rglob("metadata"):
        if unwritten.stat().st_size == 0:
            shutil.copy(metadata, unwritten)
    return read_events(out)


def check_none_invented(found, counted):
    """An event more than counted for each thread may be there: the kill came before its count."""
    for slot, numbers in found.numbers.items():
        promise(max(numbers) <= counted[slot] + 1, f"event {max(numbers)} of thread {slot} found, {counted[slot]} were counted")


def kill_9_of(options, mode, shm_path):
    """Both rates, each with a tenth of the rounds; the text of one mode."""
    texts = []
    rounds = max(1, options.rounds // 10)
    for pace, rate in RATES.items():
        counted = there = from_crash = discarded = wrong = 0
        for number in range(rounds):
            with session(mode, shm_path) as made, folder() as out:
                guest = made.program(rate=rate)
                guest.wait_ready()
                time.sleep(random.Random(options.seed + number).uniform(0.05, 0.3))
                if shm_path:
                    made.kill_all()
                else:
                    guest.kill()
                ended = guest.wait()
                promise(ended.code == -signal.SIGKILL, f"ended with {ended.code}: {ended.err[-300:]}")
                if shm_path:
                    found = crash_events(made, out / "crash")
                    from_crash += found.count()
                else:
                    found = Events({}, 0)
                    made.stop()
                found.add(read_events(made.trace))
                check_none_invented(found, ended.counted)
                counted, there = counted + sum(ended.counted), there + found.count()
                discarded, wrong = discarded + found.discarded, wrong + found.wrong
        promise(counted > 100 and there > 0, f"{counted} counted, {there} found: the scenario shows nothing")
        texts.append(f"{pace}: counted {counted:,}, found {there:,}"
                     f"{f' ({from_crash:,} by lttng-crash)' if shm_path else ''}, lost {max(0, counted - there):,} "
                     f"(LTTng says {discarded:,}{f' and {wrong} impossible numbers' if wrong else ''})")
    return rounds, f"{'ring' if mode == 'overwrite' else mode}, " + "; ".join(texts)


def both_modes(options, shm_path):
    rounds, ring = kill_9_of(options, "overwrite", shm_path)
    _, discard = kill_9_of(options, "discard", shm_path)
    return rounds, f"{ring}. {discard}"


def kill_9_lttng(options):
    """peer: kill -9 of a program under LTTng-UST, whose daemons live on and write what is in the buffers"""
    return both_modes(options, shm_path=False)


def kill_9_lttng_daemons(options):
    """peer: kill -9 of the program and LTTng's daemons at once; read with lttng-crash, thanks to --shm-path"""
    return both_modes(options, shm_path=True)


def cut_file_lttng(_options):
    """peer: truncate of LTTng-UST's buffer files (--shm-path) while the program records"""
    events = 300_000
    with session("discard", shm_path=True) as made:
        guest = made.program(events=events, rate=events)  # a second
        guest.wait_ready()
        time.sleep(0.3)
        buffers = [path for path in made.shm.rglob("channel_*") if path.is_file()]
        promise(buffers, "no buffer file is there")
        for path in buffers:
            os.truncate(path, 0)
        ended = guest.wait()
        found = read_events(made.trace)
        daemons = made.daemons()
    end = f"is ended by {signal.Signals(-ended.code).name}" if ended.code < 0 else f"ends with {ended.code}"
    return 1, (f"the program {end} after {sum(ended.counted):,} of {THREADS * events:,} events; {found.count():,} were written; "
               f"the consumer daemon {'lives' if any('consumer' in name for name in daemons) else 'is gone'}")


def threads_500_lttng(_options):
    """peer: 500 threads leave a barrier and emit one LTTng-UST event each"""
    with session("discard") as made:
        ended = made.program(threads=500, events=1).wait()
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        made.stop()
        found = read_events(made.trace)
        promise(sum(ended.counted) == 500 and found.count() > 0, f"{sum(ended.counted)} counted, {found.count()} found")
    return 1, f"counted 500, found {found.count():,}, lost {500 - found.count():,}"
