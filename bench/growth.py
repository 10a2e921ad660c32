#!/usr/bin/env python3
"""How time and memory grow with the trace, from 0.1 to 100 million slices: a table, and a picture with logarithmic axes.

    python3 bench/growth.py TRACE.json.gz [--slices 100000,1000000,10000000,100000000] [--svg growth.svg] [--folder /dev/shm]

Each size is made of TRACE by build/release/bench/long_trace, measured and deleted before the next: 100 million slices are 37 GB
of JSON, and 4 GB of index. One run each, so read it on a quiet machine:

  read      lanescope table of the text: the stage that makes the trace
  rows      the same run: the stage that makes the rows, so the table after loading
  explain   the whole command, for at most --explain-most slices
  index     lanescope index: reading the text and writing the index file
  again     lanescope table of a trace that has an index: the whole command, the second of two runs
  peak      resident memory of these commands
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

ROOT = Path(__file__).resolve().parent.parent
LINES = [("read s", "reading the text", "#1f77b4"), ("rows s", "table, after loading", "#2ca02c"),
         ("explain s", "explain, all of it", "#d62728"), ("again s", "table with an index, all of it", "#9467bd")]


def child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: List[str], folder: str, index: bool = False) -> Dict[str, Any]:
    """Seconds by the clock and of the processor, peak memory in MiB, and seconds of each stage."""
    profile = os.path.join(folder, "self.json")
    environment = {**os.environ, "XDG_CACHE_HOME": folder, "LANESCOPE_INDEX": "" if index else "off"}
    began, used = time.perf_counter(), child_seconds()
    process = subprocess.Popen([command[0], "--self-profile", profile, *command[1:]], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    found = {"wall": time.perf_counter() - began, "cpu": child_seconds() - used, "peak": usage.ru_maxrss / 1024}
    with open(profile, encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event.get("ph") == "X":
                found[event["name"]] = found.get(event["name"], 0) + event["dur"] / 1e6
    return found


def measure(slices: int, arguments: argparse.Namespace, folder: str) -> Dict[str, Any]:
    trace = os.path.join(folder, "trace.json")
    subprocess.run([arguments.long_trace, trace, arguments.trace, str(slices)], stdout=subprocess.DEVNULL, check=True)
    row: Dict[str, Any] = {"slices": slices, "GB": os.path.getsize(trace) / 1e9}
    table = run([arguments.lanescope, "table", trace], folder)
    row.update({"read s": table["read trace"], "read GB/s": row["GB"] / table["read trace"], "rows s": table["key averages"],
                "table s": table["wall"], "table CPU s": table["cpu"], "table MiB": table["peak"]})
    if slices <= arguments.explain_most:
        explain = run([arguments.lanescope, "explain", trace], folder)
        row.update({"explain s": explain["wall"], "explain CPU s": explain["cpu"], "explain MiB": explain["peak"]})
    row["index s"] = run([arguments.lanescope, "index", trace], folder, True)["wall"]
    again = [run([arguments.lanescope, "table", trace], folder, True) for _ in range(2)][-1]
    row.update({"again s": again["wall"], "again rows s": again["key averages"]})
    for file in Path(folder).rglob("*"):
        if file.is_file():
            file.unlink()
    return row


def slope(rows: List[Dict[str, Any]], key: str) -> Optional[float]:
    """Of log(time) over log(slices) between the second and the last size: 1 is linear."""
    points = [(math.log(row["slices"]), math.log(row[key])) for row in rows if key in row][1:]
    if len(points) < 2:
        return None
    return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


def picture(rows: List[Dict[str, Any]], title: str) -> str:
    """An SVG of the lines over slices; the grey lines are linear growth."""
    left, top, width, height = 70, 40, 560, 380
    shown = [row[key] for row in rows for key, _, _ in LINES if key in row]
    x_low, x_high = (math.log10(rows[i]["slices"]) for i in (0, -1))
    y_low, y_high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))

    def at(slices: float, seconds: float) -> str:
        x = left + (math.log10(slices) - x_low) / max(x_high - x_low, 1e-9) * width
        y = top + (y_high - math.log10(seconds)) / (y_high - y_low) * height
        return f"{x:.1f},{y:.1f}"

    text = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 480" font-family="sans-serif" font-size="13">',
            '<rect width="900" height="480" fill="white"/>', f'<text x="{left}" y="22" font-size="15">{title}</text>']
    for power in range(y_low, y_high + 1):
        x, y = at(rows[0]["slices"], 10**power).split(",")
        text.append(f'<path d="M{x} {y}h{width}" stroke="#ddd"/><text x="62" y="{float(y) + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
        if power + x_high - x_low <= y_high:
            text.append(f'<polyline points="{at(rows[0]["slices"], 10**power)} {at(rows[-1]["slices"], 10**(power + x_high - x_low))}"'
                        ' stroke="#bbb" stroke-dasharray="4 4" fill="none"/>')
    for row in rows:
        x, y = at(row["slices"], 10**y_low).split(",")
        text.append(f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle">{row["slices"] / 1e6:g} M</text>')
    text.append(f'<text x="{left + width / 2}" y="{top + height + 44}" text-anchor="middle">slices; dashed: twice the slices, twice the time</text>')
    for number, (key, name, color) in enumerate(LINES):
        points = [at(row["slices"], row[key]) for row in rows if key in row]
        if not points:
            continue
        text.append(f'<polyline points="{" ".join(points)}" stroke="{color}" stroke-width="2" fill="none"/>')
        text += [f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="3.5" fill="{color}"/>' for p in points]
        text.append(f'<path d="M650 {60 + 24 * number}h20" stroke="{color}" stroke-width="2"/><text x="676" y="{64 + 24 * number}">{name}</text>')
    return "\n".join(text + ["</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", help="JSON of torch.profiler, also .gz; its events are repeated")
    parser.add_argument("--slices", default="100000,300000,1000000,3000000,10000000,30000000,100000000")
    parser.add_argument("--explain-most", type=int, default=10_000_000, help="more slices are not explained (default: %(default)s)")
    parser.add_argument("--svg", help="where the picture goes")
    parser.add_argument("--folder", help="where the traces are made (default: the system's folder for temporary files)")
    parser.add_argument("--title", default="Time by the clock")
    parser.add_argument("--lanescope", default=os.environ.get("LANESCOPE_COMMAND", str(ROOT / "build/release/src/lanescope/cli/lanescope")))
    parser.add_argument("--long-trace", default=str(ROOT / "build/release/bench/long_trace"))
    arguments = parser.parse_args()
    rows: List[Dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for slices in (int(text) for text in arguments.slices.split(",")):
            rows.append(measure(slices, arguments, folder))
            print(json.dumps({key: round(value, 4) for key, value in rows[-1].items()}), flush=True)
            if arguments.svg:
                Path(arguments.svg).write_text(picture(rows, arguments.title), encoding="utf-8")
    print("| million slices | GB | read | GB/s | table, after loading | its peak | explain | its peak | table with an index |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        explain = f"{row['explain s']:.2f} s | {row['explain MiB']:,.0f} MiB" if "explain s" in row else "- | -"
        print(f"| {row['slices'] / 1e6:g} | {row['GB']:.3g} | {row['read s']:.3f} s | {row['read GB/s']:.2f} | {row['rows s']:.4f} s |"
              f" {row['table MiB']:,.0f} MiB | {explain} | {row['again s']:.3f} s |")
    for key, name, _ in LINES:
        exponent = slope(rows, key)
        if exponent is not None:
            print(f"{name}: exponent {exponent:.3f} from the second size on; 1 is linear")
    return 0


if __name__ == "__main__":
    sys.exit(main())
