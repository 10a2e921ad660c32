"""What PyTorch's profiler recipe teaches, step by step, each with torch.profiler and with lanescope."""

from __future__ import annotations

import torch
from conftest import counts, file_counts, shapes, with_both
from small_models import images, resnet


def test_cpu_time_of_a_model():
    model, inputs = resnet(), images()

    def program(profiler):
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
            with profiler.record_function("model_inference"):
                model(inputs)
        table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
        by_shape = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10)
        return counts(prof), shapes(prof), headings(table), headings(by_shape), table.splitlines()[3].split()[0]

    theirs, ours = with_both(program)
    assert ours == theirs
    assert theirs[0]["model_inference"] == 1 and theirs[4] == "model_inference"


def headings(table):
    lines = [line for line in table.splitlines() if line.strip().startswith("Name")]
    return " ".join(lines[0].split()), len(table.splitlines())


def test_memory_of_a_model():
    model, inputs = resnet(), images()

    def program(profiler):
        activities = [profiler.ProfilerActivity.CPU]
        with profiler.profile(activities=activities, profile_memory=True, record_shapes=True) as prof:
            model(inputs)
        tables = [
            prof.key_averages().table(sort_by=key, row_limit=10) for key in ("self_cpu_memory_usage", "cpu_memory_usage")
        ]
        memory = {row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage) for row in prof.key_averages()}
        return counts(prof), memory, [headings(table)[0] for table in tables]

    theirs, ours = with_both(program)
    assert ours == theirs
    assert max(total for total, _ in theirs[1].values()) > 0


def test_a_chrome_trace(tmp_path):
    model, inputs = resnet(), images()

    def program(profiler):
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
            model(inputs)
        path = tmp_path / f"{profiler.__name__}.json"
        prof.export_chrome_trace(str(path))
        return file_counts(path)

    theirs, ours = with_both(program)
    assert ours == theirs and theirs


def test_stacks():
    model, inputs = resnet(), images()

    def program(profiler):
        config = torch._C._profiler._ExperimentalConfig(verbose=True)
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU], with_stack=True, experimental_config=config
        ) as prof:
            model(inputs)
        rows = prof.key_averages(group_by_stack_n=2)
        table = rows.table(sort_by="self_cpu_time_total", row_limit=2)
        convolutions = [row for row in rows if row.key == "aten::conv2d"]
        return "Source Location" in table, sum(row.count for row in convolutions)

    theirs, ours = with_both(program)
    assert ours == theirs == (True, 13)


def test_a_long_job_with_a_schedule(tmp_path):
    model, inputs = resnet(), images()

    def program(profiler):
        seen = []

        def trace_handler(prof):
            rows = prof.key_averages()
            rows.table(sort_by="self_cpu_time_total", row_limit=10)
            path = tmp_path / f"trace_{prof.step_num}.json"
            prof.export_chrome_trace(str(path))
            seen.append((prof.step_num, counts(prof), file_counts(path)))

        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=trace_handler,
        ) as prof:
            for _ in range(10):
                model(inputs)
                prof.step()
        return seen

    theirs, ours = with_both(program)
    assert ours == theirs
    assert [step for step, _, _ in theirs] == [5, 9]
    assert theirs[1][2]["user_annotation", "ProfilerStep#7"] == 1
