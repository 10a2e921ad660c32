"""The same programs in one process under torch.profiler and under lanescope: same names, same calls, same nesting.

Both write the trace file that people read, and the files are compared row by row: for each thread the tree of cpu_op and
user_annotation rows, in order, with sequence numbers (counted from the smallest), forward threads and, where recorded,
the texts of shapes, types, strides and concrete inputs. Times differ and are not compared.

Known and wanted differences, each pinned by a test: raw user threads (torch.profiler sees them only with
profile_all_threads), and names that Kineto mangles (test_names_that_kineto_mangles_are_kept).
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from typing import Any, Callable, Dict, List, Tuple

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
lanescope = pytest.importorskip("lanescope", reason="needs the lanescope package (PYTHONPATH)")

from torch.profiler import ProfilerActivity, record_function  # noqa: E402

from both_profilers import assert_same, load, names, nanoseconds, need_observer, ranges, threads, under_lanescope, under_torch  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def observer() -> None:
    need_observer()


# -- eager ---------------------------------------------------------------------------------------------------------------


def test_matmul_and_add(tmp_path: pathlib.Path) -> None:
    x, w, b = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64)

    def program() -> None:
        for _ in range(3):
            with record_function("matmul_add"):
                torch.add(torch.matmul(x, w), b)

    counts = collections.Counter(names(assert_same(program, tmp_path)))
    for name in ("matmul_add", "aten::matmul", "aten::mm", "aten::add"):
        assert counts[name] == 3


def test_training_with_optimizer(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))

    def program() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    rows = assert_same(program, tmp_path, warm=2)
    seen = names(rows)
    assert "Optimizer.step#AdamW.step" in seen
    wrapper = next(row for row in rows[0] if row[2] == "autograd::engine::evaluate_function: AddmmBackward0")
    assert wrapper[3] is not None  # torch.profiler gives the wrapper the numbers of the node inside it


def test_backward_started_in_another_thread(tmp_path: pathlib.Path) -> None:
    x = torch.randn(4, 4, requires_grad=True)

    def program() -> None:
        x.grad = None
        loss = (x @ x).relu().sum()
        worker = threading.Thread(target=lambda: loss.backward(), name="backward")
        worker.start()
        worker.join()

    from torch._C._profiler import _ExperimentalConfig

    program()
    ours = threads(under_lanescope(program, tmp_path))
    theirs = threads(under_torch(program, tmp_path, experimental_config=_ExperimentalConfig(profile_all_threads=True)))
    assert ours == theirs
    assert len(ours) == 2
    node = next(row for row in ours[1] if row[2] == "MmBackward0")
    forward = next(row for row in ours[0] if row[2] == "aten::matmul")
    assert node[3] == forward[3] and node[4] > 0  # the node's sequence number, and the thread that ran the forward op


def test_nested_ranges_with_arguments_and_exceptions(tmp_path: pathlib.Path) -> None:
    def program() -> None:
        with record_function("outer", "argument"):
            with record_function("inner"):
                with pytest.raises(RuntimeError):
                    torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            with pytest.raises(ValueError):
                with record_function("raises"):
                    raise ValueError("inside a range")
            torch.ones(2).sum()

    rows = assert_same(program, tmp_path)
    assert [row[:3] for row in rows[0] if row[1] == "user_annotation"] == [
        (0, "user_annotation", "outer"), (1, "user_annotation", "inner"), (1, "user_annotation", "raises")]


def test_fast_ranges_and_their_keywords(tmp_path: pathlib.Path) -> None:
    fast = torch._C._profiler._RecordFunctionFast
    x = torch.ones(2)

    def program() -> None:
        with fast("plain"):
            with fast("rich", [x, 3, "text", None, [1, 2]], {"grid": 4, "scale": 0.5, "on": True, "file": "a.py",
                                                             "stages": ["x", "y"], "ignored": [1]}):
                x.add(x)

    rows = assert_same(program, tmp_path, shapes=True)
    assert [row[:3] for row in rows[0]] == [(0, "cpu_op", "plain"), (1, "cpu_op", "rich"), (2, "cpu_op", "aten::add")]
    keys = ("grid", "scale", "on", "file", "stages", "ignored")
    both = []
    for file in ("torch.json", "lanescope.json"):
        event = next(e for e in load(tmp_path / file)["traceEvents"] if e.get("name") == "rich")
        both.append({key: event["args"].get(key) for key in keys})
    assert both[0] == both[1] == {"grid": 4, "scale": 0.5, "on": True, "file": "a.py", "stages": ["x", "y"], "ignored": None}


def test_shapes_types_strides_and_scalars_of_unusual_inputs(tmp_path: pathlib.Path) -> None:
    a, b = torch.randn(4, 4), torch.randn(4, 4, dtype=torch.float64)

    def program() -> None:
        torch.cat([a, a]), torch.cat([a] * 31), torch.add(a, a, alpha=2), torch.mul(a, 1.5), torch.mul(b, 1e300)
        torch.mul(a, 1 + 2j), torch.sum(a, [0, 1]), torch.zeros([2] * 2, dtype=torch.bfloat16), torch.empty([0, 3])
        torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8), torch.ones(1, 1, 3, 3), stride=[1, 2])
        a.to("meta").sum(), a.to_sparse().sum(), a[0, torch.tensor([1, 2])], torch.einsum("ij,jk->ik", a, a)
        torch.full((3,), float("inf")), torch.full((3,), float("nan")), torch.tensor_split(a, [1, 2])
        torch.nn.functional.pad(torch.ones([1] * 16), [0] * 32), torch._foreach_add([a, a], [1.0, 2.0])
        torch.index_put(a, [torch.tensor([1])], torch.ones(4)), torch.empty_strided((2, 3), (1, 2)).sum()
        torch.clamp(a, None, 1.0), torch.normal(0.0, 1.0, (2,)), torch.arange(0, 5, 2), a.t().contiguous()
        torch.empty(2, dtype=torch.float8_e4m3fn).to(torch.float32), torch.ones((), dtype=torch.bool).any()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.nested.nested_tensor([a, a[:2]]).relu()

    rows = assert_same(program, tmp_path, shapes=True)
    assert any('"c10::complex<double>"' in row[6] for row in rows[0])


def test_tensor_subclasses_that_refuse_to_tell_their_size(tmp_path: pathlib.Path) -> None:
    class Refusing(torch.Tensor):
        @staticmethod
        def __new__(cls) -> "Refusing":
            return torch.Tensor._make_wrapper_subclass(cls, (2, 2), dispatch_sizes_strides_policy="sizes")

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.ops.aten.relu.default:
                return torch.zeros(2, 2)
            raise RuntimeError(f"no {function}")

    refusing = Refusing()
    trace = under_lanescope(lambda: torch.relu(refusing), tmp_path, record_shapes=True)
    assert "aten::relu" in names(threads(trace))


def test_overload_names(tmp_path: pathlib.Path) -> None:
    from torch._C._profiler import _ExperimentalConfig

    x = torch.ones(2)
    rows = assert_same(lambda: torch.add(x, x), tmp_path,
                       experimental_config=_ExperimentalConfig(capture_overload_names=True))
    assert names(rows) == ["aten::add.Tensor"]


def test_torchscript(tmp_path: pathlib.Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @torch.jit.script
        def scripted(x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(x) + 1
            return torch.matmul(y, y)

    x = torch.randn(4, 4)
    assert "aten::matmul" in names(assert_same(lambda: scripted(x), tmp_path, warm=4))


RUNTIMES = """
import sys, warnings
import torch
warnings.simplefilter("ignore")
when = sys.argv[1]
if when != "before lanescope":
    import lanescope
class Net(torch.nn.Module):
    def forward(self, x):
        return (x + 1).relu()
scripted = torch.jit.script(Net().eval())
stored = scripted._save_to_buffer_for_lite_interpreter()
x = torch.ones(3)
def make():
    lite = torch._C._load_for_lite_interpreter_from_buffer(stored, None)
    static = torch._C._jit_to_static_module(torch.jit.freeze(scripted)._c)
    lite.forward((x,)), static(x)
    return lite, static
def run():
    with torch.profiler.record_function("run"):
        lite.forward((x,)), static(x)
def told(prof):
    names = [event.name for event in prof.events()]
    return names[names.index("run"):]
if when != "in the window":
    lite, static = make()
if when == "before lanescope":
    import lanescope
with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as ours:
    if when == "in the window":
        lite, static = make()
    run()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
    run()
assert told(ours) == told(theirs), (told(ours), told(theirs))
assert {"forward", "aten::relu"} <= set(told(ours)), told(ours)
"""


@pytest.mark.skipif(not hasattr(torch._C, "_jit_to_static_module"), reason="needs a torch with the static runtime")
@pytest.mark.parametrize("when", ["before lanescope", "after lanescope", "in the window"])
def test_lite_interpreter_and_static_runtime_that_the_program_uses(tmp_path: pathlib.Path, when: str) -> None:
    (tmp_path / "program.py").write_text(RUNTIMES)
    done = subprocess.run([sys.executable, "program.py", when], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_asynchronous_range_that_ends_with_a_future(tmp_path: pathlib.Path) -> None:
    def program() -> None:
        future: "torch.futures.Future[int]" = torch.futures.Future()
        with record_function("until the future is there") as range_:
            done = range_._call_end_callbacks_on_future(future)
        torch.ones(2)
        worker = threading.Thread(target=lambda: future.set_result(1))
        worker.start()
        worker.join()
        done.wait()

    ours, theirs = under_lanescope(program, tmp_path), under_torch(program, tmp_path)
    for trace in (ours, theirs):
        rows = {e["name"]: e for e in trace["traceEvents"] if e.get("ph") == "X"}
        waits, ones = rows["until the future is there"], rows["aten::ones"]
        assert waits["ts"] <= ones["ts"] and waits["ts"] + waits["dur"] >= ones["ts"] + ones["dur"]


# -- threads, processes --------------------------------------------------------------------------------------------------


def test_user_threads(tmp_path: pathlib.Path) -> None:
    from torch._C._profiler import _ExperimentalConfig

    def work() -> None:
        with record_function("in a thread"):
            for _ in range(20):
                torch.ones(4).mul(2).sum()

    def program() -> None:
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
            worker.join()

    all_threads = _ExperimentalConfig(profile_all_threads=True)
    rows = assert_same(program, tmp_path, torch_options={"experimental_config": all_threads})
    assert len(rows) == 3
    assert names(threads(under_torch(program, tmp_path))) == []  # without it torch.profiler sees nothing of them


class Numbers(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((2,), float(index)) * 2


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader(tmp_path: pathlib.Path, workers: int) -> None:
    def program() -> None:
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=workers, multiprocessing_context="fork"
                                             if workers else None)
        for batch in loader:
            batch.sum()

    program()
    theirs, ours = threads(under_torch(program, tmp_path)), threads(under_lanescope(program, tmp_path))
    if workers:  # the order in which two workers deliver is theirs
        assert collections.Counter(names(ours)) == collections.Counter(names(theirs))
    else:
        assert ours == theirs
    kind = "_MultiProcessingDataLoaderIter" if workers else "_SingleProcessDataLoaderIter"
    assert names(ours).count(f"enumerate(DataLoader)#{kind}.__next__") == 5
    pids = {e["pid"] for e in load(tmp_path / "lanescope.json")["traceEvents"] if e.get("cat") == "cpu_op"}
    assert pids == {os.getpid()}


# -- torch.compile -------------------------------------------------------------------------------------------------------

COMPILED = """
    import json, sys, torch
    torch.set_num_threads(1)
    sys.path.insert(0, {here!r})
    import both_profilers as side
    import pathlib
    x, w, b = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64)
    function = torch.compile(lambda x, w, b: torch.add(torch.matmul(x, w), b).relu())
    def program():
        for _ in range(3):
            with torch.profiler.record_function("matmul_add"):
                function(x, w, b)
    with torch.no_grad():
        rows = side.assert_same(program, pathlib.Path({folder!r}), warm=2)
    print(json.dumps(rows))
"""


def test_compiled_matmul_add(tmp_path: pathlib.Path) -> None:
    script = textwrap.dedent(COMPILED).format(here=os.path.dirname(__file__), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(done.stdout.splitlines()[-1])
    seen = collections.Counter(re.sub(r"[a-z0-9]{20,}", "HASH", name) for name in names(rows))
    for name in ("matmul_add", "Torch-Compiled Region: 0/0", "TorchDynamo Cache Lookup",
                 "AOTDispatcher Runtime Wrapper Prologue", "## Call CompiledFxGraph HASH ##", "aten::addmm"):
        assert seen[name] == 3, (name, seen)


# -- memory, names -------------------------------------------------------------------------------------------------------


def memory_rows(trace: Dict[str, Any]) -> List[Tuple[int, int, int]]:
    events = [e for e in trace["traceEvents"] if e.get("name") == "[memory]"]
    events.sort(key=lambda e: nanoseconds(e["ts"]))
    return [(e["args"]["Bytes"], e["args"]["Device Type"], e["args"]["Device Id"]) for e in events]


def test_memory_events(tmp_path: pathlib.Path) -> None:
    x = torch.randn(32, 32, requires_grad=True)

    def program() -> None:
        y = (x @ x).relu()
        y.sum().backward()
        x.grad = None
        del y

    for _ in range(2):
        program()
    theirs = memory_rows(under_torch(program, tmp_path, profile_memory=True))
    ours = memory_rows(under_lanescope(program, tmp_path, profile_memory=True))
    assert len(theirs) > 6
    assert ours == theirs


def test_memory_events_of_threads_that_torch_profiler_does_not_see(tmp_path: pathlib.Path) -> None:
    def program() -> None:
        worker = threading.Thread(target=lambda: torch.ones(1000))
        worker.start()
        worker.join()

    assert memory_rows(under_torch(program, tmp_path, profile_memory=True)) == []
    assert memory_rows(under_lanescope(program, tmp_path, profile_memory=True)) == [(4000, 0, -1), (-4000, 0, -1)]


def in_thread(work: Callable[[], Any]) -> None:
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()


def test_memory_without_operators(tmp_path: pathlib.Path) -> None:
    def both(program: Callable[[], Any]) -> Tuple[List[int], List[int]]:
        program()
        theirs = memory_rows(under_torch(program, tmp_path, profile_memory=True))
        ours = memory_rows(under_lanescope(program, tmp_path, profile_memory=True))
        return [row[0] for row in theirs], [row[0] for row in ours]

    def storage() -> None:
        torch.UntypedStorage(600)  # allocates, and no operator runs

    def storage_behind_an_operator() -> None:
        torch.empty(100, dtype=torch.uint8)
        storage()

    def freed_elsewhere() -> None:
        box = [torch.empty(500, dtype=torch.uint8)]
        in_thread(box.clear)

    assert both(storage) == ([600, -600], [600, -600])
    assert both(lambda: in_thread(storage_behind_an_operator)) == ([], [100, -100, 600, -600])
    # Not seen by either: what a thread does that runs no operator while the window is open.
    assert both(lambda: in_thread(storage)) == ([], [])
    assert both(freed_elsewhere) == ([500], [500])


def test_names_that_kineto_mangles_are_kept(tmp_path: pathlib.Path) -> None:
    odd = ['quo"te', "back\\slash", "two\nlines", "ünicode", "tab\tx"]

    def program() -> None:
        for name in odd:
            with record_function(name):
                pass

    assert ranges(under_lanescope(program, tmp_path)) == odd
    text = under_torch_text(program, tmp_path)
    assert 'back/slash' in text and '"unknown"' in text  # the pin: Kineto's spellings of the same names


def under_torch_text(program: Callable[[], Any], folder: pathlib.Path) -> str:
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as prof:
        program()
    prof.export_chrome_trace(str(folder / "odd.json"))
    return (folder / "odd.json").read_text(encoding="utf-8", errors="replace")
