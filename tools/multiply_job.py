#!/usr/bin/env python3
"""Makes a job of many ranks with large traces from a drawn one with few: each rank is a file of its own, with a clock of its own.

    tools/draw_job.py drawn --ranks 4 --world 512 --steps 12 --kernels 9000 --buckets 60 --fault straggler-cpu --late-rank 3
    tools/multiply_job.py drawn job --ranks 512 --late-rank 3 --workers 16

Draw the job with --world, the number of ranks. Rank --late-rank gets its own drawn trace, all others one of the
other traces in turn. Only what is around the events is written anew: the rank, and baseTimeNanoseconds, which moves the rank's clock by
up to 1 ms. job.truth.json has the offsets.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List

BEGIN, END = b'"traceEvents":', b',"displayTimeUnit"'
NEAR = 1 << 20  # what is around the events is that near to the ends of the file


def head_of(path: pathlib.Path) -> Dict[str, Any]:
    with open(path, "rb") as file:
        text = file.read(NEAR)
    return json.loads(text[: text.index(BEGIN)].rstrip(b",") + b"}")


def write_rank(drawn: pathlib.Path, out: pathlib.Path, rank: int, offset_ns: int) -> None:
    """The events of `drawn`, as those of `rank`."""
    head = head_of(drawn)
    head["distributedInfo"]["rank"] = rank
    head["baseTimeNanoseconds"] = offset_ns
    with open(drawn, "rb") as source, open(out / f"rank{rank}.json", "wb") as target:
        begin = source.read(NEAR).index(BEGIN)
        source.seek(-NEAR if drawn.stat().st_size > NEAR else 0, 2 if drawn.stat().st_size > NEAR else 0)
        at = source.tell()
        end = at + source.read().rindex(END)
        target.write(json.dumps(head, separators=(",", ":")).encode()[:-1] + b",")
        source.seek(begin)
        left = end - begin
        while left > 0:
            left -= target.write(source.read(min(left, 8 << 20)))
        target.write(b"}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drawn", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--late-rank", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    files = sorted(args.drawn.glob("rank*.json"), key=lambda path: int(path.stem[4:]))
    world = head_of(files[0])["distributedInfo"]["world_size"]
    if world != args.ranks:
        raise SystemExit(f"{args.drawn}: expected a job that was drawn with --world {args.ranks}, found {world} ranks in it")
    healthy: List[pathlib.Path] = [path for path in files if int(path.stem[4:]) != args.late_rank]
    chance = random.Random(args.seed)
    offsets = [0] + [chance.randrange(0, 1_000_000) for _ in range(args.ranks - 1)]
    if args.out.exists():
        shutil.rmtree(args.out)
    args.out.mkdir(parents=True)
    with ThreadPoolExecutor(args.workers) as pool:
        jobs = [pool.submit(write_rank, args.drawn / f"rank{rank}.json" if rank == args.late_rank else healthy[rank % len(healthy)],
                            args.out, rank, offsets[rank]) for rank in range(args.ranks)]
        for job in jobs:
            job.result()
    args.out.with_name(args.out.name + ".truth.json").write_text(json.dumps({"late_rank": args.late_rank, "offsets_ns": offsets}))


if __name__ == "__main__":
    main()
