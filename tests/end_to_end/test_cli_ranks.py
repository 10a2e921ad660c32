"""`lanescope ranks`: real jobs, drawn jobs with planted faults, parts, and files that do not fit."""

from __future__ import annotations

import csv
import io
import json
import pathlib
import random
import shutil
import sys
import xml.etree.ElementTree

import pytest

from conftest import DATA, NEEDS_SHARED_TRACES, SHARED_TRACES, SOURCE

sys.path.insert(0, str(SOURCE / "tools"))
import draw_job  # noqa: E402

STRAGGLER = str(DATA / "ddp4" / "straggler")
pytestmark = pytest.mark.usefixtures("own_cache")


def job_of(run, folder, *flags):
    ran = run("ranks", str(folder), "--json", *flags)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def drawn(tmp_path: pathlib.Path, *flags: str):
    truth = draw_job.draw([str(tmp_path / "job"), *flags])
    return tmp_path / "job", truth


def remarks(job, kind):
    return [remark["text"] for remark in job["remarks"] if remark["kind"] == kind]


def cpu_rank(folder, rank, loading_us):
    """Steps of 1 ms on a CPU: a batch is loaded, an operator takes 300 us, then an all-reduce until 1 ms."""
    events = []
    for step in range(5):
        at = step * 1000

        def add(category, name, start, end, thread=1, **args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread,
                           "ts": at + start, "dur": end - start, "args": args})
        add("user_annotation", f"ProfilerStep#{step}", 0, 1000)
        add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, loading_us)
        add("cpu_op", "aten::mm", loading_us, loading_us + 300)
        add("user_annotation", "gloo:all_reduce", loading_us + 300, 1000, thread=2,
            **{"Input Dims": [[1000]], "Input type": ["float"]})
    trace = {"host_name": "node7", "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}, "traceEvents": events}
    (folder / f"rank{rank}.json").write_text(json.dumps(trace))


# Rank 0 loads 500 us, rank 1 100 us and waits 400 us for it.
def test_a_job_on_cpus_names_the_loader(run, tmp_path):
    cpu_rank(tmp_path, 0, 500)
    cpu_rank(tmp_path, 1, 100)
    verdict = job_of(run, tmp_path)["verdict"]
    assert verdict["kind"] == "straggler" and verdict["ranks"] == [0]
    assert verdict["causes"][0] == {"cause": "input", "longer_ns": 400_000}
    text = " ".join(run("ranks", str(tmp_path)).out.split())
    assert "Its CPU is 400 us longer outside of operators, 400 us of it in the DataLoader." in text


# Rank 1 sleeps 10 ms in each step (measured from its own trace: 10.2 ms between its GPU's work).
def test_a_real_straggler_is_named_with_what_it_did(run):
    job = job_of(run, STRAGGLER)
    verdict = job["verdict"]
    assert verdict["kind"] == "straggler" and verdict["ranks"] == [1]
    assert 9.5e6 < verdict["late_ns"] < 11e6
    assert verdict["causes"][0]["cause"] == "cpu"
    assert "ProfilerStep" in verdict["host_part"]
    assert any(note["kind"] == "wait-is-not-network" for note in verdict["notes"])
    assert [rank["last_arrivals"] for rank in job["ranks"]] == [0, 39, 0, 0]
    for rank in job["ranks"]:
        # Ranks of one machine: their clocks agree.
        assert abs(rank["clock"].get("offset_ns", 0)) < 50_000
        step = rank["per_step"]
        assert step["step_ns"] == pytest.approx(step["own_ns"] + step["exposed_communication_ns"], abs=2)
        assert step["own_ns"] == pytest.approx(step["compute_ns"] + step["idle_ns"] + step["exposed_copy_ns"], abs=12)
    assert "Rank 1 holds the others up" in run("ranks", STRAGGLER).out


@pytest.mark.skipif(not SHARED_TRACES.is_dir(), reason=NEEDS_SHARED_TRACES + "; the drawn jobs below stand in")
def test_a_real_healthy_job_gets_no_verdict(run):
    job = job_of(run, SHARED_TRACES / "ddp4" / "healthy")
    assert job["verdict"]["kind"] == "balanced" and job["remarks"] == []


@pytest.mark.parametrize("fault,kind,cause", [
    ("none", "balanced", None), ("straggler-cpu", "straggler", "cpu"), ("straggler-gpu", "straggler", "compute"),
    ("straggler-input", "straggler", "input"), ("rotating", "rotating", None), ("uneven", "uneven", "compute"),
])
def test_planted_faults_are_found(run, tmp_path, fault, kind, cause):
    folder, truth = drawn(tmp_path, "--fault", fault, "--ranks", "5", "--offset-us", "4000")
    verdict = job_of(run, folder)["verdict"]
    assert verdict["kind"] == kind
    if kind == "straggler":
        assert verdict["ranks"] == [truth["late_rank"]]
        assert verdict["late_ns"] == pytest.approx(truth["late_us"] * 1000, rel=0.05)
    if cause:
        assert verdict["causes"][0]["cause"] == cause


def hidden_cpu_notes(job):
    return [note["text"] for note in job["verdict"]["notes"] if note["kind"] == "hidden-cpu"]


# The CPU of rank 1 sleeps 2 ms a step and launches in 0.3; the GPUs work 5 ms, and nobody waits for them.
def test_a_cpu_whose_lateness_the_queue_hides_is_noted(run, tmp_path):
    job = job_of(run, drawn(tmp_path, "--fault", "straggler-cpu", "--free-running", "--offset-us", "4000")[0])
    assert job["verdict"]["kind"] == "balanced"
    [text] = hidden_cpu_notes(job)
    assert text.startswith("The CPU of rank 1 needs ") and "Its GPU had work queued, so no rank waited" in text
    assert float(text.split()[6]) == pytest.approx(2, rel=0.05)
    assert job["ranks"][1]["per_step"]["cpu_outside_ns"] == pytest.approx(2e6, rel=0.1)


@pytest.mark.parametrize("flags", [["--free-running"], [], ["--fault", "straggler-cpu"], ["--fault", "straggler-cpu", "--late-us", "150", "--free-running"]])
def test_cpus_that_are_not_late_or_that_all_wait_for_get_no_such_note(run, tmp_path, flags):
    assert hidden_cpu_notes(job_of(run, drawn(tmp_path, *flags)[0])) == []


# It sleeps longer than its GPU works: the GPU runs out of work while the CPU makes operators, after the sleep.
def test_the_cause_of_a_late_cpu_may_lie_earlier_than_the_wait(run, tmp_path):
    folder, truth = drawn(tmp_path, "--fault", "straggler-cpu", "--free-running", "--late-us", "7000", "--steps", "10")
    verdict = job_of(run, folder)["verdict"]
    assert verdict["kind"] == "straggler" and verdict["ranks"] == [1] and verdict["causes"][0]["cause"] == "cpu"
    assert verdict["host_part"].startswith("code without events")


def test_a_fault_that_begins_later_says_since_when(run, tmp_path):
    folder, truth = drawn(tmp_path, "--fault", "straggler-cpu", "--steps", "12", "--since", "3")
    verdict = job_of(run, folder)["verdict"]
    assert verdict["kind"] == "straggler"
    assert verdict["since_step"] == truth["since_step"] and not verdict["since_start"]


# 30 us of a 5 ms step are no news, whoever has them: one rank, or each in turn.
@pytest.mark.parametrize("fault", ["straggler-cpu", "rotating"])
def test_a_small_lateness_is_no_verdict(run, tmp_path, fault):
    folder, _ = drawn(tmp_path, "--fault", fault, "--late-us", "30")
    assert job_of(run, folder)["verdict"]["kind"] == "balanced"


def test_communication_that_nothing_hides_is_named(run, tmp_path):
    folder, _ = drawn(tmp_path, "--fault", "one-bucket")
    notes = [note["kind"] for note in job_of(run, folder)["verdict"]["notes"]]
    assert "not-hidden" in notes
    folder, _ = drawn(tmp_path / "healthy")
    assert "not-hidden" not in [note["kind"] for note in job_of(run, folder)["verdict"]["notes"]]


@pytest.mark.parametrize("seed", range(6))
def test_clock_offsets_lie_within_their_error(run, tmp_path, seed):
    drift = ["--drift-ppm", "50", "--steps", "30", "--kernel-us", "9000"] if seed % 2 else []
    folder, truth = drawn(tmp_path, "--ranks", "6", "--offset-us", "20000", "--seed", str(seed), "--sequence-numbers", *drift)
    for rank, offset in zip(job_of(run, folder)["ranks"], truth["offsets_us"]):
        if rank["rank"] == 0:
            continue
        clock = rank["clock"]
        if drift:  # the offset is that of the middle of the recording, about 3 s after the offset was planted
            assert clock["drift_ppm"] == pytest.approx(truth["drifts"][rank["rank"]] * 1e6, abs=5)
        else:
            assert abs(clock["offset_ns"] - offset * 1000) <= clock["error_ns"]
            assert clock["lowest_ns"] <= offset * 1000 <= clock["highest_ns"]


@pytest.mark.parametrize("fault,kind,text", [
    ("truncated", "truncated", "rank1.json ends in the middle"),
    ("duplicate", "duplicate", "is rank 1 as well"),
    ("missing", "missing", "no file of rank 1: what it did is unknown"),
    ("other-job", "other-job", "rank1.json is left out: it is of another job, with 8 ranks on nccl"),
    ("other-model", "other-model", "rank 1 runs another program or model"),
    ("mismatch", "mismatch", "rank 1 calls allreduce of 3000000 Float, the others allreduce of 1500000 Float"),
    ("lost-records", "unmatched", "rank 1: "),
    ("not-a-trace", "unreadable", "rank1.json is left out: "),
])
def test_what_does_not_fit_gets_a_line_and_the_report_goes_on(run, tmp_path, fault, kind, text):
    folder, _ = drawn(tmp_path, "--fault", fault)
    job = job_of(run, folder)
    lines = remarks(job, kind)
    assert lines and text in lines[0], job["remarks"]
    if fault not in ("other-job", "not-a-trace"):  # these two also leave a rank without a file
        assert len(job["remarks"]) == 1, job["remarks"]
    assert sum(rank["compared"] for rank in job["ranks"]) >= 3
    assert job["verdict"]["kind"] != "straggler"
    assert text in " ".join(run("ranks", str(folder)).out.replace("\n  ", " ").split("\n"))


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
    assert ran.code == 0 and "Rank 23 holds the others up" in ran.out
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


# Waiting hides when collectives run next to the backward pass and slow it: own times become alike, arrivals do not.
def test_a_late_rank_is_found_although_own_times_are_alike(run, tmp_path):
    folder, truth = drawn(tmp_path, "--fault", "straggler-cpu", "--ranks", "3", "--slowed-by-waits")
    job = job_of(run, folder)
    verdict = job["verdict"]
    own = [rank["per_step"]["own_ns"] for rank in job["ranks"]]
    assert max(own) - min(own) < 0.5 * truth["late_us"] * 1000
    assert verdict["kind"] == "straggler" and verdict["ranks"] == [1]
    assert verdict["late_ns"] == pytest.approx(truth["late_us"] * 1000, rel=0.25)
    assert "slowed-by-waits" in [note["kind"] for note in verdict["notes"]]


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
    assert "Rank 1 holds the others up" in text and "a&lt;b&gt;&amp;rank0.json" in text
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
    assert len(text) < 400_000 and "Rank 77 holds the others up" in text and "76 to 77" in text


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
    assert text.startswith("The budget is broken: 2 of 4 lines not kept.") and "Rank 1 holds the others up" in text
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


DUMPS = DATA / "flight_recorder"


# Real dumps of two H100s. Rank 1 sleeps after collective 27, while rank 0 calls the 28th.
@pytest.mark.parametrize("form", ["stop", "stop_json"])
def test_the_rank_that_stopped_is_found_in_real_dumps(run, form):
    found = json.loads(run("ranks", "hang", str(DUMPS / form), "--json").out)
    assert [finding["kind"] for finding in found["findings"]] == ["not-called"]
    assert found["findings"][0]["ranks"] == [1] and found["findings"][0]["sequence"] == 28
    assert "it stopped in its own code after collective 27" in found["findings"][0]["text"]
    assert found["ranks"][0]["open"]["name"] == "all_reduce" and found["ranks"][1]["open"] is None
    assert found["call_count"] == 55 and found["remarks"] == []


@pytest.mark.parametrize("form", ["mismatch", "mismatch_json"])
def test_ranks_that_disagree_are_found_in_real_dumps(run, form):
    found = json.loads(run("ranks", "hang", str(DUMPS / form), "--json").out)
    assert [finding["kind"] for finding in found["findings"]] == ["mismatch"]
    text = " ".join(run("ranks", "hang", str(DUMPS / form)).out.split())
    assert "Ranks disagree: collective 28 of group 0 (default_pg): rank 1 calls all_gather of 3072 Float" in text
    assert ("called in hang (toy_jobs.py:243)" in text) == (form == "mismatch")


def test_a_hang_as_csv_and_as_a_page(run, tmp_path):
    rows = list(csv.DictReader(run("ranks", "hang", str(DUMPS / "stop"), "--csv").out.splitlines()))
    assert [row["rank"] for row in rows] == ["0", "1"]
    assert [row["sequence"] for row in rows] == ["28", "27"] and [row["state"] for row in rows] == ["scheduled", "completed"]
    assert rows[0]["call"] == "all_reduce" and rows[0]["in_elements"] == "1024" and rows[0]["place"] == "hang (toy_jobs.py:243)"
    assert [row["findings"] for row in rows] == ["", "not-called"]
    page = tmp_path / "hang.html"
    assert run("ranks", "hang", str(DUMPS / "stop"), "--html", str(page)).code == 0
    text = page.read_text()
    assert xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1)).tag.endswith("html")
    assert "<h1>Some ranks wait in a collective that others have not called</h1>" in text
    assert "rank 1 has not called all_reduce of 1024 Float" in text and text.count('<tr class="sum">') == 1
    assert "exists" in run("ranks", "hang", str(DUMPS / "stop"), "--html", str(page)).complaint()


def test_a_missing_dump_and_wrong_files_get_a_line(run, tmp_path):
    shutil.copy(DUMPS / "stop" / "nccl_trace_rank_0", tmp_path / "nccl_trace_rank_0")
    (tmp_path / "nccl_trace_rank_1").write_bytes((DUMPS / "stop" / "nccl_trace_rank_1").read_bytes()[:900])
    (tmp_path / "notes.txt").write_text("no dump")
    out = " ".join(run("ranks", "hang", str(tmp_path)).out.split())
    assert "there is no dump of rank 1" in out and "the pickle ends early" in out and "notes.txt" not in out
    code = tmp_path / "code"
    code.mkdir()
    (code / "nccl_trace_rank_0").write_bytes(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.")
    line = run("ranks", "hang", str(code)).complaint()
    assert "runs no code of a pickle" in line and "_dump_fr_trace_json" in line
    (tmp_path / "empty").mkdir()
    assert "found none in" in run("ranks", "hang", str(tmp_path / "empty")).complaint()
    assert "found nothing at" in run("ranks", "hang", str(tmp_path / "nowhere")).complaint()
    assert run("ranks", "hang").code == 2


# Bytes are cut, doubled and replaced, from a fixed seed: an answer or a message, never a crash.
def test_damaged_dumps_end_in_an_answer_or_a_message(run, tmp_path):
    choose = random.Random(3)
    for form, name in (("stop", "nccl_trace_rank_0"), ("stop_json", "rank_0.json")):
        whole = (DUMPS / form / name).read_bytes()
        for _ in range(100):
            data = bytearray(whole)
            for _ in range(choose.randint(1, 4)):
                at = choose.randrange(len(data))
                if choose.random() < 0.5:
                    data[at] = choose.choice([0, 0x28, 0x2E, 0x5B, 0x68, 0x71, 0x7B, 0x80, 0x8A, 0xFF, choose.randrange(256)])
                else:
                    data[at:at + choose.randint(0, 40)] = data[max(0, at - 60):at]
            (tmp_path / name).write_bytes(data)
            ran = run("ranks", "hang", str(tmp_path / name), "--json")
            assert ran.code in (0, 2), (ran.code, ran.err)
            if ran.code == 0:
                json.loads(ran.out)


TWO_GPUS = DATA / "two_h100"


# From the kernels alone: durations of the n-th send-receive kernel of both ranks, minus the shorter one, a step.
@pytest.mark.parametrize("name,late_ns,late_ranks", [("pipeline", 9.27e6, []), ("pipeline_slow_stage", 25.8e6, [1])])
def test_stages_that_wait_for_each_other_are_a_verdict(run, name, late_ns, late_ranks):
    verdict = job_of(run, TWO_GPUS / name)["verdict"]
    assert verdict["kind"] == "pipeline" and verdict["ranks"] == late_ranks
    assert verdict["late_ns"] == pytest.approx(late_ns, rel=0.01)
    assert verdict["pipeline"]["stages"] == 2 and verdict["pipeline"]["micro_batches"] == 4
    assert verdict["pipeline"]["least_ratio"] == pytest.approx(0.2)


# 9 % of a step.
def test_a_pipeline_with_many_micro_batches_gets_no_verdict(run):
    verdict = job_of(run, TWO_GPUS / "pipeline_many")["verdict"]
    assert verdict["kind"] == "unknown" and "too small for one" in verdict["text"]


# What killed processes leave: the calls of the CPU, without what ended. Rank 1 lacks rank 0's last call.
def killed_rank(folder, rank, calls, end_us, start=True):
    names = (["init"] if start else []) + ["allreduce"] * calls
    events = [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": 10,
               "args": {"Collective name": name, "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2,
                        "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}}
              for i, name in enumerate(names)]
    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::ones", "pid": 1, "tid": 1, "ts": end_us - 1, "dur": 1})
    (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events}))


def test_recordings_of_killed_ranks_show_who_stopped(run, tmp_path):
    killed_rank(tmp_path, 0, 5, 4_005_000)
    killed_rank(tmp_path, 1, 4, 4_004_000)
    found = json.loads(run("ranks", "hang", str(tmp_path), "--json").out)
    assert [(finding["kind"], finding["ranks"], finding["sequence"]) for finding in found["findings"]] == [("not-called", [1], 5)]
    assert found["findings"][0]["text"] == (
        "collective 5 of group 0 (default_pg): rank 1 has not called allreduce of 8 Float, the last call of rank 0, 4.0 s before "
        "the recording ends. The last call of rank 1 is collective 4 (allreduce of 8 Float), 4.0 s before its end")
    # A CPU that ran ahead, and a recording that begins in the middle.
    killed_rank(tmp_path, 0, 5, 500_000)
    assert json.loads(run("ranks", "hang", str(tmp_path), "--json").out)["findings"] == []
    killed_rank(tmp_path, 1, 4, 4_004_000, start=False)
    assert "which calls belong together is unknown" in " ".join(run("ranks", "hang", str(tmp_path)).out.split())


def test_a_real_slow_link_or_host_is_noted(run):
    """Real: NCCL over sockets. 1 gbit a second passes between hosts 1 and 2, or to and from the last host."""
    link, host, even = (job_of(run, DATA / "shared_gpus" / name)["verdict"] for name in ("slow_link", "slow_host", "even"))
    said = {note["kind"]: note["text"] for note in link["notes"]}["slow-link"]
    assert said.startswith("The network between ranks 3 and 4 is slow: 0.12 GB/s") and "host-" not in said
    said = {note["kind"]: note["text"] for note in host["notes"]}["slow-link"]
    assert said.startswith("The network between ranks 0 and 5 to 7 is slow: 0.06 GB/s")
    assert "Every slow group has a rank on host host-3, and no other group of that kind has" in said
    for verdict in (link, host):  # the ranks themselves do nothing wrong
        assert verdict["kind"] == "unknown" and "but not by what they do themselves" in verdict["text"]
    assert "slow-link" not in [note["kind"] for note in even["notes"]]


def test_a_rank_that_waits_for_a_late_one_in_its_pair_is_not_late(run):
    """Real: ranks 6 and 7 compute more. Ranks 0 and 5 sum with them first, and come late to what all ranks sum."""
    verdict = job_of(run, DATA / "shared_gpus" / "late_pair")["verdict"]
    assert verdict["kind"] == "straggler" and verdict["ranks"] == [6, 7]
    assert verdict["causes"][0]["cause"] == "compute"
    assert "late-host" not in [note["kind"] for note in verdict["notes"]]  # other work, not another machine


def test_the_error_of_clocks_holds_over_slow_networks(run):
    """Real: all ranks ran on one machine, so every offset is an error."""
    for name in ("even", "slow_link", "slow_host", "late_pair"):
        job = job_of(run, DATA / "shared_gpus" / name)
        assert {rank["host"] for rank in job["ranks"]} == {"host-0", "host-1", "host-2", "host-3"}
        for rank in job["ranks"]:
            assert abs(rank["clock"]["offset_ns"]) <= rank["clock"]["error_ns"], (name, rank["rank"])


def test_gpus_that_wait_for_cpus_on_all_ranks_are_noted(run):
    """Real: Python between the layers. Its kernels take 1.9 of 33 ms, and which rank comes late is not planted."""
    verdict = job_of(run, DATA / "two_h200" / "python_between_layers")["verdict"]
    assert verdict["ranks"] == [] and verdict["kind"] == "unknown"
    text = {note["kind"]: note["text"] for note in verdict["notes"]}["cpu-bound"]
    assert text.startswith("No GPU has work for 30.6") and "of a step (92 %), because the CPUs are late with it" in text
    for near_miss in ("two_h200/even_purposes", "two_h200/exposed_tensor_parallel", "ddp4/healthy", "ddp4/straggler"):
        kinds = [note["kind"] for note in job_of(run, DATA / near_miss)["verdict"]["notes"]]
        assert "cpu-bound" not in kinds, near_miss


def test_waits_are_unknown_where_collectives_do_not_name_their_group(run):
    """Real: Gloo, with a group of all ranks and two pairs for each rank."""
    folder = DATA / "gloo_hosts"
    job = job_of(run, folder)
    assert job["verdict"]["kind"] == "unknown" and job["verdict"]["notes"] == []
    assert [remark["kind"] for remark in job["remarks"]] == ["unmatched"]
    assert "ranks 0 to 3 are in several process groups" in job["remarks"][0]["text"]
    assert {rank["host"] for rank in job["ranks"]} == {"host-0", "host-1"}
    for rank in job["ranks"]:
        assert rank["collectives"] == 0 and rank["unlinked_collectives"] == 25  # five calls in each of five steps
        assert not rank["waits_known"] and rank["per_step"]["exposed_wait_ns"] == 0
    text = run("ranks", str(folder)).out
    assert "0 of 100 collective calls matched" in text and "Where waits are unknown, transfer includes them." in text
    difference = run("ranks", "diff", str(folder), str(DATA / "ddp4" / "healthy")).out
    assert "where unknown, transfer includes them" in difference and "-15.3 ms  may be waits" in difference
    table = list(csv.DictReader(run("ranks", str(folder), "--csv").out.splitlines()))
    assert [(row["exposed_wait_ns"], row["wait_ns"]) for row in table] == [("", "")] * 4


@pytest.mark.parametrize("fault,note,text", [("unequal-steps", "unequal-steps", "Rank 1 ends with step 14, most ranks end with step 17"),
                                             ("slow-link", "slow-link", "The network between ranks 0 and 1 is slow")])
def test_unequal_steps_and_a_slow_link_are_noted(run, tmp_path, fault, note, text):
    folder, _ = drawn(tmp_path, "--fault", fault, "--ranks", "8", "--steps", "8")
    verdict = job_of(run, folder)["verdict"]
    found = [each["text"] for each in verdict["notes"] if each["kind"] == note]
    assert len(found) == 1 and text in found[0], verdict
    healthy, _ = drawn(tmp_path / "healthy", "--ranks", "8", "--steps", "8")
    assert note not in [each["kind"] for each in job_of(run, healthy)["verdict"]["notes"]]


def test_the_groups_whose_communication_nothing_hides_are_named(run):
    """Real: activations that each layer sums cost 1.6 ms of a step of 7.1 ms, gradients hardly anything, or as much."""
    job = job_of(run, DATA / "two_h200" / "exposed_tensor_parallel")
    notes = {note["kind"]: note["text"] for note in job["verdict"]["notes"]}
    assert "tensor_parallel (2 ranks), in 12 calls" in notes["group-not-hidden"]
    first, second = job["communication_by_purpose"]
    assert (first["name"], first["groups"], first["size"], first["calls"]) == ("tensor_parallel", 1, 2, 12)
    assert first["exposed_ns"] - first["exposed_wait_ns"] == pytest.approx(1.61e6, rel=0.03)
    assert second["name"] == "data_parallel" and second["exposed_ns"] < 50_000
    even = job_of(run, DATA / "two_h200" / "even_purposes")
    assert "group-not-hidden" not in [note["kind"] for note in even["verdict"]["notes"]]
    assert [each["name"] for each in even["communication_by_purpose"]] == ["tensor_parallel", "data_parallel"]
