"""While lanescope records, torch calls two faster functions around each node of a backward pass. What it records stays the same."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess

import pytest

PROGRAM = """
import json, sys, threading, torch
import lanescope

record = torch._C._autograd._enable_record_function
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
x = torch.randn(2, 4)

class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

def backward():
    Doubled.apply(net(x)).sum().backward()

def off_in_a_hook():
    # The hook leaves torch's callbacks off for its thread. The engine puts them on again after the node.
    y = net(x)
    z = y * 3
    y.register_hook(lambda grad: record(False))
    z.sum().backward()

def called_while_off():
    z = net(x).sum()
    record(False)
    try:
        z.backward()
    finally:
        record(True)

def on_a_thread():
    thread = threading.Thread(target=backward)
    thread.start()
    thread.join()

backward()
rows = {}
for name in ("backward", "off_in_a_hook", "called_while_off", "on_a_thread"):
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as prof:
        globals()[name]()
    rows[name] = [event.name for event in prof.events()]
    backward()  # without a profile
with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        backward()
rows["torch.profiler inside"] = [event.name for event in theirs.events()]
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as ours:
        off_in_a_hook()
rows["in torch.profiler"] = [[event.name for event in prof.events()] for prof in (ours, theirs)]
print(json.dumps(rows))
"""


NODE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def test_the_rows_are_those_of_torchs_own_functions(torch, run_python):
    without, rows = (
        json.loads(run_python(code=PROGRAM, env={"LANESCOPE_TORCH_SHORTCUTS": switch}).stdout.splitlines()[-1])
        for switch in ("0", "1")
    )
    assert rows == without
    assert {name: rows[name].count(NODE) for name in rows if name != "in torch.profiler"} == {
        "backward": 4,
        "off_in_a_hook": 4,  # on again after the hook's node
        "called_while_off": 0,
        "on_a_thread": 4,
        "torch.profiler inside": 4,
    }
    assert [names.count(NODE) for names in rows["in torch.profiler"]] == [4, 4]


TABLE = """
import ctypes, json, sys, torch
import lanescope

offsets = json.loads(sys.argv[1])
base = min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "/libtorch_cpu.so" in line)

def entries():
    return [ctypes.c_uint64.from_address(base + offset).value for offset in offsets]

torch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()  # the dynamic linker has filled the entries
found = [entries()]
for _ in range(2):
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]):
        found.append(entries())
    found.append(entries())
print(json.dumps(found))
"""


def test_torchs_table_is_as_it_was_when_nothing_is_recorded(torch, run_python, tmp_path):
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    if platform.machine() != "x86_64" or not os.path.exists(library) or not shutil.which("readelf"):
        pytest.skip("needs readelf, and torch's wheel for x86-64")
    listed = subprocess.run(["readelf", "-W", "-r", library], capture_output=True, text=True, check=True).stdout
    offsets = [
        int(line.split()[0], 16)
        for line in listed.splitlines()
        if "JUMP_SLOT" in line and ("set_record_function_tls_" in line or "_ZN3c108demangle" in line)
    ]
    assert len(offsets) == 2
    script = tmp_path / "table.py"
    script.write_text(TABLE)
    before, during, after, again, at_end = json.loads(run_python(str(script), json.dumps(offsets)).stdout.splitlines()[-1])
    assert before == after == at_end and during == again
    assert all(one != other for one, other in zip(before, during))
    off = run_python(str(script), json.dumps(offsets), env={"LANESCOPE_TORCH_SHORTCUTS": "0"}).stdout.splitlines()[-1]
    assert len({tuple(found) for found in json.loads(off)}) == 1
