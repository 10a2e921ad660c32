#!/usr/bin/env python3
"""Do the rules that read hardware counters say what is so? Programs of known behaviour, each recorded with hardware lanes.

    python3 bench/gpu/hardware_rules.py --out results/rules
    python3 bench/gpu/hardware_rules.py --cases copies,skinny_products --out results/rules

For each of the six rules a program that it must find, and others that come near and must not be found. Written to --out: the
trace of each case, the text and the JSON of `lanescope explain`, the table of `lanescope kernels`. Printed: the state of the six rules in each case.
Exit code: the number of states that are not as expected. A rule that a case leaves open is printed and not counted. On a CPU
(--device cpu --small) nothing is found, which tests the script only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

import lanescope
import programs
from record_program import raise_clocks

RULES = ("measured-memory", "measured-tensor", "low-sm-activity", "slowed-clock", "full-link", "shared-gpu")
Step = Callable[[], None]


class Setting:
    def __init__(self, device: str, small: bool) -> None:
        self.device, self.small = device, small

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(*(max(8, size // 256) if self.small else size for size in shape), device=self.device, dtype=dtype)

    def finish(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


# -- what runs -----------------------------------------------------------------------------------------------------------


def additions(of: Setting) -> Step:
    """Reads 2 GiB and writes 1 GiB in each call."""
    a, b = of.normal(1 << 14, 1 << 14), of.normal(1 << 14, 1 << 14)
    out = torch.empty_like(a)
    return lambda: [torch.add(a, b, out=out) for _ in range(10)] and None


def digammas(of: Setting) -> Step:
    """Element-wise as well, but with so much arithmetic for each byte that memory is far from its peak."""
    a = of.normal(1 << 13, 1 << 13, dtype=torch.float64)
    out = torch.empty_like(a)
    return lambda: [torch.digamma(a, out=out) for _ in range(4)] and None


def products(of: Setting) -> Step:
    a, b = of.normal(8192, 8192, dtype=torch.bfloat16), of.normal(8192, 8192, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return lambda: [torch.matmul(a, b, out=out) for _ in range(10)] and None


def skinny_products(of: Setting) -> Step:
    """bf16 products as well, but of four rows: memory limits them."""
    a, b = of.normal(4, 16384, dtype=torch.bfloat16), of.normal(16384, 16384, dtype=torch.bfloat16)
    return lambda: [torch.matmul(a, b) for _ in range(40)] and None


def float32_products(of: Setting) -> Step:
    """No tensor core works: float32 without TF32."""
    a, b = of.normal(4096, 4096), of.normal(4096, 4096)
    return lambda: [torch.matmul(a, b) for _ in range(4)] and None


def rows(count: int) -> Callable[[Setting], Step]:
    """softmax gives each row a block: as many blocks as rows."""

    def make(of: Setting) -> Step:
        a = of.normal(count, 1 << 20)
        return lambda: [torch.softmax(a, -1) for _ in range(20)] and None

    return make


def copies(pinned: bool) -> Callable[[Setting], Step]:
    def make(of: Setting) -> Step:
        host = torch.empty(1 << (20 if of.small else 28), dtype=torch.uint8)
        if pinned and of.device == "cuda":
            host = host.pin_memory()
        there = torch.empty_like(host, device=of.device)
        return lambda: [there.copy_(host, non_blocking=True) for _ in range(4)] and None

    return make


def with_pauses(of: Setting) -> Step:
    """A kernel of some 100 us, and 3 ms in which this program has nothing on the GPU."""
    a, b = of.normal(2048, 2048, dtype=torch.bfloat16), of.normal(2048, 2048, dtype=torch.bfloat16)

    def step() -> None:
        for _ in range(5):
            torch.matmul(a, b)
            of.finish()
            time.sleep(0.003)

    return step


# -- cases ---------------------------------------------------------------------------------------------------------------

# Name: the program, whether another process works on the same GPU, and the expected state of rules (+ found, - not found).
CASES: Dict[str, Tuple[Callable[[Setting], Step], bool, str]] = {
    "additions": (additions, False, "+measured-memory -measured-tensor -low-sm-activity -full-link -shared-gpu"),
    "digammas": (digammas, False, "-measured-memory -measured-tensor -low-sm-activity -full-link -shared-gpu"),
    "products": (products, False, "-measured-memory +measured-tensor -low-sm-activity -full-link -shared-gpu"),
    "skinny_products": (skinny_products, False, "+measured-memory -measured-tensor -full-link -shared-gpu"),
    "float32_products": (float32_products, False, "-measured-memory -measured-tensor -low-sm-activity -full-link -shared-gpu"),
    "rows_33": (rows(33), False, "-measured-memory -measured-tensor +low-sm-activity -full-link -shared-gpu"),
    "rows_100": (rows(100), False, "-measured-tensor -low-sm-activity -full-link -shared-gpu"),
    "pinned_copies": (copies(True), False, "-measured-memory -measured-tensor +full-link -shared-gpu"),
    "pageable_copies": (copies(False), False, "-measured-memory -measured-tensor -full-link -shared-gpu"),
    "pauses_alone": (with_pauses, False, "-measured-memory -slowed-clock -full-link -shared-gpu"),
    "pauses_shared": (with_pauses, True, "-measured-memory -full-link +shared-gpu"),
}


def program_step(name: str) -> Callable[[Setting], Step]:
    """A program of programs.py: what the rules say of it is open."""
    return lambda of: programs.make(name, of.device, of.small).step


class Neighbour:
    """Another process with products on the same GPU, from go() to stop()."""

    def __init__(self, of: Setting) -> None:
        arguments = [sys.executable, __file__, "--device", of.device, "--neighbour"] + ["--small"] * of.small
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, word: str) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def go(self) -> None:
        self._ask("go")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


def be_neighbour(of: Setting) -> int:
    sys.stdin.readline()
    step = products(of)
    print("going", flush=True)
    while True:
        step()
        of.finish()


def record(name: str, of: Setting, arguments: argparse.Namespace) -> str:
    make, is_shared, _ = CASES[name] if name in CASES else (program_step(name), False, "")
    step = make(of)
    neighbour: Optional[Neighbour] = Neighbour(of) if is_shared else None
    if neighbour:
        neighbour.go()
    step()
    of.finish()
    raise_clocks(of.device, 0.2)
    begin = time.perf_counter()
    for _ in range(3):
        step()
        of.finish()
    count = min(max(int(3 * arguments.seconds / (time.perf_counter() - begin)), 10), 1000)
    path = os.path.join(arguments.out, name + ".json.gz")
    with tempfile.TemporaryDirectory() as folder:
        try:
            plan = lanescope.schedule(wait=0, warmup=1, active=count, repeat=1)
            with lanescope.profile(hardware=arguments.interval, output_dir=folder, schedule=plan) as prof:
                for _ in range(1 + count):
                    step()
                    of.finish()
                    prof.step()
        finally:
            if neighbour:
                neighbour.stop()
        prof.export_chrome_trace(path)
    return path


def ask(arguments: List[str], path: str) -> str:
    command = os.environ.get("LANESCOPE_COMMAND") or shutil.which("lanescope") or "lanescope"
    done = subprocess.run([command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return done.stdout


def states_of(path: str, base: str) -> Tuple[Dict[str, str], Dict[str, str]]:
    """State and verdict of each of the six rules."""
    ask(["explain", path], base + ".explain.txt")
    ask(["explain", path, "--full"], base + ".full.txt")
    ask(["kernels", path], base + ".kernels.txt")
    ask(["info", path], base + ".info.txt")
    text = ask(["explain", path, "--json"], base + ".explain.json")
    found: Dict[str, Any] = json.loads(text[text.index("{"):])
    return ({rule["id"]: rule["state"] for rule in found["rules"] if rule["id"] in RULES},
            {finding["rule"]: finding["verdict"]["text"] for finding in found["findings"]})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--small", action="store_true", help="sizes for a quick run on a CPU")
    parser.add_argument("--cases", default=",".join(CASES), help="names with commas between, also of programs.py (default: %(default)s)")
    parser.add_argument("--interval", default="100us", help="of the counters (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each recording (default: %(default)s)")
    parser.add_argument("--out", default="gpu_bench/rules", help="folder of the results (default: %(default)s)")
    parser.add_argument("--neighbour", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    of = Setting(arguments.device, arguments.small)
    if arguments.neighbour:
        return be_neighbour(of)
    os.makedirs(arguments.out, exist_ok=True)
    wrong = 0
    for name in arguments.cases.split(","):
        base = os.path.join(arguments.out, name)
        try:
            path = record(name, of, arguments)
        except (programs.Unavailable, torch.cuda.OutOfMemoryError) as error:
            print(f"{name}: WRONG, did not run: {error}")
            wrong += 1
            continue
        states, verdicts = states_of(path, base)
        expected = {word[1:]: word[0] == "+" for word in (CASES[name][2] if name in CASES else "").split()}
        print(f"{name}:", flush=True)
        for rule in RULES:
            state = states.get(rule, "missing")
            agrees = rule not in expected or expected[rule] == (state == "found")
            wrong += not agrees
            note = "" if rule in expected else " (open)"
            print(f"  {'' if agrees else 'WRONG '}{rule}: {state}{note} {verdicts.get(rule, '')}")
    print(f"{wrong} states are not as expected")
    return min(wrong, 100)


if __name__ == "__main__":
    sys.exit(main())
