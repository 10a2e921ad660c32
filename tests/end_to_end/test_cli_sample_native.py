"""`lanescope sample --native`: native functions of programs that run, which are never stopped."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest

SLEEPS = """
import time
def naps():
    while True:
        time.sleep(0.05)
print("ready", flush=True)
naps()
"""
ADDS = """
import torch
torch.set_num_threads(1)
x = torch.randn(1000, 1000)
y = torch.empty_like(x)
def adds():
    while True:
        torch.add(x, x, out=y)
print("ready", flush=True)
adds()
"""


def folded(text):
    """{stack: weight}"""
    return {stack: int(weight) for stack, _, weight in (line.rpartition(" ") for line in text.splitlines())}


@pytest.fixture
def start():
    """Starts a program and waits for its first line."""
    children = []

    def begin(*command, says="ready"):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        children.append(child)
        if says:
            assert child.stdout is not None and child.stdout.readline().strip() == says
        return child

    yield begin
    for child in children:
        child.kill()
        child.wait()


def sample(run, child, *flags):
    ran = run("sample", "--pid", str(child.pid), "--native", "--seconds", "1", "--rate", "200", *flags)
    if "right to trace" in ran.err or "expected a machine with x86-64" in ran.err:
        pytest.skip("needs x86-64 and the right to trace a child process")
    assert ran.code == 0, ran.err
    if "without libdw" in ran.err:
        pytest.skip("built without libdw")
    return ran


def test_a_function_that_waits_is_below_the_python_function_that_called_it(run, start):
    child = start(sys.executable, "-c", SLEEPS)
    below = total = 0
    for _ in range(40):  # a busy machine gives few samples
        ran = sample(run, child)
        stacks = folded(ran.out)
        total += sum(stacks.values())
        below += sum(n for stack, n in stacks.items() if re.search(r"<string>\(3\): naps;.*nanosleep \[libc\.so", stack))
        assert not any("_PyEval" in stack for stack in stacks), ran.out
        if total >= 30:
            break
    assert below > total / 3, ran.out + ran.err
    assert re.search(r"native frames in \d+ of \d+ samples; \d+ stacks of threads that waited", ran.err), ran.err


def test_a_program_without_python_has_native_stacks(run, start, tmp_path):
    child = start("/bin/sleep", "100", says="")
    ran = sample(run, child, "-o", "now.json")
    assert "without Python frames: expected a Python program" in ran.err
    stacks = folded(run("flame", "now.json").out)
    assert any(re.search(r"nanosleep \[libc\.so", stack) for stack in stacks), stacks
    written = json.loads((tmp_path / "now.json").read_text())
    assert "lanescope_python_lock" not in written
    assert any(event.get("name") == "thread_name" and "sleep" in event["args"]["name"] for event in written["traceEvents"])
    plain = run("sample", "--pid", str(child.pid), "--seconds", "1")
    assert plain.code == 1 and "no CPython" in plain.complaint() and "--native" in plain.complaint()


def test_what_torch_does_is_named_with_its_library(run, start):
    pytest.importorskip("torch")
    child = start(sys.executable, "-c", ADDS)
    for _ in range(40):  # a busy machine gives few samples
        ran = sample(run, child)
        if "perf_event_open" in ran.err:
            pytest.skip("needs perf_event_open for threads that run")
        if any(re.search(r"\): adds;(.*;)?[^;]*at::native::[^;]* \[libtorch_cpu\.so\]", stack) for stack in folded(ran.out)):
            return
    pytest.fail(ran.out + ran.err)


def test_the_program_is_never_stopped_and_lives_on_when_the_sampler_is_killed(binary, start):
    child = start(sys.executable, "-c", SLEEPS)
    sampler = subprocess.Popen([binary, "sample", "--pid", str(child.pid), "--native", "--seconds", "60"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            with open(f"/proc/{child.pid}/status", encoding="ascii") as file:
                status = file.read()
            assert "TracerPid:\t0\n" in status and not re.search(r"State:\s+[tT]", status), status
            time.sleep(0.02)
    finally:
        sampler.kill()
        sampler.wait()
    assert child.poll() is None


def test_a_process_that_is_not_there_is_named(run):
    ran = run("sample", "--pid", "2147483646", "--native")
    assert ran.code == 1 and "there is no process 2147483646" in ran.complaint()
