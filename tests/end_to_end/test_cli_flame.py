"""Where Python's time went: `lanescope flame` of a real trace, and `lanescope sample` of a process that runs."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.dom.minidom

import pytest

from conftest import DATA

STACKS = DATA / "h200_stacks" / "train_everything.json.gz"
BUSY = """
import sys
def innermost(steps):
    total = 0
    for i in range(steps):
        total += i
    return total
print("ready", flush=True)
while True:
    innermost(1000)
"""


def folded(text):
    """{stack: weight}"""
    return {stack: int(weight) for stack, _, weight in (line.rpartition(" ") for line in text.splitlines())}


def test_recorded_calls_and_the_part_while_the_gpu_was_idle(run):
    whole, idle = run("flame", STACKS), run("flame", STACKS, "--gpu-idle")
    assert whole.code == idle.code == 0
    assert whole.err == "6.065ms of Python calls (self time of recorded calls), 1 thread\n"
    assert idle.err == "5.246ms of 6.065ms of Python calls (self time of recorded calls), 1 thread\n"
    assert set(folded(idle.out)) <= set(folded(whole.out))
    assert all(weight <= folded(whole.out)[stack] for stack, weight in folded(idle.out).items())


def test_a_picture_and_a_file_for_speedscope(run, tmp_path):
    ran = run("flame", STACKS, "--svg", "flame.svg", "--speedscope", "flame.json")
    assert ran.code == 0 and len(ran.out.splitlines()) == 2, ran.err
    picture = xml.dom.minidom.parse(str(tmp_path / "flame.svg"))
    titles = [title.firstChild.data for title in picture.getElementsByTagName("title")]
    assert any("optimizer.py" in title and "%" in title for title in titles)
    scope = json.loads((tmp_path / "flame.json").read_text())
    profile = scope["profiles"][0]
    assert profile["unit"] == "nanoseconds" and sum(profile["weights"]) == profile["endValue"]
    assert max(max(stack) for stack in profile["samples"]) < len(scope["shared"]["frames"])
    again = run("flame", STACKS, "--svg", "flame.svg")
    assert again.code == 2 and "flame.svg" in again.complaint()


def test_samples_come_with_their_standard_error(run, tmp_path):
    """Of 400 samples one half has a standard error of sqrt(400 / 4) = 10 samples: 2.5 %."""
    events = [{"ph": "X", "cat": "python_sample", "name": name, "pid": 1, "tid": "7 sampled", "ts": ts, "dur": dur,
               "args": {"Samples": samples, "Self samples": self_samples}}
              for name, ts, dur, samples, self_samples in [("train.py(1): main", 0, 400, 400, 100), ("train.py(9): load", 100, 300, 300, 300)]]
    (tmp_path / "sampled.json").write_text(json.dumps({"traceEvents": events}))
    ran = run("flame", "sampled.json")
    assert ran.out == "train.py(1): main 100\ntrain.py(1): main;train.py(9): load 300\n"
    assert ran.err == "400 samples of Python stacks, 1 thread; shares are estimates, with a standard error of at most 2.5 %\n"


def test_names_cannot_break_out_of_a_line_or_the_picture(run, tmp_path):
    name = "a;b\n<script>\"&"
    event = {"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 10, "args": {}}
    (tmp_path / "odd.json").write_text(json.dumps({"traceEvents": [event]}))
    assert run("flame", "odd.json").out == 'a_b?<script>"& 10\n'
    assert run("flame", "odd.json", "--svg", "odd.svg").code == 0
    assert "<script>" not in (tmp_path / "odd.svg").read_text()
    xml.dom.minidom.parse(str(tmp_path / "odd.svg"))


@pytest.mark.parametrize("arguments, words", [
    ([STACKS, "--step", "99"], ["--step: expected a step from 2 to 3, found 99"]),
    ([STACKS, "--thread", "1"], ["--thread: expected one of 439, found 1"]),
    ([DATA / "h200_mlp_train" / "trace.json.gz"], ["expected Python stacks", "--sample-python"]),
])
def test_what_is_not_there_is_named(run, arguments, words):
    ran = run("flame", *arguments)
    assert ran.code == 2
    assert all(word in ran.complaint() for word in words), ran.err


def test_a_process_that_runs_is_sampled_from_outside(run, tmp_path):
    child = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        ran = run("sample", "--pid", str(child.pid), "--seconds", "2", "-o", "now.json")
        if "right to trace" in ran.err:
            pytest.skip("needs the right to trace a child process")
        assert ran.code == 0, ran.err
        weights = folded(run("flame", "now.json").out)
        assert sum(weights.values()) > 0
        inside = sum(weight for stack, weight in weights.items() if ";<string>(3): innermost" in stack)
        assert inside > sum(weights.values()) / 2, weights
    finally:
        child.kill()
        child.wait()


def test_threads_that_wait_for_the_lock_are_counted(run, tmp_path):
    code = """
import threading
def holds():
    while True:
        sum(range(1000))
for _ in range(2):
    threading.Thread(target=holds, daemon=True).start()
print("ready", flush=True)
holds()
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        ran = run("sample", "--pid", str(child.pid), "--seconds", "3", "-o", "now.json")
        if "right to trace" in ran.err:
            pytest.skip("needs the right to trace a child process")
        assert ran.code == 0, ran.err
        lock = json.loads((tmp_path / "now.json").read_text())["lanescope_python_lock"]
        # Three threads that always want it: one has it, the others wait. A busy machine may stop any of them.
        assert lock["held"] > lock["times"] / 2 and lock["waited"] > lock["times"] / 2, lock
        assert lock["waited"] <= lock["waiting"] <= 3 * lock["waited"], lock
        assert "threads waited for it in about" in ran.err and "<string>(3): holds" in ran.err, ran.err
    finally:
        child.kill()
        child.wait()


def test_what_cannot_be_sampled_is_one_line(run):
    assert "expected --pid" in run("sample").complaint()
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert "there is no process" in run("sample", "--pid", str(gone.pid)).complaint()
    other = subprocess.Popen(["sleep", "100"])
    try:
        ran = run("sample", "--pid", str(other.pid), "--seconds", "1")
        assert ran.code == 1 and ("found no CPython" in ran.complaint() or "right to trace" in ran.complaint())
    finally:
        other.kill()
        other.wait()
