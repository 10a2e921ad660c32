"""`lanescope ranks`: the verdict on real jobs and on drawn jobs with planted faults."""

from __future__ import annotations

import csv
import json

import pytest

from conftest import DATA, NEEDS_SHARED_TRACES, SHARED_TRACES
from rank_jobs import drawn, job_of, remarks

STRAGGLER = str(DATA / "ddp4" / "straggler")
pytestmark = pytest.mark.usefixtures("own_cache")


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
    assert "Rank 1 delays the others" in run("ranks", STRAGGLER).out


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
