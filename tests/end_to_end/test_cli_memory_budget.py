"""LANESCOPE_MEMORY: what goes beyond the budget lies on disk, and the answers stay the same."""

from __future__ import annotations

import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest

from conftest import clean_environment

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SLICES = 300_000  # columns of 1.2 and 2.4 MB: blocks of 1 MiB and more lie on disk


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    trace = tmp_path_factory.mktemp("budget") / "large.json"
    event = '{"ph":"X","cat":"cpu_op","name":"op%d","pid":1,"tid":1,"ts":%d,"dur":2}'
    trace.write_text('{"traceEvents":[' + ",\n".join(event % (i % 50, i * 3) for i in range(SLICES)) + "]}")
    return trace


@pytest.mark.parametrize("command", [["table", "--json"], ["explain", "--json"], ["sql", "SELECT count(*), sum(dur) FROM slice", "--csv"]])
def test_answers_do_not_depend_on_the_budget(run, large, command):
    question = [command[0], large, *command[1:]]
    usual = run(*question)
    assert usual.code == 0, usual.err
    for budget in ("0", "3MB", "1TiB"):
        other = run(*question, env={"LANESCOPE_MEMORY": budget})
        assert (other.code, other.out, other.err) == (0, usual.out, usual.err), budget


def test_a_disk_without_room_is_one_line(binary, large, tmp_path):
    def no_large_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run([binary, "table", str(large)], capture_output=True, check=False, preexec_fn=no_large_files, restore_signals=False,
                          env=clean_environment({"LANESCOPE_MEMORY": "0", "TMPDIR": str(tmp_path), "LANESCOPE_INDEX": "off"}))
    assert done.returncode == 1 and done.stdout == b""
    line, = done.stderr.decode().splitlines()
    assert line.startswith("lanescope: memory is short; expected ") and str(tmp_path) in line
    assert line.endswith("free some, or set TMPDIR to a folder on a larger disk")


def test_no_file_is_left_behind(run, large, tmp_path):
    place = tmp_path / "files"
    place.mkdir()
    assert run("info", large, env={"LANESCOPE_MEMORY": "0", "TMPDIR": str(place)}).code == 0
    assert os.listdir(place) == []


def run_with_few_addresses(binary, mib, *arguments):
    def few_addresses():
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    return subprocess.run([binary, *map(str, arguments)], capture_output=True, check=False, preexec_fn=few_addresses,
                          env=clean_environment({"LANESCOPE_INDEX": "off"}))


def complaint_about_addresses(done, mib):
    assert done.returncode == 1, (mib, done)
    line, = done.stderr.decode().splitlines()
    assert re.fullmatch(rf"lanescope: `ulimit -v` allows {mib} MiB of addresses; expected \d+ MiB more at once than are left; raise it, or take a smaller trace", line)


def test_a_limit_of_addresses_ends_in_one_line(binary, large):
    complaint_about_addresses(run_with_few_addresses(binary, 40, "table", large), 40)


def test_a_limit_that_rules_of_explain_reach_ends_in_one_line(binary, large):
    """What rules share is computed in std::call_once. An exception that leaves it makes glibc load a library, when there is no memory
    for that either."""
    for mib in range(60, 170, 10):
        done = run_with_few_addresses(binary, mib, "explain", large)
        if done.returncode != 0:
            complaint_about_addresses(done, mib)


def test_what_is_no_size_is_said(run, large):
    ran = run("info", large, env={"LANESCOPE_MEMORY": "much"})
    assert ran.code == 2
    assert ran.complaint() == "lanescope: LANESCOPE_MEMORY: expected a size such as 4GiB, found 'much'"


def test_memory_is_set_up_wherever_its_own_small_blocks_lie(binary, tmp_path):
    """Setting it up reads files, whose buffers are freed meanwhile. Paths of other lengths put them in other places, at times at
    the start of a page, where large blocks start, too."""
    trace = REPOSITORY / "tests/data/faults/math_attention.bad.torch.json.gz"
    for length in range(1, 200):
        link = tmp_path / ("x" * length + ".json.gz")
        link.symlink_to(trace)
        done = subprocess.run([binary, "table", link.name], cwd=tmp_path, capture_output=True, check=False, env={"HOME": str(tmp_path)})
        assert (done.returncode, done.stderr) == (0, b""), length
