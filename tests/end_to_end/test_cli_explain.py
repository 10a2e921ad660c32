"""`lanescope explain`: verdicts, one step, chosen rules, and what its JSON holds."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from conftest import DATA, SOURCE

SMALL = str(SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json")
TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")
EAGER = str(SOURCE / "tests/data/h200/mlp_eager.json.gz")


def test_the_first_line_is_the_verdict(run):
    assert run("explain", SMALL).out.startswith("CPU-bound: of the 78.9 us a step takes")
    assert run("explain", TRAIN).out.startswith("GPU-bound: the GPU was busy 96 %")
    assert run("explain", "--full", SMALL).out.startswith("CPU-bound: of the 78.865us a step takes")
    assert run("explain", "--full", TRAIN).out.startswith("GPU-bound: the GPU was busy 95.9%")
    assert run("explain", TRAIN, "--md").out.startswith("# What bounds a step\n")


def readable(folder):
    return sorted(path for path in folder.rglob("*.json*") if "spec" not in path.name and path.name != "FACTS.json")


def test_the_default_is_one_screen_and_says_how_to_see_the_rest(run):
    out = run("explain", TRAIN).out
    assert len(out.splitlines()) <= 24 and "\x1b" not in out
    assert "\nDo first\n1. The optimizer runs 7 operations over all parameters" in out
    assert out.endswith(f"4 more findings, 1 note on the recording:\n  lanescope explain --full {TRAIN}\n")
    assert "Healthy, as far as known: no fix would save 1 % of the step or more." in run("explain", EAGER).out
    full = run("explain", "--full", TRAIN).out
    assert "Looks alarming, but is normal" in full and len(full.splitlines()) > 24
    small = run("explain", SMALL).out
    assert "\nDo first\n1. The CPU launches work too slowly for the GPU" in small and "up to " in small
    assert "Without the profiler a step takes about " in small
    assert run("explain", "--full", "--json", SMALL).code == 2


def test_colours_only_on_a_terminal(run, run_in_terminal):
    assert "\x1b[1mDo first\x1b[0m" in run_in_terminal("explain", SMALL).out
    assert "\x1b" not in run_in_terminal("explain", SMALL, env={"NO_COLOR": "1"}).out
    assert "\x1b" not in run("explain", SMALL).out


def test_what_to_do_first_is_in_json_and_markdown_too(run):
    answer = json.loads(run("explain", SMALL, "--json").out)
    first = answer["do_first"]
    assert 0 < len(first) <= 3
    step_ns = answer["devices"][0]["steady"]["wall_ns"] // len(answer["steady_steps"])
    for each in first:
        assert 0 < each["gain_ns"] <= step_ns and 0 < each["gain_ratio"] <= 1
        assert each["rule"] in [finding["rule"] for finding in answer["findings"]]
        assert "{}" not in each["verdict"]["text"] + each["action"]["text"]
    assert first[0]["place"]["text"] == "in range matmul_add"
    markdown = run("explain", SMALL, "--md").out
    assert markdown.index("## Wall of a step") < markdown.index("## Do first") < markdown.index("## What bounds it")


def fit_a_screen(run, folder):
    """How many traces of the folder were shown, each in 25 lines at most."""
    shown = 0
    for path in readable(folder):
        done = run("explain", str(path))
        if done.code != 0:
            continue
        shown += 1
        assert len(done.out.splitlines()) <= 25, path
        assert "{}" not in done.out
    return shown


def test_a_second_fix_that_adds_nothing_is_called_so(run):
    screen = run("explain", DATA / "faults/handmade_rmsnorm.bad.lanescope.json.gz").out
    assert "Fixes 1 and 2 together gain no more than fix 1." in screen


def test_shipped_traces_fit_a_screen(run):
    assert fit_a_screen(run, DATA) >= 25


def test_shared_traces_fit_a_screen(run, shared_traces):
    assert fit_a_screen(run, shared_traces) >= 25


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
    short, whole = (" ".join(run("explain", TRAIN, *more).out.split()) for more in (["--full"], ["--all"]))
    said = "no issue, or below the threshold: "
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


def test_a_step_longer_than_all_others_together_is_reported_and_left_out(run, tmp_path):
    trace = str(SOURCE / "tests/data/faults/validation_in_a_step.bad.torch.json.gz")
    answer = json.loads(run("explain", trace, "--json").out)
    assert answer["steady_steps"] == [4, 6, 7, 8] and answer["long_step"] == 5
    walls = {step["number"]: step["wall_ns"] for step in answer["devices"][0]["steps"]}
    assert answer["devices"][0]["steady"]["wall_ns"] == sum(walls[number] for number in answer["steady_steps"]) < walls[5]
    text = " ".join(run("explain", "--full", trace).out.split())
    assert "Step 5 took 24.267ms, longer than the other 4 together, and is left out." in text
    assert "step 5 because it took longer than these together" in text
    assert "1. The verdict above, in detail:" in text
    page = tmp_path / "page.html"
    assert run("explain", trace, "--html", str(page)).code == 0
    assert "5 (left out)" in page.read_text()
    alone = json.loads(run("explain", trace, "--json", "--step", "5").out)
    assert alone["steady_steps"] == [5] and "long_step" not in alone


LEAK = SOURCE / "tests/data/faults/leak.bad.torch.json.gz"


def leak_of(steps, with_memory, path):
    """The first steps of a loop that keeps each loss with its graph, with or without its memory records."""
    trace = json.loads(gzip.decompress(LEAK.read_bytes()))
    marks = sorted((event for event in trace["traceEvents"] if str(event.get("name", "")).startswith("ProfilerStep")
                    and event.get("cat") == "user_annotation"), key=lambda event: event["ts"])
    end = marks[steps - 1]["ts"] + marks[steps - 1]["dur"]
    trace["traceEvents"] = [event for event in trace["traceEvents"]
                            if not (event.get("ph") in ("X", "i") and event["ts"] >= end)
                            and (with_memory or event.get("name") != "[memory]")]
    path.write_text(json.dumps(trace))
    return path


@pytest.mark.parametrize("steps, with_memory, says", [
    (6, True, "GPU memory grows by 72.00 MiB per step until it runs out"),
    (3, True, "GPU memory grows by 72.00 MiB in each of 2 steps; these are few, so it may end"),
    (2, True, "Memory may grow: record six steps with profile_memory=True, then lanescope memory"),
    (6, False, "Memory grows: record with profile_memory=True, then lanescope memory"),
    (3, False, "Memory may grow: record six steps with profile_memory=True, then lanescope memory"),
    (2, False, "Memory may grow: record six steps with profile_memory=True, then lanescope memory"),
])
def test_a_leak_is_never_answered_with_settings_of_the_allocator(run, tmp_path, steps, with_memory, says):
    path = leak_of(steps, with_memory, tmp_path / "leak.json")
    assert says in " ".join(run("explain", path).out.split())
    assert "expandable_segments" not in run("explain", path, "--full").out


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
    headline = run("explain", "--full", TRAIN).out.split("\n\n")[0]
    text = run("explain", TRAIN, "--question", "which sync should not be there?").out
    assert text.split("\n\n")[0] == headline
    assert run("explain", "--full", TRAIN, "--off", "gpu-bound").out.split("\n\n")[0] == headline
    asked, wall = text.index("\nWhat you asked\n"), text.index("\nWall of a step")
    assert asked < text.index("[final-sync") < wall
    quiet = "host-sync: does the program wait for the GPU in the middle of a step?\n    no issue, or below the threshold"
    assert quiet in text
    assert "final-sync: what is the long synchronize at the end?\n    see 1 below" in text
    assert "What else was checked" not in text and "No rule found" not in text
    missing = run("explain", TRAIN, "--question", "long-step").out
    assert "long-step: did one step take longer than all others?\n    not checked: needs four steps or more" in missing
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
    folder = DATA / "ddp4" / "straggler"
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
    assert "other processes mark steps too" in " ".join(run("explain", "--full", str(path)).out.split())


def test_a_recording_of_the_cpu_alone_has_a_wall_that_adds_up(run):
    path = str(SOURCE / "tests/data/torch213_worker_restart/trace.json.gz")
    answer = json.loads(run("explain", path, "--json").out)
    assert answer["devices"] == []
    for wall in [answer["cpu"]["steady"], *answer["cpu"]["steps"]]:
        parts = [value for key, value in wall.items() if key not in ("wall_ns", "start_ns", "number")]
        assert len(parts) == 6 and sum(parts) == wall["wall_ns"]
    steady = [step for step in answer["cpu"]["steps"] if step["number"] in answer["steady_steps"]]
    assert sum(step["wall_ns"] for step in steady) == answer["cpu"]["steady"]["wall_ns"]
    text = run("explain", "--full", path).out
    assert "Wall of a step on the CPU, thread 9081" in text
    assert re.search(r"input data +#{15}\.{15} +5\.055ms +49\.43%", text)
    page = run("explain", path, "--html", "-").out
    assert "<h2>Wall of a step on the CPU, thread 9081</h2>" in page and "5,054,623 ns" in page


def test_cli_explain_json_has_the_owners_of_a_step(run):
    trace = str(SOURCE / "tests/data/faults/dataloader_wait.bad.torch.json.gz")
    owners = json.loads(run("explain", trace, "--json").out)["owners"]
    first = owners[0]
    assert (first["kind"], first["mechanism"], first["around"], first["is_rest"]) == ("range", "data", [], False)
    assert first["name"] == "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    # 12.9 ms, 74 % of the step, as on the first screen; its parts are means, each rounded down.
    assert first["time_ns"] == 12_870_864 and first["ratio"] == pytest.approx(0.7419, abs=1e-4)
    assert first["time_by_kind"] == {"calls_ns": 23_829, "data_ns": 12_847_034}
    assert (owners[1]["kind"], owners[1]["mechanism"], owners[1]["is_rest"]) == ("step", "gpu_work", True)
    assert owners[1]["text"]["text"].startswith("all other parts")
    assert owners[2]["kind"] == "loop" and (owners[2]["rounds"], owners[2]["loops"]) == (30, 5)
    assert sum(owner["ratio"] for owner in owners) <= 1


def test_cli_explain_lines_of_a_copy_bound_step_show_what_its_headline_counts(run):
    lines = run("explain", str(SOURCE / "tests/data/faults/cpu_round_trip.bad.lanescope.json.gz")).out.splitlines()
    assert "19.8 ms (65 %) goes to copies" in " ".join(lines)
    assert any(re.match(r"  copies, no compute +10\.2 ms +34 %", line) for line in lines)
    assert any(re.match(r"  idle: CPU makes a copy +9\.53 ms +32 %", line) for line in lines)
