#!/usr/bin/env python3
"""What recording costs: the 64x64 bf16 matmul + add loop (one record_function, 2 kernels a step), with and without profilers.

    python3 bench/gpu/cost.py --device cuda --seconds 480 --out results/cost
    python3 bench/gpu/cost.py --sections slowdown --variants "none,lanescope cpu+cuda" --out results/cost

Each variant runs in processes of its own, so that no profiler meets what another one left: one for slowdown and
latency, one for memory and after. Sections:
  slowdown  pairs of blocks without and with the profiler, the order turning each pair; per pair with/without - 1. First and
            later starts, stops. CUPTI is taken out of the process before the block without; "attached": it is in both
            blocks of a pair; "stays": what it costs without a recording (what a profiler alone leaves: residual.py)
  latency   each step timed alone, without and with: p50, p99, p99.9, p99.99, longest
  after     --after-steps steps, then stop, table, export; the kernels in the export are counted against the steps
  memory    up to --memory-steps steps under one profile, resident memory every 50,000 (5 % of the steps when fewer)
"none" is the noise floor. Exit code 1 when a variant fails, or lanescope records another number of ranges or kernels than the
loop has, drops a record, or grows its anonymous memory by more than --memory-budget-mb.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

import torch
from torch.profiler import record_function

import measure
from trace_json import TraceJson

SECTIONS = {"slowdown": 5.0, "latency": 1.5, "memory": 4.0, "after": 1.5}  # weights of their times
PROCESSES = (("slowdown", "latency"), ("memory", "after"))  # in this order: a first start, fresh memory


def loop_step(device: str) -> Callable[[], None]:
    torch.manual_seed(0)
    x, w, b = (torch.randn(64, 64, dtype=torch.bfloat16, device=device) for _ in range(3))

    def step() -> None:
        with record_function("matmul_add"):
            torch.add(torch.matmul(x, w), b)

    for _ in range(200):
        step()
    return step


def nothing() -> None:
    pass


def steps_for(step: Callable[[], None], device: str, milliseconds: float, most: int) -> int:
    return int(min(most, max(50, 1000 * milliseconds / measure.us_per_step(step, 500, device))))


def slowdown(arguments: argparse.Namespace, variant: str, seconds: float) -> Dict[str, Any]:
    step = loop_step(arguments.device)
    most = arguments.torch_steps if variant.startswith("torch") else arguments.steps
    steps = steps_for(step, arguments.device, arguments.block_ms, most)
    return measure.Paired(variant, arguments.device, step, nothing).run(steps, seconds)


def latency(arguments: argparse.Namespace, variant: str, seconds: float) -> Dict[str, Any]:
    step = loop_step(arguments.device)
    clock = time.perf_counter_ns

    def block(count: int, into: "array.array[int]") -> None:
        for _ in range(count):
            begin = clock()
            step()
            into.append(clock() - begin)
        measure.synchronize(arguments.device)

    rounds = 4
    budget_steps = int(0.4e6 * seconds / rounds / 2 / measure.us_per_step(step, 500, arguments.device))
    count = max(100, min(arguments.latency_steps // rounds, budget_steps))
    times = {"without": array.array("q"), "with": array.array("q")}
    for _ in range(rounds):
        block(count, times["without"])
        prof = measure.profiler_of(variant, arguments.device)
        if prof is not None:
            prof.start()
        block(count, times["with"])
        if prof is not None:
            prof.stop()
    result: Dict[str, Any] = {"steps": len(times["with"])}
    for name, values in times.items():
        ordered = sorted(value / 1000 for value in values)
        result[name] = {f"p{100 * f:g}_us": measure.percentile(ordered, f) for f in (0.5, 0.99, 0.999, 0.9999)}
        result[name]["most_us"] = ordered[-1]
        result[name]["longest_us"] = ordered[-5:]
    return result


def timed(action: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - begin)


def after(arguments: argparse.Namespace, variant: str, seconds: float) -> Dict[str, Any]:
    step = loop_step(arguments.device)
    prof = measure.profiler_of(variant, arguments.device)
    result: Dict[str, Any] = {"steps": arguments.after_steps}
    measure.synchronize(arguments.device)  # what the steps so far launched is not to be recorded
    if prof is not None:
        result["start_ms"] = timed(prof.start)
    for _ in range(arguments.after_steps):
        step()
    measure.synchronize(arguments.device)
    if prof is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            result["stop_ms"] = timed(prof.stop)
            result["table_ms"] = timed(lambda: prof.key_averages().table())
            result["export_ms"] = timed(lambda: prof.export_chrome_trace(path))
            result["memory_kb"] = measure.memory_kb()  # before the check below takes memory
            result["json_bytes"] = os.path.getsize(path)
            trace = TraceJson(path)
            result["kernels"] = sum(e.cat == "kernel" for e in trace.device)
            result["operators"] = sum(e.cat == "cpu_op" for e in trace.cpu)
            result["ranges"] = sum(e.name == "matmul_add" for e in trace.cpu)
    result.setdefault("memory_kb", measure.memory_kb())
    return result


def memory(arguments: argparse.Namespace, variant: str, seconds: float) -> Dict[str, Any]:
    step = loop_step(arguments.device)
    prof = measure.profiler_of(variant, arguments.device)
    most = arguments.memory_steps
    if variant.startswith("torch"):
        most = min(most, arguments.torch_memory_steps)
    every = max(1, min(50_000, most // 20))
    before = measure.memory_kb()
    if prof is not None:
        prof.start()
    deadline = time.perf_counter() + 0.7 * seconds
    samples: List[Dict[str, int]] = []
    done = 0
    while done < most and (time.perf_counter() < deadline or not samples):
        for _ in range(every):
            step()
        done += every
        samples.append({"steps": done, **measure.memory_kb()})
    result: Dict[str, Any] = {"before_kb": before, "samples": samples, "steps": done, "reached_steps": done >= most}
    if prof is not None:
        result["stop_ms"] = timed(prof.stop)
        result["after_stop_kb"] = measure.memory_kb()
        if variant.startswith("lanescope"):
            result["stats"] = prof.stats()
    for key in ("RssAnon", "RssFile", "VmRSS"):
        result[f"{key}_growth_mb"] = (max(s[key] for s in samples) - before[key]) / 1024
    return result


ACTIONS = {"slowdown": slowdown, "latency": latency, "after": after, "memory": memory}


# -- the parent ----------------------------------------------------------------------------------------------------------


def miscounted(variant: str, counted: Dict[str, Any], arguments: argparse.Namespace) -> List[str]:
    """What an export holds against what the loop did."""
    found = []
    steps, activities = counted["steps"], measure.VARIANTS[variant][1]
    if "cpu" in activities or arguments.device == "cpu":
        if counted["ranges"] != steps or counted["operators"] < 2 * steps:
            found.append(f"{variant}: {steps} steps, but {counted['ranges']} ranges and {counted['operators']} operators")
    if arguments.device == "cuda" and "cuda" in activities and counted["kernels"] != arguments.kernels_per_step * steps:
        found.append(f"{variant}: expected {arguments.kernels_per_step * steps:g} kernels in {steps} steps, "
                     f"found {counted['kernels']}")
    return found


def problems_of(variant: str, rows: Dict[str, Dict[str, Any]], arguments: argparse.Namespace) -> List[str]:
    found = [f"{variant}, {section}: {row['failed']}" for section, row in rows.items() if "failed" in row]
    counted, memory_row = rows.get("after", {}), rows.get("memory", {})
    if "kernels" in counted:
        wrong = miscounted(variant, counted, arguments)
        if measure.VARIANTS[variant][0] == "lanescope":
            found += wrong
        else:
            for line in wrong:
                print(f"NOTE: {line}")
    if measure.VARIANTS[variant][0] == "lanescope" and "samples" in memory_row:
        growth, dropped = memory_row["RssAnon_growth_mb"], memory_row["stats"].get("dropped_records", 0)
        if growth > arguments.memory_budget_mb:
            found.append(f"{variant}: anonymous memory grew {growth:.0f} MB, the budget is {arguments.memory_budget_mb:g} MB")
        if dropped:
            found.append(f"{variant}: {dropped} records were dropped in {memory_row['steps']} steps")
    return found


def print_tables(results: Dict[str, Dict[str, Dict[str, Any]]]) -> None:
    def rows(section: str) -> List[Any]:
        return [(v, all_[section]) for v, all_ in results.items() if section in all_ and "failed" not in all_[section]]

    if rows("slowdown"):
        print(f"\n{'slowdown':<23}{'bare us':>9}{'with us':>9}{'slowdown [quartiles]':>26}{'pairs':>6}{'attached':>26}"
              f"{'stays':>26}{'start 1st':>10}{'later ms':>9}{'stop ms':>9}")
    for variant, row in rows("slowdown"):
        starts = (f"{row['first_start_ms']:>10.1f}{row['later_start_ms']['median']:>9.2f}{row['stop_ms']['median']:>9.2f}"
                  if "first_start_ms" in row else f"{'-':>10}{'-':>9}{'-':>9}")
        print(f"{variant:<23}{row['bare_us']['median']:>9.2f}{row['with_us']['median']:>9.2f}"
              f"{measure.percent_text(row['slowdown_percent'])}{row['pairs']:>6}"
              f"{measure.percent_text(row['attached_percent'])}{measure.percent_text(row['stays_percent'])}{starts}")
    for variant, row in rows("latency"):
        for name in ("without", "with"):
            cells = "".join(f"{key[:-3]} {value:>9.1f}  " for key, value in row[name].items() if key != "longest_us")
            print(f"{'latency us':<11}{variant:<23}{name:<9}{cells}{row['steps']} steps")
    for variant, row in rows("after"):
        if "stop_ms" in row:
            print(f"{'after':<11}{variant:<23}stop {row['stop_ms']:>9.1f}  table {row['table_ms']:>9.1f}  "
                  f"export {row['export_ms']:>9.1f} ms  {row['json_bytes'] / 1e6:.1f} MB  {row['kernels']} kernels  "
                  f"{row['operators']} operators  peak {row['memory_kb']['VmHWM'] / 1024:.0f} MB  {row['steps']} steps")
    for variant, row in rows("memory"):
        print(f"{'memory':<11}{variant:<23}added at most: anonymous {row['RssAnon_growth_mb']:>7.1f} MB, mapped files "
              f"{row['RssFile_growth_mb']:>7.1f} MB, {row['steps']} steps{'' if row['reached_steps'] else ' (time was up)'}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--sections", default=",".join(SECTIONS), help="of slowdown, latency, after, memory (default: all)")
    add("--variants", default="default", help=f"of {', '.join(measure.VARIANTS)}; default: all but torch cuda and everything")
    add("--after-variants", default="", help="the same for memory and after (default: --variants)")
    add("--seconds", type=float, default=480, help="for everything together, process starts included (default: %(default)s)")
    add("--steps", type=int, default=20_000, help="the most steps of one block (default: %(default)s)")
    add("--torch-steps", type=int, default=2_000, help="the same for torch.profiler, whose stop is slow (default: %(default)s)")
    add("--block-ms", type=float, default=200, help="length of one block (default: %(default)s)")
    add("--latency-steps", type=int, default=400_000)
    add("--after-steps", type=int, default=20_000)
    add("--memory-steps", type=int, default=1_000_000)
    add("--torch-memory-steps", type=int, default=100_000)
    add("--memory-budget-mb", type=float, default=64,
        help="how much lanescope's anonymous memory may grow (default: %(default)s)")
    add("--kernels-per-step", type=float, default=2, help="what one step launches (default: %(default)s)")
    add("--out", default="gpu_bench/cost", help="folder of the results (default: %(default)s)")
    add("--child", help=argparse.SUPPRESS)
    add("--child-out", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(arguments: argparse.Namespace) -> int:
    variant, plan = json.loads(arguments.child)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("torch sees no CUDA device")
        return 2
    torch.set_num_threads(1)
    measure.write_json(arguments.child_out, {section: ACTIONS[section](arguments, variant, seconds)
                                             for section, seconds in plan.items()})
    return 0


def main() -> int:
    arguments = parse()
    if arguments.child:
        return run_child(arguments)
    sections = arguments.sections.split(",")
    variants = measure.variants_for(arguments.device, arguments.variants)
    if set(sections) - set(SECTIONS):
        raise SystemExit(f"expected sections of {', '.join(SECTIONS)}; found {arguments.sections!r}")
    keys = ("device", "steps", "torch_steps", "block_ms", "latency_steps", "after_steps", "memory_steps", "torch_memory_steps")
    shared = [word for key in keys for word in (f"--{key.replace('_', '-')}", str(getattr(arguments, key)))]
    results: Dict[str, Dict[str, Dict[str, Any]]] = {variant: {} for variant in variants}
    after_variants = measure.variants_for(arguments.device, arguments.after_variants) if arguments.after_variants else variants
    deadline = time.perf_counter() + arguments.seconds
    groups = [[section for section in process if section in sections] for process in PROCESSES]
    todo = [(variant, group) for group, of in zip(groups, (variants, after_variants)) for variant in of if group]
    weights = [sum(SECTIONS[section] for section in group) for _, group in todo]
    for at, (variant, group) in enumerate(todo):
        left = deadline - time.perf_counter() - measure.start_seconds(arguments.device) * (len(todo) - at)
        share = max(1.0, left * weights[at] / sum(weights[at:]))
        plan = {section: share * SECTIONS[section] / weights[at] for section in group}
        log = os.path.join(arguments.out, "logs", f"{group[0]}.{variant.replace(' ', '_')}.log")
        done = measure.child(os.path.abspath(__file__), [*shared, "--child", json.dumps([variant, plan])], 2 * share + 90, log)
        for section in group:
            row = done if "failed" in done else done[section]
            results.setdefault(variant, {})[section] = row
            slow = row.get("slowdown_percent")
            outcome = f"slowdown {slow['median']:.1f} %" if slow else row.get("failed", "ok")
            print(f"{section:<10}{variant:<23}{outcome}", flush=True)
        measure.write_json(os.path.join(arguments.out, "cost.json"), {"device": arguments.device, "torch": torch.__version__,
                                                                      "results": results})
    print_tables(results)
    problems = [line for variant, rows in results.items() for line in problems_of(variant, rows, arguments)]
    measured = sum(len(rows) for rows in results.values())
    for line in problems:
        print(f"PROBLEM: {line}")
    print(f"{'passed' if not problems else 'FAILED'}: {measured} measurements, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
