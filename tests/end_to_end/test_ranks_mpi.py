"""`lanescope-mpi ranks`: the same bytes as `lanescope ranks`, whatever the number of processes; lost workers."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import DATA, SOURCE, find_binary

sys.path.insert(0, str(SOURCE / "tools"))
import draw_job  # noqa: E402

DDP4 = DATA / "ddp4" / "straggler"


def find_mpi_binary() -> "pathlib.Path | None":
    named = os.environ.get("LANESCOPE_MPI_BINARY")
    next_to_it = find_binary().with_name("lanescope-mpi")
    built = [*([pathlib.Path(named)] if named else []), next_to_it, SOURCE / "build/release/src/lanescope/cli/lanescope-mpi"]
    return next((path for path in built if path.exists()), None)


MPI = find_mpi_binary()
pytestmark = [pytest.mark.usefixtures("own_cache"),
              pytest.mark.skipif(not shutil.which("mpirun") or MPI is None,
                                 reason="needs mpirun and lanescope-mpi (apt-get install libopenmpi-dev openmpi-bin, then build again)")]


def command(processes: int, *arguments: str) -> "list[str]":
    return ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(processes), str(MPI), "ranks", *arguments]


def mpi(processes: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(processes, *arguments), capture_output=True, text=True, timeout=120)


def drawn(tmp_path: pathlib.Path, *arguments: str) -> pathlib.Path:
    draw_job.draw([str(tmp_path / "job"), *arguments])
    return tmp_path / "job"


@pytest.mark.parametrize("fault", ["straggler-cpu", "rotating", "mismatch", "lost-records", "not-a-trace", "duplicate", "other-model"])
def test_any_number_of_processes_gives_the_bytes_of_one(run, tmp_path, fault):
    folder = drawn(tmp_path, "--ranks", "7", "--fault", fault, "--offset-us", "40000", "--drift-ppm", "20")
    expected = run("ranks", str(folder), "--json").out
    assert expected
    for processes in (1, 2, 4, 8):
        ran = mpi(processes, str(folder), "--json")
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == expected


def test_a_real_job_as_text_and_csv(run):
    for flags in ([], ["--csv"]):
        assert mpi(3, str(DDP4), *flags).stdout == run("ranks", str(DDP4), *flags).out


def test_parts_are_read_as_well(run, tmp_path):
    folder = drawn(tmp_path, "--ranks", "5", "--sequence-numbers", "--fault", "mismatch")
    parts = [str(tmp_path / f"part{i}.lsranks") for i in range(2)]
    for i, part in enumerate(parts):
        assert run("ranks", str(folder), "--shard", f"{i}/2", "-o", part).code == 0
    assert mpi(3, *parts, "--json").stdout == run("ranks", str(folder), "--json").out


def test_statistics_are_a_line_for_each_worker(tmp_path):
    ran = mpi(2, str(drawn(tmp_path)), "--statistics")
    lines = [line for line in ran.stderr.splitlines() if line.startswith("worker ")]
    assert len(lines) == 2 and all("bytes in" in line and "peak memory" in line for line in lines)


def test_wrong_paths_and_full_disks_end_in_one_message(tmp_path):
    ran = mpi(3, str(tmp_path / "nowhere"))
    assert ran.returncode == 2 and ran.stderr.count("found nothing at") == 1
    folder = drawn(tmp_path)
    ran = mpi(2, str(folder), "-o", "/dev/full", "--force")
    assert ran.returncode in (1, 2) and "/dev/full" in ran.stderr
    answer = tmp_path / "answer.txt"
    assert mpi(2, str(folder), "-o", str(answer)).returncode == 0 and answer.read_text().startswith("4 ranks")
    ran = mpi(2, str(folder), "-o", str(answer))
    assert ran.returncode == 2 and "exists" in ran.stderr


# A pipe without a writer keeps a worker busy until it is killed.
def test_a_lost_worker_is_reported_with_what_each_was_reading(tmp_path):
    folder = drawn(tmp_path)
    os.mkfifo(tmp_path / "slow.json")
    process = subprocess.Popen(command(3, str(folder), str(tmp_path / "slow.json")), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    children: "list[int]" = []
    for _ in range(200):
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout
        children = [int(line.split()[0]) for line in listed.splitlines() if str(MPI) in line]
        if len(children) == 3:
            break
        time.sleep(0.05)
    assert len(children) == 3
    time.sleep(1)
    os.kill(max(children), signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0 and out == ""
    assert "ended before the answer: a worker was lost" in err
    assert "was reading" in err and "slow.json" in err
