"""`lanescope diff`: effects that add up, zeroes against itself, files that do not compare, hostile files."""

from __future__ import annotations

import gzip
import json

import pytest
from conftest import SOURCE

EAGER = str(SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json")
COMPILED = str(SOURCE / "tests/data/h200_64_bf16_warm_compile/trace.json")
LINEAR = str(SOURCE / "tests/data/h200_linear_eager/trace.json.gz")
TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")
TRACES = [EAGER, COMPILED, LINEAR, TRAIN]


def effects_of(answer):
    effects = answer["effects_ns"]
    parts = [value for key, value in effects.items() if key not in ("sum", "idle_by_cause_ns")]
    return sum(parts) + sum(effects["idle_by_cause_ns"].values())


@pytest.mark.parametrize("a", TRACES)
@pytest.mark.parametrize("b", TRACES)
def test_effects_add_up_to_the_difference_of_the_walls(run, a, b):
    answer = json.loads(run("diff", a, b, "--json").out)
    assert answer["lanescope"]["command"] == "diff"
    delta = answer["b"]["wall_ns"] - answer["a"]["wall_ns"]
    assert effects_of(answer) == answer["effects_ns"]["sum"] == delta
    rows = answer["kernels"]
    assert sum(row["delta_ns"] for row in rows) == answer["b"]["kernels_ns"] - answer["a"]["kernels_ns"]
    for side in answer["a"], answer["b"]:
        parts = ["kernels_ns", "overlap_ns", "exposed_communication_ns", "exposed_copy_ns"]
        assert sum(side[part] for part in parts) + sum(side["idle_by_cause_ns"].values()) == side["wall_ns"]
        explained = json.loads(run("explain", side["trace"], "--json").out)
        device = next(each for each in explained["devices"] if each["rules_look_at_it"])
        assert side["wall_ns"] == device["steady"]["wall_ns"] // len(explained["steady_steps"])
    if a == b:
        assert answer["verdict"] == "equal"
        assert all(row["delta_ns"] == row["calls_ns"] == row["per_call_ns"] == 0 for row in rows)
        assert all(row["a_ns"] == row["b_ns"] for row in answer["gaps"] + answer["cpu"] + answer["moves"])


def test_what_compile_made_of_two_operators(run):
    text = run("diff", EAGER, COMPILED).out
    assert text.startswith("B's step takes 3.8 times as long as A's: 297.655us instead of 78.865us")
    assert "fused: aten::mm, aten::add -> GEMM 64x8x64 NNT (cuBLASLt nvjet, sm90)" in text
    assert run("diff", EAGER, COMPILED, "--md").out.startswith("# What changed\n")


def test_json_has_both_names_of_a_kernel(run):
    rows = json.loads(run("diff", EAGER, COMPILED, "--json").out)["kernels"]
    assert [row["match"] for row in rows] == ["fused"]
    assert sorted(group["op"] for group in rows[0]["a"]) == ["aten::add", "aten::mm"]
    assert rows[0]["b"][0]["name"].startswith("nvjet_sm90")
    assert rows[0]["b"][0]["readable_name"] == "GEMM 64x8x64 NNT (cuBLASLt nvjet, sm90)"


def test_one_step(run):
    answer = json.loads(run("diff", TRAIN, TRAIN, "--json", "--step", "3", "--top", "2").out)
    assert answer["a"]["step_count"] == 1 and len(answer["kernels"]) == 2
    wrong = run("diff", TRAIN, EAGER, "--step", "99")
    assert wrong.code == 2 and "--step" in wrong.err and "h200_mlp_train" in wrong.err


def test_files_that_do_not_compare(run, tmp_path):
    cpu = tmp_path / "cpu.json"
    cpu.write_text(json.dumps([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 5, "pid": 1, "tid": 1}]))
    answer = run("diff", str(cpu), EAGER)
    assert answer.code == 0 and "A holds no GPU work" in answer.out and "CPU time" in answer.out
    empty = tmp_path / "empty.json"
    empty.write_text('{"traceEvents": []}')
    assert "nothing to compare" in run("diff", str(empty), str(empty)).out
    assert run("diff", str(empty), str(tmp_path / "none.json")).code == 2
    assert run("diff", "-", "-").code == 2
    assert run("diff", EAGER).code == 2


def test_a_step_is_not_compared_with_a_whole_recording(run, tmp_path):
    """Without marks, its first two steps are one recording of twice as many calls, each as long as before."""
    trace = json.load(gzip.open(TRAIN))
    marks = "ProfilerStep#", "Optimizer.step#"  # without marks, steps are found between those of the optimizer
    third = sorted(e["ts"] for e in trace["traceEvents"] if str(e.get("name", "")).startswith(marks[0]) and e.get("cat") == "user_annotation")[2]
    trace["traceEvents"] = [e for e in trace["traceEvents"] if not str(e.get("name", "")).startswith(marks) and float(e.get("ts", 0)) < third]
    unmarked = tmp_path / "unmarked.json"
    unmarked.write_text(json.dumps(trace))
    text = run("diff", TRAIN, str(unmarked)).out
    assert "B marks no steps" in text
    assert "GPU kernels: time of a call" in text and "CPU time of a call, without its children" in text
    assert "CPU time of a recording" not in text and "CPU time of a step" not in text


def test_hostile_files(run, tmp_path):
    whole = gzip.decompress(open(LINEAR, "rb").read())
    for size in 0, 1, 1000, 40_000, len(whole) - 3:
        cut = tmp_path / "cut.json"
        cut.write_bytes(whole[:size])
        assert run("diff", str(cut), LINEAR).code in (0, 2)
        assert run("diff", LINEAR, str(cut), "--json").code in (0, 2)
    long_name = "triton_poi_fused_" + "add_" * 200_000
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "pid": 0, "tid": 7,
         "args": {"device": 0, "stream": 7, "correlation": 0}}
        for ts, (name, dur) in enumerate([(long_name, 9e15), ("\u001b[2J{}", 9e15), ("", 0), (long_name, 1)])
    ]
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(events))
    for a, b in (hostile, hostile), (hostile, TRAIN), (EAGER, hostile):
        answer = run("diff", str(a), str(b))
        assert answer.code == 0 and "\u001b" not in answer.out
        parsed = json.loads(run("diff", str(a), str(b), "--json").out)
        if "effects_ns" in parsed:
            assert effects_of(parsed) == parsed["b"]["wall_ns"] - parsed["a"]["wall_ns"]
