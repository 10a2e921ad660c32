#!/usr/bin/env python3
"""Runs one program of a pair: times it without a profiler, or records it.

    python3 examples/faults/harness.py item_every_step bad                                  # time of a step
    python3 examples/faults/harness.py item_every_step bad --recorder lanescope --out .     # a trace
    python3 examples/faults/harness.py item_every_step good --recorder torch --device cpu --small

A program is a file of programs/ with two functions, bad and good. Each takes a Setting, prepares what it needs and returns
its step: a function that does the same work each time it is called. What a step returns is compared between the twins.
A program of several ranks runs once a GPU, and starts itself again under torchrun; rank 0 tells the result.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import importlib
import json
import math
import os
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDERS = ("lanescope", "torch")
VARIANTS = ("bad", "good")
UNAVAILABLE = 3  # exit code: the program cannot run here; the last line of output says why
WARM_STEPS = 3
COMPARED_STEPS = 3  # results of the first steps, compared between the twins


class Unavailable(Exception):
    """The program cannot run on this machine."""


@dataclasses.dataclass
class Ranks:
    """The processes of one program. They meet through torch's store: a collective would be a part of what is recorded."""

    count: int = 1
    rank: int = 0
    store: Any = None
    meetings: int = 0

    def agree(self, value: float) -> float:
        """Rank 0's value, for each of them, once all have come."""
        if self.count == 1:
            return value
        self.meetings += 1
        key = f"faults/{self.meetings}"
        self.store.add(f"{key}/came", 1)
        if self.rank == 0:
            while self.store.add(f"{key}/came", 0) < self.count:
                time.sleep(0.0005)
            self.store.set(key, repr(float(value)))
        return float(self.store.get(key))

    def meet(self) -> None:
        self.agree(0)


@dataclasses.dataclass
class Setting:
    """Where a program runs and how large it is."""

    device: str  # cpu, cuda
    small: bool  # sizes for a quick run on a CPU
    ranks: Ranks = dataclasses.field(default_factory=Ranks)

    @property
    def rank(self) -> int:
        return self.ranks.rank

    def pick(self, full: int, small: int) -> int:
        return small if self.small else full

    def randn(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.randn(shape, dtype=dtype, device=self.device)

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory() if self.device == "cuda" else tensor

    def compile(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """torch.compile; on the CPU without generated code, which takes too long there for a small run."""
        if self.device != "cuda":
            options.setdefault("backend", "eager")
        compiled: Callable[..., Any] = torch.compile(function, **options)
        return compiled

    def finish(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def load_pairs(path: Optional[str] = None) -> Dict[str, Dict[str, Any]]:
    """The table of pairs.json, without its explanation of the columns."""
    with open(path or os.path.join(HERE, "pairs.json"), encoding="utf-8") as file:
        pairs: Dict[str, Dict[str, Any]] = json.load(file)["pairs"]
    return pairs


@dataclasses.dataclass
class Job:
    pair: str
    variant: str
    recorder: str  # "": timed without a profiler
    device: str
    small: bool
    out: str  # folder
    seconds: float = 0.5  # of timing
    lock: str = ""  # a file: preparing shares it, measuring holds it alone
    rank: int = 0

    @property
    def name(self) -> str:
        return f"{self.pair}.{self.variant}.{self.recorder or 'time'}" + (f".rank{self.rank}" if self.rank else "")


@contextlib.contextmanager
def locked(path: str, how: int) -> Iterator[None]:
    """Nobody else prepares or measures while someone measures. A worker process inherits the lock, so it is given back."""
    if not path:
        yield
        return
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, how)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


@contextlib.contextmanager
def turn(job: Job, ranks: Ranks, how: int) -> Iterator[None]:
    """The lock, held by rank 0 for all ranks: they go in together and come out together."""
    with locked("" if ranks.rank else job.lock, how):
        ranks.meet()
        yield
        ranks.meet()


def fingerprint(result: Any) -> List[float]:
    """A few numbers that two equal results share: mean, root mean square and the ends of each tensor."""
    if isinstance(result, (list, tuple)):
        return [number for part in result for number in fingerprint(part)]
    if result is None:
        return []
    if not isinstance(result, torch.Tensor):
        result = torch.tensor(float(result))
    flat = result.detach().reshape(-1).double()
    return [flat.mean().item(), flat.square().mean().sqrt().item(), flat[0].item(), flat[-1].item()]


def raise_clocks(device: str, seconds: float) -> None:
    """Products until the GPU runs at its full clock; a GPU that idled is slower."""
    if device != "cuda":
        return
    x = torch.ones(8192, 8192, device=device, dtype=torch.bfloat16)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        torch.matmul(x, x)
        torch.cuda.synchronize()
    del x
    torch.cuda.empty_cache()


def warm_up(step: Callable[[], Any], setting: Setting, seconds: float = 0.3) -> None:
    """Steps until the GPU is as it is in the middle of a run. After 0.15 s of products an H200 has reached its power limit, and kernels
    take up to 14 % longer for 50 ms (docs/measurements/whatif.md). A multiple of 12 steps, as in measure()."""
    if setting.device != "cuda":
        return
    deadline = time.perf_counter() + seconds
    while setting.ranks.agree(time.perf_counter() < deadline):
        for _ in range(12):
            step()
        setting.finish()


def us_per_step(step: Callable[[], Any], steps: int, setting: Setting) -> float:
    setting.finish()
    setting.ranks.meet()
    begin = time.perf_counter_ns()
    for _ in range(steps):
        step()
    setting.finish()
    return (time.perf_counter_ns() - begin) / 1000 / steps


def measure(step: Callable[[], Any], setting: Setting, seconds: float, steps: int) -> Dict[str, Any]:
    """Blocks of steps, the device idle at both ends of each. `steps`: one block of so many, 0: as many as there is time for.

    A block has a multiple of 12 steps, so that what happens every 2, 3, 4 or 6 steps happens equally often in each. Of several
    ranks the first decides how many.
    """
    agree = setting.ranks.agree
    if steps:
        blocks, count = [us_per_step(step, steps, setting)], steps
    else:
        once = agree(us_per_step(step, 2, setting))
        count = 12 * max(1, math.ceil(min(0.05, seconds / 5) * 1e6 / once / 12))
        deadline = time.perf_counter() + seconds
        blocks = []
        while agree(len(blocks) < 3 or (time.perf_counter() < deadline and len(blocks) < 200)):
            blocks.append(us_per_step(step, count, setting))
    return {"us": statistics.median(blocks), "least_us": min(blocks), "most_us": max(blocks), "blocks": len(blocks),
            "steps_per_block": count}


Prepare = Callable[[], Callable[[], Any]]


def time_program(job: Job, prepare: Prepare, setting: Setting, options: Dict[str, Any]) -> Dict[str, Any]:
    first_only = options.get("timing") == "first"
    with turn(job, setting.ranks, fcntl.LOCK_SH):
        step = prepare()
        results = []
        if not first_only:
            results = [fingerprint(step()) for _ in range(options.get("warm", WARM_STEPS))][:COMPARED_STEPS]
            setting.finish()
    with turn(job, setting.ranks, fcntl.LOCK_EX):
        if first_only:
            warm = options.get("warm", WARM_STEPS) if job.variant == "good" else 0
            for _ in range(warm):
                step()
            row = {"us": us_per_step(step, 1, setting), "blocks": 1, "steps_per_block": 1}
        else:
            raise_clocks(setting.device, 0.15)
            step()
            before = torch.cuda.memory_allocated() if setting.device == "cuda" else 0
            row = measure(step, setting, job.seconds, options.get("steps", 0))
            if setting.device == "cuda":
                row["memory_growth_bytes_per_step"] = ((torch.cuda.memory_allocated() - before)
                                                       / (row["blocks"] * row["steps_per_block"]))
    return {**row, "results": results}


def record_unmarked(profile: Callable[[], Any], step: Callable[[], Any], setting: Setting, queued: int, active: int) -> Any:
    """One recording without marked steps, begun while the GPU still has `queued` steps to do."""
    with profile():  # so that the recorder prepares itself before, which may wait for the GPU
        step()
        setting.finish()
    raise_clocks(setting.device, 0.15)
    for _ in range(queued):
        step()
    prof = profile()
    prof.start()
    for _ in range(active):
        step()
    setting.finish()
    prof.stop()
    return prof


def record_program(job: Job, prepare: Prepare, setting: Setting, options: Dict[str, Any]) -> Dict[str, Any]:
    module: Any = importlib.import_module("lanescope" if job.recorder == "lanescope" else "torch.profiler")
    how = options.get("recording", {}).get(job.variant, {})
    activities = [getattr(module.ProfilerActivity, name) for name in how.get("activities", ("CPU", "CUDA"))
                  if name == "CPU" or setting.device == "cuda"]
    shared = {"activities": activities, "record_shapes": True, "profile_memory": bool(options.get("memory")),
              "with_stack": bool(options.get("stacks"))}
    cold = options.get("timing") == "first" and job.variant == "bad"
    unrecorded = 0 if cold else 3
    active = options.get("active", 6)
    plan = module.schedule(wait=1, warmup=2, active=active, repeat=1) if unrecorded else module.schedule(
        wait=0, warmup=0, active=active, repeat=1)
    path = os.path.join(job.out, "traces", job.name + ".json.gz")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with turn(job, setting.ranks, fcntl.LOCK_SH):
        step = prepare()
        for _ in range(0 if cold else options.get("warm", WARM_STEPS)):
            step()
        setting.finish()
    with turn(job, setting.ranks, fcntl.LOCK_EX):
        if "unmarked" in how:
            prof = record_unmarked(lambda: module.profile(**shared), step, setting, how["unmarked"], active)
        else:
            prof = module.profile(schedule=plan, **shared)
            prof.start()
            setting.ranks.meet()
            for number in range(unrecorded + active):
                step()
                prof.step()
                if number == 0 and unrecorded:  # the profiler has just prepared itself, which takes a while
                    if "steps" in options:  # its steps are not alike
                        raise_clocks(setting.device, 0.15)
                    else:
                        warm_up(step, setting)
                    setting.ranks.meet()
            prof.stop()
    prof.export_chrome_trace(path)
    return {"trace": os.path.basename(path), "bytes": os.path.getsize(path), "active": active}


@contextlib.contextmanager
def joined(job: Job, count: int) -> Iterator[Ranks]:
    """The process group of a program of several ranks, from RANK, WORLD_SIZE and the like. No collective has run in it yet."""
    if count == 1:
        yield Ranks()
        return
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    if job.device == "cuda":
        if torch.cuda.device_count() < count:
            raise Unavailable(f"needs {count} GPUs, torch sees {torch.cuda.device_count()}")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store, rank, size = next(rendezvous("env://"))
    # Without a device_id: with one, the communicator would be connected here and not by the first collective.
    dist.init_process_group("nccl" if job.device == "cuda" else "gloo", store=store, rank=rank, world_size=size)
    yield Ranks(size, rank, store)
    dist.destroy_process_group()


def run_job(job: Job) -> Dict[str, Any]:
    """Times or records one program in this process, which should be a fresh one."""
    if job.device == "cuda" and not torch.cuda.is_available():
        raise Unavailable("torch sees no CUDA device")
    torch.set_num_threads(min(torch.get_num_threads(), 4))
    options = load_pairs()[job.pair]
    with tempfile.TemporaryDirectory() as cache:
        if options.get("cold_cache"):  # what torch.compile made for another process must not help this one
            os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["TRITON_CACHE_DIR"] = cache, os.path.join(cache, "triton")
        sys.path.insert(0, os.path.join(HERE, "programs"))
        program = importlib.import_module(job.pair)
        with joined(job, options.get("ranks", 1)) as ranks:
            setting = Setting(job.device, job.small, ranks)

            def prepare() -> Callable[[], Any]:
                torch.manual_seed(0)
                step: Callable[[], Any] = getattr(program, job.variant)(setting)
                return step

            row = (record_program if job.recorder else time_program)(job, prepare, setting, options)
    return {"pair": job.pair, "variant": job.variant, "recorder": job.recorder, **row}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pair", choices=load_pairs(), metavar="PAIR", help=", ".join(load_pairs()))
    parser.add_argument("variant", choices=VARIANTS)
    parser.add_argument("--recorder", default="", choices=RECORDERS, help="without it the program is timed")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--small", action="store_true", help="sizes for a quick run on a CPU")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing (default: %(default)s)")
    parser.add_argument("--out", default=".", help="folder of the trace (default: here)")
    arguments = parser.parse_args()
    ranks, rank = load_pairs()[arguments.pair].get("ranks", 1), int(os.environ.get("RANK", "0"))
    if ranks > 1 and "RANK" not in os.environ and (arguments.device == "cpu" or torch.cuda.device_count() >= ranks):
        os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}",
                                  os.path.abspath(__file__), *sys.argv[1:]])
    try:
        row = run_job(Job(arguments.pair, arguments.variant, arguments.recorder, arguments.device, arguments.small,
                          arguments.out, arguments.seconds, rank=rank))
    except Unavailable as error:
        print(f"cannot run here: {error}")
        return UNAVAILABLE
    if rank == 0:
        print(json.dumps(row, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
