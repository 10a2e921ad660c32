"""The second question on a job: summaries that `lanescope ranks` kept, and when they are not believed."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys

import pytest

from conftest import DATA, SOURCE

sys.path.insert(0, str(SOURCE / "tools"))
import draw_job  # noqa: E402

STRAGGLER = DATA / "ddp4" / "straggler"


@pytest.fixture
def job(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(STRAGGLER, tmp_path / "job")
    return tmp_path / "job"


def texts(cache: pathlib.Path) -> "list[pathlib.Path]":
    return sorted((cache / "texts").glob("*")) if (cache / "texts").exists() else []


def test_the_second_question_gives_the_same_bytes(run, job, own_cache):
    first = run("ranks", str(job), "--json")
    assert first.code == 0 and len(texts(own_cache)) == 4
    for question in (["ranks", str(job), "--json"], ["ranks", str(job), "--json", "-j", "3"]):
        assert run(*question).out == first.out
    assert run("ranks", str(job), "--json", env={"LANESCOPE_INDEX": "off"}).out == first.out
    assert len(texts(own_cache)) == 4


def test_the_second_question_reads_no_trace(run, tmp_path, own_cache):
    draw_job.draw([str(tmp_path / "job"), "--ranks", "2", "--steps", "12"])
    job = tmp_path / "job"
    path = job / "rank1.json"
    path.write_text(path.read_text().ljust(600_000))  # most of it is in no hash
    first = run("ranks", str(job), "--json").out
    stat = path.stat()
    with open(path, "r+b") as file:  # a change that size, time and hash do not show: a reader would refuse the file
        file.seek(66_000)
        file.write(b"\0" * 16)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert run("ranks", str(job), "--json").out == first
    changed = run("ranks", str(job), "--json", env={"LANESCOPE_INDEX": "off"})
    assert changed.out != first


def test_a_trace_that_changed_is_read_again(run, job, own_cache):
    run("ranks", str(job))
    shutil.copy(job / "rank0.json.gz", job / "rank1.json.gz")
    answer = json.loads(run("ranks", str(job), "--json").out)
    assert "duplicate" in [remark["kind"] for remark in answer["remarks"]]


def test_damaged_and_foreign_summaries_are_not_believed(run, job, own_cache):
    first = run("ranks", str(job), "--json").out
    kept = texts(own_cache)
    good = [path.read_bytes() for path in kept]
    for bad in (b"", b"{}", good[0][:500], good[0][:-3] + b"xyz", good[1], b"\n" * 400_000):
        kept[0].write_bytes(bad)
        assert run("ranks", str(job), "--json").out == first
        assert kept[0].read_bytes() == good[0]
    kept[0].write_bytes(good[0].replace(b"10", b"11", 1))
    kept[1].chmod(0o666)
    assert run("ranks", str(job), "--json").out == first


def test_other_commands_use_them_too(run, job, own_cache, tmp_path):
    first = run("ranks", str(job)).out
    kept = [path.stat().st_mtime_ns for path in texts(own_cache)]
    assert run("ranks", "table", str(job)).code == 0
    assert run("ranks", "diff", str(job), str(job)).code == 0
    assert run("merge", str(job), "-o", str(tmp_path / "merged.json")).code == 0
    assert run("ranks", str(job), "--shard", "0/1", "-o", str(tmp_path / "part.lsranks")).code == 0
    assert run("ranks", str(tmp_path / "part.lsranks")).out == first
    assert [path.stat().st_mtime_ns for path in texts(own_cache)] == kept


def test_nothing_is_kept_when_indexes_are_not_written(run, job, own_cache):
    for use in ("read", "off"):
        assert run("ranks", str(job), env={"LANESCOPE_INDEX": use}).code == 0
        assert not own_cache.exists()


def test_a_cache_folder_that_cannot_be_written_is_no_error(run, job, tmp_path):
    (tmp_path / "file").write_text("")
    ran = run("ranks", str(job), env={"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert ran.code == 0 and not ran.err


def test_one_job_by_two_names_keeps_the_name_that_was_asked_for(run, job, own_cache):
    run("ranks", str(job))
    answer = json.loads(run("ranks", "job", "--json", cwd=job.parent).out)
    assert answer["ranks"][0]["file"] == "job/rank0.json.gz"
    assert len(texts(own_cache)) == 4
