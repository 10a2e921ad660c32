#!/usr/bin/env python3
"""Compares lanescope's traces with torch.profiler's: the same program, recorded by each in a fresh process, must
give the same.

    python3 bench/gpu/compare.py --programs ladder,mlp_train --device cuda --out results/compare
    python3 bench/gpu/compare.py --programs ddp --ranks 2 --out results/ddp2
    python3 bench/gpu/compare.py --files torch.json lanescope.json
    python3 bench/gpu/compare.py --external-ids a.json b.json.gz

Verdict per program: equal; explained (each difference is one that explained.json names); DIFFERENT; FAILED; NOT RUN. Exit
code 1 when any is DIFFERENT, FAILED or (without --allow-not-run) NOT RUN, when no program was compared, or, with
--external-ids, when a written id disagrees or none agrees.

The External id proof: for each piece of GPU work in a trace the operator that owns its launching call is found again by
containment (trace_json.owner) and its id compared with the one written. Both profilers' traces are checked.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

import programs
from differences import DIFFERENT, Comparison, compare_kernel_time, compare_traces, load_explained
from record_program import PROFILERS
from trace_json import TraceJson, check_external_ids

HERE = os.path.dirname(os.path.abspath(__file__))
UNIT = {"s": 1e9, "ms": 1e6, "us": 1e3}


def record(arguments: argparse.Namespace, name: str, profiler: str, folder: str) -> Tuple[int, str]:
    """Runs the child process; its exit code and the last line it printed."""
    os.makedirs(folder, exist_ok=True)
    command = [sys.executable]
    if arguments.ranks:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={arguments.ranks}"]
    command += [os.path.join(HERE, "record_program.py"), name, "--profiler", profiler, "--device", arguments.device,
                "--active", str(arguments.active), "--out", folder] + (["--small"] if arguments.small else [])
    command += ["--shapes"] if arguments.shapes else []
    log = os.path.join(folder, f"{name}.{profiler.replace(',', '_')}.log")
    with open(log, "w", encoding="utf-8") as file:
        try:
            code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=arguments.timeout,
                                  check=False).returncode
        except subprocess.TimeoutExpired:
            return 124, f"still running after {arguments.timeout:g} s"
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    unavailable = [line for line in lines if line.startswith('{"unavailable"')]
    if unavailable:
        return programs.UNAVAILABLE, json.loads(unavailable[0])["unavailable"]
    if code != 0:
        print(f"the end of {log}:", *lines[-15:], sep="\n    ")
    return code, lines[-1] if lines else "printed nothing"


def total_in_table(path: str, device: str) -> Optional[float]:
    """The footer "Self CUDA time total: 3.399ms" in ns; None: the table has none."""
    with open(path, encoding="utf-8") as file:
        found = re.search(rf"^Self {device.upper()} time total: ([0-9.]+)(s|ms|us)\s*$", file.read(), re.MULTILINE)
    return float(found[1]) * UNIT[found[2]] if found else None


def compare_tables(result: Comparison, paths: Dict[str, str], ours: TraceJson, device: str) -> None:
    totals = {profiler: total_in_table(paths[profiler] + ".txt", "cuda") for profiler in PROFILERS}
    result.notes["Self CUDA time total in ns"] = totals
    result.notes["Self CPU time total in ns"] = {p: total_in_table(paths[p] + ".txt", "cpu") for p in PROFILERS}
    if device != "cuda":
        return
    for profiler, total in totals.items():
        if total is None:
            result.add("table", f"{profiler} has no line 'Self CUDA time total'", totals["torch"], totals["lanescope"])
    own_sum = sum(e.end - e.start for e in ours.device)
    if totals["lanescope"] is not None and abs(totals["lanescope"] - own_sum) > max(0.001 * own_sum, 1):
        result.add("table", "lanescope's 'Self CUDA time total' in ns next to the sum over its own trace", own_sum,
                   totals["lanescope"])


def load(result: Comparison, path: str) -> Optional[TraceJson]:
    try:
        if os.path.getsize(path[: -len(".json")] + ".txt") == 0:
            raise ValueError("the table is empty")
        return TraceJson(path)
    except (OSError, ValueError, KeyError) as error:
        result.add("artifacts", f"{os.path.basename(path)} cannot be read: {error!r}", "", "")
        return None


@dataclasses.dataclass
class Outcome:
    program: str
    verdict: str
    comparison: Comparison
    reason: str = ""


def count_numbered(trace: TraceJson) -> Tuple[int, int]:
    """NCCL kernels that carry a sequence number, and all of them."""
    collectives = [event for event in trace.device if event.name.startswith("nccl")]
    return sum("Seq" in event.args for event in collectives), len(collectives)


def compare_recorded(arguments: argparse.Namespace, label: str, bases: List[Dict[str, str]], explained: Dict[str, Any],
                     judge_time: bool, shifting: str) -> Outcome:
    """`bases`: per repetition, profiler to the path of its results without .json."""
    total = Comparison()
    loaded: Dict[str, List[TraceJson]] = {p: [] for p in PROFILERS}
    for paths in bases:
        result = Comparison()
        theirs, ours = (load(result, paths[p] + ".json") for p in PROFILERS)
        if theirs is not None and ours is not None:
            compared = compare_traces(theirs, ours, explained, steps=arguments.active, device=arguments.device,
                                      shifting=shifting)
            compare_tables(compared, paths, ours, arguments.device)
            compared.notes["collectives"] = {p: count_numbered(trace) for p, trace in (("torch", theirs), ("lanescope", ours))}
            result.differences += compared.differences
            result.counts, result.notes = compared.counts, compared.notes
            loaded["torch"].append(theirs)
            loaded["lanescope"].append(ours)
        known = set(map(str, total.differences))
        total.differences += [d for d in result.differences if str(d) not in known]
        total.counts, total.notes = result.counts, {**total.notes, **result.notes}
    if loaded["torch"]:
        compare_kernel_time(total, loaded["torch"], loaded["lanescope"], arguments.time_tolerance if judge_time else None)
    return Outcome(label, total.verdict, total)


def compare_program(arguments: argparse.Namespace, name: str, explained: Dict[str, Any]) -> List[Outcome]:
    entry = programs.programs(arguments.small)[name]
    bases: List[Dict[str, str]] = []
    for repetition in range(arguments.repeats):
        folder = os.path.join(arguments.out, "traces", str(repetition))
        order = PROFILERS if repetition % 2 == 0 else PROFILERS[::-1]
        for group in [",".join(order)] if arguments.one_process else order:
            code, last_line = record(arguments, name, group, folder)
            if code == programs.UNAVAILABLE:
                return [Outcome(name, "NOT RUN", Comparison(), last_line)]
            if code != 0:
                return [Outcome(name, "FAILED", Comparison(), f"{group} ended with {code}: {last_line}")]
        bases.append({p: os.path.join(folder, f"{name}.{p}") for p in PROFILERS})
    judge_time = entry.group == "ladder" and arguments.jobs == 1 and arguments.device == "cuda"
    if not arguments.ranks:
        return [compare_recorded(arguments, name, bases, explained, judge_time, entry.shifting)]
    return [compare_recorded(arguments, f"{name} rank {rank}",
                             [{p: f"{base}.rank{rank}" for p, base in paths.items()} for paths in bases], explained, False,
                             entry.shifting)
            for rank in range(arguments.ranks)]


def cell(outcome: Outcome, what: str) -> str:
    pair = outcome.comparison.counts.get(what)
    return "-" if pair is None else f"{pair[0]}={pair[1]}" if pair[0] == pair[1] else f"{pair[0]}/{pair[1]}"


def print_table(outcomes: List[Outcome]) -> None:
    whats = {"CPU operators and ranges": "CPU rows", "runtime calls": "calls", "kernels": "kernels", "copies": "copies",
             "memsets": "memsets", "op chains": "chains", "external ids torch.profiler": "ids torch",
             "external ids lanescope": "ids ours"}
    for outcome in outcomes:
        if outcome.reason:
            print(f"{outcome.program}: {outcome.verdict}: {outcome.reason}")
        for difference in outcome.comparison.differences:
            print(f"{outcome.program}: {'explained' if difference.reason else DIFFERENT}: {difference}")
    for outcome in outcomes:
        numbered = outcome.comparison.notes.get("collectives", {})
        if any(of for _, of in numbered.values()):
            print(f"{outcome.program}: NCCL kernels with a sequence number: "
                  + ", ".join(f"{profiler} {some} of {of}" for profiler, (some, of) in numbered.items()))
    print("\ntorch.profiler and lanescope: a=b equal, a/b not; ids: agreeing pairs of all pairs; "
          "time: lanescope's kernel time over torch.profiler's")
    print(f"{'program':<26}" + "".join(f"{title:>14}" for title in whats.values()) + f"{'time':>8}  verdict")
    for outcome in outcomes:
        ratio = outcome.comparison.notes.get("kernel time", {}).get("ratio")
        print(f"{outcome.program:<26}" + "".join(f"{cell(outcome, what):>14}" for what in whats) +
              f"{'-' if ratio is None else f'{ratio:.4f}':>8}  {outcome.verdict}")


def write_results(arguments: argparse.Namespace, outcomes: List[Outcome]) -> None:
    rows = [{"program": o.program, "verdict": o.verdict, "reason": o.reason, "counts": o.comparison.counts,
             "differences": [dataclasses.asdict(d) for d in o.comparison.differences], "notes": o.comparison.notes}
            for o in outcomes]
    os.makedirs(arguments.out, exist_ok=True)
    with open(os.path.join(arguments.out, "compare.json"), "w", encoding="utf-8") as file:
        json.dump({"device": arguments.device, "active": arguments.active, "ranks": arguments.ranks, "programs": rows}, file,
                  indent=1)


def exit_code(outcomes: List[Outcome], allow_not_run: bool) -> int:
    bad = ("DIFFERENT", "FAILED") if allow_not_run else ("DIFFERENT", "FAILED", "NOT RUN")
    verdicts = [o.verdict for o in outcomes]
    compared = [v for v in verdicts if v != "NOT RUN"]
    return 1 if not compared or any(v in bad for v in verdicts) else 0


def external_ids(paths: List[str], out: str) -> int:
    rows: Dict[str, Any] = {}
    print(f"{'trace':<44}{'agree':>9}{'differ':>9}{'missing':>9}{'no call':>9}{'outside':>9}")
    for path in paths:
        ids = check_external_ids(TraceJson(path))
        rows[path] = dataclasses.asdict(ids)
        print(f"{os.path.basename(path)[:43]:<44}{ids.agree:>9}{ids.differ:>9}{ids.missing:>9}{ids.no_call:>9}{ids.outside:>9}"
              f"  {ids.example}")
    agree, differ, missing = (sum(row[key] for row in rows.values()) for key in ("agree", "differ", "missing"))
    print(f"{'all':<44}{agree:>9}{differ:>9}{missing:>9}\n{agree} of {agree + differ} written ids agree, {missing} are missing")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "external_ids.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    return 0 if agree and not differ else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--programs", default="all", help="all, groups (ladder, layers, models, ddp) or names, commas between")
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--small", action="store_true", help="sizes for a quick run on a CPU")
    add("--active", type=int, default=20, help="recorded steps (default: %(default)s)")
    add("--repeats", type=int, default=1, help="each program so often under each profiler, the order turning (default: 1)")
    add("--jobs", type=int, default=1, help="programs at the same time; with more than 1 times are not judged (default: 1)")
    add("--ranks", type=int, default=0, help="run under torchrun on so many GPUs; for the DDP programs")
    add("--shapes", action="store_true", help="with record_shapes, which lanescope reads the numbers of collectives from")
    add("--one-process", action="store_true", help="both profilers after each other in one process")
    add("--explain", default=os.path.join(HERE, "explained.json"), help="the known differences (default: explained.json here)")
    add("--time-tolerance", type=float, default=0.02, help="for the ladder's kernel time (default: %(default)s)")
    add("--timeout", type=float, default=180, help="seconds for one process (default: %(default)s)")
    add("--allow-not-run", action="store_true", help="a program that cannot run here is no failure")
    add("--files", nargs=2, metavar=("TORCH", "LANESCOPE"), help="compare two traces that exist; records nothing")
    add("--external-ids", nargs="+", metavar="TRACE", help="only check the External ids of these traces")
    add("--out", default="gpu_bench/compare", help="folder of the results (default: %(default)s)")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    if arguments.external_ids:
        return external_ids(arguments.external_ids, arguments.out)
    explained = load_explained(arguments.explain)
    if arguments.files:
        traces = [TraceJson(path) for path in arguments.files]
        compared = compare_traces(traces[0], traces[1], explained, steps=None, device=arguments.device)
        compare_kernel_time(compared, traces[:1], traces[1:], None)
        outcomes = [Outcome("files", compared.verdict, compared)]
    else:
        names = programs.select(arguments.programs, arguments.small)
        with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
            outcomes = []
            for group in pool.map(lambda name: compare_program(arguments, name, explained), names):
                outcomes += group
                write_results(arguments, outcomes)
                for outcome in group:  # a run that is cut short has printed this much
                    print(f"{outcome.program}: {outcome.verdict}", flush=True)
    write_results(arguments, outcomes)
    print_table(outcomes)
    code = exit_code(outcomes, arguments.allow_not_run)
    print(f"{sum(o.verdict in ('equal', 'explained') for o in outcomes)} of {len(outcomes)} tell the same; "
          f"{'passed' if code == 0 else 'FAILED'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
