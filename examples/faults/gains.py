#!/usr/bin/env python3
"""Times both twins of each pair in one process, alternating, and then records both in it.

    python3 examples/faults/gains.py --out results/gains
    python3 examples/faults/predictions.py LANESCOPE --traces results/gains/traces --timings results/gains/timings.json

run.py times a program in one process and records it in another, seconds or minutes later. A CPU may run at another speed by then, so
part of what a prediction misses is not the prediction's. Here the step that is timed and the step that is recorded are a second apart.
A process has one pair and one recorder. Pairs whose twins change the state of the whole process have a process for each twin.
--set takes the programs of a folder of examples/fault_sets or of examples instead, such as real_changes.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import json
import multiprocessing
import os
import statistics
import sys
import time
import traceback
from typing import Any, Callable, Dict, List, Tuple

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch  # noqa: E402

from harness import HERE, RECORDERS, VARIANTS, Job, Setting, load_pairs, locked, measure, raise_clocks, record_program  # noqa: E402
from predictions import OTHER_STEPS  # noqa: E402

ROUNDS = 4
# A precision, an allocator, what Dynamo knows of a code object that both twins compile, and worker processes are of the whole process.
APART = {"fp32_matmul", "no_memory_caching", "graph_breaks", "dataloader_wait"}


def load_set(name: str) -> Tuple[Dict[str, Callable[..., Any]], Tuple[str, ...]]:
    """The programs of another folder, and the names of the two variants."""
    sys.path.insert(0, os.path.join(HERE, "..", "fault_sets"))
    programs, variants = importlib.import_module("record").load(name)
    return programs, tuple(variants)


def maker_of(pair: str, variant: str, args: argparse.Namespace) -> Callable[[Setting], Callable[[], Any]]:
    """Makes the step of a program."""
    if not args.set:
        maker: Callable[[Setting], Callable[[], Any]] = getattr(__import__(pair), variant)
        return maker
    programs, variants = load_set(args.set)

    def make(setting: Setting) -> Callable[[], Any]:
        step: Callable[[], Any] = programs[pair](setting, variant == variants[1])
        return step

    return make


def recording_options(pair: str, args: argparse.Namespace) -> Dict[str, Any]:
    """Of a set: what recorded() of pair_list.py says."""
    if not args.set:
        return load_pairs()[pair]
    return dict(getattr(load_set(args.set)[0][pair], "recording", {}))


def prepared(pair: str, variants: Tuple[str, ...], setting: Setting, warm: int, args: argparse.Namespace) -> Dict[str, Callable[[], Any]]:
    sys.path.insert(0, os.path.join(HERE, "programs"))
    steps = {}
    for variant in variants:
        torch.manual_seed(0)
        steps[variant] = maker_of(pair, variant, args)(setting)
        for _ in range(warm):
            steps[variant]()
    setting.finish()
    return steps


def wait_for_the_last(path: str) -> None:
    """Waits until the process that measured before this one is gone: giving back a GPU's memory slows the launches of others."""
    try:
        with open(path, encoding="utf-8") as file:
            process = file.read()
    except FileNotFoundError:
        process = ""
    deadline = time.monotonic() + 5
    while process and time.monotonic() < deadline:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    break
        except OSError:  # it is gone
            break
        time.sleep(0.02)
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))


def run_pair(pair: str, variants: Tuple[str, ...], recorder: str, args: argparse.Namespace) -> List[Dict[str, Any]]:
    options, setting = recording_options(pair, args), Setting(args.device, args.small)
    torch.set_num_threads(min(torch.get_num_threads(), 4))
    lock = os.path.join(args.out, "lock")
    with locked(lock, fcntl.LOCK_SH):
        steps = prepared(pair, variants, setting, options.get("warm", 3), args)
    blocks: Dict[str, List[float]] = {variant: [] for variant in variants}
    rows = []
    with locked(lock, fcntl.LOCK_EX):
        wait_for_the_last(lock + ".last")
        raise_clocks(setting.device, 0.15)
        for _ in range(ROUNDS):
            for variant, step in steps.items():
                blocks[variant].append(measure(step, setting, args.seconds, options.get("steps", 0))["us"])
        for variant, step in steps.items():
            job = Job(pair, variant, recorder, args.device, args.small, args.out)
            just_before = measure(step, setting, args.seconds, options.get("steps", 0))["us"]
            row = record_program(job, lambda step=step: step, setting, {**options, "warm": 0})
            rows.append({"pair": pair, "variant": variant, "beside": recorder, "us": statistics.median(blocks[variant]),
                         "blocks_us": blocks[variant], "just_before_us": just_before, **row})
    return rows


def child(pair: str, variants: Tuple[str, ...], recorder: str, args: argparse.Namespace, sender: Any) -> None:
    log = os.open(os.path.join(args.out, "logs", f"{pair}.{'.'.join(variants)}.{recorder}.log"),
                  os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        rows = run_pair(pair, variants, recorder, args)
    except Exception as error:  # a row of the table, whatever it is
        traceback.print_exc()
        rows = [{"pair": pair, "variant": variants[0], "beside": recorder, "failed": f"{type(error).__name__}: {error}"[:300]}]
    sender.send(rows)
    sys.stdout.flush()
    os._exit(0)  # a program may have threads that never end


def run_all(jobs: List[Tuple[str, Tuple[str, ...], str]], args: argparse.Namespace, report: Callable[[List[Dict[str, Any]]], None]) -> None:
    context, begin = multiprocessing.get_context("fork"), time.monotonic()
    running: Dict[Any, Tuple[Tuple[str, Tuple[str, ...], str], Any, float]] = {}
    while jobs or running:
        while jobs and len(running) < args.jobs and time.monotonic() - begin < args.stop_after:
            job = jobs.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=child, args=(*job, args, sender))
            process.start()
            sender.close()
            running[receiver] = (job, process, time.monotonic() + args.timeout)
        if jobs and time.monotonic() - begin >= args.stop_after:
            for pair, variants, recorder in jobs:
                report([{"pair": pair, "variant": variants[0], "beside": recorder, "failed": "not begun in time"}])
            jobs = []
        for receiver in multiprocessing.connection.wait(list(running), timeout=0.5) if running else []:
            (pair, variants, recorder), process, _ = running.pop(receiver)
            try:
                rows = receiver.recv()
            except EOFError:
                rows = [{"pair": pair, "variant": variants[0], "beside": recorder, "failed": "the process ended early"}]
            process.join()
            report(rows)
        for receiver, ((pair, variants, recorder), process, until) in list(running.items()):
            if time.monotonic() > until:
                process.kill()
                process.join()
                del running[receiver]
                report([{"pair": pair, "variant": variants[0], "beside": recorder, "failed": "out of time"}])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pairs", default="", help="names with commas between (default: all of one process whose steps are alike)")
    add("--set", default="", help="a folder of examples/fault_sets or of examples (default: the pairs of this folder)")
    add("--out", default="gains_results")
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--small", action="store_true", help="sizes for a quick run on a CPU")
    add("--jobs", type=int, default=4, help="processes that prepare themselves at the same time (default: %(default)s)")
    add("--recorders", default=",".join(RECORDERS), help="default: %(default)s")
    add("--seconds", type=float, default=0.1, help="of each round of timing (default: %(default)s)")
    add("--timeout", type=float, default=60, help="seconds for one process (default: %(default)s)")
    add("--stop-after", type=float, default=3600, help="begin no process after so many seconds (default: %(default)s)")
    args = parser.parse_args()
    args.out = os.path.abspath(args.out)
    os.makedirs(os.path.join(args.out, "logs"), exist_ok=True)
    table = load_pairs()
    usual = [pair for pair, options in table.items()
             if pair not in OTHER_STEPS and not options.get("remark") and not options.get("cold_cache") and options.get("ranks", 1) == 1]
    jobs: List[Tuple[str, Tuple[str, ...], str]] = []
    variants: Tuple[str, ...] = VARIANTS
    if args.set:
        programs, variants = load_set(args.set)
        table, usual = {pair: {} for pair in programs}, list(programs)
    for pair in args.pairs.split(",") if args.pairs else usual:
        for recorder in args.recorders.split(","):
            is_apart = pair in APART or recording_options(pair, args).get("apart")
            parts = [(variant,) for variant in variants] if is_apart else [variants]
            jobs += [(pair, part, recorder) for part in parts if recorder in table[pair].get("recorders", RECORDERS)]
    rows: List[Dict[str, Any]] = []
    begin, wanted = time.monotonic(), len(jobs)

    def report(more: List[Dict[str, Any]]) -> None:
        rows.extend(more)
        for row in more:
            print(f"{time.monotonic() - begin:6.1f} s  {row['pair']}.{row['variant']} ({row['beside']}): "
                  + row.get("failed", f"{row.get('us', 0):.1f} us a step"), flush=True)
        with open(os.path.join(args.out, "timings.json"), "w", encoding="utf-8") as file:
            json.dump({"device": args.device, "small": args.small, "torch": torch.__version__, "rows": rows}, file, indent=1)

    run_all(jobs, args, report)
    failed = sum("failed" in row for row in rows)
    print(f"{wanted} processes, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
