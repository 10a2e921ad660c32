"""A flight recorder: ``profile(last=...)`` and ``lanescope record --last``, with real torch where it is there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import lanescope
from lanescope import record
from lanescope._flight import parse_last, parse_slow_step


@pytest.mark.parametrize(
    "text, ns",
    [("10s", 10_000_000_000), ("500ms", 500_000_000), ("2m", 120_000_000_000), ("2.5s", 2_500_000_000), (".5s", 500_000_000),
     (3, 3_000_000_000), (0.25, 250_000_000)],
)
def test_a_time_is_read_as_nanoseconds(text, ns):
    assert parse_last(text) == ns


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "0s", "1h", "1 s", "1.s", "1e3s", "nan", 0, -1, float("nan"), True, 1e12])
def test_a_wrong_time_is_an_error_that_says_what_is_expected(text):
    with pytest.raises(ValueError, match="10s, 500ms or 2m"):
        parse_last(text)


def test_a_factor_is_read():
    assert [parse_slow_step(f) for f in ("2x", "2.5x", "3", 1.5)] == [2.0, 2.5, 3.0, 1.5]
    for wrong in ("x", "1x", "0.5x", "2 x", "-2x", 1, float("nan"), True):
        with pytest.raises(ValueError, match="2x or 2.5x"):
            parse_slow_step(wrong)


def test_arguments_that_contradict_are_errors():
    with pytest.raises(ValueError, match="a schedule chooses its steps beforehand"):
        lanescope.profile(last="1s", schedule=lanescope.schedule(wait=1, warmup=1, active=1))
    with pytest.raises(ValueError, match="say with last="):
        lanescope.profile(slow_step=2.0)


def test_the_command_hands_the_settings_on():
    env = record.environment("out", last="10s", slow_step="2x", max_dumps=3, base={})
    assert {k: v for k, v in env.items() if k.endswith(("LAST", "STEP", "DUMPS"))} == {
        "LANESCOPE_RECORD_LAST": "10s", "LANESCOPE_RECORD_SLOW_STEP": "2x", "LANESCOPE_RECORD_MAX_DUMPS": "3"}
    for wrong in ({"slow_step": "2x"}, {"max_dumps": 1}, {"last": "x"}, {"last": "1s", "slow_step": "1x"},
                  {"last": "1s", "max_dumps": -1}, {"last": "1s", "schedule": "active=1"}):
        with pytest.raises(ValueError, match="^--"):
            record.environment("out", base={}, **wrong)


def names_of(trace):
    return [trace.name(i) for i in range(len(trace))]


def test_a_profile_keeps_what_came_last_and_dumps_slow_steps(tmp_path):
    with lanescope.profile(last=0.3, slow_step="3x", max_dumps=1, output_dir=tmp_path) as prof:
        prof._quiet_dumps = True
        with lanescope.record_function("outer"):
            for number in range(60):
                with lanescope.record_function(f"work {number}"):
                    time.sleep(0.1 if number == 50 else 0.01)
                prof.step()
            prof.dump(tmp_path / "asked.lspool")
    names = names_of(prof.trace)
    assert "outer" in names and "work 59" in names and "work 0" not in names
    window = [i for i, name in enumerate(names) if name.startswith("PyTorch Profiler")]
    assert len(window) == 1
    assert len(prof.dumps()) == 1
    dump = lanescope.read_trace(prof.dumps()[0])
    assert "work 50" in names_of(dump) and "work 59" not in names_of(dump)
    asked = names_of(lanescope.read_trace(tmp_path / "asked.lspool"))
    assert "work 59" in asked and "outer" in asked and "work 0" not in asked
    with pytest.raises(lanescope.Error):
        prof.dump(tmp_path / "late.lspool")


def test_results_while_the_ring_still_runs():
    with lanescope.profile(last="10s") as prof:
        with lanescope.record_function("seen"):
            pass
        assert "seen" in names_of(prof.trace)
        with lanescope.record_function("seen later"):
            pass
        assert "seen later" in names_of(prof.trace)
        folder = os.path.dirname(prof.spool_path)
        assert not [f for f in os.listdir(folder) if f.startswith(os.path.basename(prof.spool_path) + ".read")]


LOOP = """
import os, sys, time, torch
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range({steps}):
    optimizer.zero_grad()
    with torch.profiler.record_function(f"batch {{number}}"):
        model(torch.ones(2, 8)).sum().backward()
        {body}
    optimizer.step()
"""


@pytest.fixture
def start(tmp_path, torch):
    started = []

    def begin(code, *flags):
        (tmp_path / "script.py").write_text(code)
        command = [sys.executable, "-m", "lanescope.record", "-o", "out", *flags, "--", sys.executable, "script.py"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process, tmp_path / "out"

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for_line(stream, pattern):
    lines = []
    for line in stream:
        lines.append(line)
        found = re.search(pattern, line)
        if found:
            return found
    raise AssertionError("".join(lines))


def test_a_slow_step_of_a_training_leaves_a_dump(start):
    body = "time.sleep(0.3 if number == 20 else 0.01)"
    process, out = start(LOOP.format(steps=60, body=body), "--last", "2s", "--slow-step", "5x")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    said = re.search(r"lanescope: step (\d+) took (\S+) times the median of the (\d+) steps before it .*: the last \S+ s are in (\S+)",
                     errors)
    assert said, errors
    pid = process.pid
    # The first optimizer step ends step 0, so batch 20 is in step 20.
    assert said.group(1) == "20" and float(said.group(2)) > 5
    assert said.group(4) == str(out / f"script_{pid}_dump1.lspool")
    assert sorted(f for f in os.listdir(out)) == sorted(
        f"script_{pid}{kind}" for kind in (".json", ".txt", "_dump1.json", "_dump1.txt"))
    dump = lanescope.read_trace(out / f"script_{pid}_dump1.json")
    names = names_of(dump)
    assert "batch 20" in names and "ProfilerStep#20" in names and "aten::linear" in names
    assert "aten::linear" in (out / f"script_{pid}_dump1.txt").read_text()
    with open(out / f"script_{pid}_dump1.json", encoding="utf-8") as file:
        assert json.load(file)["lanescope_dump"]["reason"].startswith("step 20 took ")


def test_a_signal_dumps_a_program_that_hangs_and_a_kill_leaves_the_ring(start):
    # It hangs in C code that never returns to the interpreter: a lock that nobody gives back.
    body = "number == 5 and (print('hangs', flush=True), ctypes.PyDLL(None).pause())"
    process, out = start("import ctypes\n" + LOOP.format(steps=10, body=body), "--last", "10s")
    assert process.stdout.readline() == "hangs\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGUSR2)
    found = wait_for_line(process.stderr, r"lanescope: SIGUSR2: the last \S+ s are in (\S+)")
    names = names_of(lanescope.read_trace(found.group(1)))
    assert "batch 5" in names and "aten::linear" in names
    process.kill()
    process.communicate()
    left = [f for f in os.listdir(out) if f.endswith(".lspool")]
    assert sorted(left) == sorted([f"script_{process.pid}.lspool", f"script_{process.pid}_dump1.lspool"])
    assert "batch 5" in names_of(lanescope.read_trace(out / f"script_{process.pid}.lspool"))


def test_a_signal_before_torch_is_imported_kills_nothing(start):
    code = "import time; print('up', flush=True); time.sleep(1); import torch; torch.ones(2).sin()"
    process, out = start(code, "--last", "10s")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGUSR2)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "nothing is recorded yet" in errors
    assert "aten::sin" in names_of(lanescope.read_trace(out / f"script_{process.pid}.json"))


def test_a_handler_of_the_program_wins(start):
    code = """
import os, signal, time
signal.signal(signal.SIGUSR2, lambda *_: print("mine", flush=True))
import torch
torch.ones(2).sin()
os.kill(os.getpid(), signal.SIGUSR2)
time.sleep(0.1)
"""
    process, out = start(code, "--last", "10s")
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, output) == (0, "mine\n"), errors
    assert "SIGUSR2 makes no dumps: the program has a handler of its own for it" in errors
    assert sorted(os.listdir(out)) == [f"script_{process.pid}.json", f"script_{process.pid}.txt"]
