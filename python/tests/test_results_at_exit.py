"""What becomes of a recording when its program ends: nothing heavy runs in the program, results are whole or absent."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import time

import pytest

import lanescope

SMALL = "import torch\nfor _ in range(20): torch.ones(2).sin()"
# 400,000 ranges, 19 MB: over the 16 MiB that become JSON by themselves.
LARGE = """
import resource, torch, lanescope
torch.ones(2).sin()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(400_000):
    with lanescope.record_function("r"):
        pass
import atexit
print(before, flush=True)
"""


@pytest.fixture
def command():
    found = os.environ.get("LANESCOPE_COMMAND") or shutil.which("lanescope")
    if not found:
        pytest.skip("needs the lanescope command (LANESCOPE_COMMAND)")
    return found


@pytest.fixture
def record(tmp_path, torch, command):
    def run(code, *flags, results_command=command, timeout=300):
        (tmp_path / "script.py").write_text(code)
        start = (
            "import sys, lanescope.record as r; command = sys.argv.pop(1); r.results_command = lambda: command; "
            "r.main(sys.argv[1:])"
        )
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", start, results_command, "-o", "out", *flags, "--", sys.executable, "script.py"],
            cwd=tmp_path, capture_output=True, text=True, timeout=timeout,
        )
        done.seconds = time.monotonic() - begun
        return done, sorted(os.listdir(tmp_path / "out")), tmp_path / "out"

    return run


def recorded_and_lost(command, path):
    """Ranges in the file, and those that the file says are lost: on a busy machine, a loop of nothing but ranges may lose some."""
    trace = lanescope.read_trace(path)
    info = subprocess.run([command, "info", path, "--json"], check=True, capture_output=True, text=True)
    lost = {issue["name"]: issue["count"] for issue in json.loads(info.stdout)["issues"]}
    return sum(trace.name(i) == "r" for i in range(len(trace))), lost.get("dropped-records", 0)


def endings(names):
    return sorted(name[name.index(".") :] for name in names)


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_small_recording_becomes_trace_and_table(record):
    done, names, out = record(SMALL)
    assert done.returncode == 0, done.stderr
    assert endings(names) == [".json", ".txt"]
    assert f"lanescope: trace {out / names[0]}" in done.stderr.splitlines()
    assert f"lanescope: table {out / names[1]}" in done.stderr.splitlines()
    trace = lanescope.read_trace(out / names[0])
    assert sum(trace.name(i) == "aten::sin" for i in range(len(trace))) == 20
    assert "aten::sin" in (out / names[1]).read_text()


def test_a_large_recording_stays_and_every_reader_opens_it(record, command):
    done, names, out = record(LARGE)
    assert done.returncode == 0, done.stderr
    assert endings(names) == [".lspool"]
    path = out / names[0]
    assert path.stat().st_size > 16 << 20
    assert f"lanescope: recording {path}" in done.stderr
    assert f"lanescope explain {path}" in done.stderr and f"lanescope recover {path}" in done.stderr
    recorded, lost = recorded_and_lost(command, path)
    assert recorded + lost == 400_000 and recorded > 350_000, (recorded, lost)


def test_json_is_written_however_large_when_it_is_asked_for(record, command):
    done, names, out = record(LARGE, "--json", "--keep-spool", "--gzip")
    assert done.returncode == 0, done.stderr
    assert endings(names) == [".json.gz", ".lspool"]  # a table is made of all events at once
    for name in names:
        recorded, lost = recorded_and_lost(command, out / name)
        assert recorded + lost == 400_000 and recorded > 350_000, (name, recorded, lost)


def test_the_program_itself_reads_nothing_of_its_recording(record):
    """Its memory at the very end is what it was before; the ranges alone would be 60 MB and more as a trace."""
    code = LARGE.replace(
        "import atexit\n",
        "import atexit, _thread\n"
        "from lanescope import _autorecord\n"
        "finish = _autorecord._active.finish\n"
        "def late():\n"
        "    finish()\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)\n"
        "atexit.register(late)\n",
    )
    done, names, _ = record(code, "--json")
    assert done.returncode == 0, done.stderr
    before, after = (int(line) for line in done.stdout.split())
    spool_kb = 24 << 10  # pages of the mapped file count while they are mapped
    assert after - before < spool_kb + (16 << 10), (before, after)


def test_a_conversion_that_fails_leaves_the_recording_and_no_half_results(record, tmp_path):
    failing = script(tmp_path / "failing", 'echo "lanescope: no space left" >&2; exit 1\n')
    done, names, _ = record(SMALL, results_command=failing)
    assert done.returncode == 0
    assert endings(names) == [".lspool"]
    assert "lanescope: no space left" in done.stderr.splitlines()
    assert "what was recorded is in" in done.stderr


def test_a_conversion_that_hangs_does_not_hold_the_program(record, tmp_path):
    hanging = script(tmp_path / "hanging", f"echo $$ > {tmp_path}/pid\nexec sleep 120\n")
    done, names, _ = record(SMALL, results_command=hanging)
    assert done.returncode == 0
    assert endings(names) == [".lspool"]
    assert "is being written by process" in done.stderr
    assert done.seconds < 100
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_without_a_command_the_recording_stays(record, tmp_path):
    done, names, _ = record(SMALL, results_command="/no/such/lanescope")
    assert done.returncode == 0
    assert endings(names) == [".lspool"]
    assert "the trace was not written: /no/such/lanescope: No such file or directory" in done.stderr


def peak_megabytes(arguments):
    """Of a child of a small process: a child inherits the peak of who forks it."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, *arguments], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def test_the_memory_of_a_conversion_does_not_grow_with_the_recording(tmp_path, command):
    peaks = []
    for number, ranges in enumerate((300_000, 1_500_000)):
        path = tmp_path / f"{number}.lspool"
        profile = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
        profile._spool_path = str(path)
        with profile:
            for _ in range(ranges):
                with lanescope.record_function("r"):
                    pass
        del profile
        peaks.append(peak_megabytes([command, "recover", "--background", str(path), "-o", f"{path}.json"]))
        os.unlink(f"{path}.json")
    assert max(peaks) < 200, peaks
    assert peaks[1] - peaks[0] < 20, peaks  # as a whole Trace: more than 100 MB


def test_background_work_is_limited_and_goes_first(tmp_path, command):
    """Seen from outside while it runs: a pipe as its output holds it up."""
    path = tmp_path / "r.lspool"
    profile = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
    profile._spool_path = str(path)
    with profile:
        for _ in range(30_000):
            with lanescope.record_function("r"):
                pass
    child = subprocess.Popen([command, "recover", "--background", str(path), "-o", "-"], stdout=subprocess.PIPE)
    try:
        child.stdout.read(1)
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == 19
        assert resource.prlimit(child.pid, resource.RLIMIT_DATA) == (200 << 20, 200 << 20)
        with open(f"/proc/{child.pid}/oom_score_adj", encoding="ascii") as file:
            assert file.read().strip() == "1000"
    finally:
        child.stdout.read()
        assert child.wait() == 0
