"""On a machine with an NVIDIA GPU: what the recorder gets from CUPTI. Skipped, with the reason, everywhere else.

Runs under pytest (marker ``gpu``) and, where pytest is missing, by itself: ``python3 python/tests/test_gpu.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, List, Optional

try:
    import pytest

    pytestmark = [pytest.mark.gpu]
except ImportError:
    pytest = None  # type: ignore[assignment]


def reason_to_skip() -> Optional[str]:
    try:
        import torch
    except ImportError:
        return "needs torch"
    if not torch.cuda.is_available():
        return "needs a CUDA device that torch can use"
    import lanescope

    if lanescope.ProfilerActivity.CUDA not in lanescope.supported_activities():
        return "needs a build that records the GPU (CUPTI)"
    return None


SKIP = reason_to_skip()
if pytest is not None:
    pytestmark.append(pytest.mark.skipif(SKIP is not None, reason=str(SKIP)))


def recorded(work: Callable[[], Any], **options: Any) -> List[Dict[str, Any]]:
    """The events of the exported trace of ``work``."""
    import lanescope

    profile = lanescope.profile(
        activities=[lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA], **options
    )
    with profile:
        work()
    assert profile.empty_reason == ""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return list(json.load(file)["traceEvents"])


def of(events: List[Dict[str, Any]], category: str) -> List[Dict[str, Any]]:
    return [event for event in events if event.get("cat") == category and event.get("ph") == "X"]


def matrices() -> Any:
    import torch

    x = torch.randn(128, 128, device="cuda")
    w = torch.randn(128, 128, device="cuda")
    torch.add(torch.matmul(x, w), x)
    torch.cuda.synchronize()
    return x, w


def test_each_kernel_has_its_launch_and_its_operator() -> None:
    import torch

    x, w = matrices()

    def work() -> None:
        for _ in range(10):
            torch.add(torch.matmul(x, w), x)
        torch.cuda.synchronize()

    events = recorded(work)
    kernels = of(events, "kernel")
    calls = {e["args"]["correlation"]: e for e in of(events, "cuda_runtime") + of(events, "cuda_driver")}
    operators = {e["args"]["External id"]: e for e in of(events, "cpu_op") + of(events, "user_annotation")}
    assert len(kernels) >= 20
    for kernel in kernels:
        call = calls[kernel["args"]["correlation"]]
        operator = operators[kernel["args"]["External id"]]
        assert call["tid"] == operator["tid"] == threading.get_native_id()
        assert operator["ts"] <= call["ts"] and call["ts"] + call["dur"] <= operator["ts"] + operator["dur"]
        assert kernel["ts"] > call["ts"]
    names = {operators[kernel["args"]["External id"]]["name"] for kernel in kernels}
    assert names == {"aten::mm", "aten::add"}


def test_a_second_and_third_recording_see_the_same() -> None:
    import torch

    x, w = matrices()

    def work() -> None:
        torch.matmul(x, w)
        torch.cuda.synchronize()

    counts = [len(of(recorded(work), "kernel")) for _ in range(3)]
    assert counts[0] > 0 and counts == [counts[0]] * 3


def test_work_launched_before_the_window_is_labelled_and_not_counted() -> None:
    import lanescope
    import torch

    big = torch.randn(8192, 8192, device="cuda")
    torch.matmul(big, big)
    torch.cuda.synchronize()
    profile = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA])
    with profile:  # CUPTI is on from here on
        pass
    for _ in range(3):
        torch.matmul(big, big)  # still running when the window opens
    events = recorded(lambda: (torch.add(big, 1.0), torch.cuda.synchronize()))
    for kernel in of(events, "kernel"):
        if "elementwise" not in kernel["name"]:
            assert kernel["args"].get("launched before window") is True, kernel
        else:
            assert "launched before window" not in kernel["args"]


def test_nvtx_ranges_are_ranges() -> None:
    script = """
import lanescope, torch, json, sys
x = torch.ones(8, device="cuda")
p = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA])
p.start()
torch.cuda.nvtx.range_push("my range")
x + 1
torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
p.stop()
p.export_chrome_trace(sys.argv[1])
"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        subprocess.run([sys.executable, "-c", script, path], check=True)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    ranges = [event for event in events if event.get("name") == "my range" and event.get("ph") == "X"]
    adds = [event for event in events if event.get("name") == "aten::add"]
    assert len(ranges) >= 1 and len(adds) == 1
    outer = [r for r in ranges if r["cat"] == "user_annotation"][0]
    assert outer["ts"] <= adds[0]["ts"] and adds[0]["ts"] + adds[0]["dur"] <= outer["ts"] + outer["dur"]


def test_a_stream_that_waits_says_for_whom() -> None:
    import torch

    x, w = matrices()
    side = torch.cuda.Stream()

    def work() -> None:
        done = torch.cuda.Event()
        with torch.cuda.stream(side):
            torch.matmul(x, w)
            done.record(side)
        torch.cuda.current_stream().wait_event(done)
        torch.add(x, w)
        torch.cuda.synchronize()

    events = recorded(work)
    streams = {kernel["args"]["stream"] for kernel in of(events, "kernel")}
    assert len(streams) == 2
    waits = [e for e in of(events, "cuda_sync") if "wait_on_stream" in e["args"]]
    assert waits and {wait["args"]["wait_on_stream"] for wait in waits} <= streams


def test_device_memory_is_recorded_for_every_thread() -> None:
    import torch

    def allocate() -> None:
        torch.empty(1 << 20, device="cuda")

    def work() -> None:
        allocate()
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()

    allocate()
    events = recorded(work, profile_memory=True)
    taken = [e for e in events if e.get("name") == "[memory]" and e["args"]["Device Type"] == 1
             and e["args"]["Bytes"] == 4 << 20]
    assert len(taken) == 2 and len({event["tid"] for event in taken}) == 2


def test_python_stacks_lead_to_the_call() -> None:
    import torch

    x, w = matrices()

    def here() -> None:
        torch.matmul(x, w)

    events = recorded(here, with_stack=True)
    matmul = [event for event in of(events, "cpu_op") if event["name"] == "aten::matmul"][0]
    assert "test_gpu.py" in matmul["args"]["Call stack"] and "here" in matmul["args"]["Call stack"]


def test_occupancy_of_kernels_with_much_shared_memory_is_not_zero() -> None:
    import torch

    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    events = recorded(lambda: (torch.matmul(x, x), torch.cuda.synchronize()))
    large = [kernel for kernel in of(events, "kernel") if kernel["args"]["shared memory"] > 48 * 1024]
    for kernel in large:
        assert kernel["args"]["est. achieved occupancy %"] > 0, kernel["args"]


def test_after_torchs_own_profiler_and_before_it() -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    x, w = matrices()

    def work() -> None:
        for _ in range(5):
            torch.matmul(x, w)
        torch.cuda.synchronize()

    def torchs() -> int:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as theirs:
            work()
        return sum(row.count for row in theirs.key_averages() if row.key == "aten::mm")

    first = len(of(recorded(work), "kernel"))
    assert torchs() == 5
    assert len(of(recorded(work), "kernel")) == first > 0
    assert torchs() == 5


def alone(program: str) -> str:
    """What ``program`` prints, in a separate process: torch.profiler, once used, keeps CUPTI from leaving."""
    head = """
import threading, time, torch, lanescope
x = torch.randn(64, 64, device="cuda")

def recording():
    return lanescope.profile(
        activities=[lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA], detach=True)

def count(profile, key):
    return sum(row.count for row in profile.key_averages() if row.key == key)

def has_cupti_work(profile):
    return any(row.device_time_total > 0 for row in profile.key_averages())
"""
    done = subprocess.run([sys.executable, "-W", "error:lanescope", "-c", head + program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-800:]
    return done.stdout


def test_cupti_leaves_and_comes_back_while_threads_launch() -> None:
    assert "20 recordings, whole" in alone("""
done = False
def launch():
    with torch.cuda.stream(torch.cuda.Stream()):
        y = torch.ones(64, 64, device="cuda")
        while not done:
            for _ in range(50):
                y = y + 1e-9
            torch.cuda.current_stream().synchronize()
threads = [threading.Thread(target=launch) for _ in range(4)]
for thread in threads:
    thread.start()
whole = 0
for _ in range(20):
    with recording() as profile:
        for _ in range(30):
            torch.matmul(x, x)
        torch.cuda.synchronize()
    whole += count(profile, "aten::mm") == 30 and has_cupti_work(profile)
done = True
for thread in threads:
    thread.join()
assert whole == 20, whole
print("20 recordings, whole")
""")


def test_cupti_detaches_by_default_and_stays_on_request() -> None:
    assert "CUPTI left" in alone("""
import json, tempfile

def detached(**options):
    with lanescope.profile(**options) as profile:
        torch.matmul(x, x)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.export_chrome_trace(file.name)
        return json.load(open(file.name))["lanescope_cupti"]["detached"]

assert detached() == (int(torch.version.cuda.split(".")[0]) >= 13)
assert not detached(detach=False)
assert detached(detach=True)
print("CUPTI left")
""")


def test_a_capture_of_another_thread_is_not_disturbed() -> None:
    for mode in ("thread_local", "global"):
        assert "captures, all whole" in alone(f"mode = {mode!r}" + """
done, captures, problems = False, 0, []
def capture():
    global captures
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = x
        for _ in range(3):
            y = y @ x  # cuBLAS makes its handle and its workspace here
        stream.synchronize()
    while not done:
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
                y = x
                for _ in range(50):
                    y = y @ x
            graph.replay()
            stream.synchronize()
            captures += 1
        except Exception as problem:
            problems.append(problem)
            return
thread = threading.Thread(target=capture)
thread.start()
recordings, end = 0, time.time() + 5
while time.time() < end and not problems:
    with lanescope.profile():  # asked to leave, it would say when it cannot
        time.sleep(0.003)
    recordings += 1
done = True
thread.join()
assert not problems, problems
assert captures > 10 and recordings > 10, (captures, recordings)
print(recordings, "recordings,", captures, "captures, all whole")
""")


def test_graphs_replay_across_recordings_that_leave() -> None:
    assert "5 recordings of replays" in alone("""
def capture():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.matmul(x, x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            torch.matmul(x, x)
    return graph

first, second = capture(), None
for recorded in range(5):
    first.replay()
    with recording() as profile:
        for _ in range(20):
            first.replay()
        if recorded == 2:
            second = capture()
            second.replay()
        torch.cuda.synchronize()
    assert count(profile, "cudaGraphLaunch") == (21 if recorded == 2 else 20)
    assert has_cupti_work(profile)
    if second is not None:
        second.replay()
    torch.cuda.synchronize()
print("5 recordings of replays")
""")


def test_a_recording_in_pieces_says_what_the_whole_says() -> None:
    """Some five pieces of 100,000 rows: kernels of one piece launched in another, annotations, backward ops, waits."""
    import shutil

    import lanescope
    import torch

    command = os.environ.get("LANESCOPE_COMMAND") or shutil.which("lanescope")
    assert command, "needs the lanescope command (LANESCOPE_COMMAND or PATH)"
    layers = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    side = torch.cuda.Stream()
    x = torch.randn(64, 256, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        spool = os.path.join(folder, "train.lspool")
        profile = lanescope.profile()
        profile._spool_path = spool
        with profile:
            for step in range(1500):
                with lanescope.record_function(f"ProfilerStep#{step}"):
                    with lanescope.record_function("forward"):
                        loss = layers(x).sum()
                    with lanescope.record_function("backward"):
                        loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    side.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(side):
                        x.mul(2)
                    if step % 100 == 0:
                        loss.item()
            torch.cuda.synchronize()
        whole, pieces = os.path.join(folder, "whole.json"), os.path.join(folder, "pieces.json")
        lanescope.write_kineto_json(lanescope.read_trace(spool), whole)
        subprocess.run([command, "recover", "--background", spool, "-o", pieces], check=True, capture_output=True)

        def lines(path: str) -> List[str]:
            with open(path, encoding="utf-8") as file:
                return sorted(line.rstrip(",\n") for line in file if line.startswith('{"ph"') and "traceName" not in line)

        expected, found = lines(whole), lines(pieces)
        assert len(expected) > 300_000, len(expected)
        assert sum('"cat":"gpu_user_annotation"' in line for line in expected) > 3000
        differing = set(expected) ^ set(found)
        assert expected == found, f"{len(expected)}, {len(found)} events; {sorted(differing)[:6]}"


if __name__ == "__main__":
    if SKIP is not None:
        print(f"skipped: {SKIP}")
        sys.exit(0)
    failed = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                print(f"passed  {name}")
            except Exception as error:  # each test is reported separately
                failed += 1
                print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:600]}")
    sys.exit(1 if failed else 0)
