#!/usr/bin/env python3
"""What recording Python frames costs a training step: lanescope's with_stack and torch.profiler's.

    python3 bench/frame_cost.py [--rounds 11] [--programs mlp resnet]

Rounds of blocks in one process, one block for each way of recording, the order turning by one each round: no profiler; each
profiler without and with with_stack; lanescope with with_modules. A block is one profile of some steps after one that does
not count; starting and stopping is outside. us a step: a block less the block without a profiler of its round; median and
quartiles. "frames a step" counts the python_function events of one step in lanescope's trace. Time is the CPU time of the
thread that runs the steps, so that other work of the machine counts little.

Three ratios follow: the whole of each with_stack; what with_stack adds to each one's recording without it; and the best that
ours could reach if its code for stacks and frames cost nothing, because the operators and Python's hook stay.

`mlp`: forward, backward and SGD step of 24 small modules: Python is most of it. `resnet`: the same of a ResNet-18 written
here (basic blocks of two convolutions), on 2 images of 16x16 and with an eighth of the usual channels: operators and calls are
those of the usual one, and what a profiler adds is not lost in the noise of long convolutions.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

import torch

import lanescope
from lanescope import _frames

LANESCOPE_CPU = [lanescope.ProfilerActivity.CPU]
TORCH_CPU = [torch.profiler.ProfilerActivity.CPU]


class BareHook:
    """Python calls the hook of frames, which finds no recording and returns."""

    def start(self) -> None:
        for line in _frames.hold(self, every_frame=True):
            print(line, file=sys.stderr)

    def stop(self) -> None:
        _frames.release(self)


FLOOR = "floor: a hook that returns"
MODES: Dict[str, Callable[[], Any]] = {
    "no profiler": lambda: None,
    FLOOR: BareHook,
    "lanescope": lambda: lanescope.profile(activities=LANESCOPE_CPU),
    "lanescope with_modules": lambda: lanescope.profile(activities=LANESCOPE_CPU, with_modules=True),
    "lanescope with_stack": lambda: lanescope.profile(activities=LANESCOPE_CPU, with_stack=True),
    "torch.profiler": lambda: torch.profiler.profile(activities=TORCH_CPU),
    "torch.profiler with_stack": lambda: torch.profiler.profile(activities=TORCH_CPU, with_stack=True),
}


def mlp() -> Tuple[torch.nn.Module, torch.Tensor, int]:
    layers: List[torch.nn.Module] = []
    for _ in range(8):
        layers += [torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers), torch.randn(8, 32), 30


class BasicBlock(torch.nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outside)
        self.conv2 = torch.nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outside)
        self.relu = torch.nn.ReLU(inplace=True)
        self.shortcut: torch.nn.Module = torch.nn.Identity()
        if stride != 1 or inside != outside:
            convolution = torch.nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.shortcut = torch.nn.Sequential(convolution, torch.nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + self.shortcut(x))


def resnet() -> Tuple[torch.nn.Module, torch.Tensor, int]:
    layers: List[torch.nn.Module] = [torch.nn.Conv2d(3, 8, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU()]
    inside = 8
    for outside, stride in ((8, 1), (16, 2), (32, 2), (64, 2)):
        layers += [BasicBlock(inside, outside, stride), BasicBlock(outside, outside, 1)]
        inside = outside
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)]
    return torch.nn.Sequential(*layers), torch.randn(2, 3, 16, 16), 10


PROGRAMS = {"mlp": mlp, "resnet": resnet}


def make_step(net: torch.nn.Module, x: torch.Tensor) -> Callable[[], None]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9, foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def us_per_step(mode: str, step: Callable[[], None], steps: int) -> float:
    prof = MODES[mode]()
    if prof is not None:
        prof.start()
    step()
    begin = time.thread_time_ns()
    for _ in range(steps):
        step()
    took = time.thread_time_ns() - begin
    if prof is not None:
        prof.stop()
    return took / steps / 1000


def frames_per_step(step: Callable[[], None]) -> int:
    def count(times: int) -> int:
        with lanescope.profile(activities=LANESCOPE_CPU, with_stack=True) as prof:
            for _ in range(times):
                step()
        trace = prof.trace
        return int((trace.category_id == trace.categories.index("python_function")).sum())

    return count(2) - count(1)


def measure(name: str, rounds: int) -> None:
    net, x, steps = PROGRAMS[name]()
    step = make_step(net, x)
    modes = list(MODES)
    times: Dict[str, List[float]] = {mode: [] for mode in modes}
    for mode in modes:
        us_per_step(mode, step, steps)
    for round_ in range(rounds):
        for shift in range(len(modes)):
            mode = modes[(round_ + shift) % len(modes)]
            times[mode].append(us_per_step(mode, step, steps))
    bare = times["no profiler"]
    print(f"\n{name}, {frames_per_step(step)} frames a step; no profiler: {statistics.median(bare):.0f} us a step")
    added = {}
    is_clear = True
    for mode in modes[1:]:
        low, median, high = statistics.quantiles([t - b for t, b in zip(times[mode], bare)], n=4)
        added[mode] = median
        is_clear = is_clear and (low > 0 or mode.startswith("floor"))
        print(f"  {mode:<28}{median:>9.0f} us more   [{low:.0f} .. {high:.0f}]")
    if not is_clear:
        print("  what is added is smaller than the spread: no comparison")
        return
    print_ratios(added)


def print_ratios(added: Dict[str, float]) -> None:
    """All of it, what the stacks alone add, and how far the ratio could go if our own code cost nothing."""
    torch_all, our_all = added["torch.profiler with_stack"], added["lanescope with_stack"]
    torch_stacks, our_stacks = torch_all - added["torch.profiler"], our_all - added["lanescope"]
    floor = added["lanescope"] + added[FLOOR]
    print(f"  with_stack: torch.profiler adds {torch_all / our_all:.1f} times what lanescope adds")
    if min(torch_stacks, our_stacks) > 0:
        print(f"  stacks alone: {torch_stacks:.0f} us and {our_stacks:.0f} us, {torch_stacks / our_stacks:.1f} times")
    if floor > 0:
        print(f"  floor: lanescope without stacks and a hook that returns take {floor:.0f} us, {torch_all / floor:.1f} times")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {arguments.rounds} rounds")
    for name in arguments.programs:
        measure(name, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
