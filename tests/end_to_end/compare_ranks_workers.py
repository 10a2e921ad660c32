#!/usr/bin/env python3
"""One job, read by threads, by MPI processes and in parts: the same bytes, and no finding of a sanitizer.

    tests/end_to_end/compare_ranks_workers.py --lanescope build/asan/.../lanescope --mpi build/asan/.../lanescope-mpi

Run by ctest in every build, so also under AddressSanitizer and UndefinedBehaviorSanitizer; test_ranks_mpi.py has more cases.
Exit code 77: there is no mpirun.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
import draw_job  # noqa: E402

# Open MPI itself leaves memory behind at its end.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""),
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def answer(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=240)
    if ran.returncode != 0 or "runtime error" in ran.stderr or "Sanitizer" in ran.stderr:
        sys.exit(f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stderr[-4000:]}")
    return ran.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanescope", required=True)
    parser.add_argument("--mpi", required=True)
    args = parser.parse_args()
    if not shutil.which("mpirun"):
        print("needs mpirun: apt-get install openmpi-bin")
        sys.exit(77)
    mpirun = ["mpirun", "--oversubscribe", "-n", "3", args.mpi, "ranks"]
    with tempfile.TemporaryDirectory() as folder:
        draw_job.draw([f"{folder}/job", "--ranks", "5", "--fault", "mismatch", "--offset-us", "40000", "--drift-ppm", "20"])
        pathlib.Path(folder, "job", "rank9.json").write_text("this is no trace\n")
        for job in (f"{folder}/job", str(SOURCE / "tests/data/ddp4/straggler")):
            expected = answer(args.lanescope, "ranks", job, "--json", "-j", "1")
            parts = [f"{folder}/part{i}.lsranks" for i in range(2)]
            for i, part in enumerate(parts):
                answer(args.lanescope, "ranks", job, "--shard", f"{i}/2", "-o", part, "--force")
            for command in ([args.lanescope, "ranks", job, "--json", "-j", "3"], [*mpirun, job, "--json"],
                            [*mpirun, *parts, "--json"]):
                if answer(*command) != expected:
                    sys.exit(f"{' '.join(command)}: other bytes than with one thread")
    print("ok")


if __name__ == "__main__":
    main()
