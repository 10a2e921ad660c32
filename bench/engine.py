#!/usr/bin/env python3
"""What the engine promises, next to what it does, and next to its peers: one table for each trace, all in one run.

    python3 bench/engine.py TRACE.json[.gz]... [--times 1,10] [--rounds 5] [--folder /dev/shm] [--peers-most 1000]

The first trace should be one of torch.profiler without stacks. It is measured as often as --times says: itself, and itself as if the
program had run on (1,10,100 of h200/matmul_add_64_20000steps.json.gz are 66 MB, 660 MB and 6.6 GB; 6.6 GB take 8 GB in --folder).
All other traces are measured as they are. Peers read files up to --peers-most MB: Python's json, and those that read_peers.py finds
installed (Holistic Trace Analysis, TraceLens, Perfetto), those of more than 300 MB once. Each is compared with the command of lanescope that does about as
much: with `info`, or `explain` for TraceLens's report. Standard error names a peer that is not installed. A line says "met" or "missed" where there is a target; a target for one trace size is
not asked of another, and that of the memory not of a trace with Python stacks. The fixed part of the peak is that of a trace of ten events.
Numbers are medians of processes that alternate; a busy machine makes them worse.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional

import read_peers

ROOT = Path(__file__).resolve().parent.parent
LANESCOPE = os.environ.get("LANESCOPE_COMMAND", str(ROOT / "build/release/src/lanescope/cli/lanescope"))
READ_SPEED = os.environ.get("LANESCOPE_READ_SPEED", str(ROOT / "build/release/bench/read_speed"))


def row(what: str, value: str, target: str = "", met: Optional[bool] = None) -> None:
    print(f"  {what:52} {value:>22}   {target:28} {'' if met is None else 'met' if met else 'missed'}".rstrip(), flush=True)


def read_speed(file: Path, rounds: int) -> Dict[str, float]:
    """MB/s of JSON by the clock for each line of read_speed, and its last line."""
    done = subprocess.run([READ_SPEED, str(file), str(rounds)], stdout=subprocess.PIPE, text=True, check=True)
    found = {match[1]: float(match[2]) for match in
             re.finditer(r"^(\S.*?)\s{2,}[\d.]+\s+[\d.]+\s+[\d.]+\s+(\d+)\s+\d+$", done.stdout, re.MULTILINE)}
    first = re.search(r"([\d.]+) MB of JSON, (\d+) events, (\d+) slices", done.stdout)
    last = re.search(r"Trace: ([\d.]+) bytes an event .* after one read: ([\d.]+) MB", done.stdout)
    assert first and last, done.stdout
    found.update({"MB": float(first[1]), "events": float(first[2]), "slices": float(first[3]),
                  "bytes an event": float(last[1]), "peak MB": float(last[2])})
    return found


def frame_count(file: Path) -> int:
    os.environ["LANESCOPE_INDEX"] = "off"
    done = subprocess.run([LANESCOPE, "info", "--json", str(file)], stdout=subprocess.PIPE, text=True, check=True)
    return sum(row["slice_count"] for row in json.loads(done.stdout)["categories"] if row["category"] == "python_function")


def fixed_peak(file: Path) -> float:
    """MB at the peak of reading ten events: the program and its buffers, as far as they are touched."""
    small = file.with_name("ten_events.json")
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    small.write_text('{"traceEvents": [' + ", ".join([event] * 10) + "]}\n")
    return read_speed(small, 1)["peak MB"]


def reading(file: Path, packed: Optional[Path], rounds: int) -> Dict[str, float]:
    speed = read_speed(file, rounds)
    one, all_cores = speed["lanescope: file to Trace, 1 thread"], speed["lanescope: file to Trace, all cores"]
    copied, walk = speed["floor: read() and memcpy() of the bytes"], speed["peer: simdjson on-demand, ts and dur, keeps nothing"]
    row("file to Trace, one thread", f"{one:,.0f} MB/s", "1,000 (hoped for: 1,500)", one >= 1000)
    row("file to Trace, all cores", f"{all_cores:,.0f} MB/s", "1,600 (hoped for: 2,200)", all_cores >= 1600)
    row("floor: read() and memcpy() of the bytes", f"{copied:,.0f} MB/s")
    row("peer: a simdjson walk that keeps nothing", f"{walk:,.0f} MB/s")
    row("one thread takes, times the two before", f"{copied / one:.1f} and {walk / one:.1f}")
    if packed:
        name = "lanescope: packed file to Trace, all cores"
        share = read_speed(packed, rounds)[name] / all_cores
        row("the same as .json.gz, of that on all cores", f"{share:.0%}", "80 %", share >= 0.8)
    memory, frames = speed["bytes an event"], frame_count(file)
    if frames == 0:
        row("memory of the Trace", f"{memory:.1f} bytes an event", "40", memory <= 40)
    else:
        row(f"memory of the Trace ({frames / speed['events']:.0%} Python frames)", f"{memory:.1f} bytes an event", "40 without stacks")
    fixed = fixed_peak(file)
    peak = (speed["peak MB"] - fixed) * 1e6 / speed["events"]
    row(f"peak memory of reading, beyond {fixed:.1f} MB", f"{peak:.1f} bytes an event", "80, and fixed buffers", peak <= 80)
    return speed


def timed(command: List[str], rounds: int, index: str = "off") -> Optional[List[float]]:
    """Median seconds and the highest peak in MiB; None where a run fails."""
    os.environ["LANESCOPE_INDEX"] = index
    runs = [read_peers.timed(command) for _ in range(rounds)]
    if any(run is None for run in runs):
        return None
    return [statistics.median(run[0] for run in runs if run), max(run[1] for run in runs if run)]


def commands(file: Path, slices: float, rounds: int) -> Dict[str, float]:
    seconds = {}
    for name in ("info", "table", "explain"):
        found = timed([LANESCOPE, name, str(file)], rounds)
        if found is None:
            sys.exit(f"{LANESCOPE} {name} failed; expected the release build, or LANESCOPE_COMMAND")
        seconds[name] = found[0]
        row(f"lanescope {name}, the whole process", f"{found[0]:.2f} s, {found[1]:,.0f} MiB")
    row(f"explain beyond loading {slices:,.0f} slices", f"{seconds['explain'] - seconds['info']:.2f} s")
    subprocess.run([LANESCOPE, "index", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    again = timed([LANESCOPE, "info", str(file)], max(rounds, 5), index="")
    if again:
        row("lanescope info once more, with an index", f"{again[0] * 1e3:.0f} ms", "50 ms", again[0] <= 0.05)
    return seconds


def peers(file: Path, seconds: Dict[str, float], rounds: int) -> None:
    for peer in read_peers.peers(str(file)):
        found = timed(peer.command, rounds if file.stat().st_size < 3e8 else 1) if peer.command else None
        row(f"peer: {peer.name}", f"{found[0]:.2f} s, {found[1]:,.0f} MiB" if found else "it failed" if peer.command else "not installed",
            f"{found[0] / seconds[peer.against]:.1f} times lanescope {peer.against}" if found else "")


def plain_copy(trace: Path, folder: Path) -> Path:
    plain = folder / trace.name.removesuffix(".gz")
    with (gzip.open if trace.suffix == ".gz" else open)(trace, "rb") as source, open(plain, "wb") as target:
        shutil.copyfileobj(source, target)
    return plain


def measure(title: str, file: Path, arguments: argparse.Namespace) -> None:
    megabytes = file.stat().st_size / 1e6
    rounds = arguments.rounds if megabytes < 2000 else 1
    print(f"\n{title}: {megabytes:,.1f} MB of JSON", flush=True)
    row("", "measured", "target")
    packed = None
    if megabytes <= 1000:
        packed = file.with_name(file.name + ".gz")
        with open(file, "rb") as source, gzip.open(packed, "wb", 6) as target:
            shutil.copyfileobj(source, target)
    speed = reading(file, packed, rounds)
    seconds = commands(file, speed["slices"], rounds)
    if megabytes <= arguments.peers_most:
        peers(file, seconds, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--times", default="1,10", help="how often the first trace is repeated (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where files are made (default: the system's folder for temporary files)")
    parser.add_argument("--peers-most", type=float, default=1000, help="MB of the largest file that peers read (default: %(default)s)")
    arguments = parser.parse_args()
    if not os.access(READ_SPEED, os.X_OK):
        sys.exit(f"expected {READ_SPEED}: cmake --build --preset release --target benchmarks")
    read_peers.warn_of_missing(read_peers.peers(str(arguments.traces[0])))
    for number, trace in enumerate(arguments.traces):
        for times in arguments.times.split(",") if number == 0 else ["1"]:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as made:
                folder = Path(made)
                os.environ["XDG_CACHE_HOME"] = made
                file = folder / f"{times}_times.json"
                if times == "1":
                    file = plain_copy(trace, folder)
                else:
                    subprocess.run([sys.executable, str(ROOT / "tools/make_bench_trace.py"), str(file), "--of", str(trace),
                                    "--copies", times], stdout=subprocess.DEVNULL, check=True)
                measure(trace.name if times == "1" else f"{trace.name}, {times} times", file, arguments)


if __name__ == "__main__":
    main()
