#!/usr/bin/env python3
"""Times and records the pairs of programs: each program in a fresh process without a profiler, then under each recorder.

    python3 examples/faults/run.py --out results/faults                                     # all, on a GPU
    python3 examples/faults/run.py --pairs item_every_step,fp32_matmul --out /tmp/faults --device cpu --small

Writes OUT/timings.json, OUT/traces/<pair>.<variant>.<recorder>.json.gz and OUT/logs/; matrix.py reads them. Processes prepare
themselves side by side (--jobs), but measure and record one at a time. They are forked from this one, which has imported
torch and used nothing of it; --start spawn imports torch anew in each.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import sys
import time
import traceback
from typing import Any, Dict, List, Tuple

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of compilers for a kernel or two

import torch  # noqa: E402

from harness import RECORDERS, VARIANTS, Job, Unavailable, load_pairs, run_job  # noqa: E402


def child(job: Job, log: str, sender: Any) -> None:
    """The process of one job: output into a file, the result through a pipe."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        sender.send(run_job(job))
    except Unavailable as error:
        sender.send({"unavailable": str(error)})
    except BaseException as error:  # told to the parent, whatever it is
        traceback.print_exc()
        sender.send({"failed": f"{type(error).__name__}: {error}"[:300]})


class Running:
    def __init__(self, context: Any, job: Job, timeout: float) -> None:
        self.job, self.deadline = job, time.monotonic() + timeout
        self.log = os.path.join(job.out, "logs", job.name + ".log")
        self.receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=child, args=(job, self.log, sender))
        self.process.start()
        sender.close()

    def result(self) -> Dict[str, Any]:
        try:
            answer: Dict[str, Any] = self.receiver.recv()
        except EOFError:
            self.process.join()
            answer = {"failed": f"ended with {self.process.exitcode}, see {self.log}"}
        self.process.join(20)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return {"pair": self.job.pair, "variant": self.job.variant, "recorder": self.job.recorder, **answer}

    def stop(self) -> Dict[str, Any]:
        self.process.kill()
        self.process.join()
        return {"pair": self.job.pair, "variant": self.job.variant, "recorder": self.job.recorder, "failed": "out of time"}


def run_all(jobs: List[Job], at_once: int, start: str, timeout: float, stop_at: float, report: Any) -> None:
    context = multiprocessing.get_context(start)
    waiting, running = list(jobs), []  # type: Tuple[List[Job], List[Running]]
    while waiting or running:
        while waiting and len(running) < at_once:
            if time.monotonic() > stop_at:
                for job in waiting:
                    report({"pair": job.pair, "variant": job.variant, "recorder": job.recorder, "failed": "not begun in time"})
                waiting = []
                break
            running.append(Running(context, waiting.pop(0), timeout))
        ready = multiprocessing.connection.wait([r.receiver for r in running], timeout=1) if running else []
        now = time.monotonic()
        for entry in list(running):
            if entry.receiver in ready or now > entry.deadline:
                running.remove(entry)
                report(entry.result() if entry.receiver in ready else entry.stop())


def select(text: str) -> List[str]:
    known = load_pairs()
    names = list(known) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise SystemExit(f"expected all or names of {', '.join(known)}; found {name!r}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pairs", default="all", help="names with commas between (default: all)")
    add("--out", default="faults_results", help="folder of the results (default: %(default)s)")
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--small", action="store_true", help="sizes for a quick run on a CPU")
    add("--jobs", type=int, default=4, help="processes that prepare themselves at the same time (default: %(default)s)")
    add("--recorders", default=",".join(RECORDERS), help="default: %(default)s; empty: timing only")
    add("--no-timing", action="store_true", help="traces only")
    add("--seconds", type=float, default=0.5, help="of timing per program (default: %(default)s)")
    add("--timeout", type=float, default=150, help="seconds for one process (default: %(default)s)")
    add("--stop-after", type=float, default=3600, help="begin no process after so many seconds (default: %(default)s)")
    add("--start", default="fork", choices=("fork", "spawn"), help="how processes begin (default: %(default)s)")
    arguments = parser.parse_args()
    out = os.path.abspath(arguments.out)
    os.makedirs(os.path.join(out, "logs"), exist_ok=True)
    os.makedirs(os.path.join(out, "traces"), exist_ok=True)
    recorders = [""] * (not arguments.no_timing) + [r for r in arguments.recorders.split(",") if r]
    for recorder in recorders:
        if recorder and recorder not in RECORDERS:
            parser.error(f"--recorders: expected {', '.join(RECORDERS)}; found {recorder!r}")
    table = load_pairs()
    jobs = [Job(pair, variant, recorder, arguments.device, arguments.small, out, arguments.seconds, os.path.join(out, "lock"))
            for pair in select(arguments.pairs) for recorder in recorders for variant in VARIANTS
            if recorder in ("", *table[pair].get("recorders", RECORDERS))]
    began, rows, failed = time.monotonic(), [], []  # type: Tuple[float, List[Dict[str, Any]], List[str]]

    def report(row: Dict[str, Any]) -> None:
        rows.append(row)
        name = f"{row['pair']}.{row['variant']}.{row['recorder'] or 'time'}"
        problem = row.get("failed") or row.get("unavailable")
        if problem:
            failed.append(name)
        told = problem or (f"{row['us']:.1f} us a step" if "us" in row else f"{row['bytes']} bytes")
        print(f"{time.monotonic() - began:6.1f} s  {name}: {told}", flush=True)
        with open(os.path.join(out, "timings.json"), "w", encoding="utf-8") as file:
            json.dump({"device": arguments.device, "small": arguments.small, "torch": torch.__version__, "rows": rows}, file,
                      indent=1)

    stop_at = began + arguments.stop_after
    together = [job for job in jobs if not table[job.pair].get("alone")]
    run_all(together, max(1, arguments.jobs), arguments.start, arguments.timeout, stop_at, report)
    alone = [job for job in jobs if table[job.pair].get("alone")]
    run_all(alone, 1, arguments.start, arguments.timeout, stop_at, report)
    if os.path.exists(os.path.join(out, "lock")):
        os.remove(os.path.join(out, "lock"))
    print(f"{'FAILED' if failed else 'passed'}: {len(rows) - len(failed)} of {len(jobs)} programs ran"
          + (f"; not {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
