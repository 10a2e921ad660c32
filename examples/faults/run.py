#!/usr/bin/env python3
"""Times and records the pairs of programs: each program in a fresh process without a profiler, then under each recorder.

    python3 examples/faults/run.py --out results/faults                                     # all, on a GPU
    python3 examples/faults/run.py --pairs item_every_step,fp32_matmul --out /tmp/faults --device cpu --small

Writes OUT/timings.json, OUT/traces/<pair>.<variant>.<recorder>.json.gz and OUT/logs/; matrix.py reads them. Processes prepare
themselves side by side (--jobs), but measure and record one at a time. They are forked from this one, which has imported
torch and used nothing of it; --start spawn imports torch anew in each. A pair with ranks runs in so many processes, one a GPU;
rank 1's trace is <pair>.<variant>.<recorder>.rank1.json.gz. Such a pair is left out where there are fewer GPUs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import multiprocessing.connection
import os
import socket
import sys
import time
import traceback
from typing import Any, Dict, List, Tuple

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of compilers for a kernel or two

import torch  # noqa: E402

from harness import RECORDERS, VARIANTS, Job, Unavailable, load_pairs, run_job  # noqa: E402


def child(job: Job, log: str, environment: Dict[str, str], sender: Any) -> None:
    """A process of a job: output into a file, the result through a pipe."""
    os.environ.update(environment)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        sender.send(run_job(job))
    except Unavailable as error:
        sender.send({"unavailable": str(error)})
    except BaseException as error:  # reported to the parent, whatever it is
        traceback.print_exc()
        sender.send({"failed": f"{type(error).__name__}: {error}"[:300]})


def send_gpu_count(sender: Any) -> None:
    sender.send(torch.cuda.device_count())


def count_gpus(context: Any) -> int:
    """Checked in a separate process: CUDA does not work in a fork of a process that has used it."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_gpu_count, args=(sender,))
    process.start()
    sender.close()
    try:
        return int(receiver.recv())
    except EOFError:
        return 0
    finally:
        process.join()


def ranks_of(pair: str) -> int:
    return int(load_pairs()[pair].get("ranks", 1))


def environments(ranks: int) -> List[Dict[str, str]]:
    """What torchrun would tell each rank; nothing for a single process."""
    if ranks == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} for rank in range(ranks)]


class Running:
    """The process of a job, or its processes, one a rank."""

    def __init__(self, context: Any, job: Job, timeout: float) -> None:
        self.job, self.deadline = job, time.monotonic() + timeout
        self.processes: List[Any] = []
        self.waiting: Dict[Any, int] = {}  # what a rank will answer through, and its number
        self.answers: Dict[int, Dict[str, Any]] = {}
        for rank, environment in enumerate(environments(ranks_of(job.pair))):
            one = dataclasses.replace(job, rank=rank)
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=child, args=(one, self.log(rank), environment, sender))
            process.start()
            sender.close()
            self.processes.append(process)
            self.waiting[receiver] = rank

    def log(self, rank: int) -> str:
        return os.path.join(self.job.out, "logs", dataclasses.replace(self.job, rank=rank).name + ".log")

    def take(self, receiver: Any) -> None:
        rank = self.waiting.pop(receiver)
        try:
            self.answers[rank] = receiver.recv()
        except EOFError:
            self.processes[rank].join()
            self.answers[rank] = self.ended(rank)

    def ended(self, rank: int) -> Dict[str, Any]:
        return {"failed": f"ended with {self.processes[rank].exitcode}, see {self.log(rank)}"}

    def problem(self) -> Dict[str, Any]:
        """The answer of a rank that could not run: the others then wait for it in vain."""
        problems = [answer for answer in self.answers.values() if "failed" in answer or "unavailable" in answer]
        if not problems:
            return {}
        # A rank that is gone makes the others fail, and their answer may come before its end: it is the one to name.
        for rank in self.waiting.values():
            self.processes[rank].join(0.5)
            if self.processes[rank].exitcode:
                return self.ended(rank)
        return next((answer for answer in problems if str(answer.get("failed", "")).startswith("ended with")), problems[0])

    def is_done(self) -> bool:
        return not self.waiting or bool(self.problem())

    def result(self) -> Dict[str, Any]:
        problem = self.problem()  # before the other ranks are ended
        if self.waiting:
            self.kill()
        for process in self.processes:
            process.join(20)
        self.kill()
        return {**self.described(), **(problem or self.answers[0])}

    def stop(self) -> Dict[str, Any]:
        self.kill()
        return {**self.described(), "failed": "out of time"}

    def described(self) -> Dict[str, Any]:
        return {"pair": self.job.pair, "variant": self.job.variant, "recorder": self.job.recorder}

    def kill(self) -> None:
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()


def run_all(jobs: List[Job], at_once: int, context: Any, timeout: float, stop_at: float, report: Any) -> None:
    waiting, running = list(jobs), []  # type: Tuple[List[Job], List[Running]]
    while waiting or running:
        while waiting and len(running) < at_once:
            if time.monotonic() > stop_at:
                for job in waiting:
                    report({"pair": job.pair, "variant": job.variant, "recorder": job.recorder, "failed": "not begun in time"})
                waiting = []
                break
            running.append(Running(context, waiting.pop(0), timeout))
        receivers = {receiver: entry for entry in running for receiver in entry.waiting}
        for receiver in multiprocessing.connection.wait(list(receivers), timeout=1) if receivers else []:
            receivers[receiver].take(receiver)
        now = time.monotonic()
        for entry in list(running):
            if entry.is_done() or now > entry.deadline:
                running.remove(entry)
                report(entry.result() if entry.is_done() else entry.stop())


def select(text: str) -> List[str]:
    known = load_pairs()
    names = list(known) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise SystemExit(f"expected all or names of {', '.join(known)}; found {name!r}")
    return names


def leave_out(names: List[str], gpus: int) -> List[str]:
    """The pairs that `gpus` GPUs are enough for. A line lists what is left out."""
    left_out = [name for name in names if ranks_of(name) > max(1, gpus)]
    if left_out:
        print(f"left out, with {gpus} GPUs here: " + ", ".join(f"{name} (needs {ranks_of(name)})" for name in left_out))
    return [name for name in names if name not in left_out]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pairs", default="all", help="names with commas between (default: all)")
    add("--ranks", type=int, default=0, help="only pairs with so many ranks (default: any number)")
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
    context = multiprocessing.get_context(arguments.start)
    table = load_pairs()
    pairs = [pair for pair in select(arguments.pairs) if arguments.ranks in (0, ranks_of(pair))]
    if arguments.device == "cuda" and any(ranks_of(pair) > 1 for pair in pairs):
        pairs = leave_out(pairs, count_gpus(context))
    jobs = [Job(pair, variant, recorder, arguments.device, arguments.small, out, arguments.seconds, os.path.join(out, "lock"))
            for pair in pairs for recorder in recorders for variant in VARIANTS
            if recorder in ("", *table[pair].get("recorders", RECORDERS))]
    began, rows, failed = time.monotonic(), [], []  # type: Tuple[float, List[Dict[str, Any]], List[str]]

    def report(row: Dict[str, Any]) -> None:
        rows.append(row)
        name = f"{row['pair']}.{row['variant']}.{row['recorder'] or 'time'}"
        problem = row.get("failed") or row.get("unavailable")
        if problem:
            failed.append(name)
        outcome = problem or (f"{row['us']:.1f} us a step" if "us" in row else f"{row['bytes']} bytes")
        print(f"{time.monotonic() - began:6.1f} s  {name}: {outcome}", flush=True)
        with open(os.path.join(out, "timings.json"), "w", encoding="utf-8") as file:
            json.dump({"device": arguments.device, "small": arguments.small, "torch": torch.__version__, "rows": rows}, file,
                      indent=1)

    stop_at = began + arguments.stop_after
    together = [job for job in jobs if not table[job.pair].get("alone")]
    run_all(together, max(1, arguments.jobs), context, arguments.timeout, stop_at, report)
    alone = [job for job in jobs if table[job.pair].get("alone")]
    run_all(alone, 1, context, arguments.timeout, stop_at, report)
    if os.path.exists(os.path.join(out, "lock")):
        os.remove(os.path.join(out, "lock"))
    print(f"{'FAILED' if failed or not jobs else 'passed'}: {len(rows) - len(failed)} of {len(jobs)} programs ran"
          + (f"; not {', '.join(failed)}" if failed else ""))
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
