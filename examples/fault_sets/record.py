#!/usr/bin/env python3
"""Times and records pairs of programs: first without a profiler, then under torch.profiler or lanescope.

    python3 examples/fault_sets/record.py --out results                        # all, on a GPU
    python3 examples/fault_sets/record.py --out /tmp/tried --device cpu --small --only sort_for_top1
    python3 examples/fault_sets/record.py --out results --set real_changes     # the programs of another folder

Writes OUT/times.json and OUT/<pair>.<variant>.<recorder>.json.gz. Each program has a fresh process, which times it and then records
it. They prepare themselves side by side (--jobs), but measure and record one at a time. One that fails or runs out of time
does not stop the others. On a GPU most of a program's time is the start of CUDA and of the profiler: --jobs 0 runs all in this
process, but one that hangs ends the run.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import importlib
import json
import math
import multiprocessing
import os
import sys
import time
import traceback

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "faults"))

import torch  # noqa: E402
from harness import Setting, fingerprint, locked, measure, raise_clocks  # noqa: E402


class Middle(Setting):
    """Sizes between the small and the full ones: powers of two."""

    def pick(self, full, small):
        return 2 ** round(math.log2(full * small) / 2)


def folder_of(name):
    """The folder of a set: one beside this file, or one of examples (real_changes)."""
    beside = os.path.join(HERE, name)
    return beside if os.path.isdir(beside) else os.path.join(HERE, "..", name)


def load(folder):
    """The table of pairs, from the programs of a set, and the names of the two variants."""
    programs = os.path.join(folder_of(folder), "programs")
    sys.path.insert(0, programs)
    common = importlib.import_module("common")
    for file in sorted(os.listdir(programs)):
        if file.endswith(".py"):
            importlib.import_module(file[:-3])
    return common.PAIRS, getattr(common, "VARIANTS", ("bad", "good"))


def record(step, setting, recorder, path, active, options):
    """Records so many steps. options: shapes (default: yes), stacks, memory, marks: no marks of steps if false, and active: fewer steps."""
    active = min(active, options.get("active", active))
    module = importlib.import_module("lanescope" if recorder == "lanescope" else "torch.profiler")
    names = ("CPU", "CUDA") if setting.device == "cuda" else ("CPU",)
    marks = options.get("marks", True)
    prof = module.profile(activities=[getattr(module.ProfilerActivity, name) for name in names],
                          record_shapes=options.get("shapes", True), with_stack=options.get("stacks", False),
                          profile_memory=options.get("memory", False),
                          **({"schedule": module.schedule(wait=1, warmup=2, active=active, repeat=1)} if marks else {}))
    prof.start()
    for number in range((3 if marks else 0) + active):
        step()
        if marks:
            prof.step()
        if marks and number == 0:  # the profiler has just prepared itself, which takes a while
            raise_clocks(setting.device, 0.1)
    setting.finish()
    prof.stop()
    prof.export_chrome_trace(path)


def time_and_record(job, function, good, args):
    """The row of one program: it prepares itself, is timed, and is recorded."""
    lock, row = os.path.join(args.out, "lock"), {}
    setting = (Middle if args.middle else Setting)(args.device, args.small)
    with locked(lock, fcntl.LOCK_SH):
        torch.manual_seed(0)
        step = function(setting, good)
        results = [fingerprint(step()) for _ in range(4)][:2]
        setting.finish()
    with locked(lock, fcntl.LOCK_EX):
        if not args.no_timing:
            raise_clocks(setting.device, 0.1)
            step()
            row = measure(step, setting, args.seconds, 0)
        path = os.path.join(args.out, f"{job}.{args.recorder}.json.gz")
        options = dict(getattr(function, "recording", {}))
        record(step, setting, args.recorder, path, args.active, {**options, "stacks": args.stacks or options.get("stacks", False)})
    return {**row, "results": results, "bytes": os.path.getsize(path)}


def guarded(job, function, good, args):
    try:
        return time_and_record(job, function, good, args)
    except Exception as error:  # a row of the table, whatever it is
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}"[:300]}


def run(job, function, good, args, sender):
    """In the process of a job."""
    log = os.open(os.path.join(args.out, f"{job}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    torch.set_num_threads(min(torch.get_num_threads(), 4))
    sender.send(guarded(job, function, good, args))
    sys.stdout.flush()
    os._exit(0)  # a program may have threads that never end


def run_here(jobs, args):
    """One after the other in this process. One whose thread never ends comes last."""
    for name, function, good in sorted(jobs, key=lambda job: "thread" in job[0]):
        yield name, guarded(name, function, good, args)
        gc.collect()
        if args.device == "cuda":
            torch.cuda.empty_cache()


def run_all(jobs, args):
    """Starts processes, --jobs at a time, and yields name and row of each as it ends."""
    context = multiprocessing.get_context("fork")
    running, begin = {}, time.monotonic()
    while jobs or running:
        while jobs and len(running) < args.jobs and time.monotonic() - begin < args.stop_after:
            name, function, good = jobs.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=run, args=(name, function, good, args, sender))
            process.start()
            sender.close()
            running[receiver] = (name, process, time.monotonic() + args.timeout)
        if jobs and time.monotonic() - begin >= args.stop_after:
            yield from ((job[0], {"failed": "not begun in time"}) for job in jobs)
            jobs = []
        for receiver in multiprocessing.connection.wait(list(running), timeout=0.5) if running else []:
            name, process, _ = running.pop(receiver)
            try:
                row = receiver.recv()
            except EOFError:
                row = {"failed": "the process ended early"}
            process.join()
            yield name, row
        for receiver, (name, process, until) in list(running.items()):
            if time.monotonic() > until:
                process.kill()
                process.join()
                del running[receiver]
                yield name, {"failed": f"out of time ({args.timeout} s)"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--set", default="blind_faults", help="folder with the programs, here or in examples (default: %(default)s)")
    add("--out", default="blind_results")
    add("--only", help="names of pairs with commas between")
    add("--recorder", default="torch", choices=("torch", "lanescope"))
    add("--device", default="cuda", choices=("cuda", "cpu"))
    add("--small", action="store_true", help="sizes for a quick run on a CPU")
    add("--middle", action="store_true", help="sizes between the small and the full ones, for a CPU")
    add("--stacks", action="store_true", help="record Python stacks too (with_stack)")
    add("--active", type=int, default=6, help="recorded steps (default: %(default)s)")
    add("--no-timing", action="store_true", help="traces only")
    add("--seconds", type=float, default=0.4, help="of timing per program (default: %(default)s)")
    add("--jobs", type=int, default=4, help="processes that prepare themselves at the same time (default: %(default)s); 0: none")
    add("--timeout", type=float, default=60, help="seconds for one program (default: %(default)s)")
    add("--stop-after", type=float, default=3600, help="begin no program after so many seconds (default: %(default)s)")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    pairs, variants = load(args.set)
    names = args.only.split(",") if args.only else list(pairs)
    jobs = [(f"{name}.{variant}", pairs[name], variant == variants[1])
            for name in names for variant in getattr(pairs[name], "variants", variants)]
    begin, rows, failed = time.monotonic(), {}, 0
    for name, row in (run_all if args.jobs else run_here)(jobs, args):
        rows[name] = row
        failed += "failed" in row
        said = row.get("failed") or f"{row.get('us', 0):.1f} us a step without a profiler, trace of {row['bytes']} bytes"
        print(f"{time.monotonic() - begin:6.1f} s  {name}: {said}", flush=True)
        if not args.no_timing:
            with open(os.path.join(args.out, "times.json"), "w", encoding="utf-8") as file:
                json.dump({"device": args.device,
                           "torch": torch.__version__, "programs": rows}, file, indent=1)
    print(f"{len(rows) - failed} of {len(rows)} programs ran", flush=True)
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
