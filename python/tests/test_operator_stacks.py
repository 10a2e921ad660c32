"""Call stacks of operators, compared with torch.profiler's.

They are in the argument "Call stack"; ``event.stack`` has torch.profiler's frames (test_torch_stacks.py). Helpers below are
one line long where torch.profiler's frames are compared: it names a function's first line, lanescope the line of the call.
"""

from __future__ import annotations

import json
import os
import re
import sys

import pytest

import lanescope
from lanescope import _core, profile, record_function
from stack_lines import functions_in, lines_of, stacks_of

CPU = [lanescope.ProfilerActivity.CPU]
FILE = os.path.basename(__file__)


def functions(stack):
    return functions_in(stack, FILE)


def neg(x): return x.neg()  # noqa: E704
def twice(x): return neg(neg(x))  # noqa: E704
def program(torch, x): return [twice(x), torch.nn.functional.relu(x), torch.nn.Linear(2, 2)(x), torch.cat([x, x])]  # noqa: E704


def function_frames(stack):
    """What both profilers show: no C functions; nn.Module's own frame means its `__call__`."""
    kept = []
    for frame in stack:
        if frame.startswith("<built-in"):
            continue
        kept.append("torch/nn/modules/module.py _wrapped_call_impl" if frame.startswith("nn.Module: ") else frame)
    return [frame if f"/{FILE}(" in "/" + frame else re.sub(r"\(\d+\):", "", frame) for frame in kept]


@pytest.mark.parametrize("record_shapes", [False, True])
def test_frames_are_those_of_torch_profiler(torch, record_shapes):
    from torch._C._profiler import _ExperimentalConfig

    x = torch.ones(2, 2)
    program(torch, x)

    def run(make, result):
        with make() as prof: program(torch, x)  # noqa: E701
        for event in prof.events():
            above = event.cpu_parent  # torch.profiler's events hang below those of Python functions
            while above is not None and not above.name.startswith("aten::"):
                above = above.cpu_parent
            if above is None and event.name.startswith("aten::"):
                result.append((event.name, lines_of(event) if result is ours else event.stack))

    ours, theirs = [], []
    config = _ExperimentalConfig(verbose=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    for make, result in (
        (lambda: profile(activities=CPU, with_stack=True, record_shapes=record_shapes), ours),
        (lambda: torch.profiler.profile(activities=activities, with_stack=True, experimental_config=config), theirs),
    ):
        run(make, result)
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert len(ours) >= 6
    for (name, mine), (_, other) in zip(ours, theirs):
        # torch.profiler begins at the frames that run when it starts, and adds those of its own start.
        mine, other = function_frames(mine), function_frames(other)
        assert mine and other
        cut = min(len(mine), len(other), next(i for i, frame in enumerate(mine) if frame.endswith("): run")))
        assert mine[:cut] == other[:cut], name
    for name, stack in ours:
        if name == "aten::neg":
            assert functions(stack)[:3] == ["neg", "twice", "program"]


def test_nested_operators_have_the_stack_of_the_one_that_python_called(torch):
    linear, x = torch.nn.Linear(4, 4), torch.ones(4, 4)
    with profile(activities=CPU, with_stack=True) as prof:
        linear(x)
    events = [event for event in prof.events() if event.name.startswith("aten::")]
    outer = next(event for event in events if event.name == "aten::linear")
    inner = [event for event in events if event.cpu_parent is not None]
    assert len(inner) >= 3
    assert all(lines_of(event) == lines_of(outer) for event in inner)
    assert lines_of(outer)[0].startswith("torch/nn/modules/linear.py(") and lines_of(outer)[0].endswith("): forward")


def test_an_operator_that_runs_python_gives_what_is_called_there_its_own_stack(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.add(grad)

    x = torch.ones(3, requires_grad=True)
    y = Twice.apply(x).sum()
    with profile(activities=CPU, with_stack=True) as prof:
        y.backward()
    trace = prof.trace
    found = [trace.args(i)["Call stack"] for i in range(len(trace)) if trace.name(i) == "aten::add"]
    assert len(found) == 1
    assert f"{FILE}(" in found[0].split(";")[0] and found[0].split(";")[0].endswith("): backward")


def test_ranges_that_python_opens_do_not_lend_their_stack(torch):
    """One helper, called from two lines, opens a range that torch records like an operator and leaves it open."""
    fast = torch._C._profiler._RecordFunctionFast
    x = torch.ones(2)
    opened = []

    def open_range():
        opened.append(fast("range"))
        opened[-1].__enter__()

    def first():
        open_range()
        x.neg()

    def second():
        open_range()
        x.neg()

    with profile(activities=CPU, with_stack=True) as prof:
        first()
        second()
        while opened:
            opened.pop().__exit__(None, None, None)
    trace = prof.trace
    args = [(trace.name(i), trace.args(i).get("Call stack", "").split(";")) for i in range(len(trace))]
    found = [functions(stack)[:2] for name, stack in args if name == "range"]
    assert found == [["open_range", "first"], ["open_range", "second"]]
    assert [functions(stack)[0] for name, stack in args if name == "aten::neg"] == ["first", "second"]


def test_a_backward_operator_shows_the_stack_of_its_forward_one(torch):
    def forward(x):
        return x.mul(x)

    x = torch.ones(3, requires_grad=True)
    with profile(activities=CPU, with_stack=True) as prof:
        forward(x).sum().backward()
    (stack,) = [event.stack for event in prof.events() if event.name == "MulBackward0"]
    assert functions(stack)[0] == "forward"
    trace = prof.trace
    written = next(trace.args(i)["Call stack"] for i in range(len(trace)) if trace.name(i) == "MulBackward0")
    assert "_engine_run_backward" in written  # on the CPU the calling thread runs the backward pass


def test_both_kinds_of_details_are_kept(torch):
    x = torch.ones(2, 3)
    with profile(activities=CPU, with_stack=True, record_shapes=True) as prof:
        x.neg(), x.t().neg()
    first, second = [event for event in prof.events() if event.name == "aten::neg"]
    assert (first.input_shapes, second.input_shapes) == ([[2, 3]], [[3, 2]])
    assert lines_of(first) == lines_of(second) and functions(lines_of(first))


def test_tables_group_by_stack(torch):
    x = torch.ones(4)

    def one():
        x.neg(), x.neg()

    def two():
        x.neg()

    with profile(activities=CPU, with_stack=True) as prof:
        one()
        two()
    rows = [row for row in prof.key_averages(group_by_stack_n=2) if row.key == "aten::neg"]
    assert [(row.count, functions(row.stack)[0]) for row in rows] == [(2, "one"), (1, "two")]
    assert all(len(row.stack) == 2 for row in rows)
    table = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in table and "): one" in table and "): two" in table
    assert len([row for row in prof.key_averages() if row.key == "aten::neg"]) == 1


def test_export_stacks_of_single_events_writes_what_torch_writes(torch, tmp_path):
    from torch.autograd.profiler_util import EventList as TorchEventList

    x = torch.ones(1000)
    with profile(activities=CPU, with_stack=True) as prof:
        program(torch, x.view(500, 2))
    lanescope.EventList(list(prof.events())).export_stacks(tmp_path / "ours.txt", "self_cpu_time_total")
    TorchEventList(list(prof.events())).export_stacks(str(tmp_path / "theirs.txt"), "self_cpu_time_total")
    ours = (tmp_path / "ours.txt").read_text()
    assert ours == (tmp_path / "theirs.txt").read_text()
    assert len(ours.splitlines()) > 5
    frames, value = ours.splitlines()[0].rsplit(" ", 1)
    assert int(value) > 0 and " " not in frames
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(tmp_path / "x.txt", "count")


def test_the_exported_file_holds_the_stacks_and_is_read_back(torch, tmp_path):
    with profile(activities=CPU, with_stack=True) as prof:
        torch.ones(2).neg()
        with record_function("mine"):
            pass
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    written = json.loads(path.read_text())
    assert written["with_stack"] == 1
    events = [event for event in written["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    calls = {event["name"]: event["args"].get("Call stack") for event in events}
    assert calls["aten::neg"].endswith(";") and f"{FILE}(" in calls["aten::neg"].split(";")[0]
    assert calls["mine"]
    again = lanescope.read_trace(path)
    rows = {row.key: row.stack for row in lanescope.key_averages(again, group_by_stack_n=3)}
    assert rows == {row.key: row.stack for row in prof.key_averages(group_by_stack_n=3)}
    assert len(rows["aten::neg"]) == 3


def test_the_record_command_takes_stacks(tmp_path, torch, run_python):
    (tmp_path / "script.py").write_text("import torch\ndef work():\n    return torch.ones(2).neg()\nwork()\n")
    run_python("-m", "lanescope.record", "-o", "out", "--stack", "--", sys.executable, "script.py")
    (path,) = [tmp_path / "out" / name for name in os.listdir(tmp_path / "out") if name.endswith(".json")]
    trace = lanescope.read_trace(path)
    found = [trace.args(i)["Call stack"] for i in range(len(trace)) if trace.name(i) == "aten::neg"]
    assert found == ["script.py(3): work;script.py(4): <module>;"]


def test_threads_that_run_operators_while_python_ends_hurt_nobody(run_python, torch):
    """TorchScript loops never take the GIL, so they go on while the interpreter frees their threads' frames."""
    done = run_python(
        code="""
import ctypes, os, subprocess, sys, threading, time, warnings
warnings.simplefilter("ignore")
import torch, lanescope
@torch.jit.script
def spin(x: torch.Tensor, n: int):
    for _ in range(n):
        x = x.neg()
    return x
libc = ctypes.CDLL(None)  # at the very end: waits for the end of standard input, then leaves without C++ destructors
ctypes.pythonapi.Py_AtExit(libc._exit)
ctypes.pythonapi.Py_AtExit(libc.getchar)
read, write = os.pipe()
subprocess.Popen(["sleep", "1"], pass_fds=(write,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(write)
os.dup2(read, 0)
prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], with_stack=True)
prof.start()
for _ in range(3):
    threading.Thread(target=spin, args=(torch.ones(4), 10**12), daemon=True).start()
found, until = [], time.monotonic() + 120
while not found and time.monotonic() < until:
    time.sleep(0.3)
    found = [e.stack for e in prof.events() if e.name == "aten::neg"]
print(len(found) > 0 and all(stack[0].endswith("): run") for stack in found), flush=True)
""",
        env={"MALLOC_PERTURB_": "165"},
        check=False,
    )
    assert done.returncode >= 0, done.stderr  # _exit is called without an argument, so any code but a signal
    assert done.stdout == "True\n"


def test_after_the_end_no_frame_is_looked_at():
    with profile(activities=CPU, with_stack=True) as prof:
        with record_function("before"):
            pass
        _core.end_stacks()
        with record_function("after"):
            pass
        assert _core.start_stacks([]) == ""
        with record_function("again"):
            pass
    assert [bool(stacks_of(prof, name)[0]) for name in ("before", "after", "again")] == [True, False, True]


def test_stacks_can_be_had_again_in_a_second_profile(torch):
    for _ in range(3):
        with profile(activities=CPU, with_stack=True) as prof:
            torch.ones(2).neg()
        assert functions(stacks_of(prof, "aten::neg")[0]) != []
