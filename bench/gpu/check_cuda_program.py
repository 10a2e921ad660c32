#!/usr/bin/env python3
"""Records examples/02_cuda_program with `lanescope record` and counts what is in the trace.

    python3 bench/gpu/check_cuda_program.py build/release/examples/02_cuda_program/cuda_program --iterations 20 --out results/cuda_program

N iterations are 5 N kernels (3 N by a graph), N + 1 copies and N memsets; each has the call that launched it. Exit code 1
when a count differs or the program or the recording fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--lanescope", default=shutil.which("lanescope") or "lanescope", help="the command")
    parser.add_argument("--out", default="gpu_bench/cuda_program", help="folder of the results (default: %(default)s)")
    arguments = parser.parse_args()
    import lanescope
    import numpy

    folder = os.path.join(arguments.out, "recording")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    done = subprocess.run([arguments.lanescope, "record", "-o", folder, "--", os.path.abspath(arguments.program),
                           str(arguments.iterations)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout.strip())
    said = re.search(r"(\d+) kernels, (\d+) of them by a graph, (\d+) copies, (\d+) memsets", done.stdout)
    if done.returncode != 0 or said is None:
        print(f"FAILED: lanescope record ended with {done.returncode}")
        return 1
    n = arguments.iterations
    expected = {"kernel": int(said[1]), "gpu_memcpy": int(said[3]), "gpu_memset": int(said[4]), "cudaGraphLaunch": n}
    files = sorted(name for name in os.listdir(folder) if name.endswith((".json", ".json.gz", ".lspool")))
    if not files:
        print("FAILED: nothing was recorded")
        return 1
    trace = lanescope.read_trace(os.path.join(folder, files[0]))
    categories = numpy.array(trace.categories, dtype=object)[trace.category_id]
    names = numpy.array(trace.names, dtype=object)[trace.name_id]
    found = {cat: int((categories == cat).sum()) for cat in ("kernel", "gpu_memcpy", "gpu_memset")}
    found["cudaGraphLaunch"] = int(sum(name.startswith("cudaGraphLaunch") for name in names))
    calls = set(trace.correlation[numpy.isin(categories, ("cuda_runtime", "cuda_driver"))].tolist())
    device = trace.correlation[numpy.isin(categories, ("kernel", "gpu_memcpy", "gpu_memset"))].tolist()
    found["without a call"] = sum(correlation not in calls for correlation in device)
    expected["without a call"] = 0
    with open(os.path.join(arguments.out, "cuda_program.json"), "w", encoding="utf-8") as file:
        json.dump({"iterations": n, "expected": expected, "found": found, "file": files[0]}, file, indent=1)
    for what, count in expected.items():
        print(f"{what:<18}expected {count:>8}  found {found[what]:>8}  {'equal' if found[what] == count else 'DIFFERENT'}")
    print("passed" if found == expected else "FAILED")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
