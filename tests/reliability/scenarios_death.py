"""Programs that are killed, stopped, split or replaced while they record."""

from __future__ import annotations

import os
import random
import signal
import time

from harness import Guest, Skip, check_counts, folder, has_module, lanescope, need_torch, only, promise, read, run

FOREVER = "prof = profile()\nprof.start()\nfor thread in on_threads(): pass\nready()\n"


def kill_9(options):
    """kill -9 at a random moment: each range counted before it is in the recording, none is invented"""
    counted = found_all = dropped = 0
    for number in range(options.rounds):
        with folder() as out:
            guest = Guest(FOREVER, out)
            guest.wait_ready()
            time.sleep(random.Random(options.seed + number).uniform(0.0, 0.4))
            guest.kill()
            ended = guest.wait()
            promise(ended.code == -signal.SIGKILL, f"ended with {ended.code}")
            found = read(only(out))
            check_counts(found, ended.counted, running=3)
            counted, found_all, dropped = counted + sum(ended.counted), found_all + found.of(r"t\d.*"), dropped + found.dropped
            if number == 0:
                lanescope("recover", out)
                converted = read(only(out, "*.json"))
                promise(converted.dropped == found.dropped, "the trace counts other drops than the recording")
                check_counts(converted, ended.counted, running=3)
    promise(counted > 100 * options.rounds, f"only {counted} ranges were made: the scenario shows nothing")
    return options.rounds, f"counted {counted:,}, found {found_all:,}, dropped {dropped:,}"


def kill_9_record(options):
    """kill -9 under `lanescope record`: each torch operator counted before it is in the recording"""
    need_torch()
    rounds = max(1, options.rounds // 10)
    counted = found_all = 0
    for number in range(rounds):
        with folder() as out:
            guest = Guest("import torch\nready()\noperators(None)", out, record=[])
            guest.wait_ready()
            time.sleep(random.Random(options.seed + number).uniform(0.05, 0.5))
            guest.kill()
            done = guest.wait().counted[0]
            found = read(only(out))
            there = found.of("aten::neg_")
            promise(done <= there + found.dropped <= done + 1, f"{done} counted, {there} found, {found.dropped} dropped")
            counted, found_all = counted + done, found_all + there
    return rounds, f"counted {counted:,}, found {found_all:,}"


def kill_9_torch_profiler(options):
    """peer: kill -9 under torch.profiler, which exports after stop()"""
    need_torch()
    rounds = max(1, options.rounds // 10)
    counted = files = 0
    code = """
import torch
prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                              on_trace_ready=torch.profiler.tensorboard_trace_handler(os.environ["RELIABILITY_OUT"]))
prof.start()
ready()
operators(None)
"""
    for number in range(rounds):
        with folder() as out:
            guest = Guest(code, out)
            guest.wait_ready()
            time.sleep(random.Random(options.seed + number).uniform(0.05, 0.5))
            guest.kill()
            counted += guest.wait().counted[0]
            files += len(list(out.iterdir()))
    return rounds, f"counted {counted:,}, files left {files}"


def stop_and_continue(_options):
    """SIGSTOP and SIGCONT, five times: nothing is lost, and no range ends before it begins"""
    with folder() as out:
        guest = Guest("prof = profile()\nprof.start()\nthreads = on_threads(60_000)\nready()\n"
                      "for thread in threads: thread.join()\nprof.stop()\ndropped(prof)", out)
        guest.wait_ready()
        for _ in range(5):
            time.sleep(0.02)
            guest.kill(signal.SIGSTOP)
            time.sleep(0.1)
            guest.kill(signal.SIGCONT)
        ended = guest.wait()
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        check_counts(found, ended.counted)
        promise(found.dropped == ended.number("dropped"), "the file counts other drops than the recorder")
        promise(all(total >= 0 for total in found.total_ns.values()), "a range has a negative duration")
    return 1, f"counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}"


def fork(_options):
    """fork while threads record: the child records nothing into the file, both end with 0, the parent loses nothing"""
    code = """
prof = profile()
prof.start()
threads = on_threads(20_000)
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        from lanescope import record_function
        for _ in range(1000):
            with record_function("child"): pass
        os._exit(0)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
for thread in threads: thread.join()
prof.stop()
dropped(prof)
print("children", max(codes))
"""
    with folder() as out:
        ended = run(code, out)
        promise(ended.code == 0 and ended.number("children") == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        promise("child" not in found.calls, "ranges of a child are in the parent's recording")
        check_counts(found, ended.counted)
    return 1, f"5 children; counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}"


def replaced(_options):
    """exec of another program: it runs and ends with its own code; what was recorded before is in the file"""
    code = """
prof = profile()
prof.start()
ranges(0, 5000)
os.execv(sys.executable, [sys.executable, "-c", "import sys; print('after exec', flush=True); sys.exit(3)"])
"""
    with folder() as out:
        ended = run(code, out)
        promise(ended.code == 3 and "after exec" in ended.out, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        check_counts(found, ended.counted)
    return 1, f"counted {sum(ended.counted):,}, found {found.of(r't.*'):,}, dropped {found.dropped:,}"


def threads_500(_options):
    """500 threads leave a barrier and record one range each: none is lost"""
    code = """
from lanescope import record_function
prof = profile()
prof.start()
barrier = threading.Barrier(500)
def one():
    barrier.wait()
    with record_function("t0"): pass
threads = [threading.Thread(target=one) for _ in range(500)]
for thread in threads: thread.start()
for thread in threads: thread.join()
prof.stop()
dropped(prof)
"""
    with folder() as out:
        ended = run(code, out)
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        found = read(only(out))
        promise(found.of("t0") == 500 and found.dropped == 0, f"{found.of('t0')} of 500 found, {found.dropped} dropped")
    return 1, "counted 500, found 500, dropped 0"


def clock_steps(_options):
    """the wall clock jumps an hour forward and two back: nothing is lost, durations do not jump"""
    wrapper = "/usr/bin/faketime"
    libraries = [f"/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1" for machine in ("x86_64", "aarch64")]
    library = next((path for path in libraries if os.path.exists(path)), None)
    if library is None or not os.path.exists(wrapper):
        raise Skip("needs faketime (apt-get install faketime)")
    code = """
import select, time  # sleep() of Python fails when libfaketime has moved the clock
from lanescope import record_function
prof = profile()
prof.start()
jumps = []
for offset in ("+0", "+3600", "-3600"):
    with open(os.environ["FAKETIME_TIMESTAMP_FILE"], "w") as file: file.write(offset + "\\n")
    jumps.append(time.time() - time.monotonic())
    with record_function("pause"): select.select([], [], [], 0.2)
    ranges(0, 2000)
prof.stop()
dropped(prof)
print("jumped", jumps[1] - jumps[0], jumps[2] - jumps[1])
"""
    with folder() as out:
        clock = out / "clock"
        clock.write_text("+0\n")
        ended = run(code, out, env={"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
                                    "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        promise(ended.code == 0, f"ended with {ended.code}: {ended.err[-300:]}")
        if abs(ended.number("jumped", 1) - 3600) > 60 or abs(ended.number("jumped", 2) + 7200) > 60:
            raise Skip(f"faketime did not move the clock: {ended.out}")
        found = read(only(out))
        check_counts(found, ended.counted)
        promise(found.calls.get("pause") == 3 and 0.6e9 <= found.total_ns["pause"] < 300e9,
                f"three pauses of 0.2 s took {found.total_ns.get('pause')} ns")
        promise(0.6e9 <= found.window_ns < 300e9, f"the window has {found.window_ns} ns")
    return 1, f"three pauses of 0.2 s: {found.total_ns['pause'] / 1e9:.2f} s; found {found.of(r't.*'):,}, dropped {found.dropped:,}"


def restarts(options):
    """profiles started and stopped many times: memory, files, maps and threads stay as they were, no file is left"""
    import json
    import subprocess
    import sys

    from harness import ROOT, environment

    if not has_module("lanescope"):
        raise Skip("needs the lanescope package")
    starts = options.starts
    with folder() as out:
        ran = subprocess.run([sys.executable, ROOT / "python/tests/restarts.py", str(starts)], capture_output=True, text=True,
                             env=environment(TMPDIR=str(out)), check=False)
        promise(ran.returncode == 0, f"ended with {ran.returncode}: {ran.stderr[-300:]}")
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        first, last = lines[0], lines[-1]
        for what in ("files", "maps", "threads", "spools"):
            promise(last[what] <= first[what] + 4, f"{what}: {first[what]} before, {last[what]} after {starts} starts")
        grown = last["resident_bytes"] - first["resident_bytes"]
        promise(grown <= 4e6 + 2000 * starts, f"memory grew by {grown} bytes in {starts} starts")
    return starts, f"memory {grown / 1e6:+.1f} MB, files {last['files'] - first['files']:+d}, maps {last['maps'] - first['maps']:+d}"
