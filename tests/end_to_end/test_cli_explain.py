"""`lanescope explain`: verdicts, one step, chosen rules, and what its JSON holds."""

from __future__ import annotations

import json

from conftest import SOURCE

SMALL = str(SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json")
TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")


def test_the_first_line_is_the_verdict(run):
    assert run("explain", SMALL).out.startswith("CPU-bound: of the 78.865us a step takes")
    assert run("explain", TRAIN).out.startswith("GPU-bound: the GPU was busy 95.9%")
    assert run("explain", TRAIN, "--md").out.startswith("# What bounds a step\n")


def test_json_adds_up(run):
    for trace in SMALL, TRAIN:
        answer = json.loads(run("explain", trace, "--json").out)
        assert answer["lanescope"]["command"] == "explain"
        for device in answer["devices"]:
            for wall in [device["steady"], *device["steps"]]:
                parts = ["compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns"]
                assert sum(wall[part] for part in parts) == wall["wall_ns"] > 0
                assert sum(wall["idle_by_cause_ns"].values()) == wall["idle_ns"]
        for finding in answer["findings"]:
            assert finding["verdict"]["text"] and "{}" not in finding["verdict"]["text"]
            assert finding["at_stake_ns"] >= 0


def test_one_step_and_chosen_rules(run):
    answer = json.loads(run("explain", TRAIN, "--json", "--step", "3", "--question", "gpu-bound,host-sync").out)
    assert answer["steady_steps"] == [3]
    assert [rule["id"] for rule in answer["rules"]] == ["gpu-bound", "host-sync"]
    without = json.loads(run("explain", TRAIN, "--json", "--off", "final-sync").out)
    assert "final-sync" not in [rule["id"] for rule in without["rules"]]


def test_the_list_names_every_page(run):
    rules = [line.split()[0] for line in run("explain", "--list").out.splitlines()]
    pages = {path.stem for path in (SOURCE / "docs/rules").glob("*.md")}
    assert set(rules) == pages and len(rules) == len(set(rules))


def test_mistakes_are_named(run):
    assert run("explain").code == 2
    wrong = run("explain", TRAIN, "--question", "hostsync")
    assert wrong.code == 2 and "did you mean host-sync?" in wrong.err
    wrong = run("explain", TRAIN, "--step", "99")
    assert wrong.code == 2 and "a step from 1 to 3, found 99" in wrong.err
