#!/usr/bin/env python3
"""Compares what `lanescope ranks` says of the jobs of run_jobs.py and hosts.py with what was planted.

    python3 examples/rank_jobs/judge.py OUT [--lanescope lanescope]
"""
from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
from typing import List, NamedTuple, Tuple


class Planted(NamedTuple):
    kinds: Tuple[str, ...]  # of the verdict, all of them right
    ranks: Tuple[int, ...] = ()
    cause: str = ""  # the first one
    notes: Tuple[str, ...] = ()
    not_notes: Tuple[str, ...] = ("hidden-cpu", "small-collectives", "group-not-hidden", "unequal-steps", "slow-link")
    says: Tuple[str, ...] = ()  # parts of the notes


NONE = ("hidden-cpu", "small-collectives", "not-hidden", "group-not-hidden", "unequal-steps", "slow-link", "cpu-bound")
# Who is late because of the network is not planted.
ANY = ("balanced", "unknown", "straggler", "rotating", "uneven")
PLANTED = {
    "healthy": Planted(("balanced",), not_notes=NONE),
    "more_work": Planted(("straggler",), (1,), "compute"),
    "hidden_python": Planted(("balanced",), notes=("hidden-cpu",), not_notes=()),
    "hidden_python_before_item": Planted(("balanced",), notes=("hidden-cpu",), not_notes=()),
    "slow_loader": Planted(("straggler",), (0,), "input"),
    "rotating_batches": Planted(("rotating",), (0, 1)),
    "pageable_copies": Planted(("straggler",), (1,), "copies"),
    "garbage_collection": Planted(("straggler",), (0,), "cpu"),
    "checkpoints": Planted(("straggler",), (0,), "cpu"),
    "ends_early": Planted(("balanced",), notes=("unequal-steps",), not_notes=()),
    # Whose CPU is slower is not planted, and the profiler changes it: no rank, or one with the profiler's share.
    "tiny_buckets": Planted(("balanced", "unknown", "straggler", "rotating"), not_notes=("unequal-steps",)),
    "one_all_reduce": Planted(("balanced",), notes=("not-hidden",)),
    "reduces_each_micro_step": Planted(("balanced",)),
    "fully_sharded": Planted(("balanced",)),
    "exposed_tensor_parallel": Planted(("balanced",), notes=("not-hidden", "group-not-hidden"), not_notes=()),
    "even_purposes": Planted(("balanced",), notes=("not-hidden",)),
    "pipeline": Planted(("pipeline",)),
    "pipeline_of_many_batches": Planted(("unknown", "balanced")),
    "pipeline_with_long_stage": Planted(("pipeline",), (1,)),
    "small_operators": Planted(ANY, notes=("cpu-bound",), not_notes=("slow-link",)),
    "python_between_layers": Planted(("balanced", "unknown"), notes=("cpu-bound",), not_notes=("slow-link",)),
    "operators_that_fit": Planted(ANY, not_notes=("slow-link", "cpu-bound")),
    # Of hosts.py: NETWORK_JOB.
    "even_neighbours": Planted(ANY, not_notes=("slow-link", "late-host")),
    "even_larger_parts": Planted(ANY, not_notes=("slow-link", "late-host")),
    "even_late_pair": Planted(("straggler",), (6, 7), "compute", not_notes=("slow-link", "late-host")),
    "slow_link_neighbours": Planted(ANY, notes=("slow-link",), not_notes=("late-host",), says=("between ranks 3 and 4 is slow",)),
    "slow_host_neighbours": Planted(ANY, notes=("slow-link",), not_notes=("late-host",),
                                    says=("between ranks 0 and 5 to 7 is slow", "a rank on host host-3")),
    "no_peers_neighbours": Planted(ANY, notes=("slow-link",), not_notes=("late-host",),
                                   says=("between ranks 6 and 7 is slow", "a rank on host host-3")),
    # NCCL's threads share the busy core, so what this host sends is slow as well: 0.3 of 2 GB/s without a profiler. Its own
    # lateness is small beside that, and was the only thing expected before the first run.
    "busy_host_reads_loss": Planted(("unknown", "rotating", "straggler"), notes=("slow-link",), not_notes=(),
                                    says=("between ranks 0 and 5 to 7 is slow", "a rank on host host-3")),
}


def without_hosts(planted: Planted) -> Planted:
    """Up to torch 2.11, torch.profiler does not name the host."""
    return planted._replace(notes=tuple(note for note in planted.notes if note != "late-host"),
                            says=tuple(part for part in planted.says if "host-" not in part))


def mistakes(verdict: dict, planted: Planted) -> List[str]:
    out = []
    if verdict["kind"] not in planted.kinds:
        out.append(f"{verdict['kind']} instead of {' or '.join(planted.kinds)}")
    if planted.ranks and tuple(verdict["ranks"]) != planted.ranks:
        out.append(f"ranks {verdict['ranks']} instead of {list(planted.ranks)}")
    causes = [part["cause"] for part in verdict["causes"]]
    if planted.cause and causes[:1] != [planted.cause]:
        out.append(f"cause {causes[:1]} instead of {planted.cause}")
    notes = {note["kind"] for note in verdict["notes"]}
    out += [f"no note {note}" for note in planted.notes if note not in notes]
    text = " ".join(note["text"] for note in verdict["notes"])
    out += [f"no note says: {part}" for part in planted.says if part not in text]
    return out + [f"note {note}" for note in planted.not_notes if note in notes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--lanescope", default="lanescope")
    args = parser.parse_args()
    wrong = 0
    expected = {**PLANTED, **{f"{name}_torch": without_hosts(planted) for name, planted in PLANTED.items()}}
    for name, planted in expected.items():
        if not (args.out / name).is_dir():
            continue
        run = subprocess.run([args.lanescope, "ranks", str(args.out / name), "--json"], capture_output=True, text=True)
        if run.returncode != 0:
            found, text = [run.stderr.strip()], ""
        else:
            verdict = json.loads(run.stdout)["verdict"]
            found, text = mistakes(verdict, planted), verdict["text"]
        wrong += bool(found)
        print(f"{'WRONG' if found else 'right'}  {name}: {'; '.join(found) or text}")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
