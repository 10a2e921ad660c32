#!/usr/bin/env python3
"""How honest the clock errors of `lanescope ranks` are: drawn jobs with known offsets.

    tools/measure_clock_errors.py build/release/src/lanescope/cli/lanescope --jobs 60

Draws that many jobs of each kind: collectives of two lengths (1.5 and 3 to 1), two ranks only, all of one length.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
from typing import List, NamedTuple, Tuple

import draw_job

FAULTS = ("none", "straggler-cpu", "rotating", "lost-records")


class Kind(NamedTuple):
    name: str
    ranks: int
    second_bucket: float


KINDS = (Kind("t and 1.5 t", 8, 1.5), Kind("t and 3 t", 8, 3), Kind("t and 1.5 t, 2 ranks", 2, 1.5), Kind("all t", 8, 1))


def measure(lanescope: str, kind: Kind, seed: int) -> List[Tuple[float, float]]:
    """Real and printed errors of one job's ranks, in us."""
    with tempfile.TemporaryDirectory() as folder:
        truth = draw_job.draw([f"{folder}/job", "--ranks", str(kind.ranks), "--seed", str(seed), "--fault", FAULTS[seed % 4],
                               "--steps", "4", "--offset-us", str(10 ** (1 + seed % 5)), "--leaving", "0.12",
                               "--transfer-us", str(50 * 3 ** (seed // 4 % 4)), "--second-bucket", str(kind.second_bucket)])
        out = subprocess.run([lanescope, "ranks", str(pathlib.Path(folder) / "job"), "--json"], check=True,
                             capture_output=True, text=True).stdout
    return [(abs(rank["clock"]["offset_ns"] / 1000 - truth["offsets_us"][rank["rank"]]), rank["clock"]["error_ns"] / 1000)
            for rank in json.loads(out)["ranks"][1:] if rank["clock"]["known"]]


def report(name: str, errors: List[Tuple[float, float]]) -> None:
    inside = sum(real <= printed for real, printed in errors)
    print(f"{name}: {inside} of {len(errors)} offsets within the printed error ({100 * inside / len(errors):.2f} %); "
          f"median error: real {statistics.median(real for real, _ in errors):.1f} us, "
          f"printed {statistics.median(printed for _, printed in errors):.1f} us; "
          f"median of printed / real: {statistics.median(printed / max(real, 0.1) for real, printed in errors):.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lanescope")
    parser.add_argument("--jobs", type=int, default=60, help="of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    args = parser.parse_args()
    everything: List[Tuple[float, float]] = []
    for kind in KINDS:
        errors = [each for seed in range(args.first_seed, args.first_seed + args.jobs) for each in measure(args.lanescope, kind, seed)]
        report(kind.name, errors)
        everything += errors
    report("all", everything)


if __name__ == "__main__":
    main()
