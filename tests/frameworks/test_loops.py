"""Training loops that drive the profiler by hand, as large training programs do."""

from __future__ import annotations

import contextlib
import os

import torch
from conftest import counts, file_counts, with_both
from torch import nn


def train_step(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 16)).square().mean()
    loss.backward()
    optimizer.step()


def test_start_step_stop_without_a_context_manager(tmp_path):
    def program(profiler):
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        folder = tmp_path / profiler.__name__
        prof = profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=0),
            on_trace_ready=profiler.tensorboard_trace_handler(str(folder), worker_name="rank0"),
            record_shapes=True,
        )
        prof.start()
        for _ in range(9):
            train_step(model, optimizer)
            prof.step()
        prof.stop()
        files = sorted(os.listdir(folder))
        found = [file_counts(folder / name) for name in files]
        return [name.split(".")[0] + name[name.index(".pt") :] for name in files], found, prof.step_num

    theirs, ours = with_both(program)
    # with_both() runs torch.profiler's program twice into one folder
    assert len(theirs[0]) == 2 * len(ours[0]) and set(theirs[0]) == set(ours[0])
    assert theirs[1][-len(ours[1]) :] == ours[1]
    assert ours[2] == theirs[2] == 9


def test_a_job_that_goes_on_at_a_later_step(tmp_path):
    """After a checkpoint is loaded, the loop sets the profiler's step to the job's."""

    @contextlib.contextmanager
    def maybe_profile(profiler, folder, first_step, every):
        def save(prof):
            place = folder / f"iteration_{prof.step_num}"
            os.makedirs(place, exist_ok=True)
            prof.export_chrome_trace(str(place / "rank0_trace.json"))

        warmup, active = 2, 1
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            schedule=profiler.schedule(wait=every - warmup - active, warmup=warmup, active=active),
            on_trace_ready=save,
            record_shapes=True,
        ) as prof:
            prof.step_num = first_step
            yield prof

    def program(profiler):
        model = nn.Linear(16, 4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        folder = tmp_path / profiler.__name__
        with maybe_profile(profiler, folder, 100, 5) as prof:
            for _ in range(100, 112):
                train_step(model, optimizer)
                prof.step()
        return {name: file_counts(folder / name / "rank0_trace.json") for name in sorted(os.listdir(folder))}

    theirs, ours = with_both(program)
    assert ours == theirs
    assert list(theirs) == ["iteration_105", "iteration_110"]
    assert theirs["iteration_105"]["user_annotation", "ProfilerStep#104"] == 1


def test_two_profiles_one_after_the_other():
    def program(profiler):
        model = nn.Linear(16, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        found = []
        for _ in range(2):
            with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
                train_step(model, optimizer)
            found.append(counts(prof))
        return found

    theirs, ours = with_both(program)
    assert ours == theirs
