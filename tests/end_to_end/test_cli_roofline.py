"""`lanescope roofline`: the table, its JSON, and traces it can say little about."""

from __future__ import annotations

import json

import pytest

from conftest import SOURCE

TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")
NO_SHAPES = str(SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json")


def test_it_names_the_gpu_its_peaks_and_their_source(run):
    ran = run("roofline", TRAIN)
    assert ran.code == 0
    assert ran.out.startswith("Roofline of NVIDIA H200 (device 0), the sum over 2 steady steps\n")
    assert "bf16 989.5" in ran.out and "NVIDIA H200 data sheet" in ran.out
    assert len(run("roofline", TRAIN, "--rows", "1").out.splitlines()) < len(ran.out.splitlines())


def test_a_matmul_is_two_operations_a_product(run):
    answer = json.loads(run("roofline", TRAIN, "--json").out)
    assert answer["lanescope"]["command"] == "roofline"
    row = answer["rows"][0]
    assert (row["operator"], row["shapes"]) == ("aten::mm", "[[4096, 2048], [2048, 8192]]")
    assert row["flops_count"] == 2 * 4096 * 2048 * 8192
    assert row["least_bytes"] == 2 * (4096 * 2048 + 2048 * 8192 + 4096 * 8192)
    assert row["flops_per_s"] == pytest.approx(row["flops_count"] * row["count"] / row["time_ns"] * 1e9)
    assert row["achieved_ratio"] == pytest.approx(row["flops_per_s"] / 989.5e12)
    assert row["limited_by"] == "compute"


def test_the_classes_hold_all_of_the_time(run):
    answer = json.loads(run("roofline", TRAIN, "--json").out)
    times = [each["time_ns"] for each in answer["classes"].values()]
    assert max(times) <= answer["busy_ns"] <= sum(times)
    assert sum(row["count"] for row in answer["rows"]) == sum(
        each["count"] for name, each in answer["classes"].items() if name != "unknown")


def test_it_says_what_is_missing(run):
    assert "record with record_shapes=True" in run("roofline", NO_SHAPES).out
    assert run("roofline").code == 2
    assert run("roofline", TRAIN, "--step", "99").code == 2
