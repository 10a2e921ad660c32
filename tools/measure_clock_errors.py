#!/usr/bin/env python3
"""How honest the clock errors of `lanescope ranks` are: drawn jobs with known offsets.

    tools/measure_clock_errors.py build/release/src/lanescope/cli/lanescope --jobs 60
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import draw_job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lanescope")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--second-bucket", type=float, default=1.5, help="1: all collectives of a job are of one size")
    args = parser.parse_args()
    real, printed = [], []
    for seed in range(args.first_seed, args.first_seed + args.jobs):
        with tempfile.TemporaryDirectory() as folder:
            fault = ["none", "straggler-cpu", "rotating", "lost-records"][seed % 4]
            truth = draw_job.draw([f"{folder}/job", "--ranks", str(args.ranks), "--seed", str(seed), "--fault", fault, "--steps", "4",
                                   "--offset-us", str(10 ** (1 + seed % 5)), "--leaving", "0.12", "--transfer-us",
                                   str(50 * 3 ** (seed % 4)), "--second-bucket", str(args.second_bucket)])
            out = subprocess.run([args.lanescope, "ranks", str(pathlib.Path(folder) / "job"), "--json"], check=True,
                                 capture_output=True, text=True).stdout
            for rank in json.loads(out)["ranks"][1:]:
                if rank["clock"]["known"]:
                    real.append(abs(rank["clock"]["offset_ns"] / 1000 - truth["offsets_us"][rank["rank"]]))
                    printed.append(rank["clock"]["error_ns"] / 1000)
    inside = sum(a <= b for a, b in zip(real, printed))
    print(f"{len(real)} offsets of {args.jobs} jobs: {inside} within the printed error ({100 * inside / len(real):.2f} %)")
    print(f"median error: real {statistics.median(real):.1f} us, printed {statistics.median(printed):.1f} us")
    print(f"median of printed / real: {statistics.median(b / max(a, 0.1) for a, b in zip(real, printed)):.2f}")


if __name__ == "__main__":
    main()
