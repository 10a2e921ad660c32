#!/usr/bin/env python3
"""Runs small jobs of two ranks with planted faults, and records each with torch.profiler.

    torchrun --nproc-per-node 2 examples/rank_jobs/run_jobs.py OUT [--only NAME ...]

Writes OUT/JOB/rankN.json.gz and OUT/steps_rankN.json: ms of a step without a profiler (`step`), and of one in which
this rank communicates with nobody (`alone`: what its own CPU and GPU need), where the job can do that.
"""
from __future__ import annotations

import argparse
import contextlib
import gc
import json
import pathlib
import time
from typing import Dict, Optional

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

import communication
import cpu_bound
import late_ranks
import training
from training import ON_GPU, RANK, Job

WARM_UP, TIMED, RECORDED = 4, 10, 10
JOBS = {
    "healthy": training.Healthy,
    "more_work": late_ranks.MoreWork,
    "hidden_python": late_ranks.HiddenPython,
    "hidden_python_before_item": late_ranks.HiddenPythonBeforeItem,
    "slow_loader": late_ranks.SlowLoader,
    "rotating_batches": late_ranks.RotatingBatches,
    "pageable_copies": late_ranks.PageableCopies,
    "garbage_collection": late_ranks.GarbageCollection,
    "checkpoints": late_ranks.Checkpoints,
    "ends_early": late_ranks.EndsEarly,
    "tiny_buckets": communication.TinyBuckets,
    "one_all_reduce": communication.OneAllReduce,
    "reduces_each_micro_step": communication.ReducesEachMicroStep,
    "fully_sharded": communication.FullySharded,
    "exposed_tensor_parallel": communication.ExposedTensorParallel,
    "even_purposes": communication.EvenPurposes,
    "pipeline": communication.Pipeline,
    "pipeline_of_many_batches": communication.PipelineOfManyBatches,
    "pipeline_with_long_stage": communication.PipelineWithLongStage,
    "small_operators": cpu_bound.SmallOperators,
    "python_between_layers": cpu_bound.PythonBetweenLayers,
    "operators_that_fit": cpu_bound.OperatorsThatFit,
}


def ms_of_a_step(job: Job) -> float:
    training.wait_for_device()
    start = time.perf_counter()
    for number in range(TIMED):
        job.step(number)
    training.wait_for_device()
    return (time.perf_counter() - start) / TIMED * 1e3


def ms_alone(job: Job) -> Optional[float]:
    no_sync = getattr(job.model, "no_sync", None)
    if no_sync is None or not isinstance(job.model, torch.nn.parallel.DistributedDataParallel):
        return None
    with no_sync():
        return ms_of_a_step(job)


def record(job: Job, path: pathlib.Path) -> None:
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if ON_GPU else [])
    steps = RECORDED - job.recorded_steps_fewer
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        prof = stack.enter_context(profile(activities=activities, record_shapes=True,
                                           schedule=schedule(wait=1, warmup=2, active=steps, repeat=1)))
        for number in range(3 + RECORDED):  # all ranks take all steps
            job.step(number)
            prof.step()
    prof.export_chrome_trace(str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS), metavar="NAME", help=", ".join(JOBS))
    args = parser.parse_args()
    training.start()
    steps: Dict[str, Dict[str, Optional[float]]] = {}
    for name in args.only:
        dist.barrier()
        torch.backends.cuda.matmul.allow_tf32 = JOBS[name].tf32
        job = JOBS[name]()
        for number in range(WARM_UP):
            job.step(number)
        steps[name] = {"step": ms_of_a_step(job), "alone": ms_alone(job)}
        record(job, args.out / name / f"rank{RANK}.json.gz")
        del job
        gc.collect()
    (args.out / f"steps_rank{RANK}.json").write_text(json.dumps(steps, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
