"""`lanescope ranks`: workers and parts, tables, pages, merged traces, comparisons and budgets."""

from __future__ import annotations

import csv
import io
import json
import pathlib
import random
import shutil
import xml.etree.ElementTree

import pytest

from conftest import DATA
from rank_jobs import drawn, job_of, remarks

STRAGGLER = str(DATA / "ddp4" / "straggler")
pytestmark = pytest.mark.usefixtures("own_cache")


def test_any_number_of_workers_and_parts_gives_the_same_bytes(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "9", "--fault", "straggler-gpu", "--offset-us", "3000", "--gzip")
    expected = run("ranks", str(folder), "--json", "-j", "1").out
    for jobs in ("2", "3", "8"):
        assert run("ranks", str(folder), "--json", "-j", jobs).out == expected
    parts = []
    for i in range(4):
        parts.append(str(tmp_path / f"part{i}.lsranks"))
        ran = run("ranks", str(folder), "--shard", f"{i}/4", "-o", parts[-1])
        assert ran.code == 0, ran.err
    assert run("ranks", *reversed(parts), "--json").out == expected
    assert run("ranks", str(tmp_path / "part*.lsranks"), "--json").out == expected
    assert all(pathlib.Path(part).stat().st_size < 200_000 * 3 for part in parts)


def test_a_part_that_was_cut_says_so(run, tmp_path):
    folder, _ = drawn(tmp_path)
    part = tmp_path / "all.lsranks"
    assert run("ranks", str(folder), "--shard", "0/1", "-o", str(part)).code == 0
    lines = part.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[:3]))
    job = job_of(run, part)
    assert any("the part ends early, after 2 ranks" in line for line in remarks(job, "unreadable"))


def test_many_files_in_one_folder_show_the_extremes(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "40", "--steps", "4", "--kernels", "6", "--buckets", "2", "--fault", "straggler-cpu",
                      "--late-rank", "23")
    ran = run("ranks", str(folder))
    assert ran.code == 0 and "Rank 23 delays the others" in ran.out
    assert len(ran.out.splitlines()) < 40 and "median" in ran.out
    rows = list(csv.DictReader(io.StringIO(run("ranks", str(folder), "--csv").out)))
    assert len(rows) == 40 and rows[23]["rank"] == "23"
    assert max(rows, key=lambda row: int(row["own_ns"]))["rank"] == "23"


def test_eight_ranks_fit_a_screen(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "8", "--fault", "straggler-cpu")
    out = run("ranks", str(folder)).out
    assert len(out.splitlines()) <= 40
    assert all(len(line) <= 110 for line in out.splitlines() if "lanescope " not in line)


def test_ranks_in_folders_and_one_file(run, tmp_path):
    folder, _ = drawn(tmp_path)
    for rank in range(4):
        (tmp_path / "nested" / f"rank_{rank}").mkdir(parents=True)
        shutil.move(str(folder / f"rank{rank}.json"), tmp_path / "nested" / f"rank_{rank}" / "trace.json")
    assert len(job_of(run, tmp_path / "nested")["ranks"]) == 4
    one = job_of(run, tmp_path / "nested" / "rank_2" / "trace.json")
    assert one["verdict"]["kind"] == "unknown" and "one rank only" in one["verdict"]["text"]


def test_wrong_paths_and_flags_get_one_line(run, tmp_path):
    assert "found nothing at" in run("ranks", str(tmp_path / "nowhere")).complaint()
    (tmp_path / "empty").mkdir()
    assert "found none in" in run("ranks", str(tmp_path / "empty")).complaint()
    assert run("ranks").code == 2
    assert "--shard expects I/N" in run("ranks", STRAGGLER, "--shard", "4/4", "-o", "x").complaint()
    assert "belong together" in run("ranks", STRAGGLER, "--shard", "0/4").complaint()
    assert run("ranks", STRAGGLER, "--json", "--csv").code == 2


def test_a_merged_trace_has_one_clock_and_arrows(run, tmp_path):
    folder, truth = drawn(tmp_path, "--ranks", "3", "--offset-us", "50000", "--fault", "straggler-cpu")
    out = tmp_path / "merged.json"
    ran = run("merge", str(folder), "-o", str(out))
    assert ran.code == 0, ran.err
    trace = json.loads(out.read_text())
    events = trace["traceEvents"]
    ends = {}
    for event in events:
        if event.get("ph") == "X" and event["name"].startswith("nccl"):
            ends.setdefault(event["pid"], []).append(event["ts"] + event["dur"])
    assert len(ends) == 3
    for first, second, third in zip(*(sorted(each) for each in ends.values())):
        assert max(first, second, third) - min(first, second, third) < 60  # planted: up to 50 ms
    names = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert any(name.startswith("rank 2") for name in names)
    arrows = [event for event in events if event.get("name") == "last rank arrives"]
    assert arrows and {event["ph"] for event in arrows} == {"s", "f"}
    # Each rank counts its calls from 1; in the merged trace no two ranks share an id.
    ids = {}
    for event in events:
        if "correlation" in event.get("args", {}):
            ids.setdefault(event["pid"] // 100_000, set()).add(event["args"]["correlation"])
    assert len(ids) == 3 and len(set.union(*ids.values())) == sum(map(len, ids.values()))
    # It is a trace like any other, and every rank's events are in it.
    assert run("info", str(out)).code == 0
    count = sum(1 for event in events if event.get("ph") == "X")
    assert count == sum(sum(1 for event in json.loads((folder / f"rank{rank}.json").read_text())["traceEvents"]
                            if event.get("ph") == "X") for rank in range(3))
    assert run("merge", str(folder), "-o", str(out)).code == 2  # it exists
    assert run("merge", str(folder)).code == 2


# Rows and numbers are cut, doubled and replaced, from a fixed seed: an answer or a message, never a crash.
def test_damaged_parts_end_in_an_answer_or_a_message(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "3", "--steps", "3", "--kernels", "4", "--buckets", "2")
    part = tmp_path / "all.lsranks"
    assert run("ranks", str(folder), "--shard", "0/1", "-o", str(part)).code == 0
    whole, choose = part.read_text(), random.Random(7)
    for _ in range(150):
        text = whole
        for _ in range(choose.randint(1, 4)):
            at = choose.randrange(len(text))
            text = choose.choice([text[:at], text[:at] + text[at + choose.randint(1, 30):],
                                  text[:at] + choose.choice(["[", "]", ",", "-", "null", "9", "99999999999999999999", "\n", "\"", "-1"]) + text[at:],
                                  text[:at] + text[max(0, at - 400):]]) or whole
        part.write_text(text)
        ran = run("ranks", str(part), "--json")
        assert ran.code in (0, 2), (ran.code, ran.err)
        if ran.code == 0:
            json.loads(ran.out)


# One page: everything in it, nothing loaded, no script, names of files escaped.
def test_a_page_shows_the_late_rank_and_loads_nothing(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "5", "--fault", "straggler-cpu", "--offset-us", "2000")
    (folder / "rank0.json").rename(folder / "a<b>&rank0.json")
    page = tmp_path / "job.html"
    ran = run("ranks", str(folder), "--html", str(page))
    assert ran.code == 0 and ran.out.startswith("wrote "), ran.err
    text = page.read_text()
    root = xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
    assert root.tag.endswith("html")
    for title in ("Who is late, and when", "What each rank does in a step", "What the late ranks do longer",
                  "The collectives that ranks waited in longest", "Rank by rank", "How fast the network is"):
        assert title in text
    assert "Rank 1 delays the others" in text and "a&lt;b&gt;&amp;rank0.json" in text
    assert "<script" not in text and "http://www.w3.org/" in text and text.count("http") == text.count("http://www.w3.org/") + text.count("http-equiv")
    # The darkest cells are those of rank 1.
    dark = [line for line in text.splitlines() if 'class="heat h8"' in line or 'class="heat h7"' in line]
    assert dark and all("rank 1," in line for line in dark if "<title>" in line)
    assert run("ranks", str(folder), "--html", str(page)).code == 2
    assert run("ranks", str(folder), "--html", str(page), "--force").code == 0
    assert run("ranks", str(folder), "--html", "-").out == text
    assert run("ranks", str(folder), "--html", str(page), "--json").code == 2


def test_a_page_of_many_ranks_stays_small(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "90", "--steps", "4", "--kernels", "6", "--buckets", "2", "--fault", "straggler-cpu",
                      "--late-rank", "77")
    text = run("ranks", str(folder), "--html", "-").out
    assert len(text) < 400_000 and "Rank 77 delays the others" in text and "76 to 77" in text


def test_explain_of_several_traces_points_to_ranks(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "2")
    line = run("explain", str(folder / "rank0.json"), str(folder / "rank1.json")).complaint()
    assert "lanescope ranks FILES" in line and "lanescope diff A B" in line


def test_info_of_a_merged_trace_names_the_ranks(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "2")
    assert run("merge", str(folder), "-o", str(tmp_path / "merged.json")).code == 0
    out = run("info", str(tmp_path / "merged.json")).out
    assert "rank 1" in out and "device 2000" not in out


def test_diff_of_two_jobs_names_the_rank_and_the_part(run, tmp_path):
    healthy, _ = drawn(tmp_path / "a")
    late, truth = drawn(tmp_path / "b", "--fault", "straggler-cpu")
    out = json.loads(run("ranks", "diff", str(healthy), str(late), "--json").out)
    assert [rank["rank"] for rank in out["ranks"] if rank["own_changed"]] == [truth["late_rank"]]
    changed = {part["part"] for part in out["parts"] if part["changed"]}
    assert "cpu_idle" in changed and "compute" not in changed
    parts = sum(part["b_ns"] - part["a_ns"] for part in out["parts"])
    assert parts == out["b_step_ns"] - out["a_step_ns"] == pytest.approx(truth["late_us"] * 1000, rel=0.1)
    text = run("ranks", "diff", str(healthy), str(late)).out
    assert f"rank {truth['late_rank']}, own time" in text and "longer in B" in text
    rows = list(csv.DictReader(io.StringIO(run("ranks", "diff", str(healthy), str(late), "--csv").out)))
    assert [row["own_changed"] for row in rows] == ["0", "1", "0", "0"]
    same = json.loads(run("ranks", "diff", str(healthy), str(healthy), "--json").out)
    assert not any(part["changed"] for part in same["parts"]) and same["collective_changes"] == 0


def test_diff_names_collectives_that_changed(run, tmp_path):
    healthy, _ = drawn(tmp_path / "a")
    one, _ = drawn(tmp_path / "b", "--fault", "one-bucket")
    changes = json.loads(run("ranks", "diff", str(healthy), str(one), "--json").out)["collectives"]
    assert any(each["count_changed"] for each in changes)


def test_check_keeps_every_rank_to_its_limits(run, tmp_path):
    folder, truth = drawn(tmp_path, "--fault", "straggler-cpu")
    budget = tmp_path / "job.toml"
    budget.write_text('[at_most]\nown_spread = "500 us"\nmissing_ranks = 0\n[at_least]\nranks = 4\n'
                      '[verdict]\nmust_not_be = ["straggler"]\n')
    ran = run("ranks", "check", str(folder), "--budget", str(budget), "--json")
    assert ran.code == 1
    out = json.loads(ran.out)
    assert [line["state"] for line in out["lines"]] == ["broken", "kept", "kept", "broken"]
    text = run("ranks", "check", str(folder), "--budget", str(budget)).out
    assert text.startswith("The budget is broken: 2 of 4 lines not kept.") and "Rank 1 delays the others" in text
    budget.write_text('[at_most]\nlate = "50 %"\nwaits = "90 %"\n')
    assert run("ranks", "check", str(folder), "--budget", str(budget)).code == 0
    (folder / "rank2.json").write_text("no trace")
    ran = run("ranks", "check", str(folder), "--budget", str(budget))
    assert ran.code == 1 and "MISSING" in ran.out and "damage" in ran.out
    assert "did you mean waits" in bad_budget(run, tmp_path, folder, '[at_most]\nwaits_ = "1 ms"\n')
    assert "--budget FILE" in run("ranks", "check", str(folder)).complaint()
    assert "two jobs" in run("ranks", "diff", str(folder)).complaint()
    assert run("ranks", str(folder), "--budget", str(budget)).code == 2


def bad_budget(run, tmp_path, folder, text):
    (tmp_path / "bad.toml").write_text(text)
    return run("ranks", "check", str(folder), "--budget", str(tmp_path / "bad.toml")).complaint()


def test_the_table_has_every_rank(run, tmp_path):
    folder, _ = drawn(tmp_path, "--ranks", "20", "--steps", "4", "--kernels", "4", "--buckets", "2", "--fault", "straggler-cpu",
                      "--late-rank", "7")
    lines = run("ranks", "table", str(folder)).out.splitlines()
    assert [line.split()[0] for line in lines[1:21]] == [str(rank) for rank in range(20)]
    lines = run("ranks", "table", str(folder), "--sort-by", "own", "--row-limit", "2").out.splitlines()
    assert lines[1].split()[0] == "7" and lines[3] == "(18 more ranks)"
    assert "--sort-by expects" in run("ranks", "table", str(folder), "--sort-by", "speed").complaint()
