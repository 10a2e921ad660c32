#!/usr/bin/env python3
"""Whether CUPTI leaves a busy process unharmed: recordings one after the other, each of which lets CUPTI go at its end.

    python3 bench/gpu/leaving.py                                        all that one process can do
    torchrun --nproc_per_node 2 bench/gpu/leaving.py --programs ddp     NCCL

Programs, all with an export that is read at the end:
  ddp     every rank trains with DistributedDataParallel and a pinning DataLoader, replays graphs of torch.compile, and has a
          second thread that launches all the time; the ranks record at the same time
  gpus    one thread for each GPU of the machine launches all the time
  graphs  graphs are captured inside and replayed inside and between recordings
  torch torch.profiler around a recording, then alternating with recordings
Exit code 1 when a recording misses what was launched in it. What cannot be seen from here is a crash.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List

import torch

import lanescope

ACTIVITIES = [lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA]


def recording() -> Any:
    return lanescope.profile(activities=ACTIVITIES)


def count(profile: Any, key: str) -> int:
    return sum(row.count for row in profile.key_averages() if row.key == key)


def has_gpu_time(profile: Any) -> bool:
    return any(row.device_time_total > 0 for row in profile.key_averages())


class Launching:
    """A thread that launches on `device` until the block ends."""

    def __init__(self, device: int) -> None:
        self.device, self.launches, self.done = device, 0, False
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        torch.cuda.set_device(self.device)
        with torch.cuda.stream(torch.cuda.Stream()):
            y = torch.ones(64, 64, device="cuda")
            while not self.done:
                for _ in range(20):
                    y = y + 1e-9
                self.launches += 20
                torch.cuda.current_stream().synchronize()

    def __enter__(self) -> "Launching":
        self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.done = True
        self.thread.join()


def compiled() -> Callable[[], None]:
    x = torch.randn(256, 256, device="cuda")
    function = torch.compile(lambda a: torch.nn.functional.gelu(a @ a) * 2, mode="reduce-overhead")

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        function(x)

    for _ in range(4):
        step()
    return step


def gpus(seconds: float) -> str:
    recordings, whole, end = 0, 0, time.time() + seconds
    with contextlib.ExitStack() as stack:
        threads = [stack.enter_context(Launching(device)) for device in range(torch.cuda.device_count())]
        while time.time() < end:
            with recording() as profile:
                time.sleep(0.01)
            recordings += 1
            whole += has_gpu_time(profile)
    if whole != recordings:
        raise AssertionError(f"{recordings - whole} of {recordings} recordings have no GPU work")
    return f"{recordings} recordings, launches by GPU {[thread.launches for thread in threads]}"


def graphs(seconds: float) -> str:
    step, kept = compiled(), []
    x = torch.randn(64, 64, device="cuda")
    recordings, end = 0, time.time() + seconds
    while time.time() < end:
        with recording() as profile:
            for _ in range(5):
                step()
            if recordings % 10 == 0:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    y = x
                    for _ in range(20):
                        y = y @ x
                kept = kept[-5:] + [graph]
            torch.cuda.synchronize()
        if count(profile, "cudaGraphLaunch") != 5:
            raise AssertionError(f"recording {recordings}: {count(profile, 'cudaGraphLaunch')} graph launches of 5")
        for graph in kept:
            graph.replay()
        torch.cuda.synchronize()
        recordings += 1
    return f"{recordings} recordings of 5 replays"


def torchs(seconds: float) -> str:
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(64, 64, device="cuda")
    theirs_of = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=theirs_of):  # its first start takes CUPTI's subscription
        x @ x
    with warnings.catch_warnings(), profile(activities=theirs_of) as around:
        warnings.simplefilter("ignore")  # lanescope says that both record
        x @ x
        with recording() as inner:
            x @ x
            torch.cuda.synchronize()
        x @ x
        torch.cuda.synchronize()
    if count(inner, "aten::mm") != 1 or sum(row.count for row in around.key_averages() if row.key == "aten::mm") != 3:
        raise AssertionError("torch.profiler around a recording: a product is missing")
    turns, end = 0, time.time() + seconds
    while time.time() < end:
        with recording() as ours:
            x @ x
            torch.cuda.synchronize()
        with profile(activities=theirs_of) as theirs:
            x @ x
            torch.cuda.synchronize()
        on_gpu = [e for e in theirs.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        if not has_gpu_time(ours) or not on_gpu:
            raise AssertionError(f"turn {turns}: no GPU work")
        turns += 1
    return f"{turns} turns"


def batches() -> Iterator[torch.Tensor]:
    data = torch.utils.data.TensorDataset(torch.randn(100_000, 512))
    while True:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, pin_memory=True):
            yield batch


def ddp(seconds: float) -> str:
    import torch.distributed as dist

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    layers = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(8))).cuda()
    model = torch.nn.parallel.DistributedDataParallel(layers, device_ids=[rank], bucket_cap_mb=1)
    optimizer, data, replay = torch.optim.AdamW(model.parameters(), 1e-4), batches(), compiled()

    def step() -> None:
        loss = model(next(data).cuda(non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss.detach())
        replay()

    for _ in range(5):
        step()
    recordings, collectives, end = 0, 0, time.time() + seconds
    over = torch.zeros(1, device="cuda")
    with Launching(rank):
        while True:
            over.fill_(float(time.time() > end))
            dist.all_reduce(over)  # the ranks end after the same number of recordings
            if over.item() > 0:
                break
            with recording() as profile:
                for _ in range(3):
                    step()
                torch.cuda.synchronize()
            for _ in range(3):
                step()
            found = sum(row.count for row in profile.key_averages() if row.key.startswith("ncclDevKernel"))
            if found == 0:
                raise AssertionError(f"recording {recordings} has no NCCL kernels")
            collectives += found
            recordings += 1
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return f"rank {rank}: {recordings} recordings, {collectives} NCCL kernels in them"


PROGRAMS: Dict[str, Callable[[float], str]] = {"ddp": ddp, "gpus": gpus, "graphs": graphs, "torch": torchs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="gpus,graphs,torch", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=20, help="for each (default: %(default)s)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch sees no CUDA device")
        return 2
    failed: List[str] = []
    for name in arguments.programs.split(","):
        if name not in PROGRAMS:
            parser.error(f"expected programs of {', '.join(PROGRAMS)}; found {name!r}")
        try:
            print(f"{name:<8}{PROGRAMS[name](arguments.seconds)}", flush=True)
        except AssertionError as problem:
            failed.append(name)
            print(f"{name:<8}FAILED: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
