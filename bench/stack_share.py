#!/usr/bin/env python3
"""How much of torch.profiler's cost lanescope's with_stack has, in wall time, CPU time and instructions.

    python3 bench/stack_share.py [--seconds 60] [--programs mlp resnet resnet18]

Blocks alternate in one process: no profiler, torch.profiler and lanescope, both with with_stack and with_modules; the order
turns by one each round. A block is one profile of some steps, after two steps that do not count; starting and stopping is
outside. Each block has these numbers a step: wall time, CPU time of the process (user and system, all threads), and, where the
kernel and the machine count them, instructions in user mode of all threads. The last two are those of the whole profile,
from start() to the end of stop(), divided by all its steps: lanescope writes its recording while the program runs, in a thread of
its own, and torch.profiler makes its events in stop(). Medians, quartiles and minima of all rounds are
printed, and what a profiler adds: the median of its blocks less the block without a profiler of the same round, and the
difference of the minima. Disturbances only add, so of a noisy machine the minima say more.

`mlp` and `resnet` are those of bench/frame_cost.py, on the CPU with one thread. `resnet18` is a ResNet-18 with the usual 64 to 512
channels: 16 images of 64x64 on the GPU where there is one, else 2 of 32x32; its backward pass has a thread of its own on a GPU.
Only the CPU's activity is recorded, because the stacks are compared.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import struct
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

import frame_cost
import lanescope

MODES: Dict[str, Callable[[], Any]] = {
    "no profiler": lambda: None,
    "torch.profiler": lambda: torch.profiler.profile(activities=frame_cost.TORCH_CPU, with_stack=True, with_modules=True),
    "lanescope": lambda: lanescope.profile(activities=frame_cost.LANESCOPE_CPU, with_stack=True, with_modules=True),
}


class Instructions:
    """Counts those of user mode, of this thread and of threads that it starts later. `read` is None where nothing counts."""

    def __init__(self) -> None:
        self.file = -1
        if os.uname().machine != "x86_64":
            return
        # struct perf_event_attr: type hardware, its size, instructions; inherit, exclude_kernel, exclude_hv.
        attributes = struct.pack("<IIQQQQQ", 0, 112, 1, 0, 0, 0, 1 << 1 | 1 << 5 | 1 << 6).ljust(112, b"\0")
        self.file = ctypes.CDLL(None, use_errno=True).syscall(298, attributes, 0, -1, -1, 0)

    def read(self) -> Optional[int]:
        return int(struct.unpack("<Q", os.read(self.file, 8))[0]) if self.file >= 0 else None


class Block(NamedTuple):  # of one step
    wall_us: float
    cpu_us: float
    instructions: Optional[float]
    whole_wall_us: float
    whole_cpu_us: float


def resnet18() -> Tuple[torch.nn.Module, torch.Tensor, int]:
    layers: List[torch.nn.Module] = [torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU()]
    layers.append(torch.nn.MaxPool2d(3, 2, 1))
    inside = 64
    for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [frame_cost.BasicBlock(inside, outside, stride), frame_cost.BasicBlock(outside, outside, 1)]
        inside = outside
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 1000)]
    net = torch.nn.Sequential(*layers)
    if torch.cuda.is_available():
        return net.cuda(), torch.randn(16, 3, 64, 64, device="cuda"), 10
    return net, torch.randn(2, 3, 32, 32), 4


PROGRAMS = {"mlp": frame_cost.mlp, "resnet": frame_cost.resnet, "resnet18": resnet18}


def synchronize() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def measure_block(mode: str, step: Callable[[], None], steps: int, counter: Instructions) -> Block:
    prof = MODES[mode]()
    begin_cpu, begin = time.process_time_ns(), time.perf_counter_ns()
    if prof is not None:
        prof.start()
    step()
    step()
    synchronize()
    counted, cpu, wall = counter.read(), time.process_time_ns(), time.perf_counter_ns()
    for _ in range(steps):
        step()
    synchronize()
    wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
    now = counter.read()
    if prof is not None:
        prof.stop()
    whole, whole_cpu = time.perf_counter_ns() - begin, time.process_time_ns() - begin_cpu
    instructions = None if counted is None or now is None else (now - counted) / steps
    us = 1000 * (steps + 2)
    return Block(wall / steps / 1000, cpu / steps / 1000, instructions, whole / us, whole_cpu / us)


ROWS = (
    ("wall time", "us"),
    ("CPU time", "us"),
    ("instructions", "thousand"),
    ("whole profile, wall time", "us"),
    ("whole profile, CPU time", "us"),
)


def measure(name: str, seconds: float, counter: Instructions) -> None:
    begin = time.monotonic()
    net, x, steps = PROGRAMS[name]()
    step = frame_cost.make_step(net, x)
    modes = list(MODES)
    blocks: Dict[str, List[Block]] = {mode: [] for mode in modes}
    for mode in modes:
        measure_block(mode, step, steps, counter)
    while time.monotonic() - begin < seconds or len(blocks[modes[0]]) < 10:
        shift = len(blocks[modes[0]])
        found = {modes[(shift + at) % 3]: measure_block(modes[(shift + at) % 3], step, steps, counter) for at in range(3)}
        for mode in modes:
            blocks[mode].append(found[mode])
    print(f"\n{name}, {x.device.type}: {len(blocks[modes[0]])} rounds of {steps} steps; load {os.getloadavg()[0]:.2f}")
    for at, (title, unit) in enumerate(ROWS):
        if blocks[modes[0]][0][at] is not None:
            print_rows(title, unit, {mode: [float(block[at] or 0) for block in blocks[mode]] for mode in modes})


def print_rows(title: str, unit: str, values: Dict[str, List[float]]) -> None:
    scale = 1000.0 if unit == "thousand" else 1.0
    bare = values["no profiler"]
    added: Dict[str, Tuple[float, float]] = {}
    header = f"  {title}, {unit} a step"
    print(f"{header:<44}median   [quartiles]        least    more: median    of the least")
    for mode, found in values.items():
        low, median, high = (value / scale for value in statistics.quantiles(found, n=4))
        line = f"    {mode:<30}{median:>12.1f}   [{low:.1f} .. {high:.1f}]  {min(found) / scale:>10.1f}"
        if mode != "no profiler":
            more = statistics.median(one - other for one, other in zip(found, bare)) / scale
            added[mode] = (more, (min(found) - min(bare)) / scale)
            line += f"  {added[mode][0]:>12.1f}  {added[mode][1]:>12.1f}"
        print(line)
    ratios = [added["torch.profiler"][at] / added["lanescope"][at] if added["lanescope"][at] > 0 else 0.0 for at in (0, 1)]
    print(f"    torch.profiler adds {ratios[0]:.2f} times what lanescope adds by medians, {ratios[1]:.2f} times by the least")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="for each program; at least ten rounds")
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    arguments = parser.parse_args()
    counter = Instructions()  # before torch has threads
    torch.set_num_threads(1)
    counts = "counted" if counter.file >= 0 else "not counted here"
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, instructions {counts}")
    for name in arguments.programs:
        measure(name, arguments.seconds, counter)
    return 0


if __name__ == "__main__":
    sys.exit(main())
