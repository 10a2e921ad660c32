#!/usr/bin/env python3
"""Draws the traces of a data-parallel job, with faults planted, for tests and for scale.

    tools/draw_job.py OUT --ranks 8 --steps 5 --fault straggler-cpu --late-us 4000

Each rank's file is a torch.profiler trace in small: steps, launches, kernels on one stream, all-reduces on another,
the CPU waiting at the end of each step. The ranks run in lockstep: an all-reduce begins on a rank when it has the
gradients, and ends everywhere a little after the last rank has begun. Then each rank's clock is moved. What was planted
is in OUT.truth.json, next to the folder.
"""
from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import random
from typing import Any, Dict, List, Optional

FAULTS = ("none", "straggler-cpu", "straggler-gpu", "straggler-input", "rotating", "uneven", "one-bucket", "tiny-buckets",
          "unequal-steps", "slow-link", "truncated", "duplicate", "missing", "other-job", "other-model", "mismatch", "lost-records", "not-a-trace")


class Rank:
    """One process: its events, and where its CPU, its compute stream and its communication stream are, in us."""

    def __init__(self, number: int) -> None:
        self.number, self.events, self.correlation = number, [], 0
        self.cpu = self.gpu = self.comm = 1000.0

    def slice(self, cat: str, name: str, start: float, dur: float, tid: Any, pid: Any = 1, **args: Any) -> Dict[str, Any]:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args}
        self.events.append(event)
        return event

    def launch(self, op: str) -> float:
        """An operator with a launch in it; returns when work may begin at the earliest."""
        self.correlation += 1
        self.slice("cpu_op", op, self.cpu, 8, 100)
        self.slice("cuda_runtime", "cudaLaunchKernel", self.cpu + 2, 4, 100, correlation=self.correlation)
        self.cpu += 9
        return self.cpu - 2

    def kernel(self, name: str, us: float, grid: int = 128, after: float = 0, slowed: float = 1) -> None:
        start = max(self.launch("aten::mm"), self.gpu, after)
        if slowed > 1 and start < self.comm:  # next to a collective
            us = min(us * slowed, us + (self.comm - start) * (1 - 1 / slowed))
        self.slice("kernel", name, start, us, 7, 0, device=0, stream=7, correlation=self.correlation, grid=[grid, 1, 1],
                   block=[256, 1, 1])
        self.gpu = start + us


class Job:
    """The planted job. All randomness comes from the seed."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.a, self.random = args, random.Random(args.seed)
        self.ranks = [Rank(number) for number in range(args.ranks)]
        spread = args.offset_us
        self.offsets = [0.0] + [self.random.uniform(-spread, spread) for _ in self.ranks[1:]]
        self.drifts = [0.0] + [self.random.uniform(-args.drift_ppm, args.drift_ppm) * 1e-6 for _ in self.ranks[1:]]
        # How much later than the first one each rank leaves an all-reduce, as a share of its transfer: rings have an order.
        self.leaving = [self.random.uniform(0, args.leaving) for _ in self.ranks]
        self.sequences: Dict[str, int] = {}  # by group
        self.late = args.late_rank % args.ranks
        self.world = args.world or args.ranks

    def ranks_text(self, ranks: List[Rank]) -> str:
        """As torch writes it: with a gap when there are more than 30."""
        count = self.world if ranks is self.ranks else len(ranks)
        return str([rank.number for rank in ranks]) if count <= 30 else "[0, 1, ... ]"

    def all_reduce(self, elements: int, transfer_us: float, group: str = "0", members: Optional[List[Rank]] = None) -> None:
        arrivals, sequence = [], self.sequences.setdefault(group, 0)
        ranks = members or self.ranks
        for rank in ranks:
            start = max(rank.launch("c10d::allreduce_"), rank.comm, rank.gpu)
            arrivals.append((rank, start, rank.correlation))
        last = max(start for _, start, _ in arrivals)
        for rank, start, correlation in arrivals:
            end = last + transfer_us * (1 + self.leaving[rank.number]) + self.random.uniform(0, 0.01) * transfer_us
            size = elements * (2 if self.a.fault == "mismatch" and rank.number == self.late and sequence % 5 == 3 else 1)
            args = {"Collective name": "allreduce", "In msg nelems": size, "Out msg nelems": size, "Group size": len(members) if members else self.world,
                    "dtype": "Float", "Process Group Name": group, "Process Group Description": "pair" if members else "default_pg",
                    "Process Group Ranks": self.ranks_text(ranks)}
            if self.a.sequence_numbers:
                args["Seq"] = sequence
            rank.slice("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, end - start, 20, 0, device=0, stream=20,
                       correlation=correlation, grid=[24, 1, 1], block=[544, 1, 1], **args)
            rank.comm = end
        self.sequences[group] += 1

    def work_of(self, rank: Rank, step: int) -> float:
        """How much longer its kernels are than the others'."""
        a = self.a
        if a.fault == "straggler-gpu" and rank.number == self.late and step >= a.since:
            return 1 + a.late_us / (a.kernels * a.kernel_us)
        if a.fault == "rotating" and rank.number == (step * 3) % len(self.ranks):
            return 1 + a.late_us / (a.kernels * a.kernel_us)
        if a.fault == "uneven":
            return 1 + a.late_us / (a.kernels * a.kernel_us) * rank.number / max(1, len(self.ranks) - 1)
        return 1.0

    def begin_step(self, rank: Rank, step: int) -> float:
        start = rank.cpu
        rank.cpu += 20
        late = rank.number == self.late and step >= self.a.since
        if late and self.a.fault == "straggler-cpu":
            rank.cpu += self.a.late_us
        if late and self.a.fault == "straggler-input":
            rank.slice("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", rank.cpu, self.a.late_us, 100)
            rank.cpu += self.a.late_us
        rank.cpu += self.random.uniform(0, 20)
        return start

    def run_step(self, step: int) -> None:
        a = self.a
        starts = [self.begin_step(rank, step) for rank in self.ranks]
        buckets = {"one-bucket": 1, "tiny-buckets": a.kernels}.get(a.fault, a.buckets)
        tiny = a.fault == "tiny-buckets"
        for i in range(a.kernels):
            for rank in self.ranks:
                factor = self.work_of(rank, step)
                rank.kernel("gemm_forward_backward", a.kernel_us * factor * self.random.uniform(0.995, 1.005),
                            128 if a.fault == "straggler-gpu" else round(128 * factor), slowed=1.7 if a.slowed_by_waits else 1)
            if (i + 1) % (a.kernels // buckets) == 0:
                share = a.second_bucket if (i // max(1, a.kernels // buckets)) % 2 else 1.0
                self.all_reduce(1000 if tiny else int(1_000_000 * share), 40 if tiny else a.transfer_us * share * a.buckets / buckets)
        if a.fault == "slow-link":  # neighbours in pairs; the pair of the late rank has half of the bandwidth
            for first in range(0, len(self.ranks) - 1, 2):
                pair = self.ranks[first : first + 2]
                slow = 2 if self.ranks[self.late] in pair else 1
                self.all_reduce(2_000_000, a.transfer_us * slow, f"{first // 2 + 1}", pair)
        for rank, start in zip(self.ranks, starts):
            rank.kernel("optimizer", 30, after=rank.comm)
            if not a.free_running:
                rank.slice("cpu_op", "aten::item", rank.cpu, max(5.0, rank.gpu - rank.cpu + 5), 100)
                rank.slice("cuda_runtime", "cudaStreamSynchronize", rank.cpu + 1, max(3.0, rank.gpu - rank.cpu + 2), 100)
                rank.cpu = max(rank.cpu + 6, rank.gpu + 6)
            rank.slice("user_annotation", f"ProfilerStep#{step + 10}", start, rank.cpu - start, 100)
            rank.cpu += 5

    def trace(self, rank: Rank) -> Dict[str, Any]:
        offset, drift = self.offsets[rank.number], self.drifts[rank.number]
        events: List[Dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}]
        for event in rank.events:
            start, end = event["ts"], event["ts"] + event["dur"]
            moved = [self.a.epoch_us + time * (1 + drift) + offset for time in (start, end)]
            events.append({**event, "ts": round(moved[0], 3), "dur": round(moved[1] - moved[0], 3)})
        world = self.world
        return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Drawn GPU", "numSms": 132}],
                "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": world, "pg_count": 1, "pg_config": [
                    {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": world, "ranks": list(range(world))}]},
                "traceEvents": events, "displayTimeUnit": "ms", "baseTimeNanoseconds": 0}

    def damage(self, rank: Rank, trace: Dict[str, Any]) -> Dict[str, Any]:
        fault, events = self.a.fault, trace["traceEvents"]
        if rank.number != self.late:
            return trace
        if fault == "other-job":
            trace["distributedInfo"]["world_size"] *= 2
        if fault == "other-model":
            for event in events:
                if "In msg nelems" in event.get("args", {}):
                    event["args"]["In msg nelems"] = event["args"]["Out msg nelems"] = 12345 + event["args"]["In msg nelems"]
        if fault == "unequal-steps":  # it ends three steps before the others
            last = sorted(event["ts"] for event in events if event["name"].startswith("ProfilerStep"))[-3]
            trace["traceEvents"] = [event for event in events if event["ph"] == "M" or event["ts"] < last]
        if fault == "lost-records":
            nccl = [event for event in events if event["name"].startswith("nccl")]
            lost = {id(event) for event in nccl[7:9]}
            trace["traceEvents"] = [event for event in events if id(event) not in lost]
        return trace

    def write(self, folder: pathlib.Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for rank in self.ranks:
            rank.events.sort(key=lambda event: event["ts"])
            if self.a.fault == "missing" and rank.number == self.late:
                continue
            text = json.dumps(self.damage(rank, self.trace(rank)), separators=(",", ":"))
            if rank.number == self.late and self.a.fault == "truncated":
                text = text[: len(text) * 6 // 10]
            if rank.number == self.late and self.a.fault == "not-a-trace":
                text = "this is no trace\n"
            path = folder / f"rank{rank.number}.json"
            if self.a.gzip:
                with gzip.open(f"{path}.gz", "wt", compresslevel=1) as out:
                    out.write(text)
            else:
                path.write_text(text)
            if rank.number == self.late and self.a.fault == "duplicate":
                (folder / f"copy_of_rank{rank.number}.json").write_text(text)

    def truth(self) -> Dict[str, Any]:
        return {"fault": self.a.fault, "late_rank": self.late, "late_us": self.a.late_us, "since_step": 10 + self.a.since,
                "offsets_us": self.offsets, "drifts": self.drifts, "leaving": self.leaving}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--ranks", type=int, default=4)
    p.add_argument("--world", type=int, default=0, help="the ranks drawn are the first ones of a job of so many (default: --ranks)")
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--kernels", type=int, default=24)
    p.add_argument("--buckets", type=int, default=6)
    p.add_argument("--second-bucket", type=float, default=1.5, help="every second bucket is so many times as large as the others")
    p.add_argument("--kernel-us", type=float, default=200)
    p.add_argument("--transfer-us", type=float, default=150)
    p.add_argument("--fault", choices=FAULTS, default="none")
    p.add_argument("--late-rank", type=int, default=1)
    p.add_argument("--late-us", type=float, default=2000)
    p.add_argument("--since", type=int, default=0, help="the fault begins in this step")
    p.add_argument("--offset-us", type=float, default=0, help="clocks are off by up to this")
    p.add_argument("--drift-ppm", type=float, default=0)
    p.add_argument("--leaving", type=float, default=0.1, help="ranks leave a collective within this share of its transfer")
    p.add_argument("--slowed-by-waits", action="store_true", help="kernels next to a collective run 1.7 times as long")
    p.add_argument("--free-running", action="store_true", help="the CPU never waits for the GPU")
    p.add_argument("--sequence-numbers", action="store_true")
    p.add_argument("--gzip", action="store_true")
    p.add_argument("--epoch-us", type=float, default=1_700_000_000_000)
    p.add_argument("--seed", type=int, default=1)
    return p


def draw(arguments: List[str]) -> Dict[str, Any]:
    args = parser().parse_args(arguments)
    job = Job(args)
    for step in range(args.steps):
        job.run_step(step)
    job.write(args.out)
    truth = job.truth()
    args.out.with_name(args.out.name + ".truth.json").write_text(json.dumps(truth))
    return truth


if __name__ == "__main__":
    import sys
    draw(sys.argv[1:])
