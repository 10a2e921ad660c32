"""Accelerate's ProfileKwargs, which makes torch.profiler's profile itself."""

from __future__ import annotations

import lanescope
import torch
from conftest import counts, file_counts, need
from torch import nn

accelerate = need("accelerate")


def train(folder, on_trace_ready, **arguments):
    kwargs = accelerate.ProfileKwargs(
        activities=["cpu"],
        record_shapes=True,
        schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1},
        on_trace_ready=on_trace_ready,
        **arguments,
    )
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, kwargs_handlers=[kwargs])
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    with accelerator.profile() as prof:
        for _ in range(10):
            optimizer.zero_grad()
            accelerator.backward(model(torch.randn(8, 16)).square().mean())
            optimizer.step()
            prof.step()
    return counts(prof), type(prof).__module__.split(".")[0]


def handler(folder, seen):
    def ready(prof):
        path = folder / f"{len(seen)}.json"
        prof.export_chrome_trace(str(path))
        seen.append((prof.step_num, counts(prof), file_counts(path)))

    return ready


def test_accelerate_on_lanescopes_profile(tmp_path, lanescope_as_torch_profiler):
    seen_with_torch, seen_with_lanescope = [], []
    (tmp_path / "torch").mkdir()
    (tmp_path / "ours").mkdir()
    train(tmp_path / "torch", handler(tmp_path / "torch", []))
    theirs = train(tmp_path / "torch", handler(tmp_path / "torch", seen_with_torch))
    lanescope_as_torch_profiler()
    ours = train(tmp_path / "ours", handler(tmp_path / "ours", seen_with_lanescope))
    assert theirs[1] == "torch" and ours[1] == "lanescope"
    assert ours[0] == theirs[0]
    assert len(seen_with_torch) == 2 and seen_with_lanescope == seen_with_torch


def test_files_that_accelerate_writes(tmp_path, lanescope_as_torch_profiler):
    def program(folder):
        kwargs = accelerate.ProfileKwargs(activities=["cpu"], output_trace_dir=str(folder))
        accelerator = accelerate.Accelerator(cpu=True, kwargs_handlers=[kwargs])
        model = accelerator.prepare(nn.Linear(16, 4))
        x = torch.randn(8, 16)
        with accelerator.profile() as prof:
            model(x)
        return {path.name: file_counts(path) for path in folder.iterdir()}, counts(prof)

    program(tmp_path / "first")
    theirs = program(tmp_path / "theirs")
    lanescope_as_torch_profiler()
    ours = program(tmp_path / "ours")
    assert ours == theirs and theirs[0]
    assert lanescope.profile is not None
