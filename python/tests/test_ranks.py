"""lanescope.read_ranks: the same answer as the command, as objects and columns."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import subprocess

import pytest

import lanescope

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
STRAGGLER, HEALTHY = DATA / "ddp4" / "straggler", DATA / "ddp4" / "healthy"
DUMPS = DATA / "flight_recorder"


def command(*words):
    """What the command prints; its exit code may be 1."""
    program = os.environ.get("LANESCOPE_COMMAND")
    if not program:
        pytest.skip("needs LANESCOPE_COMMAND")
    ran = subprocess.run([*shlex.split(program), "ranks", *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def test_the_late_rank_is_found():
    job = lanescope.read_ranks(STRAGGLER)
    assert len(job) == 4 and job.ranks == [0, 1, 2, 3]
    assert job.verdict.kind == "straggler" and job.verdict.ranks == [1]
    assert "Rank 1 delays the others" in str(job.verdict)
    assert str(job.verdict)[:30] in str(job).replace("\n", " ")
    assert job.remarks == []


def test_columns_are_numbers_a_rank_and_a_step():
    np = pytest.importorskip("numpy")
    job = lanescope.read_ranks([STRAGGLER / f"rank{rank}.json.gz" for rank in (1, 0, 3, 2)], workers=2)
    for array, again in ((job.column("own_ns"), job.column("own_ns")), (job.steps("late_ns"), job.steps("late_ns"))):
        assert array is again and not array.flags.writeable
    assert job.column("own_ns").dtype == np.int64 and int(job.column("own_ns").argmax()) == 1
    assert job.steps("late_ns").shape == (len(job.data["steps"]), 4)


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(lanescope.Error):
        lanescope.read_ranks(tmp_path)


def test_a_diff_is_that_of_the_command():
    job = lanescope.read_ranks(str(HEALTHY))
    change = job.diff(str(STRAGGLER))
    assert [rank["rank"] for rank in change.data["ranks"]] == [0]  # the healthy job has one file
    assert str(job.diff(lanescope.read_ranks(str(STRAGGLER)))) == str(change)
    assert change.data == json.loads(command("diff", HEALTHY, STRAGGLER, "--json"))
    assert str(change) == command("diff", HEALTHY, STRAGGLER)


def test_a_check_is_that_of_the_command(tmp_path):
    budget = tmp_path / "job.toml"
    budget.write_text('[at_most]\nwall = "1 s"\nlate = "1 ms"\n')
    job = lanescope.read_ranks(str(STRAGGLER))
    checked = job.check(budget)
    assert not checked.kept
    assert checked.data == json.loads(command("check", STRAGGLER, "--budget", budget, "--json"))
    assert str(checked) == command("check", STRAGGLER, "--budget", budget)
    budget.write_text("[at_most]\nnothing = 1\n")
    with pytest.raises(lanescope.Error, match="nothing"):
        job.check(budget)


def test_a_hang_is_that_of_the_command():
    hang = lanescope.read_hang(DUMPS / "mismatch")
    assert "rank 1 calls all_gather of 3072 Float" in hang.findings[0] and hang.remarks == []
    assert hang.data == json.loads(command("hang", DUMPS / "mismatch", "--json"))
    assert str(hang) == command("hang", DUMPS / "mismatch")
    with pytest.raises(lanescope.Error):
        lanescope.read_hang(DUMPS / "nowhere")
