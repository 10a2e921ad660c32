"""Stacks where programs read them (``event.stack``, ``group_by_stack_n``, ``export_stacks``), compared with torch.profiler's."""

from __future__ import annotations

import inspect
import os
import queue
import re
import threading
import time

import pytest

import lanescope
from lanescope import profile
from lanescope.function_event import Source

from torch_programs import make_net

try:
    from torch.autograd.profiler_util import FunctionEvent as TorchEvent

    HAS_FRAMES = "is_python_function" in inspect.signature(TorchEvent.__init__).parameters
except ImportError:
    HAS_FRAMES = False  # the fixture skips
with_frames = pytest.mark.skipif(not HAS_FRAMES, reason="needs a torch whose events() has Python functions")

CPU = [lanescope.ProfilerActivity.CPU]
FILE = os.path.basename(__file__)


def leaf(x):
    return torch_module(x).relu()


def torch_module(x):
    import torch

    return torch.neg(x)


class Triple:
    """An autograd function, whose backward pass is Python."""

    @staticmethod
    def make(torch):
        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 3

            @staticmethod
            def backward(ctx, grad):
                return leaf(grad)

        return Function


class Worker:
    """A thread that is there before the profile begins: torch.profiler shows frames of no other ones."""

    def __init__(self):
        self.work, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def loop(self):
        for function in iter(self.work.get, None):
            self.done.put(function())

    def run(self, function):
        self.work.put(function)
        return self.done.get()

    def end(self):
        self.work.put(None)
        self.thread.join()


def make_program(torch, worker):
    net, x = make_net(torch), torch.ones(2, 4, requires_grad=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    triple = Triple.make(torch)

    def program():
        optimizer.zero_grad()
        with torch.autograd.profiler.record_function("mine"):
            leaf(x)
        net(x).backward()
        triple.apply(x).sum().backward()
        optimizer.step()
        sorted([2, 1], key=lambda value: leaf(x) is not None and value)
        worker.run(on_worker)

    def on_worker():
        leaf(torch.ones(2))

    return program


def plain(frame):
    return re.sub(r"0x[0-9a-f]+", "", frame)


def below_program(stack):
    """The frames below program() or on_worker(), which both profilers must show; None: it is outside of them."""
    frames = [plain(frame) for frame in stack]
    for at, frame in enumerate(frames):
        if re.search(rf"{FILE}\(\d+\): (program|on_worker)$", frame):
            return tuple(frames[: at + 1])
    return None


def chains(events):
    """(name, chain) of each event with such a chain, in order, thread by thread."""
    by_thread = {}
    for event in events:
        chain = below_program(event.stack or [])
        if chain is not None:
            by_thread.setdefault(event.thread, []).append((plain(event.name), chain))
    return sorted(by_thread.values(), key=len)


def record_both(torch, run, **options):
    config = torch._C._profiler._ExperimentalConfig(verbose=True, profile_all_threads=True)
    for _ in range(2):
        run()
    with profile(activities=CPU, with_stack=True, **options) as mine:
        run()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, experimental_config=config, **options
    ) as theirs:
        run()
    return mine, theirs


@with_frames
def test_stacks_of_operators_are_those_of_torch_profiler(torch):
    worker = Worker()
    try:
        for options in ({}, {"with_modules": True}, {"record_shapes": True}):
            mine, theirs = record_both(torch, make_program(torch, worker), **options)
            ours = chains(mine.events())
            other = chains(event for event in theirs.events() if not event.is_python_function)
            assert ours == other
            assert len(ours) == 2 and len(ours[0]) >= 2 and len(ours[1]) > 40  # two threads
    finally:
        worker.end()
    texts = {frame for thread in ours for _, chain in thread for frame in chain}
    assert {"nn.Module: Linear_3", "<built-in function linear>"} <= texts
    backward = {chain for name, chain in ours[1] if name == "AddmmBackward0"}
    assert all(chain[0] == "<built-in function linear>" for chain in backward) and len(backward) == 4


@with_frames
def test_stacks_of_python_functions_are_those_of_torch_profiler(torch):
    worker = Worker()
    try:
        mine, theirs = record_both(torch, make_program(torch, worker))
    finally:
        worker.end()
    source = Source(mine.trace, own_frames=True)
    ours, other = chains(source.event(at) for at in source.core.kept), chains(theirs.events())
    assert ours == other
    assert len(ours[1]) > 150


def test_tables_group_by_the_stacks_of_torch_profiler(torch):
    worker = Worker()
    try:
        mine, theirs = record_both(torch, make_program(torch, worker))
    finally:
        worker.end()

    def rows(prof):
        found = {}
        for row in prof.key_averages(group_by_stack_n=4):
            frames = [plain(frame) for frame in row.stack]
            inside = below_program(frames) or tuple(frames)  # frames further out are those of the profilers' users
            is_frame = row.key.startswith(("<built-in", "nn.Module")) or "): " in row.key  # no rows in lanescope's tables
            if is_frame or not any(f"{FILE}(" in frame for frame in inside):
                continue
            found[row.key, inside] = found.get((row.key, inside), 0) + row.count
        return found

    assert rows(mine) == rows(theirs)
    assert len(rows(mine)) > 20
    assert "nn.Module: Linear_" in mine.key_averages(group_by_stack_n=4).table()


@with_frames
def test_python_functions_are_rows_on_request(torch):
    worker = Worker()
    try:
        mine, theirs = record_both(torch, make_program(torch, worker))
    finally:
        worker.end()
    asked = {"include_python_functions": True}
    since_2_14 = asked if "include_python_functions" in inspect.signature(theirs.key_averages).parameters else {}

    def rows(prof, **options):
        found = {}
        for row in prof.key_averages(group_by_stack_n=100, **options):
            chain = below_program(row.stack)
            if chain is not None:
                found[plain(row.key), chain] = found.get((plain(row.key), chain), 0) + row.count
        return found

    ours = rows(mine, **asked)
    assert ours == rows(theirs, **since_2_14)
    without = rows(mine)
    assert without.items() < ours.items()
    assert {key for key, _ in ours.keys() - without.keys()} >= {"<built-in function linear>", "nn.Module: Linear_3"}


def test_a_python_functions_own_time_is_without_what_it_calls(torch):
    with profile(activities=CPU, with_stack=True) as prof:
        slow()
    averages = prof.key_averages(include_python_functions=True)
    by_name = {plain(row.key).rpartition(": ")[2]: row for row in averages}
    caller, called = by_name["slow"], by_name["<built-in function sleep>"]
    assert caller.count == called.count == 1
    assert caller.cpu_time_total == pytest.approx(caller.self_cpu_time_total + called.cpu_time_total)
    assert called.self_cpu_time_total >= 100_000
    assert averages.self_cpu_time_total == pytest.approx(sum(row.self_cpu_time_total for row in averages))
    assert f"{FILE}(" in averages.table(row_limit=100) and averages.cycles == range(1, 2)


def slow():
    time.sleep(0.1)


@with_frames
def test_export_stacks_has_the_lines_of_torch_profiler(torch, tmp_path):
    from torch.autograd.profiler_util import EventList as TorchEventList

    x = torch.ones(64, 64)

    def program():
        leaf(x)
        slow()

    mine, theirs = record_both(torch, program)
    mine.export_stacks(tmp_path / "ours.txt")
    theirs.export_stacks(str(tmp_path / "theirs.txt"))
    # Times differ, and calls of less than a microsecond are left out: of these events torch writes the same file.
    source = Source(mine.trace, own_frames=True)
    TorchEventList([source.event(at) for at in source.core.kept]).export_stacks(
        str(tmp_path / "by torch.txt"), "self_cpu_time_total"
    )
    ours = (tmp_path / "ours.txt").read_text()
    assert ours == (tmp_path / "by torch.txt").read_text()

    def longest(text):
        """The line of the most time below program(), from there on and without the time."""
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if ":_program" in line]
        frames = max(lines, key=lambda line: int(line[1]))[0]
        return re.sub(r"0x[0-9a-f]+", "", frames[frames.index(":_program") :])

    assert longest(ours) == longest((tmp_path / "theirs.txt").read_text())
    assert re.fullmatch(r":_program;.*:_slow", longest(ours))  # as in torch.profiler, time.sleep's own time is at its caller


def test_lines_of_calls_stay_available(torch):
    x = torch.ones(2)

    def program():
        return leaf(x)

    with profile(activities=CPU, with_stack=True) as prof:
        program()
    (event,) = [event for event in prof.events() if event.name == "aten::neg"]
    first = torch_module.__code__.co_firstlineno
    assert [frame for frame in event.stack if f"{FILE}(" in frame][0].endswith(f"{FILE}({first}): torch_module")
    assert event.args["Call stack"].split(";")[0].endswith(f"{FILE}({first + 3}): torch_module")
    rows = lanescope.key_averages(prof.trace, group_by_stack_n=1, style="lanescope")
    (row,) = [row for row in rows if row.key == "aten::neg"]
    assert row.stack == event.args["Call stack"].split(";")[:1]


def test_modules_alone_are_no_stacks(torch):
    with profile(activities=CPU, with_modules=True) as prof:
        torch.nn.Linear(2, 2)(torch.ones(2))
    assert {tuple(event.stack) for event in prof.events()} == {()}
