"""The torch style of `lanescope table` against torch itself: same process, same run, same bytes.

Each program below runs under torch.profiler on the CPU; torch exports the JSON and prints its own table, and lanescope
prints a table from that JSON alone. What torch knows in memory but does not write to the file has separate tests at the
end; docs/definitions/key_averages.md#what-the-file-lacks says the same in words.
"""
from __future__ import annotations

import itertools
import subprocess
import threading

import pytest

from conftest import find_binary

torch = pytest.importorskip("torch", reason="needs torch")

from torch._C._profiler import _ExperimentalConfig  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function, schedule  # noqa: E402


def lanescope_table(trace, *flags):
    done = subprocess.run([str(find_binary()), "table", str(trace), "--style", "torch", *flags],
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8")


# --- programs -------------------------------------------------------------------------------------------------------

def mlp():
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def step():
        with record_function("forward"):
            loss = model(torch.randn(16, 32)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    return step


def conv_net():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, stride=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, groups=4, dilation=2), torch.nn.Conv2d(8, 4, 3, padding="same"),
        torch.nn.AdaptiveAvgPool2d(1))

    def step():
        model(torch.randn(2, 3, 20, 20)).sum().backward()

    step()
    return step


def products():
    a, b, c = torch.randn(4, 8), torch.randn(8, 16), torch.randn(16)
    x, y, z = torch.randn(2, 4, 8), torch.randn(2, 8, 4), torch.randn(2, 4, 4)

    def step():
        torch.addmm(c, a, b)
        torch.mm(a, b)
        torch.bmm(x, y)
        torch.baddbmm(z, x, y)
        torch.mul(a, 2.0)
        torch.add(a, a, alpha=2)
        torch.cat([a, a, a])
        torch.stack([a, a])
        torch.mm(torch.empty(0, 8), b)
        torch.einsum("ij,jk->ik", a, b)
        a.sum().item()
        torch.zeros(()).mul(3)

    step()
    return step


def nested_names():
    def step():
        with record_function("twice"):
            with record_function("twice"):
                with record_function("twice"):
                    torch.ones(3).add_(1)
        with record_function("twice"):
            with record_function("twice"):
                pass
            with record_function("twice"):
                torch.ones(3)
        with record_function("i"), record_function("Pi"), record_function("St6vectorIiSaIiEE"):
            torch.ones(2)
        with record_function("x" * 300), record_function("semi;colon, comma"):
            torch.ones(1)
        with record_function("ProfilerStep#7"):
            torch.ones(1)

    step()
    return step


def user_threads():
    def work():
        with record_function("on a thread"):
            for _ in range(3):
                torch.randn(64, 64) @ torch.randn(64, 64)

    def step():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()

    step()
    return step


def jit_fork():
    @torch.jit.script
    def branch(x: torch.Tensor):
        return torch.relu(x @ x)

    @torch.jit.script
    def forked(x: torch.Tensor):
        future = torch.jit.fork(branch, x)
        y = branch(x)
        for _ in range(30):
            y = branch(y)
        return y + torch.jit.wait(future)

    x = torch.randn(32, 32)
    for _ in range(5):
        forked(x)
    return lambda: forked(x)


def compiled():
    pytest.importorskip("torch._dynamo")
    function = torch.compile(lambda x, w, b: torch.add(torch.matmul(x, w), b), backend="aot_eager")
    args = torch.randn(8, 8), torch.randn(8, 8), torch.randn(8)

    def step():
        with record_function("matmul_add"):
            function(*args)

    step()
    return step


def leaks():
    kept = []

    def step():
        kept.append(torch.randn(300, 300))
        with record_function("drops"):
            kept.clear()
        tensor = torch.empty(1 << 20)
        del tensor
        kept.append(torch.zeros(5_000_000))

    step()
    return step


def nothing():
    return lambda: None


PROGRAMS = {f.__name__: f for f in (mlp, conv_net, products, nested_names, user_threads, jit_fork, compiled, leaks, nothing)}

RECORDINGS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "flops": {"with_flops": True},
    "shapes_memory_flops": {"record_shapes": True, "profile_memory": True, "with_flops": True},
    "stack": {"with_stack": True, "experimental_config": _ExperimentalConfig(verbose=True)},
    "stack_not_verbose": {"with_stack": True},
    "overloads": {"record_shapes": True, "experimental_config": _ExperimentalConfig(capture_overload_names=True)},
    "everything": {"record_shapes": True, "profile_memory": True, "with_flops": True, "with_stack": True,
                   "experimental_config": _ExperimentalConfig(verbose=True, capture_overload_names=True)},
    "all_threads": {"profile_memory": True, "experimental_config": _ExperimentalConfig(profile_all_threads=True)},
}

GROUPS = {
    "plain": ({}, []),
    "shapes": ({"group_by_input_shape": True}, ["--group-by-input-shape"]),
    "stack3": ({"group_by_stack_n": 3}, ["--group-by-stack", "3"]),
    "overloads": ({"group_by_overload_name": True}, ["--group-by-overload-name"]),
    "all": ({"group_by_input_shape": True, "group_by_stack_n": 5, "group_by_overload_name": True},
            ["--group-by-input-shape", "--group-by-stack", "5", "--group-by-overload-name"]),
}

TABLES = {
    "plain": ({}, []),
    "sorted": ({"sort_by": "cpu_time_total"}, ["--sort-by", "cpu_time_total"]),
    "self": ({"sort_by": "self_cpu_time_total", "row_limit": 3, "time_unit": "us"},
             ["--sort-by", "self_cpu_time_total", "--row-limit", "3", "--time-unit", "us"]),
    "count": ({"sort_by": "count", "row_limit": -1, "time_unit": "ms", "header": "a header"},
              ["--sort-by", "count", "--row-limit", "-1", "--time-unit", "ms", "--header", "a header"]),
    "narrow": ({"sort_by": "cpu_time", "max_name_column_width": 20, "max_src_column_width": 30,
                "max_shapes_column_width": 25, "time_unit": "s"},
               ["--sort-by", "cpu_time", "--max-name-column-width", "20", "--max-src-column-width", "30",
                "--max-shapes-column-width", "25", "--time-unit", "s"]),
    "tiny": ({"max_name_column_width": 2}, ["--max-name-column-width", "2"]),
    "top": ({"sort_by": "self_cpu_memory_usage", "top_level_events_only": True, "header": "top"},
            ["--sort-by", "self_cpu_memory_usage", "--top-level-only", "--header", "top"]),
    "device": ({"sort_by": "cuda_time_total"}, ["--sort-by", "cuda_time_total"]),
}


# Every group and table with the richest recording; with the others each group and each table once.
ALL_PAIRS = list(itertools.product(GROUPS, TABLES))
FEW_PAIRS = list(zip(itertools.cycle(GROUPS), TABLES))


def is_async(prof):
    """Whether torch holds a range that began on one thread and ended on another: the file does not say so."""
    return any(event.is_async() or event.start_thread_id() != event.end_thread_id()
               for event in prof.profiler.kineto_results.events())


def record(program, options, path, cycles=None):
    """One profile of `program`, its JSON at `path`."""
    step = PROGRAMS[program]()
    with profile(activities=[ProfilerActivity.CPU], schedule=cycles, **options) as prof:
        if cycles is None:
            step()
            step()
        else:
            for _ in range(9):
                step()
                prof.step()
    prof.export_chrome_trace(str(path))
    return prof


def record_sync(program, options, path):
    """The same, again and again until no range ends on another thread (torch.jit.fork decides at random)."""
    for _ in range(200):
        prof = record(program, options, path)
        if not is_async(prof):
            return prof
    pytest.skip("needs a run in which no range ends on another thread; 200 runs had one")
    return None


def differences(ours, theirs):
    ours, theirs = ours.splitlines(), theirs.splitlines()
    return [(a, b) for a, b in itertools.zip_longest(ours, theirs, fillvalue="") if a != b]


def expect_equal(prof, trace, group, table):
    (group_args, group_flags), (table_args, table_flags) = GROUPS[group], TABLES[table]
    theirs = prof.key_averages(**group_args).table(**table_args)
    ours = lanescope_table(trace, *group_flags, *table_flags)
    if theirs == "":
        assert ours.strip() == ""
    else:
        assert ours == theirs, f"group {group}, table {table}: {differences(ours, theirs)[:4]}"


@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_table_of_a_run_is_torchs_text(program, recording, tmp_path):
    trace = tmp_path / "trace.json"
    prof = record_sync(program, RECORDINGS[recording], trace)
    for group, table in ALL_PAIRS if recording == "everything" else FEW_PAIRS:
        expect_equal(prof, trace, group, table)


@pytest.mark.parametrize("program", ["mlp", "products"])
def test_the_last_cycle_of_a_schedule_is_torchs_text(program, tmp_path):
    trace = tmp_path / "trace.json"
    prof = record(program, {"record_shapes": True}, trace, schedule(wait=1, warmup=1, active=2, repeat=2))
    for group in GROUPS:
        expect_equal(prof, trace, group, "sorted")


def test_a_packed_trace_gives_the_same_text(tmp_path):
    trace = tmp_path / "trace.json.gz"
    prof = record("mlp", {"record_shapes": True}, trace)
    expect_equal(prof, trace, "shapes", "plain")


# --- what the file lacks --------------------------------------------------------------------------------------------

def row_of(text, name):
    return next(line for line in text.splitlines() if line.split()[:1] == [name]).split()


def test_a_range_that_ends_on_another_thread_has_self_time_because_the_file_names_one_thread(tmp_path):
    """torch: an async range has no children and no self time, and prints 0 for its share. File: an ordinary range."""
    trace = tmp_path / "trace.json"
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        future = torch.futures.Future()
        scope = record_function("crosses")
        with scope:
            scope._call_end_callbacks_on_future(future)
            torch.ones(3)
        worker = threading.Thread(target=future.set_result, args=(1,))
        worker.start()
        worker.join()
    prof.export_chrome_trace(str(trace))
    theirs = row_of(prof.key_averages().table(), "crosses")
    ours = row_of(lanescope_table(trace), "crosses")
    assert is_async(prof)
    assert theirs[1:4] == ["0.00%", "0.000us", "0"]
    assert ours[2] != "0.000us"
    assert ours[4:6] == theirs[4:6]  # total and average are the same


def test_names_that_break_torchs_json_are_mended_and_give_torchs_text(tmp_path):
    trace = tmp_path / "trace.json"
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function('a "quoted" name'):
            torch.ones(3)
    prof.export_chrome_trace(str(trace))
    assert lanescope_table(trace) == prof.key_averages().table()


def test_names_beyond_ascii_are_unknown_because_the_file_says_so(tmp_path):
    """Kineto writes "unknown" instead of such a name; torch's table has it from memory."""
    trace = tmp_path / "trace.json"
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function("gr\u00fcn"):
            torch.ones(3)
    prof.export_chrome_trace(str(trace))
    theirs = prof.key_averages().table()
    if '"unknown"' not in trace.read_text(encoding="utf-8"):
        assert lanescope_table(trace) == theirs
    else:
        assert row_of(lanescope_table(trace), "unknown")[1:] == row_of(theirs, "gr\u00fcn")[1:]
