"""`lanescope explain`: verdicts, one step, chosen rules, and what its JSON holds."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from conftest import SHARED_TRACES, SOURCE

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


def test_rules_that_had_nothing_to_say_are_counted_and_named_on_request(run):
    answer = json.loads(run("explain", TRAIN, "--json").out)
    quiet = [rule["id"] for rule in answer["rules"] if rule["state"] == "quiet"]
    short, whole = (" ".join(run("explain", TRAIN, *more).out.split()) for more in ([], ["--all"]))
    said = "looked at, and not so here or too little to matter: "
    assert len(quiet) > 8 and f"{said}{len(quiet)} rules" in short and "explain --all names every rule" in short
    assert said + ", ".join(quiet) in whole and "--all names" not in whole
    assert "not checked: memory-growth; needs four steps or more with memory records" in short
    assert run("explain", TRAIN, "--all", "--json").code == 2


def test_one_step_and_chosen_rules(run):
    answer = json.loads(run("explain", TRAIN, "--json", "--step", "3", "--question", "gpu-bound,host-sync").out)
    assert answer["steady_steps"] == [3]
    assert [rule["id"] for rule in answer["rules"]] == ["gpu-bound", "host-sync"]
    without = json.loads(run("explain", TRAIN, "--json", "--off", "final-sync").out)
    assert "final-sync" not in [rule["id"] for rule in without["rules"]]


def test_a_step_longer_than_all_others_together_is_told_and_left_out(run, tmp_path):
    trace = str(SOURCE / "tests/data/faults/validation_in_a_step.bad.torch.json.gz")
    answer = json.loads(run("explain", trace, "--json").out)
    assert answer["steady_steps"] == [4, 6, 7, 8] and answer["long_step"] == 5
    walls = {step["number"]: step["wall_ns"] for step in answer["devices"][0]["steps"]}
    assert answer["devices"][0]["steady"]["wall_ns"] == sum(walls[number] for number in answer["steady_steps"]) < walls[5]
    text = " ".join(run("explain", trace).out.split())
    assert "Step 5 took 24.267ms, longer than the other 4 together, and is left out." in text
    assert "step 5 because it took longer than these together" in text
    assert "1. The first line, in detail:" in text
    page = tmp_path / "page.html"
    assert run("explain", trace, "--html", str(page)).code == 0
    assert "5 (left out)" in page.read_text()
    alone = json.loads(run("explain", trace, "--json", "--step", "5").out)
    assert alone["steady_steps"] == [5] and "long_step" not in alone


def test_a_question_in_words(run):
    done = run("explain", TRAIN, "--question", "Why is the first step slow?", "--json")
    assert [rule["id"] for rule in json.loads(done.out)["rules"]] == ["slow-first-step"]
    both = json.loads(run("explain", TRAIN, "--question", "CPU overhead or GPU compute", "--json").out)
    assert {"host-bound", "gpu-bound"} <= {rule["id"] for rule in both["rules"]}
    every = json.loads(run("explain", TRAIN, "--json").out)
    assert json.loads(run("explain", TRAIN, "--question", "What should I fix first?", "--json").out) == every
    nothing = run("explain", TRAIN, "--question", "quux frobnicate")
    assert nothing.code == 2 and "no rule has the words of 'quux frobnicate'" in nothing.err


def test_the_answer_comes_first_and_the_headline_is_that_of_all_rules(run, tmp_path):
    headline = run("explain", TRAIN).out.split("\n\n")[0]
    text = run("explain", TRAIN, "--question", "which sync should not be there?").out
    assert text.split("\n\n")[0] == headline
    assert run("explain", TRAIN, "--off", "gpu-bound").out.split("\n\n")[0] == headline
    asked, wall = text.index("\nWhat you asked\n"), text.index("\nWall of a step")
    assert asked < text.index("[final-sync") < wall
    quiet = "host-sync: does the program wait for the GPU in the middle of a step?\n    looked at, and not so here"
    assert quiet in text
    assert "final-sync: what is the long synchronize at the end?\n    see 1 below" in text
    assert "What else was asked" not in text and "No rule found" not in text
    missing = run("explain", TRAIN, "--question", "long-step").out
    assert "long-step: did one step take longer than all others?\n    cannot be told: needs five steps or more" in missing
    page = tmp_path / "page.html"
    assert run("explain", TRAIN, "--question", "which sync should not be there?", "--html", str(page)).code == 0
    html = page.read_text()
    assert html.index("<h2>What you asked</h2>") < html.index('id="finding-1"') < html.index('id="wall"')


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


def test_ranks_in_one_file_keep_their_steps_apart(run, tmp_path):
    """The busiest device's own steps, each as long as in the file of its rank alone."""
    folder = SHARED_TRACES / "ddp4" / "straggler"
    if not folder.is_dir():
        pytest.skip(f"LOUD: {folder} is not there; nothing was tested")
    merged, alone = [], {}
    for rank in range(4):
        path = folder / f"rank{rank}.json.gz"
        trace = json.loads(gzip.open(path).read())
        for event in trace["traceEvents"]:
            if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync"):
                if isinstance(event.get("pid"), int):
                    event["pid"] += 1_000_000 * rank
        merged += trace["traceEvents"]
        answer = json.loads(run("explain", str(path), "--json").out)
        device = next(each for each in answer["devices"] if each["rules_look_at_it"])
        alone[device["device"]] = answer["steady_steps"], device["steady"]["wall_ns"]
    path = tmp_path / "merged.json"
    path.write_text(json.dumps(dict(trace, traceEvents=merged)))
    answer = json.loads(run("explain", str(path), "--json").out)
    device = next(each for each in answer["devices"] if each["rules_look_at_it"])
    assert (answer["steady_steps"], device["steady"]["wall_ns"]) == alone[device["device"]]
    assert "other processes mark steps too" in " ".join(run("explain", str(path)).out.split())


def test_a_recording_of_the_cpu_alone_has_a_wall_that_adds_up(run):
    path = str(SOURCE / "tests/data/torch213_worker_restart/trace.json.gz")
    answer = json.loads(run("explain", path, "--json").out)
    assert answer["devices"] == []
    for wall in [answer["cpu"]["steady"], *answer["cpu"]["steps"]]:
        parts = [value for key, value in wall.items() if key not in ("wall_ns", "start_ns", "number")]
        assert len(parts) == 6 and sum(parts) == wall["wall_ns"]
    steady = [step for step in answer["cpu"]["steps"] if step["number"] in answer["steady_steps"]]
    assert sum(step["wall_ns"] for step in steady) == answer["cpu"]["steady"]["wall_ns"]
    text = run("explain", path).out
    assert "Wall of a step on the CPU, thread 9081" in text
    assert re.search(r"input data +#{15}\.{15} +5\.055ms +49\.43%", text)
    page = run("explain", path, "--html", "-").out
    assert "<h2>Wall of a step on the CPU, thread 9081</h2>" in page and "5,054,623 ns" in page
