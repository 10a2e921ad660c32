#!/usr/bin/env python3
"""Jobs whose ranks sum over pairs: one pair on each host, and one pair across each two neighbouring hosts. hosts.py
starts this once a rank; each job is recorded by torch.profiler and by lanescope (which also names the host)."""
from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import time
from typing import Dict

import torch
import torch.distributed as dist
from torch import nn

import run_jobs
import training
from training import DEVICE, ON_GPU, RANK, WORLD, Job, make_model

WARM_UP, RECORDED = 2, 6
run_jobs.TIMED, run_jobs.RECORDED = 5, RECORDED
WIDTH, BATCH = (1024, 512) if ON_GPU else (128, 32)
MEGABYTES, SUMS = (16, 2) if ON_GPU else (1, 2)  # in each kind of pair, a step


def group_of(pairs, description: str):
    """The group of this rank among those of `pairs`; all ranks make all groups."""
    own = None
    for pair in pairs:
        group = dist.new_group(list(pair), group_desc=description)
        own = group if RANK in pair else own
    return own


class Neighbours(Job):
    """Each rank sums parts of 16 MiB with the other rank of its host, and with a rank of the next host."""

    parts_with_neighbour = SUMS
    groups = None  # the same for all jobs: (of the host, of the neighbours)

    def __init__(self):
        if Neighbours.groups is None:
            Neighbours.groups = (group_of([(rank, rank + 1) for rank in range(0, WORLD, 2)], "host"),
                                 group_of([sorted((rank, (rank + 1) % WORLD)) for rank in range(1, WORLD, 2)], "neighbours"))
        super().__init__()
        self.inputs = torch.randn(BATCH, WIDTH, device=DEVICE)
        self.labels = self.labels[:BATCH]
        self.host_part = torch.zeros(MEGABYTES * 2**18, device=DEVICE)
        self.neighbour_part = torch.zeros(MEGABYTES * 2**18, device=DEVICE)

    def wrap(self, model):
        return make_model(WIDTH, layers=4)

    def step(self, number):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.inputs), self.labels)
        loss.backward()
        self.before_update(number, loss)
        for _ in range(SUMS):
            dist.all_reduce(self.host_part, group=self.groups[0])
        for _ in range(self.parts_with_neighbour):
            dist.all_reduce(self.neighbour_part, group=self.groups[1])
        self.optimizer.step()
        dist.all_reduce(loss.detach())


class LatePair(Neighbours):
    """The last two ranks multiply more: the others wait for them, in pairs that are as fast as the others."""

    def __init__(self):
        super().__init__()
        size = 4096 if ON_GPU else 512
        self.table = torch.randn(size, size, device=DEVICE)

    def before_update(self, number, loss):
        if RANK >= WORLD - 2:
            for _ in range(20):
                self.table @ self.table


class LargerParts(Neighbours):
    """The last host's ranks sum four times as much with their neighbours: longer, and as fast."""

    def __init__(self):
        super().__init__()
        if RANK in (0, WORLD - 1):
            self.neighbour_part = torch.zeros(4 * MEGABYTES * 2**18, device=DEVICE)


class ReadsLoss(Neighbours):
    """Each rank reads its loss before the sums: a CPU that is late makes its GPU late."""

    def before_update(self, number, loss):
        loss.item()


JOBS = {"neighbours": Neighbours, "late_pair": LatePair, "larger_parts": LargerParts,
        "reads_loss": ReadsLoss}


def record_with_lanescope(job: Job, path: pathlib.Path) -> None:
    from lanescope import ProfilerActivity, profile, schedule

    path.parent.mkdir(parents=True, exist_ok=True)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if ON_GPU else [])
    with profile(activities=activities, record_shapes=True, schedule=schedule(wait=1, warmup=2, active=RECORDED, repeat=1)) as prof:
        for number in range(3 + RECORDED):
            job.step(number)
            prof.step()
    prof.export_chrome_trace(str(path))


def bandwidths(job: Neighbours) -> Dict[str, float]:
    """GB/s of bus bandwidth of this rank's pairs, without a profiler and one pair at a time."""
    out = {}
    for name, group, part in zip(("host", "neighbours"), job.groups, (job.host_part, job.neighbour_part)):
        dist.barrier()
        training.wait_for_device()
        start = time.perf_counter()
        for _ in range(8):
            dist.all_reduce(part, group=group)
        training.wait_for_device()
        out[name] = 8 * part.numel() * 4 / (time.perf_counter() - start) / 1e9
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--network", default="even")
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS))
    args = parser.parse_args()
    training.start()
    if "BUSY_CORE" in os.environ:  # and the threads that this one starts from here on, such as autograd's
        os.sched_setaffinity(0, {int(os.environ["BUSY_CORE"])})
    measured = {}
    for name in args.only:
        began = time.perf_counter()
        job = JOBS[name]()
        for number in range(WARM_UP):
            job.step(number)
        folder = f"{args.network.replace('-', '_')}_{name}"
        measured[folder] = {"step_ms": run_jobs.ms_of_a_step(job), "bandwidth": bandwidths(job)}
        record_with_lanescope(job, args.out / folder / f"rank{RANK}.json.gz")
        run_jobs.record(job, args.out / f"{folder}_torch" / f"rank{RANK}.json.gz")
        if RANK == 0:
            print(folder, measured[folder], f"{time.perf_counter() - began:.1f} s", flush=True)
        del job
        gc.collect()
    (args.out / f"{args.network}_rank{RANK}.json").write_text(json.dumps(measured, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
