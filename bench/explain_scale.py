#!/usr/bin/env python3
"""Does the time of `lanescope explain` grow with the trace, or faster?

    python3 bench/explain_scale.py trace.json.gz [--sizes 60,125,250,500,1000] [--runs 5]
    python3 bench/explain_scale.py trace.json.gz --ask "whatif --change 'cpu 2x'"      the same for another command

Makes longer traces out of a real one, as if the program had run on: all steps again and again, with times, step numbers,
correlation ids and the other ids shifted. Each is timed and deleted before the next is made. `lanescope info`, which loads
and counts the same file, runs in alternation with explain. What explain takes beyond info is the median of the differences
within pairs. The exponent is the slope of log(time) over log(size): 1 is linear. The last line says
whether the exponent of explain stayed below --most-exponent, and where --most-beyond is given, explain's time beyond loading
the smallest trace; the exit code says the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, Iterator, List, Tuple

# Numbers that are unique in a trace: a copy gets new ones.
ID_ARGS = ("External id", "correlation", "Ev Idx", "Sequence number", "Python id", "Python parent id", "Record function id",
           "wait_on_cuda_event_record_corr_id")
STEP = re.compile(r"^(ProfilerStep#)(\d+)$")
HOLE = "\x00"  # no JSON text holds it


class Repeated:
    """The events of a trace as text with holes for the numbers that change from copy to copy."""

    def __init__(self, path: str) -> None:
        data = open(path, "rb").read()
        document: Dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data,
                                              parse_float=lambda text: HOLE + text)  # nanoseconds survive as text
        events = document.pop("traceEvents")
        self.once = [e for e in events if e.get("ph") == "M" or e.get("cat") == "Trace" or e.get("s") == "g"]
        again = [e for e in events if not (e.get("ph") == "M" or e.get("cat") == "Trace" or e.get("s") == "g")]
        document.pop("traceName", None)
        self.head = json.dumps(document).replace("\\u0000", "")
        self.head = re.sub(r'"(-?\d+\.\d+(?:[eE][-+]?\d+)?)"', r"\1", self.head)
        starts, ends, steps, ids = [], [], [], [0]
        self.literals: List[str] = []
        self.numbers: List[Tuple[str, int]] = []
        for event in again:
            start = self.ns(event["ts"])
            starts.append(start)
            ends.append(start + self.ns(event.get("dur", 0)))
            match = STEP.match(str(event.get("name", "")))
            if match:
                steps.append(int(match[2]))
            args = event.get("args") or {}
            ids += [args[key] for key in ID_ARGS if isinstance(args.get(key), int)]
            ids += [event["id"]] if isinstance(event.get("id"), int) else []
            self.add(event, start, match)
        self.events = len(again)
        self.span_ns = (max(ends) - min(starts)) // 1000 * 1000 + 10_000
        self.steps = max(steps) - min(steps) + 1 if steps else 0
        self.ids = max(ids) + 1

    @staticmethod
    def ns(value: Any) -> int:
        if isinstance(value, int):
            return value * 1000
        whole, _, rest = value[len(HOLE):].partition(".")
        return int(whole) * 1000 + int((rest + "000")[:3])

    def add(self, event: Dict[str, Any], start: int, step: Any) -> None:
        """Text with a hole for each number that moves; the numbers in the order of the holes."""
        holes: List[Tuple[str, int]] = []

        def hole(kind: str, value: int) -> str:
            holes.append((kind, value))
            return f"{HOLE}{HOLE}{len(holes) - 1}{HOLE}{HOLE}"

        moved = {**event, "ts": hole("ts", start)}
        if step:
            moved["name"] = step[1] + hole("step", int(step[2]))
        if isinstance(event.get("id"), int):
            moved["id"] = hole("id", event["id"])
        if event.get("args"):
            # 0 and -1 mean "none" in these fields.
            moved["args"] = {key: hole("id", value) if key in ID_ARGS and isinstance(value, int) and value > 0 else value
                             for key, value in event["args"].items()}
        text = json.dumps(moved)
        mark = "\\u0000\\u0000"
        text = re.sub(r'"' + re.escape(mark) + r"(\d+)" + re.escape(mark) + r'"', HOLE + r"\1" + HOLE, text)  # a whole value
        text = re.sub(re.escape(mark) + r"(\d+)" + re.escape(mark), HOLE + r"\1" + HOLE, text)  # inside a name
        text = re.sub(r'"\\u0000(-?[\d.eE+-]+)"', r"\1", text)  # the other fractions
        parts = text.split(HOLE)
        for literal, index in zip(parts[0::2], parts[1::2]):
            self.literals.append(literal)
            self.numbers.append(holes[int(index)])
        self.literals.append(parts[-1] + ",\n")
        self.numbers.append(("end", 0))

    def copy(self, k: int) -> Iterator[str]:
        shift = {"ts": k * self.span_ns, "step": k * self.steps, "id": k * self.ids}
        for literal, (kind, value) in zip(self.literals, self.numbers):
            yield literal
            if kind == "ts":
                at = value + shift["ts"]
                yield f"{at // 1000}.{at % 1000:03d}"
            elif kind != "end":
                yield str(value + shift[kind])

    def write(self, path: str, least_bytes: int) -> Tuple[int, int]:
        """Bytes and copies written: the first number of copies that reaches the size, at least one."""
        with open(path, "w", encoding="utf-8", buffering=1 << 20) as file:
            file.write(self.head[:-1] + ', "traceEvents": [\n')
            copies = 0
            while copies == 0 or file.tell() + (file.tell() // copies) // 2 < least_bytes:
                file.write("".join(self.copy(copies)))
                copies += 1
            tail = [re.sub(r'"\\u0000(-?[\d.eE+-]+)"', r"\1", json.dumps(e)) for e in self.once if e.get("ph") == "M"]
            file.write(",\n".join(tail) if tail else '{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "-"}}')
            file.write("\n]}\n")
        return os.path.getsize(path), copies


def timed(command: List[str]) -> float:
    """Seconds of one run."""
    began = time.perf_counter()
    if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - began


def slope(points: List[Tuple[float, float]]) -> float:
    """Of log y over log x, least squares."""
    logs = [(math.log(x), math.log(max(y, 1e-6))) for x, y in points]
    mean_x, mean_y = (statistics.fmean(axis) for axis in zip(*logs))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else float("nan")


def find_command() -> str:
    next_to_python = os.path.join(os.path.dirname(sys.executable), "lanescope")
    found = os.environ.get("LANESCOPE_COMMAND") or (next_to_python if os.path.exists(next_to_python) else shutil.which("lanescope"))
    if not found:
        raise SystemExit("no lanescope command on PATH (pip install, or name it in LANESCOPE_COMMAND)")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", help="JSON of torch.profiler or lanescope, also .gz")
    parser.add_argument("--sizes", default="60,125,250,500,1000", help="MB of the traces to make (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="pairs of runs for each size (default: %(default)s)")
    parser.add_argument("--folder", help="where the traces are made (default: the system's folder for temporary files)")
    parser.add_argument("--most-exponent", type=float, default=1.15, help="what still counts as linear (default: %(default)s)")
    parser.add_argument("--most-beyond", type=float, help="seconds that explain may take beyond loading the smallest trace")
    parser.add_argument("--ask", default="explain", help="the command and its options that are timed (default: %(default)s)")
    arguments = parser.parse_args()
    command = find_command()
    asked, *options = shlex.split(arguments.ask)
    base = Repeated(arguments.trace)
    print(f"{os.path.basename(arguments.trace)}: {base.events:,} events, {base.steps or 'no'} marked steps; "
          f"medians of {arguments.runs} pairs")
    print(f"{'MB':>8}{'events':>12}{'copies':>8}{'load s':>10}{asked + ' s':>11}{'beyond s':>10}{'us/event':>10}")
    rows = []
    for wanted in (float(size) for size in arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = os.path.join(folder, "trace.json")
            size, copies = base.write(path, int(wanted * 1e6))
            os.sync()  # what is still to be written would be timed with the first runs
            pairs = []
            for turn in range(arguments.runs):
                order = ["info", asked] if turn % 2 == 0 else [asked, "info"]
                pairs.append({name: timed([command, name, path, *(options if name == asked else [])]) for name in order})
        load, full = (statistics.median(pair[name] for pair in pairs) for name in ("info", asked))
        beyond = statistics.median(pair[asked] - pair["info"] for pair in pairs)
        events = base.events * copies
        rows.append((size / 1e6, load, full, beyond))
        print(f"{size / 1e6:>8.1f}{events:>12,}{copies:>8}{load:>10.3f}{full:>11.3f}{beyond:>10.3f}"
              f"{beyond / events * 1e6:>10.3f}", flush=True)
    exponents = [slope([(row[0], row[column]) for row in rows]) for column in (1, 2, 3)]
    print("exponent of load {:.3f}, of {asked} {:.3f}, of {asked} beyond load {:.3f}".format(*exponents, asked=asked))
    good = len(rows) < 2 or max(exponents[1:]) <= arguments.most_exponent
    if arguments.most_beyond is not None:
        good = good and rows[0][3] <= arguments.most_beyond
    print("kept" if good else "NOT KEPT")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
