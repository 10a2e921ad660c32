#!/usr/bin/env python3
"""Kills recorded programs with SIGKILL at random moments and reads what they left.

    python3 bench/gpu/kill9.py --device cuda --rounds 10 --out results/kill9

Rounds alternate between `lanescope record --keep-spool -- python3 programs.py ...` and lanescope.profile(output_dir=...)
inside the program. For each spool: lanescope.read_trace and `lanescope info` open it, every closed chunk is
intact and the events of all of them are read (chunks are counted here, from the bytes, as
docs/formats/spool.md describes them), and the newest event ended at most --margin-ms before the kill; the newest work of
the GPU at most --flush-ms + --margin-ms before it. Exit code 1 when any round fails.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER_BYTES, CHUNK_BYTES, CHUNK_HEADER_BYTES, RECORD_BYTES = 4096, 128 * 1024, 128, 48
SMALL_CHUNK_BYTES = 1024  # of threads that have recorded little; they lie in a SHARED chunk, from its second place on
RECORDS, ACTIVITIES, SHARED = 1, 5, 7
RANGE = 1
DEVICE_WORK = (33, 34, 35)  # kernel, copy, memset
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
IN_PROCESS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import lanescope, programs
name, device, small, folder = sys.argv[2], sys.argv[3], sys.argv[4] == "small", sys.argv[5]
program = programs.make(name, device, small)
kinds = lanescope.ProfilerActivity
with lanescope.profile(activities=[kinds.CPU, kinds.CUDA] if device == "cuda" else [kinds.CPU], output_dir=folder):
    print("running", flush=True)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        program.step()
"""


def chunks_of(path: pathlib.Path) -> Iterator[bytes]:
    """Each chunk, of shared ones the small chunks in them."""
    with open(path, "rb") as file:
        file.seek(HEADER_BYTES)
        while len(chunk := file.read(CHUNK_BYTES)) >= CHUNK_HEADER_BYTES:
            if struct.unpack_from("<I", chunk, 16)[0] != SHARED:
                yield chunk
                continue
            for at in range(SMALL_CHUNK_BYTES, len(chunk), SMALL_CHUNK_BYTES):
                yield chunk[at : at + SMALL_CHUNK_BYTES]


def count_chunks(path: pathlib.Path) -> Dict[str, int]:
    """Chunks by state, from the bytes: closed ones with a right and a wrong checksum, open ones, records in closed ones."""
    found = {"closed": 0, "wrong_checksum": 0, "open": 0, "ranges_in_closed": 0, "device_in_closed": 0}
    for chunk in chunks_of(path):
        magic, _, _, kind, _, _, _, used, state, checksum = struct.unpack_from("<IIQIIIIIII", chunk)
        if magic != 0x4B43534C or kind == 0:
            continue
        if state != 1:
            found["open"] += 1
            continue
        found["closed"] += 1
        unit = {2: 1, 3: 128}.get(kind, RECORD_BYTES)
        payload = chunk[CHUNK_HEADER_BYTES:CHUNK_HEADER_BYTES + used * unit]
        crc = zlib.crc32(payload, zlib.crc32(struct.pack("<I", used), zlib.crc32(chunk[:32])))
        found["wrong_checksum"] += crc != checksum
        kinds = payload[20::RECORD_BYTES]
        if kind == RECORDS:
            found["ranges_in_closed"] += kinds.count(RANGE)
        elif kind == ACTIVITIES:
            found["device_in_closed"] += sum(kinds.count(work) for work in DEVICE_WORK)
    return found


def start(arguments: argparse.Namespace, round_: int, folder: pathlib.Path) -> "subprocess.Popen[bytes]":
    by_command = round_ % 2 == 0
    if by_command:
        command = [arguments.lanescope, "record", "--keep-spool", "-o", str(folder), "--", sys.executable,
                   os.path.join(HERE, "programs.py"), arguments.program, "--device", arguments.device, "--seconds", "90"]
        command += ["--small"] if arguments.small else []
    else:
        command = [sys.executable, "-c", IN_PROCESS, HERE, arguments.program, arguments.device,
                   "small" if arguments.small else "full", str(folder)]
    with open(folder / "program.log", "wb") as log:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, start_new_session=True)


def kill(arguments: argparse.Namespace, round_: int, folder: pathlib.Path, pause: float) -> Tuple[int, str]:
    """(CLOCK_REALTIME ns just before the kill, why not). The wait is for the program's line "running"."""
    process = start(arguments, round_, folder)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if line.strip() != b"running":
            process.kill()
            return 0, f"the program did not start: {line.decode(errors='replace')!r}, see {folder / 'program.log'}"
        time.sleep(pause)
        if process.poll() is not None:
            return 0, f"the program ended by itself with {process.returncode}"
        before = time.time_ns()
        os.killpg(process.pid, signal.SIGKILL)  # the session that this call started: the program and its children
        return before, ""
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stdout.close()


def look(arguments: argparse.Namespace, folder: pathlib.Path, killed_ns: int) -> Dict[str, Any]:
    """What the spool tells, and a list of what is wrong with it."""
    import lanescope
    import numpy

    spools = sorted(folder.glob("*.lspool"))
    if len(spools) != 1:
        return {"problems": [f"expected one spool, found {len(spools)}"]}
    chunks = count_chunks(spools[0])
    trace = lanescope.read_trace(spools[0])
    info = subprocess.run([arguments.lanescope, "info", "--json", str(spools[0])], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    categories = numpy.array(trace.categories, dtype=object)[trace.category_id]
    ends = trace.start_ns + trace.dur_ns
    recorded = numpy.isin(categories, ("cpu_op", "user_annotation"))
    device = numpy.isin(categories, DEVICE_CATEGORIES)

    def age_ms(rows: Any) -> Optional[float]:
        # A range that was open at the kill ends with the recording's last moment; its start is what was surely recorded.
        return (killed_ns - int(trace.base_time_ns) - int(rows.max())) / 1e6 if len(rows) else None

    result: Dict[str, Any] = {
        **chunks, "file_bytes": spools[0].stat().st_size, "events": len(trace), "cpu_events": int(recorded.sum()),
        "device_events": int(device.sum()), "newest_cpu_age_ms": age_ms(trace.start_ns[recorded]),
        "newest_device_age_ms": age_ms(ends[device]), "info_code": info.returncode,
        "issues": {issue["name"]: issue["count"] for issue in trace.import_stats},
    }
    problems = []
    if info.returncode != 0:
        problems.append(f"lanescope info ended with {info.returncode}: {info.stderr.decode(errors='replace').strip()[:200]}")
    elif json.loads(info.stdout)["slice_count"] != len(trace):
        problems.append("lanescope info and read_trace do not count the same events")
    if chunks["wrong_checksum"]:
        problems.append(f"{chunks['wrong_checksum']} closed chunks have a wrong checksum")
    if result["cpu_events"] < chunks["ranges_in_closed"] or not result["cpu_events"]:
        problems.append(f"{chunks['ranges_in_closed']} ranges in closed chunks, {result['cpu_events']} read")
    if result["device_events"] < chunks["device_in_closed"]:
        problems.append(f"{chunks['device_in_closed']} pieces of GPU work in closed chunks, {result['device_events']} read")
    first = trace.start_ns[recorded]
    recorded_ms = (killed_ns - int(trace.base_time_ns) - int(first.min())) / 1e6 if len(first) else 0.0
    limits = {"cpu": arguments.margin_ms}
    if arguments.device == "cuda":
        limits["device"] = arguments.flush_ms + arguments.margin_ms
    for what, limit in limits.items():
        age = result[f"newest_{what}_age_ms"]
        if age is None and what == "device" and recorded_ms < limit:
            continue  # killed before CUPTI's buffers were asked for the first time
        if age is None or age > limit or age < -arguments.margin_ms:
            problems.append(f"the newest {what} event is {'missing' if age is None else f'{age:.1f} ms'} old at the kill, "
                            f"allowed {limit:g} ms")
    return {**result, "problems": problems}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--program", default="mlp_train", help="of programs.py (default: %(default)s)")
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--small", action="store_true", help="sizes for a quick run on a CPU")
    add("--rounds", type=int, default=10)
    add("--least-s", type=float, default=0.2, help="earliest kill, seconds after the program runs (default: %(default)s)")
    add("--most-s", type=float, default=4.0, help="latest kill (default: %(default)s)")
    add("--flush-ms", type=float, default=500, help="how often the recorder asks the GPU's buffers (default: %(default)s)")
    add("--margin-ms", type=float, default=250, help="on top, for a busy machine (default: %(default)s)")
    add("--seed", type=int, help="of the moments (default: another one each time; it is printed)")
    add("--lanescope", default=shutil.which("lanescope") or "lanescope", help="the command (default: the one on PATH)")
    add("--keep", action="store_true", help="keep the spools of rounds that passed, too")
    add("--out", default="gpu_bench/kill9", help="folder of the results (default: %(default)s)")
    return parser.parse_args()


def print_row(row: Dict[str, Any]) -> None:
    ages = [row.get(f"newest_{what}_age_ms") for what in ("cpu", "device")]
    cells = [f"{'-' if age is None else f'{age:.1f}':>9}" for age in ages]
    print(f"{row['round']:<7}{row['way']:<9}{row['pause_s']:>8.2f}{row.get('closed', '-'):>8}{row.get('open', '-'):>6}"
          f"{row.get('cpu_events', '-'):>12}{cells[0]}{row.get('device_events', '-'):>12}{cells[1]}  "
          f"{'; '.join(row['problems']) or 'none'}", flush=True)


def main() -> int:
    arguments = parse()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    moments = random.Random(seed)
    rows: List[Dict[str, Any]] = []
    print(f"kill -9 of {arguments.program} on {arguments.device}, seed {seed}; ages: newest event at the kill, in ms")
    print(f"{'round':<7}{'way':<9}{'after s':>8}{'closed':>8}{'open':>6}{'CPU events':>12}{'age':>9}{'GPU events':>12}"
          f"{'age':>9}  problems")
    for round_ in range(arguments.rounds):
        folder = pathlib.Path(arguments.out).absolute() / f"round{round_}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pause = moments.uniform(arguments.least_s, arguments.most_s)
        killed_ns, why_not = kill(arguments, round_, folder, pause)
        row: Dict[str, Any] = {"round": round_, "way": "record" if round_ % 2 == 0 else "profile", "pause_s": pause}
        try:
            row.update({"problems": [why_not]} if why_not else look(arguments, folder, killed_ns))
        except Exception as error:  # a spool that cannot be read is the finding
            row["problems"] = [f"{type(error).__name__}: {error}"]
        rows.append(row)
        if not row["problems"] and not arguments.keep:
            shutil.rmtree(folder)
        with open(os.path.join(arguments.out, "kill9.json"), "w", encoding="utf-8") as file:
            json.dump({"device": arguments.device, "seed": seed, "rounds": rows}, file, indent=1)
        print_row(row)
    good = sum(not row["problems"] for row in rows)
    print(f"{good} of {len(rows)} rounds passed")
    return 0 if rows and good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
