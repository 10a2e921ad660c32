#!/usr/bin/env python3
"""Pictures of hardware lanes: what the GPU did during some steps of a Llama-like model or an MLP's training.

    python3 bench/gpu/hardware_pictures.py record --programs llama_prefill,llama_decode,mlp_train --out results/pictures
    python3 bench/gpu/hardware_pictures.py draw results/pictures/llama_decode.json.gz --steps 3 --out docs/measurements/hardware/llama_decode.svg

`record` writes a trace for each program (50 us, steps that are marked). `draw` reads it with `lanescope sql`: above, when kernels ran, by
step; below, the share of active SMs and tensor cores, and what was read from and written to the GPU's memory. Each sample is a level part of a
line, as long as it lasted. Needs nothing but Python to draw.
"""

from __future__ import annotations

import argparse
import html
import json
import math
import os
import subprocess
import sys
from typing import Any, Callable, Dict, List, Tuple

WIDTH, LEFT, RIGHT, LANE, GAP = 960, 120, 10, 90, 26
LANES = (
    (("SM active", "#4878a8"), ("Tensor active", "#c05020")),
    (("DRAM read", "#3c8c50"), ("DRAM write", "#a050a0")),
)


def llama_like(device: str, tokens: int, cached: int) -> Callable[[], None]:
    """Four layers as Llama's of 7 billion parameters have them, bf16, of `tokens` new tokens after `cached` ones."""
    import torch
    from torch.nn import functional as F

    width, heads, inner, layers = (4096, 32, 11008, 4) if device == "cuda" else (64, 4, 176, 2)
    size = width // heads

    def weight(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=device, dtype=torch.bfloat16) * 0.02

    blocks = [{name: weight(*shape) for name, shape in (("qkv", (3 * width, width)), ("out", (width, width)), ("gate_up", (2 * inner, width)),
              ("down", (width, inner)), ("norm", (width,)))} for _ in range(layers)]
    keys, values = weight(1, heads, cached, size), weight(1, heads, cached, size)
    start, angles = weight(1, tokens, width), weight(1, 1, tokens, size)

    def rotated(x: torch.Tensor) -> torch.Tensor:
        half = x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-half[1], half[0]), -1) * angles.sin()

    @torch.no_grad()
    def step() -> None:
        x = start
        for block in blocks:
            q, k, v = F.linear(F.rms_norm(x, (width,), block["norm"]), block["qkv"]).view(1, tokens, 3, heads, size).permute(2, 0, 3, 1, 4)
            q, k = rotated(q), torch.cat((keys, rotated(k)), 2)
            attended = F.scaled_dot_product_attention(q, k, torch.cat((values, v), 2), is_causal=not cached)
            x = x + F.linear(attended.transpose(1, 2).reshape(1, tokens, width), block["out"])
            gate, up = F.linear(F.rms_norm(x, (width,), block["norm"]), block["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, block["down"])
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def make_step(name: str, device: str) -> Callable[[], None]:
    import programs

    if name.startswith("llama"):
        return llama_like(device, 2048 if name == "llama_prefill" else 1, 0 if name == "llama_prefill" else 2048)
    return programs.make(name, device, device != "cuda").step


def record(options: argparse.Namespace) -> int:
    import lanescope
    from record_program import raise_clocks

    os.makedirs(options.out, exist_ok=True)
    for name in options.programs.split(","):
        step = make_step(name, options.device)
        for _ in range(5):
            step()
        activities = [lanescope.ProfilerActivity.CPU]
        if options.device == "cuda":
            activities.append(lanescope.ProfilerActivity.CUDA)
        plan = lanescope.schedule(wait=0, warmup=0, active=options.steps, repeat=1)
        profile = lanescope.profile(activities=activities, schedule=plan, record_shapes=True,
                                    hardware=options.interval if options.device == "cuda" else False)
        raise_clocks(options.device, 0.3)
        profile.start()
        for _ in range(options.steps):
            step()
            profile.step()
        profile.stop()
        profile.export_chrome_trace(os.path.join(options.out, name + ".json.gz"))
        print(f"{name}: {options.steps} steps", flush=True)
    return 0


def rows(options: argparse.Namespace, query: str) -> List[Dict[str, Any]]:
    return list(json.loads(subprocess.run([options.lanescope, "sql", options.trace, "--json", query], stdout=subprocess.PIPE, check=True, text=True).stdout))


def round_up(value: float) -> float:
    """In quarters of its power of ten: 1446 becomes 1500."""
    step = 10.0 ** math.floor(math.log10(value)) / 4
    return step * math.ceil(value / step)


class Picture:
    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end, self.parts = begin, end, [""]

    def x(self, ns: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (min(max(ns, self.begin), self.end) - self.begin) / (self.end - self.begin)

    def text(self, x: float, y: float, words: str, anchor: str = "start", colour: str = "#222") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{html.escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.parts.append(f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(width, 0.2):.2f}" height="{height:.1f}" fill="{colour}"/>')

    def line(self, samples: List[Tuple[int, int, float]], top: float, most: float, colour: str) -> None:
        path, before = "", None
        for start, end, value in samples:
            y = top + LANE * (1 - min(value / most, 1))
            path += f"{'L' if before == start else 'M'}{self.x(start):.1f} {y:.1f}L{self.x(end):.1f} {y:.1f}"
            before = end
        self.parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.2"/>')


def draw(options: argparse.Namespace) -> int:
    marks = rows(options, "SELECT ts, dur FROM slice WHERE name LIKE 'ProfilerStep#%' AND category = 'user_annotation' ORDER BY ts")
    if len(marks) < options.steps + 1:
        print(f"expected a trace with more than {options.steps} steps, found {len(marks)}: {options.trace}")
        return 1
    first = min(len(marks) - options.steps - 1, len(marks) // 2)
    begin, end = marks[first]["ts"], marks[first + options.steps]["ts"]
    picture = Picture(begin, end)
    kernels = rows(options, f"SELECT ts, dur FROM kernel WHERE ts + dur > {begin} AND ts < {end} ORDER BY ts")
    top = 34.0
    picture.text(LEFT, 16, f"{options.title or os.path.basename(options.trace).partition('.')[0]}: {options.steps} steps, {(end - begin) / 1e6:.2f} ms")
    picture.text(LEFT - 8, top + 12, "kernels", "end")
    for kernel in kernels:
        picture.box(picture.x(kernel["ts"]), top, picture.x(kernel["ts"] + kernel["dur"]) - picture.x(kernel["ts"]), 16, "#888")
    top += 16 + GAP
    bottom = top
    for lane in LANES:
        found = {}
        for name, _ in lane:
            values = rows(options, f"SELECT ts, value FROM counter WHERE name LIKE '%{name}%' AND ts >= {begin - 10**6} AND ts < {end + 10**6} ORDER BY ts")
            found[name] = [(a["ts"], b["ts"], a["value"]) for a, b in zip(values, values[1:]) if b["ts"] > begin and a["ts"] < end]
        percent = lane[0][0] == "SM active"
        most = 100.0 if percent else round_up(max([value for one in found.values() for _, _, value in one] + [1.0]))
        for share in (0, 0.5, 1):
            y = top + LANE * (1 - share)
            picture.parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd" stroke-width="1"/>')
            picture.text(LEFT - 8, y + 4, f"{most * share:.0f} %" if percent else f"{most * share:.0f} GB/s", "end", "#666")
        for i, (name, colour) in enumerate(lane):
            picture.line(found[name], top, most, colour)
            total = sum(end_ns - start for start, end_ns, _ in found[name])
            mean = sum((end_ns - start) * value for start, end_ns, value in found[name]) / total if total else 0
            picture.text(LEFT + 260 * i, top - 6, f"{name}, mean {mean:.0f} {'%' if percent else 'GB/s'}", colour=colour)
        bottom = top + LANE
        top = bottom + GAP
    for mark in marks[first : first + options.steps + 1]:
        x = picture.x(mark["ts"])
        picture.parts.append(f'<path d="M{x:.1f} 26V{bottom:.1f}" stroke="#bbb" stroke-dasharray="3 3"/>')
    picture.text(LEFT, bottom + 18, "0")
    picture.text(WIDTH - RIGHT, bottom + 18, f"{(end - begin) / 1e3:.0f} us", "end")
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 26:.0f}" font-family="sans-serif" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/>')
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(head + "\n".join(picture.parts) + "\n</svg>\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    recording = commands.add_parser("record", help="record the programs")
    recording.add_argument("--programs", default="llama_prefill,llama_decode,mlp_train", help="with commas between (default: %(default)s)")
    recording.add_argument("--interval", default="50us", help="of the samples (default: %(default)s)")
    recording.add_argument("--steps", type=int, default=12, help="of each program (default: %(default)s)")
    recording.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    recording.add_argument("--out", default="gpu_bench/hardware_pictures", help="folder of the traces (default: %(default)s)")
    drawing = commands.add_parser("draw", help="draw one trace as SVG")
    drawing.add_argument("trace")
    drawing.add_argument("--steps", type=int, default=3, help="that the picture shows (default: %(default)s)")
    drawing.add_argument("--title", default="", help="above the picture (default: the name of the trace)")
    drawing.add_argument("--lanescope", default="lanescope", help="the command (default: %(default)s)")
    drawing.add_argument("--out", required=True, help="the SVG file")
    options = parser.parse_args()
    return record(options) if options.what == "record" else draw(options)


if __name__ == "__main__":
    sys.exit(main())
