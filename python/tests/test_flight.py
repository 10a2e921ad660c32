"""A flight recorder: ``profile(last=...)`` and ``lanescope record --last``, with real torch where it is there."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
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


def assert_what_came_last(found, ends, last_ns, window_end):
    """``ends``: for each range a moment shortly before its end and one after it; ``window_end`` likewise. It is unknown when
    a busy machine lets a thread run, so ranges that ended too near the window's begin may be there or not."""
    error_ns = 1_000_000  # the recorder's clock against the one of the test
    first, after = (moment - last_ns for moment in window_end)
    for name, (before_end, after_end) in ends.items():
        if after_end < first - error_ns:
            assert name not in found
        elif before_end > after + error_ns:
            assert name in found


def test_a_profile_keeps_what_came_last(tmp_path):
    last_ns = 500_000_000
    now = time.monotonic_ns
    ends, forever = {}, 1 << 63
    with lanescope.profile(last="500ms", output_dir=tmp_path) as prof:
        with lanescope.record_function("outer"):
            number = 0
            while number == 0 or now() < ends["work 0"][1] + 3 * last_ns:
                with lanescope.record_function(f"work {number}"):
                    time.sleep(0.01)
                    before = now()
                ends[f"work {number}"] = (before, now())
                prof.step()
                number += 1
            asked = [now()]
            prof.dump(tmp_path / "asked.lspool")
            asked.append(now())
            asked_ends = {**ends, "outer": (forever, forever)}  # open
            before = now()
        ends["outer"] = (before, now())
        stopped = [now()]
    stopped.append(now())
    names = names_of(prof.trace)
    assert len([name for name in names if name.startswith("PyTorch Profiler")]) == 1
    assert "work 0" not in names and len(names) == len(set(names))
    assert_what_came_last(names, ends, last_ns, stopped)
    asked_names = names_of(lanescope.read_trace(tmp_path / "asked.lspool"))
    assert "work 0" not in asked_names and "outer" in asked_names
    assert_what_came_last(asked_names, asked_ends, last_ns, asked)
    assert prof.dumps() == []
    with pytest.raises(lanescope.Error):
        prof.dump(tmp_path / "late.lspool")


def slow_steps(marks, factor):
    """The steps that are slow for sure and those that may be. Step ``n`` took from a moment within ``marks[n]`` to one within
    ``marks[n + 1]``, each of them two readings of a clock. The rule: docs/definitions/recording.md#slow-step."""

    def median(values):
        values = sorted(values)
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2

    at_least = [end[0] - begin[1] for begin, end in zip(marks, marks[1:])]
    at_most = [end[1] - begin[0] for begin, end in zip(marks, marks[1:])]
    known = range(8, len(at_most))
    sure = [n for n in known if at_least[n] > factor * median(at_most[max(0, n - 64):n])]
    possible = [n for n in known if at_most[n] > factor * median(at_least[max(0, n - 64):n])]
    return sure, possible


def test_the_worst_step_has_the_only_dump_whatever_else_is_slow(tmp_path):
    now = time.monotonic
    marks = [[now()]]
    with lanescope.profile(last="10m", slow_step="3x", max_dumps=1, output_dir=tmp_path) as prof:
        marks[0].append(now())
        for number in range(20):
            slowest = max((end[1] - begin[0] for begin, end in zip(marks[1:], marks[2:])), default=0)
            with lanescope.record_function(f"work {number}"):
                time.sleep(4 * slowest if number in (12, 15) else 0.01)  # 15: twice as bad as 12 and more
            marks.append([now()])
            prof.step()
            marks[-1].append(now())
    (path,) = prof.dumps()
    assert [file.name for file in tmp_path.iterdir() if "_dump" in file.name] == [os.path.basename(path)]
    dump = lanescope.read_trace(path)
    found = re.match(r"step (\d+) took (\S+) times the median of the (\d+) steps before it", dump.metadata["lanescope_dump"]["reason"])
    assert found, dump.metadata
    step = int(found.group(1))
    sure, possible = slow_steps(marks, 3)
    assert 12 in sure and 15 in sure
    # A machine that stops for longer than all of step 15 makes a later one that is worse.
    assert step in possible and (step == 15 or step > 15 and step in sure)
    assert float(found.group(2)) >= 3 and int(found.group(3)) == step
    assert ", worse than step " in dump.metadata["lanescope_dump"]["reason"]
    assert f"work {step}" in names_of(dump)


def test_results_while_the_ring_still_runs():
    with lanescope.profile(last="10m") as prof:
        with lanescope.record_function("seen"):
            pass
        assert "seen" in names_of(prof.trace)
        with lanescope.record_function("seen later"):
            pass
        assert "seen later" in names_of(prof.trace)
        folder = os.path.dirname(prof.spool_path)
        assert not [f for f in os.listdir(folder) if f.startswith(os.path.basename(prof.spool_path) + ".read")]


# Prints between which moments each step ended; the first pair is of the begin.
LOOP = """
import json, os, sys, time
marks = [[time.monotonic()]]
import torch
marks[0].append(time.monotonic())
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range({steps}):
    optimizer.zero_grad()
    with torch.profiler.record_function(f"batch {{number}}"):
        model(torch.ones(2, 8)).sum().backward()
        {body}
    marks.append([time.monotonic()])
    optimizer.step()
    marks[-1].append(time.monotonic())
print(json.dumps(marks))
"""


@pytest.fixture
def start(tmp_path, torch):
    started = []

    def begin(code, *flags):
        (tmp_path / "script.py").write_text(code)
        command = [sys.executable, "-m", "lanescope.record", "-o", "out", *flags, "--", sys.executable, "script.py"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        guard = threading.Timer(300, process.kill) # then a reader that waits for a line sees the end
        guard.start()
        started.append((process, guard))
        return process, tmp_path / "out"

    yield begin
    for process, guard in started:
        guard.cancel()
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
    slowest = "max(end[1] - begin[0] for begin, end in zip(marks[1:], marks[2:]))"
    body = f"time.sleep(6 * {slowest} if number == 20 else 0.01)"
    process, out = start(LOOP.format(steps=60, body=body), "--last", "10m", "--slow-step", "5x")
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    said = re.findall(r"lanescope: step (\d+) took (\S+) times the median of the (\d+) steps before it .*: the last \S+ s are in ([^\s;]+)",
                      errors)
    # The next one is more than ten minutes away, but a step that is twice as bad replaces it.
    assert said, errors
    step, times, _, path = said[-1]
    # The first optimizer step ends step 0, so batch 20 is in step 20. A machine that stops for a while makes another one.
    sure, possible = slow_steps(json.loads(output), 5)
    assert 20 in sure
    assert int(step) in possible and float(times) >= 5
    assert int(step) >= 20 or int(step) in sure
    assert errors.count(" is removed") == len(said) - 1
    pid = process.pid
    base, count = path[: -len(".lspool")].rsplit("_dump", 1)
    assert count == str(len(said)) and os.path.dirname(base) == str(out)
    assert re.fullmatch(rf"script_\d{{8}}T\d{{6}}Z_[^_]+_{pid}", os.path.basename(base))
    assert sorted(str(f) for f in out.iterdir()) == sorted(
        f"{base}{kind}" for kind in (".json", ".txt", f"_dump{count}.json", f"_dump{count}.txt"))
    dump = lanescope.read_trace(f"{base}_dump{count}.json")
    names = names_of(dump)
    assert f"batch {step}" in names and f"ProfilerStep#{step}" in names and "aten::linear" in names
    assert "aten::linear" in pathlib.Path(f"{base}_dump{count}.txt").read_text()
    with open(f"{base}_dump{count}.json", encoding="utf-8") as file:
        assert json.load(file)["lanescope_dump"]["reason"].startswith(f"step {step} took ")


def test_a_signal_dumps_a_program_that_hangs_and_a_kill_leaves_the_ring(start):
    # It hangs in C code that never returns to the interpreter: a lock that nobody gives back, whatever signals come.
    hang = "lock, c = ctypes.create_string_buffer(64), ctypes.PyDLL(None)\n"
    body = "number == 5 and (print('hangs', flush=True), c.pthread_mutex_lock(lock), c.pthread_mutex_lock(lock))"
    process, out = start("import ctypes\n" + hang + LOOP.format(steps=10, body=body), "--last", "10m")
    assert process.stdout.readline() == "hangs\n"
    time.sleep(0.2)  # mostly it hangs by then
    process.send_signal(signal.SIGUSR2)
    found = wait_for_line(process.stderr, r"lanescope: SIGUSR2: the last \S+ s are in (\S+)")
    names = names_of(lanescope.read_trace(found.group(1)))
    assert "batch 5" in names and "aten::linear" in names
    process.kill()
    process.communicate()
    ring, dump = sorted(path for path in out.iterdir() if path.suffix == ".lspool")
    assert ring.stem.endswith(f"_{process.pid}") and dump.name == f"{ring.stem}_dump1.lspool"
    assert "batch 5" in names_of(lanescope.read_trace(ring))


def test_a_signal_before_torch_is_imported_kills_nothing(start, tmp_path):
    code = """
import os, time
print("up", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
import torch
torch.ones(2).sin()
"""
    process, out = start(code, "--last", "10m")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGUSR2)
    wait_for_line(process.stderr, "nothing is recorded yet")
    (tmp_path / "go").touch()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    (trace,) = (path for path in out.iterdir() if path.suffix == ".json")
    assert "aten::sin" in names_of(lanescope.read_trace(trace))


def test_a_handler_of_the_program_wins(start):
    code = """
import os, signal, time
signal.signal(signal.SIGUSR2, lambda *_: print("mine", flush=True))
import torch
torch.ones(2).sin()
os.kill(os.getpid(), signal.SIGUSR2)
time.sleep(0.1)
"""
    process, out = start(code, "--last", "10m")
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, output) == (0, "mine\n"), errors
    assert "SIGUSR2 makes no dumps: the program has its own handler for it" in errors
    trace, table = sorted(out.iterdir())
    assert (trace.suffix, table.suffix, trace.stem) == (".json", ".txt", table.stem)
    assert trace.stem.endswith(f"_{process.pid}")
