"""`lanescope kernels`: the table, its JSON, and traces without GPU work."""

from __future__ import annotations

import json

from conftest import SOURCE

TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")
CPU_ONLY = str(SOURCE / "tests/data/torch213_recompile/trace.json.gz")


def test_the_table_has_a_row_a_group(run):
    ran = run("kernels", TRAIN)
    assert ran.code == 0
    assert "MAD" in ran.out and "GEMM" in ran.out
    assert len(run("kernels", TRAIN, "--rows", "1").out.splitlines()) == 5
    assert "more groups (--rows)" in run("kernels", TRAIN, "--rows", "1").out


def test_json_adds_up(run):
    answer = json.loads(run("kernels", TRAIN, "--json").out)
    assert answer["lanescope"]["command"] == "kernels"
    groups = answer["groups"]
    assert groups == sorted(groups, key=lambda group: -group["busy_ns"])
    for group in groups:
        assert group["shortest_ns"] <= group["median_ns"] <= group["p95_ns"] <= group["longest_ns"]
        assert group["busy_ns"] <= group["total_ns"] <= group["count"] * group["longest_ns"]
    assert sum(group["busy_ns"] for group in groups) >= answer["busy_ns"]


def test_without_gpu_work_it_says_so(run):
    assert "The trace holds no GPU work, so no kernels; lanescope table" in run("kernels", CPU_ONLY).out
    assert json.loads(run("kernels", CPU_ONLY, "--json").out)["groups"] == []
    assert run("kernels").code == 2
    assert run("kernels", TRAIN, "--step", "99").code == 2


def test_a_step_longer_than_all_others_together_is_left_out_as_in_explain(run):
    trace = str(SOURCE / "tests/data/faults/validation_in_a_step.bad.torch.json.gz")
    explained = json.loads(run("explain", trace, "--json").out)
    for command in ("kernels", "roofline"):
        assert json.loads(run(command, trace, "--json").out)["steady_step_count"] == len(explained["steady_steps"]) == 4
        head = run(command, trace).out.splitlines()[:2]
        assert "4 steady steps" in head[0]
        assert head[1] == "Step 5 took 24.267ms, longer than the other 4 together, and is left out."
    # A limit holds for every step after the first, and a slow step may be why two means differ.
    assert "(5 steady steps)" in run("check", trace, "--write-budget", "-").out
    assert "5 steady steps" in run("diff", trace, trace).out
