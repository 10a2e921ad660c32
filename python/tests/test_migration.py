"""Programs as people write them for torch.profiler, with the import replaced: the results are the same."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import gzip
import json
import types

import pytest

import lanescope

pytestmark = pytest.mark.filterwarnings("ignore")

# torch's header words are those that a program that reads the table looks for.
SORT_KEYS = [
    None, "cpu_time", "cuda_time", "xpu_time", "cpu_time_total", "cuda_time_total", "device_time_total", "self_cpu_time_total",
    "self_device_time_total", "cpu_memory_usage", "cuda_memory_usage", "self_cpu_memory_usage", "self_cuda_memory_usage", "count",
]  # fmt: skip


@pytest.fixture(params=["torch.profiler", "lanescope"])
def names(request, torch):
    """What `from torch.profiler import ...` gives, of one of the two."""
    module = torch.profiler if request.param == "torch.profiler" else lanescope
    return types.SimpleNamespace(torch=torch, **{name: getattr(module, name) for name in torch.profiler.__all__})


RESULTS = {}


@pytest.fixture
def same(request, names):
    """Compares what the two gave for one test."""

    def compare(result):
        test = request.node.originalname
        if test in RESULTS:
            assert result == RESULTS.pop(test)
        else:
            RESULTS[test] = result
        return result

    return compare


def small_net(torch):
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    return torch.nn.Sequential(*layers), torch.randn(2, 3, 8, 8)


def counts(prof):
    return {row.key: row.count for row in prof.key_averages()}


def in_file(path):
    """How often each operator and range is in a file."""
    with gzip.open(path) if str(path).endswith(".gz") else open(path) as file:
        events = json.load(file)["traceEvents"]
    calls = collections.Counter((e["cat"], e["name"]) for e in events if e.get("cat") in ("cpu_op", "user_annotation"))
    return dict(calls)


def test_the_recipe(names, same):
    net, x = small_net(names.torch)
    with names.profile(activities=[names.ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
        with names.record_function("model_inference"):
            net(x)
    by_shape = {(row.key, str(row.input_shapes)): row.count for row in prof.key_averages(group_by_input_shape=True)}
    memory = {row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage) for row in prof.key_averages()}
    heads = {}
    for key in SORT_KEYS:
        table = prof.key_averages().table(sort_by=key, row_limit=5)
        (head,) = (line for line in table.splitlines() if line.strip().startswith("Name"))
        heads[key] = head.split()
    result = same((counts(prof), by_shape, memory, heads))
    assert result[0]["aten::conv2d"] == 1 and ("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], []]") in by_shape


def test_a_schedule_with_files(names, same, tmp_path):
    net, x = small_net(names.torch)
    cycles = []

    def ready(prof):
        path = tmp_path / f"{len(cycles)}.json.gz"
        prof.export_chrome_trace(str(path))
        cycles.append((prof.step_num, in_file(path), counts(prof)))

    plan = names.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    with names.profile(activities=[names.ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(11):
            net(x)
            prof.step()
    same(cycles)
    assert len(cycles) == 2 and cycles[0][1]["user_annotation", "ProfilerStep#3"] == 1


def test_a_training_step(names, same, tmp_path):
    torch = names.torch
    net, x = small_net(torch)
    optimizer = torch.optim.Adam(net.parameters())
    with names.profile(record_shapes=True, with_flops=True, with_modules=True) as prof:
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 1])).backward()
            optimizer.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    flops = {row.key: row.flops for row in prof.key_averages() if row.flops}
    kinds = [(e.name, e.scope, e.is_async, e.sequence_nr >= 0) for e in prof.events() if not e.name.startswith("[")]
    result = same((counts(prof), flops, kinds, in_file(tmp_path / "trace.json")))
    assert result[0]["Optimizer.step#Adam.step"] == 2


def test_record_function_in_all_its_forms(names, same):
    torch = names.torch

    @names.record_function("function")
    def function(x):
        """What it does."""
        return x + 1

    @names.record_function("generator")
    def generator():
        yield torch.ones(1)
        yield torch.ones(1)

    @names.record_function("coroutine")
    async def coroutine():
        torch.ones(1)

    class Thing:
        @names.record_function("method")
        def method(self, x):
            return x * 2

    with names.profile() as prof:
        function(torch.ones(2))
        list(generator())
        asyncio.run(coroutine())
        Thing().method(torch.ones(2))
        with contextlib.suppress(KeyError), names.record_function("raises"):
            raise KeyError
        kept = names.record_function("kept")
        for _ in range(2):
            with kept:
                torch.ones(1)
        with names.record_function("name", "argument"), torch.autograd.profiler.record_function("torch's"):
            torch.ones(1)
    result = same((counts(prof), function.__name__, function.__doc__))
    assert result[0]["kept"] == 2 and result[0]["raises"] == 1


def test_a_data_loader(names, same):
    torch = names.torch
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    found = {}
    for workers in (0, 2):
        with names.profile() as prof:
            for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, num_workers=workers):
                batch.sum()
        found[workers] = {name: count for name, count in counts(prof).items() if "DataLoader" in name or name == "aten::sum"}
    result = same(found)
    assert result[2]["aten::sum"] == 4


def test_functions_hooks_and_scripts(names, same):
    torch = names.torch

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    @torch.jit.script
    def scripted(x):
        return x + 1

    net, x = small_net(torch)
    net.register_forward_hook(lambda *arguments: torch.ones(1))
    y = torch.ones(2, requires_grad=True)
    scripted(y.detach())
    with names.profile() as prof:
        Double.apply(y).sum().backward()
        scripted(y.detach())
        net(x)
    result = same(counts(prof))
    assert result["DoubleBackward"] == 1


def test_the_ways_to_hold_a_profile(names, same):
    torch = names.torch

    class Mine(names.profile):
        def __init__(self):
            super().__init__(activities=[names.ProfilerActivity.CPU])

    results = []
    with Mine() as prof:
        torch.ones(1)
    results.append(counts(prof))
    with contextlib.ExitStack() as stack:
        prof = stack.enter_context(names.profile(activities={names.ProfilerActivity.CPU}))
        stack.enter_context(names.record_function("range"))
        torch.ones(1)
    results.append(counts(prof))
    with contextlib.suppress(ValueError), names.profile() as prof:
        torch.ones(1) + 1
        raise ValueError
    results.append(counts(prof))
    prof = names.profile()
    for _ in range(2):
        prof.start()
        torch.ones(1)
        prof.stop()
    results.append(counts(prof))
    same(results)
    assert all(result["aten::ones"] == 1 for result in results)


def test_files_for_tensorboard(names, same, tmp_path):
    handler = names.tensorboard_trace_handler(str(tmp_path), worker_name="worker", use_gzip=True)
    with names.profile(schedule=names.schedule(wait=0, warmup=0, active=1, repeat=2), on_trace_ready=handler) as prof:
        for _ in range(3):
            names.torch.ones(1)
            prof.step()
    files = sorted(tmp_path.iterdir())
    parts = [path.name.split(".") for path in files]
    assert all(part[1].isdigit() for part in parts)
    result = same(([part[:1] + part[2:] for part in parts], [in_file(path) for path in files]))
    assert result[0] == [["worker", "pt", "trace", "json", "gz"]] * 2
