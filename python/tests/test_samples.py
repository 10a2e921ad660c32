"""Samples of Python stacks: what a recording says, and that the program is left alone.

No test measures time: each runs until enough samples exist.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time

import pytest

import lanescope
from lanescope import _core, profile

CPU = [lanescope.ProfilerActivity.CPU]
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "print_python_layout.c"
KNOWN = (3, 9) <= sys.version_info[:2] <= (3, 15) and not sysconfig.get_config_var("Py_GIL_DISABLED")
needs_samples = pytest.mark.skipif(not KNOWN, reason="this Python's stacks are not sampled")


def innermost(steps):
    return sum(i * i for i in range(steps))


def busy_until(samples):
    """Runs Python code until so many stacks were sampled; the number of rounds is a limit for a broken sampler."""
    for _ in range(1_000_000):
        if _core.samples_taken() >= samples:
            return
        innermost(200)
    raise AssertionError(f"{_core.samples_taken()} samples after a million rounds")


def written(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def slices_of(trace):
    return [event for event in trace["traceEvents"] if event.get("cat") == "python_sample"]


def lane(thread_id):
    return f"{thread_id} sampled"


def self_samples(trace, thread_id=None):
    """By function; of all threads, those of earlier tests included, or of one."""
    found = {}
    for event in slices_of(trace):
        if thread_id is not None and event["tid"] != lane(thread_id):
            continue
        name = event["name"].rpartition(": ")[2]
        found[name] = found.get(name, 0) + event["args"]["Self samples"]
    return found


@needs_samples
def test_the_busy_function_has_most_samples(tmp_path):
    with profile(activities=CPU, sample_python=True) as prof:
        busy_until(200)
    trace = written(prof, tmp_path)
    found = self_samples(trace, threading.get_native_id())
    assert found.get("<genexpr>", 0) + found.get("innermost", 0) > sum(found.values()) / 2, found
    counts = trace["lanescope_python_samples"]
    assert counts["per_second"] == 1000
    assert counts["stacks"] == sum(self_samples(trace).values())
    assert counts["cpu_us"] > 0
    main = [event for event in slices_of(trace) if event["name"].endswith(": busy_until")]
    first = busy_until.__code__.co_firstlineno
    assert all(event["name"].endswith(f"test_samples.py({first}): busy_until") for event in main)
    lines = {int(line) for event in main for line in event["args"]["Lines"]}
    assert lines <= set(range(first, first + 8)), lines
    assert first + 5 in lines  # the call of innermost()


@needs_samples
def test_every_thread_has_a_lane(tmp_path):
    ready, end = threading.Event(), threading.Event()

    def waits():
        ready.set()
        end.wait()

    thread = threading.Thread(target=waits)
    with profile(activities=CPU, sample_python=500) as prof:
        thread.start()
        ready.wait()
        busy_until(100)
        end.set()
        thread.join()
    trace = written(prof, tmp_path)
    threads = {event["tid"] for event in slices_of(trace)}
    assert {lane(threading.get_native_id()), lane(thread.native_id)} <= threads
    waiting = {event["tid"] for event in slices_of(trace) if event["name"].endswith(": waits")}
    assert waiting == {lane(thread.native_id)}
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert f"{threading.get_native_id()}" in " ".join(name for name in names if "Python (sampled)" in name)


@needs_samples
def test_tables_have_no_rows_of_samples():
    with profile(activities=CPU, sample_python=True) as prof:
        with lanescope.record_function("range"):
            busy_until(50)
    assert [row.key for row in prof.key_averages()] == ["range"]


def spin(stop):
    while not stop.is_set():
        innermost(50)


@needs_samples
def test_threads_that_wait_for_the_lock_are_counted(tmp_path):
    stop = threading.Event()
    other = threading.Thread(target=spin, args=(stop,))
    with profile(activities=CPU, sample_python=True) as prof:
        other.start()
        busy_until(400)
        stop.set()
        other.join()
    trace = written(prof, tmp_path)
    lock = trace["lanescope_python_lock"]
    assert 0 < lock["held"] <= lock["times"] <= trace["lanescope_python_samples"]["times"]
    if "waited" not in lock:
        pytest.skip("where this libc counts waiting threads is not known")
    # Two threads that only run Python code: nearly always one holds the lock and the other waits.
    assert lock["waiting"] >= lock["waited"] > lock["times"] / 4
    held = sum(event["args"].get("Others waited for the GIL samples", 0) for event in slices_of(trace))
    assert 0 < held <= lock["waited"]


def collect_until(samples):
    while _core.samples_taken() < samples:
        gc.collect()


@needs_samples
def test_garbage_collection_is_in_its_function(tmp_path):
    kept = [[i] for i in range(200_000)]
    with profile(activities=CPU, sample_python=True) as prof:
        collect_until(100)
    assert kept
    trace = written(prof, tmp_path)
    assert trace["lanescope_python_lock"]["collecting"] > 0
    where = [event["name"] for event in slices_of(trace) if event["args"].get("Collecting garbage samples")]
    assert where and all(name.endswith(": collect_until") for name in where), where


@needs_samples
def test_samples_stop_with_the_window(tmp_path):
    taken = []
    with profile(activities=CPU, sample_python=True, schedule=lanescope.schedule(wait=1, warmup=0, active=1)) as prof:
        taken.append(_core.samples_taken())
        prof.step()
        busy_until(30)
        prof.step()
        taken.append(_core.samples_taken())
    assert taken == [0, 0]
    assert self_samples(written(prof, tmp_path))


@needs_samples
def test_a_forked_child_goes_on_without_samples():
    with profile(activities=CPU, sample_python=True):
        busy_until(10)
        child = os.fork()
        if child == 0:
            os._exit(0 if _core.samples_taken() == 0 and innermost(1000) else 1)
        assert os.waitpid(child, 0)[1] == 0
        busy_until(_core.samples_taken() + 10)


def busy_child(started):
    started.set()
    while True:
        innermost(200)


def wait_for_child_samples(count):
    deadline = time.monotonic() + 60  # a limit for a broken sampler
    while _core.child_samples_taken() < count and time.monotonic() < deadline:
        innermost(200)


@needs_samples
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_have_lanes_of_their_own(tmp_path, method):
    if not os.path.exists("/proc/self/task/%d/children" % threading.get_native_id()):
        pytest.skip("this kernel does not list children")
    context = multiprocessing.get_context(method)
    started = context.Event()
    with profile(activities=CPU, sample_python=True) as prof:
        children = [context.Process(target=busy_child, args=(started,), daemon=True) for _ in range(2)]
        for child in children:
            child.start()
        assert started.wait(60)
        wait_for_child_samples(_core.child_samples_taken() + 200)  # before that, a spawned child imports
        taken = _core.child_samples_taken()
        for child in children:
            child.kill()
            child.join()
    assert taken >= 100
    trace = written(prof, tmp_path)
    counts = trace["lanescope_python_samples"]
    assert counts["child_stacks"] >= taken and 1 <= counts["children"] <= 3  # spawn has a process for its resources
    pids = {child.pid for child in children}
    found = [event for event in slices_of(trace) if event["pid"] in pids]
    assert any(event["name"].endswith(": busy_child") for event in found)
    assert all(event["tid"] == lane(event["pid"]) for event in found)  # their main threads
    assert not any(event["name"].endswith(": busy_child") for event in slices_of(trace) if event["pid"] == os.getpid())
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name" and event["pid"] in pids}
    assert names <= {f"child process {pid}" for pid in pids} and names


class SlowSet:
    def __len__(self):
        return 40_000  # more than are asked for

    def __getitem__(self, index):
        return decode(index)


def decode(index):
    for _ in range(20):
        innermost(1000)
    return index


@needs_samples
def test_explain_names_the_function_that_makes_batches_slow(torch, tmp_path):
    from torch.utils.data import DataLoader

    if not os.path.exists("/proc/self/task/%d/children" % threading.get_native_id()):
        pytest.skip("this kernel does not list children")
    model = torch.nn.Linear(1, 1)
    batches = iter(DataLoader(SlowSet(), batch_size=4, num_workers=2, multiprocessing_context="fork"))
    with profile(activities=CPU, sample_python=True) as prof:
        for number in range(9_000):
            with lanescope.record_function(f"ProfilerStep#{number}"):
                model(next(batches).float().unsqueeze(1)).sum().backward()
            if number > 8 and _core.child_samples_taken() > 400:
                break
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert sum(name.startswith("DataLoader worker ") for name in names) == 2, names
    found = [each for each in lanescope.explain(str(path)).findings if each.rule == "dataloader-wait"]
    assert len(found) == 1
    said = found[0].arithmetic[-1]
    assert said.startswith("samples of the workers' Python stacks in these waits: they made batches in "), said
    assert re.search(r"test_samples\.py\(\d+\): (decode|innermost|<genexpr>), mostly at line \d+$", said.rstrip(".")), said


def test_a_rate_must_be_possible():
    for wrong in (-1, 10_001, "1000"):
        with pytest.raises(ValueError, match="sample_python: expected True or 1 to 10000"):
            profile(sample_python=wrong)


@needs_samples
def test_no_samples_without_being_asked(tmp_path):
    with profile(activities=CPU) as prof:
        innermost(100)
    assert not slices_of(written(prof, tmp_path))


def test_offsets_are_those_of_the_headers(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    include = sysconfig.get_path("include")
    if not _core.python_layout():
        pytest.skip("this version brings its own table of offsets")
    if compiler is None or not os.path.exists(os.path.join(include, "internal", "pycore_runtime.h")):
        pytest.skip("needs a C compiler and the headers of this Python")
    program = str(tmp_path / "print_layout")
    subprocess.run([compiler, "-w", f"-I{include}", str(TOOL), "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert {line.split()[0]: int(line.split()[1]) for line in printed.splitlines()} == _core.python_layout()
