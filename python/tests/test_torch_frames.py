"""Python frames of torch programs: the same as torch.profiler's, with modules, windows, budgets and imports."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
import warnings

import pytest

import lanescope
from lanescope import profile, record_function

from frame_trees import CPU, frames_of, plain, recorded, written
from torch_programs import make_net

FILE = os.path.basename(__file__)


def here(name):
    return f"{FILE}: {name}"


def leaf():
    return 1


def subtree(trace, name):
    found = [frame for frame in frames_of(trace).values() if plain(frame.name) == name]
    assert len(found) == 1, name
    return found[0]


def test_frames_are_those_of_torch_profiler(torch, tmp_path):
    net, x = make_net(torch), torch.ones(2, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)

    def program():
        optimizer.zero_grad()
        net(x).backward()
        optimizer.step()
        return sorted([3, 1], key=lambda value: -value)

    for _ in range(3):
        program()
    gc.collect()
    gc.disable()  # a collection calls Python code of whatever it frees, in one of the two recordings
    try:
        with profile(activities=CPU, with_stack=True) as mine:
            program()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as theirs:
            program()
    finally:
        gc.enable()
    theirs.export_chrome_trace(str(tmp_path / "torch.json"))
    other = subtree(json.loads((tmp_path / "torch.json").read_text(encoding="utf-8")), here("program"))
    ours = subtree(written(mine, tmp_path), here("program"))
    assert ours.tree() == other.tree()
    assert set(ours.event["args"]) == set(other.event["args"]) - {"CallFrom"}  # since torch 2.14: the line of the call

    def names(frame):  # lines and numbers included
        return [re.sub(r"0x[0-9a-f]+", "", frame.name)] + [name for child in frame.children for name in names(child)]

    assert names(ours) == names(other)
    module_ids = [
        [frame.event["args"].get("Python module id") for frame in each.below("nn.Module: Linear_1")] for each in (ours, other)
    ]
    assert module_ids == [[1], [1]]


def test_modules_are_numbered_within_their_class(torch, tmp_path):
    net, x = make_net(torch), torch.ones(2, 4)

    def run():
        net(x)
        net(x)

    frames = recorded(tmp_path, run, with_modules=True)
    assert {frame.name.startswith("nn.Module: ") for frame in frames} == {True}
    linears = [f"nn.Module: Linear_{number}" for number in range(4)]
    first = [
        ("nn.Module: Block_0", [(linears[0], []), (linears[1], [])]),
        ("nn.Module: Block_1", [(linears[2], []), (linears[3], [])]),
    ]
    whole = ("nn.Module: Net_0", [("nn.Module: Sequential_0", first)])
    assert [frame.tree() for frame in frames if frame.event["args"]["Python parent id"] is None] == [whole, whole]
    assert [frame.event["args"]["Python module id"] for frame in frames if frame.name == linears[3]] == [3, 3]


def test_a_module_at_an_old_address_is_another_one(torch, tmp_path):
    x = torch.ones(2, 4)

    def run():
        for _ in range(5):
            torch.nn.Linear(4, 4)(x)

    frames = recorded(tmp_path, run, with_modules=True)
    assert [frame.name for frame in frames] == [f"nn.Module: Linear_{number}" for number in range(5)]


def test_all_windows_of_a_profile_share_the_numbers_and_the_next_profile_begins_anew(torch, tmp_path):
    first, second, x = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.ones(2, 4)
    plan = lanescope.schedule(wait=1, warmup=0, active=1, repeat=2)
    with profile(activities=CPU, with_modules=True, schedule=plan, acc_events=True) as prof:
        for step in range(4):
            (first if step < 2 else second)(x)
            prof.step()
    assert [frame.name for frame in frames_of(written(prof, tmp_path)).values()] == [
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ]
    assert [frame.name for frame in recorded(tmp_path, lambda: second(x), with_modules=True)] == ["nn.Module: Linear_0"]


def test_tables_and_trees_are_the_same_with_frames_and_without(torch, tmp_path):
    net, x = make_net(torch), torch.ones(2, 4)

    def run(**options):
        with profile(activities=CPU, **options) as prof:
            with record_function("step"):
                net(x).backward()
        rows = [(event.name, event.cpu_parent.name if event.cpu_parent else None) for event in prof.events()]
        return rows, sorted((row.key, row.count) for row in prof.key_averages()), prof

    run()
    plain_rows, plain_table, plain_prof = run()
    for options in ({"with_stack": True}, {"with_modules": True}):
        rows, table, prof = run(**options)
        assert rows == plain_rows
        assert table == plain_table
        ids = [
            [event["args"]["External id"] for event in written(each, tmp_path)["traceEvents"] if event.get("cat") == "cpu_op"]
            for each in (prof, plain_prof)
        ]
        assert ids[0] == ids[1]


def test_with_modules_says_nothing_and_is_in_the_metadata(torch, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile(activities=CPU, with_modules=True) as prof:
            torch.nn.Linear(4, 4)(torch.ones(2, 4))
    assert written(prof, tmp_path)["with_modules"] == 1


def test_a_budget_takes_the_frames_with_the_stacks(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(activities=CPU, with_stack=True, budget="0.5%") as prof:
            began = time.monotonic()
            calls, hooked = 0, []
            while time.monotonic() - began < 3:
                for _ in range(1000):
                    leaf()
                calls += 1000
                hooked.append(sys.getprofile() is not None)
    # They come back for a moment each time that they seem to fit: at the end, too.
    assert sum(hooked) < len(hooked) / 2
    trace = written(prof, tmp_path)
    assert "stacks" in [period["what"] for period in trace["lanescope_thinned"]]
    leaves = [frame for frame in frames_of(trace).values() if plain(frame.name) == here("leaf")]
    assert 0 < len(leaves) < calls


def test_the_recording_of_a_command_with_stack_has_frames(run_python, tmp_path):
    (tmp_path / "script.py").write_text("def work():\n    pass\nwork()\nimport torch\ndef later():\n    pass\nlater()\n")
    run_python("-m", "lanescope.record", "-o", "out", "--stack", "--", sys.executable, "script.py")
    (path,) = (tmp_path / "out").glob("*.json")
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "python_function"]
    assert any(name.endswith("script.py(5): later") for name in names)


@pytest.mark.parametrize("imports", [True, False])
def test_what_an_import_runs_is_left_out_when_told_so(tmp_path, monkeypatch, imports):
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"made_of_calls_{imports}"
    (tmp_path / f"{name}.py").write_text("import nested_import\ndef call():\n    pass\nfor _ in range(500):\n    call()\n")
    (tmp_path / "nested_import.py").write_text("def early():\n    pass\nearly()\n")
    monkeypatch.delitem(sys.modules, "nested_import", raising=False)

    def work():
        leaf()
        __import__(name).call()
        with pytest.raises(ImportError):
            __import__("there_is_no_such_module")
        leaf()

    prof = profile(activities=CPU, with_stack=True)
    prof._frames_of_imports = imports
    with prof:
        work()
    frames = frames_of(written(prof, tmp_path)).values()
    (around,) = [frame for frame in frames if plain(frame.name) == here("work")]
    assert len(around.below(here("leaf"))) == 2
    assert len(around.below(f"{name}.py: call")) == (501 if imports else 1)
    assert len(around.below("nested_import.py: early")) == (1 if imports else 0)
    outer = [each for each in around.children if plain(each.name).endswith(": _find_and_load")]
    below = [each.children for frame in around.children for each in frame.below("<frozen importlib._bootstrap>: _find_and_load")]
    assert len(below) >= 2 and all(bool(children) == imports for children in below) and len(outer) <= len(below)


def test_the_recording_of_a_small_program_with_stack_stays_small(run_python, tmp_path, torch):
    """torch imports much of itself when an optimizer is first used: over a million calls."""
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "net = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "def train():\n"
        "    net(torch.ones(2, 4)).sum().backward()\n"
        "    optimizer.step()\n"
        "for _ in range(6):\n"
        "    train()\n"
    )
    run_python("-m", "lanescope.record", "-o", "out", "--stack", "--json", "--", sys.executable, "script.py")
    (path,) = (tmp_path / "out").glob("*.json")
    frames = frames_of(json.loads(path.read_text())).values()
    trains = [frame for frame in frames if plain(frame.name) == "script.py: train"]
    assert [len(frame.below("nn.Module: Linear_0")) for frame in trains] == [1] * 6
    assert len(frames) < 20_000
    lines = lanescope.read_trace(path)
    found = [lines.args(i)["Call stack"] for i in range(len(lines)) if lines.name(i) == "aten::linear"]
    assert len(found) == 6 and all("script.py(5): train;" in stack for stack in found)
