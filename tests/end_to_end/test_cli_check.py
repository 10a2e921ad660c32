"""`lanescope check`: exit codes, reasons, budgets that are written and kept, mistakes in files."""

from __future__ import annotations

import gzip
import json

import pytest
from conftest import SOURCE

EAGER = str(SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json")
COMPILED = str(SOURCE / "tests/data/h200_64_bf16_warm_compile/trace.json")
LINEAR = str(SOURCE / "tests/data/h200_linear_eager/trace.json.gz")
TRAIN = str(SOURCE / "tests/data/h200_mlp_train/trace.json.gz")


@pytest.fixture
def check(run, tmp_path):
    """check(trace, text of a budget, flags...)"""
    def go(trace, text, *flags):
        path = tmp_path / "budget.toml"
        path.write_text(text)
        answer = run("check", str(trace), "--budget", str(path), *flags)
        if "built without toml++" in answer.err:
            pytest.skip("needs a command built with toml++: " + answer.err)
        return answer
    return go


@pytest.mark.parametrize("trace", [EAGER, COMPILED, LINEAR, TRAIN])
@pytest.mark.parametrize("slack", ["0%", "10%"])
def test_a_trace_keeps_the_budget_made_from_it(run, check, trace, slack):
    text = run("check", trace, "--write-budget", "-", "--slack", slack)
    assert text.code == 0
    answer = check(trace, text.out)
    assert answer.code == 0 and answer.out.startswith("The budget is kept"), answer.out


def test_numbers_are_those_of_explain(run, check):
    budget = '[at_most]\nwall = "1 s"\nidle = "100 %"\ncompute = "1 s"\nexposed_copy = "1 s"\n'
    answer = json.loads(check(TRAIN, budget, "--json").out)
    assert answer["lanescope"]["command"] == "check" and answer["kept"]
    explained = json.loads(run("explain", TRAIN, "--json").out)
    steps = len(explained["steady_steps"])
    steady = next(each for each in explained["devices"] if each["rules_look_at_it"])["steady"]
    lines = {line["key"]: line for line in answer["lines"]}
    assert list(lines) == ["wall", "idle", "compute", "exposed_copy"]
    assert lines["wall"]["value"] == steady["wall_ns"] / steps
    assert lines["compute"]["value"] == steady["compute_ns"] / steps
    assert lines["exposed_copy"]["value"] == steady["exposed_copy_ns"] / steps
    assert lines["idle"]["value"] == pytest.approx(steady["idle_ns"] / steady["wall_ns"], rel=1e-12)
    assert lines["idle"]["unit"] == "ratio" and lines["idle"]["limit"] == 1


def test_broken_limits_have_reasons(check):
    answer = check(EAGER, '[at_most]\nidle = "5 %"\nwall = "1 s"\n[rules]\nmust_not_fire = ["host-bound"]\n')
    assert answer.code == 1
    assert answer.out.startswith("The budget is broken: 2 of 3 lines not kept.")
    assert "BROKEN  idle                   96.4% of 78.865us per step, at most 5.0% allowed" in answer.out
    assert "the CPU had not launched yet, before aten::mm" in answer.out
    assert "BROKEN  host-bound             CPU-bound" in answer.out
    assert "kept    wall " in answer.out
    text = check(EAGER, '[at_most]\nidle = "5 %"', "--md").out
    assert text.startswith("# The budget is broken") and "| BROKEN | idle |" in text


FAULTS = SOURCE / "tests/data/faults"


# One program that only recording makes CPU-bound, one whose waits are most of the recorded step, one whose steps are uneven, and one
# with a step that was held up.
@pytest.mark.parametrize("name", ["step_left_synchronized.good.torch", "sync_for_timing.bad.torch", "checkpoint_every_n.bad.torch",
                                  "table_on_first_use.good.lanescope"])
def test_causes_are_those_of_explain(run, check, name):
    trace = FAULTS / f"{name}.json.gz"
    explained = json.loads(run("explain", trace, "--json").out)
    checked = json.loads(check(trace, '[at_most]\nwall = "1 ns"', "--json").out)
    assert [(each["rule"], each["at_stake_ns"], each["gain_is_predicted"]) for each in checked["causes"]] == [
        (each["rule"], each["gain_ns"], each["gain_is_predicted"]) for each in explained["do_first"]]
    base = explained["without_profiler"]
    assert all(each["at_stake_ns"] <= base["step_ns"] for each in checked["causes"])
    screen = " ".join(run("explain", trace).out.split())
    why = " ".join(check(trace, '[at_most]\nwall = "1 ns"').out.split())
    assert screen.split(". ")[0] in why.split("Why, from lanescope explain: ")[1]


def test_what_only_recording_makes_cpu_bound_is_called_gpu_bound(check):
    trace = FAULTS / "step_left_synchronized.good.torch.json.gz"
    answer = check(trace, '[at_most]\nwall = "1 ns"')
    assert "Why, from lanescope explain: GPU-bound without the profiler" in answer.out


def test_what_the_trace_lacks_does_not_pass(check, tmp_path):
    answer = check(EAGER, '[at_most]\npeak_memory = "80 GiB"')
    assert answer.code == 1 and "MISSING peak_memory" in answer.out and "profile_memory=True" in answer.out
    empty = tmp_path / "empty.json"
    empty.write_text('{"traceEvents": []}')
    assert check(empty, '[at_most]\nwall = "1 s"').code == 1
    cut = tmp_path / "cut.json"
    whole = gzip.decompress(open(LINEAR, "rb").read())
    cut.write_bytes(whole[:len(whole) * 3 // 4])
    answer = check(cut, '[at_most]\nkernels = 1000000')
    assert answer.code == 1 and "MISSING damage" in answer.out
    assert check(cut, 'allow_damage = true\nper = "recording"\n[at_most]\npeak_memory = "1 B"').code == 1


def test_mistakes_in_the_budget_are_named(check):
    for text, part in [("[at_most]\nidel = '5 %'", "line 2: there is no measure 'idel'; did you mean idle?"),
                       ("[at_most]\nidle = 5", "such as \"5 %\"; found '5'"),
                       ("[rules]\nmust_not_fire = ['host-snyc']", "did you mean host-sync?"),
                       ("idle = 5", "line 1"), ("x = [", "expected TOML"), ("", "expected a limit")]:
        answer = check(EAGER, text)
        assert answer.code == 2 and answer.out == "" and part in answer.err, answer.err


def test_flags_and_files(run, tmp_path):
    assert run("check", EAGER).code == 2
    assert run("check", EAGER, "--budget", "none.toml").code == 2
    assert run("check", EAGER, "--budget", str(tmp_path)).code == 2
    target = tmp_path / "new.toml"
    assert run("check", EAGER, "--write-budget", str(target)).out == f"wrote {target}\n"
    again = run("check", EAGER, "--write-budget", str(target))
    assert again.code == 2 and "--force" in again.err
    assert run("check", EAGER, "--write-budget", str(target), "--force").code == 0
    assert run("check", EAGER, "--budget", str(target), "--write-budget", str(target)).code == 2
    assert run("check", EAGER, "--budget", str(target), "--slack", "5%").code == 2
    for slack in "ten", "-1%", "1e9", "nan", "":
        assert run("check", EAGER, "--write-budget", "-", "--slack", slack).code == (0 if slack == "" else 2)
    assert run("check", str(tmp_path / "none.json"), "--write-budget", "-").code == 2
    cpu = tmp_path / "cpu.json"
    cpu.write_text(json.dumps([{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 5, "pid": 1, "tid": 1}]))
    answer = run("check", str(cpu), "--write-budget", "-")
    assert answer.code == 2 and "GPU work" in answer.err
