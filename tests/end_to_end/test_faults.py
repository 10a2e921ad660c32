"""examples/faults: a pair runs end to end on the CPU, the table is complete, and the matrix judges what it is given."""

from __future__ import annotations

import ast
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, Dict

import pytest

from conftest import SOURCE
from test_gpu_bench_scripts import lanescope_command

FAULTS = SOURCE / "examples" / "faults"
CPU_BOUND = SOURCE / "tests/data/h200_64_bf16_warm_eager/trace.json"
GPU_BOUND = SOURCE / "tests/data/h200_mlp_train/trace.json.gz"


def run(script: str, *arguments: object, folder: pathlib.Path = FAULTS) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, str(folder / script), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=1200, check=False,
                          env={**os.environ, "LANESCOPE_COMMAND": lanescope_command()})


def table() -> Dict[str, Dict[str, Any]]:
    return json.loads((FAULTS / "pairs.json").read_text())["pairs"]


def test_every_program_is_in_the_table_and_teaches():
    programs = {path.stem: path for path in (FAULTS / "programs").glob("*.py")}
    assert set(programs) == set(table()) and len(programs) >= 20
    columns = set(json.loads((FAULTS / "pairs.json").read_text())["columns"])
    readme = (FAULTS / "README.md").read_text()
    for name, path in programs.items():
        tree = ast.parse(path.read_text())
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {"bad", "good"} <= functions, name
        doc = ast.get_docstring(tree) or ""
        assert all(word in doc for word in ("\nWrong: ", "\nIn the trace", "\nFix: ")), name
        assert f"`{name}`" in readme, name
        assert table()[name]["rules"] and set(table()[name]) <= columns, name


def test_pairs_run_under_both_recorders_and_twins_agree(tmp_path):
    out = tmp_path / "results"
    done = run("run.py", "--pairs", "item_every_step,tiny_ops", "--device", "cpu", "--small", "--seconds", "0.02",
               "--jobs", "2", "--out", out)
    assert done.returncode == 0, done.stdout
    assert "12 of 12 programs ran" in done.stdout
    rows = json.loads((out / "timings.json").read_text())["rows"]
    assert sum("us" in row and row["us"] > 0 and len(row["results"]) == 3 for row in rows) == 4
    for recorder in ("lanescope", "torch"):
        trace = json.loads(gzip.decompress((out / f"traces/tiny_ops.bad.{recorder}.json.gz").read_bytes()))
        names = [event.get("name", "") for event in trace["traceEvents"]]
        assert names.count("aten::mul_") == 4 * 6  # 4 recorded steps, 6 tensors
        assert sum(name.startswith("ProfilerStep#") for name in names) == 4
    judged = run("matrix.py", out)
    assert judged.returncode == 0, judged.stdout
    assert "passed: 2 pairs, 0 problems" in judged.stdout
    for line in judged.stdout.splitlines()[2:4]:
        assert line.split()[-1] != "1" and "MISSED" in line  # a CPU's trace holds no GPU work: nothing to be found


def count_ops(trace: pathlib.Path, name: str) -> int:
    return sum(event.get("name") == name for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"])


def test_a_pair_of_two_ranks_runs_in_two_processes(tmp_path):
    done = run("run.py", "--pairs", "small_collectives,tiny_ops", "--ranks", 2, "--device", "cpu", "--small",
               "--seconds", "0.02", "--jobs", 2, "--out", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "6 of 6 programs ran" in done.stdout  # tiny_ops has one rank
    for recorder in ("lanescope", "torch"):
        for rank in ("", ".rank1"):
            calls = [count_ops(tmp_path / f"traces/small_collectives.{variant}.{recorder}{rank}.json.gz", "c10d::allreduce_")
                     for variant in ("bad", "good")]
            assert calls == [60 * 6, 6], (recorder, rank)  # 6 recorded steps on each rank
    rows = {row["variant"]: row for row in json.loads((tmp_path / "timings.json").read_text())["rows"] if not row["recorder"]}
    # The second tensor a step returns is an average over the ranks: of 1, which rank 0 saw, and 2, which rank 1 saw, a tenth.
    assert rows["bad"]["results"][0][4] == pytest.approx(0.15) and rows["good"]["results"][0][4] == pytest.approx(0.15)
    judged = run("matrix.py", tmp_path)
    assert judged.returncode == 0, judged.stdout
    assert sum(line.startswith("small_collectives (2 ranks) ") for line in judged.stdout.splitlines()) == 2
    assert "passed: 1 pairs, 0 problems" in judged.stdout


@pytest.mark.parametrize("fault,message", [("raise ValueError('planted')", "ValueError: planted"),
                                        ("os._exit(7)", "ended with 7, see ")])
def test_a_rank_that_fails_ends_the_other(tmp_path, fault, message):
    shutil.copytree(FAULTS, tmp_path / "faults", ignore=shutil.ignore_patterns("__pycache__"))
    program = tmp_path / "faults/programs/small_collectives.py"
    text = program.read_text()
    assert text.count("def bad(s):\n") == 1
    program.write_text("import os\n" + text.replace("def bad(s):\n", f"def bad(s):\n    if s.rank == 1:\n        {fault}\n"))
    done = run("run.py", "--pairs", "small_collectives", "--recorders", "", "--device", "cpu", "--small", "--seconds", "0.02",
               "--timeout", 300, "--out", tmp_path / "results", folder=tmp_path / "faults")
    assert done.returncode == 1 and f"small_collectives.bad.time: {message}" in done.stdout, done.stdout
    assert "FAILED: 1 of 2 programs ran; not small_collectives.bad.time" in done.stdout


def matrix_of(tmp_path: pathlib.Path, bad: pathlib.Path, good: pathlib.Path, *rules: str, **options: Any) -> Dict[str, Any]:
    (tmp_path / "traces").mkdir(exist_ok=True)
    for variant, path in (("bad", bad), ("good", good)):
        data = path.read_bytes()
        (tmp_path / f"traces/p.{variant}.torch.json.gz").write_bytes(
            data if path.suffix == ".gz" else gzip.compress(data))
    (tmp_path / "pairs.json").write_text(json.dumps({"pairs": {"p": {"rules": list(rules), **options}}}))
    (tmp_path / "timings.json").write_text(json.dumps({"rows": [
        {"pair": "p", "variant": "bad", "recorder": "", "us": 100.0, "results": [[1.0, 1.0, 1.0, 1.0]]},
        {"pair": "p", "variant": "good", "recorder": "", "us": 50.0, "results": [[1.0, 1.0, 1.0, 1.001]]}]}))
    done = run("matrix.py", tmp_path, "--pairs-file", tmp_path / "pairs.json", "--recorders", "torch", "--json",
               tmp_path / "matrix.json")
    result = json.loads((tmp_path / "matrix.json").read_text())
    result["code"], result["out"] = done.returncode, done.stdout
    return result


def test_the_matrix_finds_what_is_there(tmp_path):
    result = matrix_of(tmp_path, CPU_BOUND, GPU_BOUND, "host-bound")
    row = result["matrix"]["p"]["torch"]
    assert result["code"] == 0, result["out"]
    assert (row["place"], row["rule"], row["in_good"]) == (1, "host-bound", [])
    totals = result["summary"]["recorders"]["torch"]
    assert totals["first"] == totals["first_or_second"] == totals["judged"] == 1
    saved = result["savings"]["p"]
    assert saved["saved_us"] == 50 and saved["factor"] == 2
    # The trace's README example: 78.865us a step of which 2.817us are work; waiting is the rest, more than the 50us.
    assert 70 < row["at_stake_us"] < 78.865 and totals["promise_1x_to_2x"] == ["p"]


def test_the_matrix_notices_a_miss_and_a_false_alarm(tmp_path):
    result = matrix_of(tmp_path, GPU_BOUND, CPU_BOUND, "host-bound")
    row = result["matrix"]["p"]["torch"]
    assert (row["place"], row["in_good"]) == (None, ["host-bound"])
    assert "MISSED GOOD TOO" in result["out"]
    totals = result["summary"]["recorders"]["torch"]
    assert totals["missed"] == ["p"] and totals["in_good"] == ["p"] and totals["promise_1x_to_2x"] == []
    unknown = matrix_of(tmp_path, CPU_BOUND, GPU_BOUND, "no-rule-of-this-name")
    assert unknown["matrix"]["p"]["torch"]["state"] == "no such rule"
    assert unknown["summary"]["recorders"]["torch"]["judged"] == 0


def test_a_remark_counts_at_any_place_and_saves_no_time(tmp_path):
    # cpu-ahead says that something is normal: it has no place among the costs.
    hidden = matrix_of(tmp_path, GPU_BOUND, CPU_BOUND, "cpu-ahead")
    assert hidden["matrix"]["p"]["torch"]["place"] is None and hidden["summary"]["recorders"]["torch"]["missed"] == ["p"]
    found = matrix_of(tmp_path, GPU_BOUND, CPU_BOUND, "cpu-ahead", remark=True)
    row, summary = found["matrix"]["p"]["torch"], found["summary"]["recorders"]["torch"]
    assert row["rule"] == "cpu-ahead" and row["in_good"] == [] and found["code"] == 0
    assert (summary["judged"], summary["remarks"], summary["remarks_missed"]) == (0, 1, [])
    assert "found" in found["out"] and "what the fix saved" not in found["out"]
    missed = matrix_of(tmp_path, CPU_BOUND, GPU_BOUND, "cpu-ahead", remark=True)["summary"]["recorders"]["torch"]
    assert missed["remarks_missed"] == ["p"] and missed["remarks_in_good"] == ["p"]
    other = matrix_of(tmp_path, GPU_BOUND, CPU_BOUND, "cpu-ahead", remark=True, recorders=["lanescope"])
    assert other["matrix"]["p"]["torch"]["state"] == "no such fault" and other["code"] == 0
    assert other["summary"]["recorders"]["torch"]["remarks"] == 0


def test_recordings_without_steps_and_without_the_gpu(tmp_path):
    out = tmp_path / "results"
    done = run("run.py", "--pairs", "recorded_in_the_middle,gpu_not_recorded,calls_not_recorded", "--device", "cpu", "--small",
               "--seconds", "0.02", "--no-timing", "--out", out)
    assert done.returncode == 0 and "10 of 10 programs ran" in done.stdout, done.stdout
    assert not list((out / "traces").glob("calls_not_recorded.*.lanescope.*"))  # the fault concerns torch's recorder
    for recorder in ("lanescope", "torch"):
        trace = json.loads(gzip.decompress((out / f"traces/recorded_in_the_middle.bad.{recorder}.json.gz").read_bytes()))
        names = [event.get("name", "") for event in trace["traceEvents"]]
        assert names.count("aten::matmul") == 8 * 6  # of the 61 steps before none
        assert not any(name.startswith("ProfilerStep#") for name in names)


def test_the_matrix_fails_for_damage_and_for_twins_that_differ(tmp_path):
    matrix_of(tmp_path, CPU_BOUND, GPU_BOUND, "host-bound")
    timings = json.loads((tmp_path / "timings.json").read_text())
    timings["rows"][1]["results"] = [[1.0, 1.0, 1.0, 1.5]]
    (tmp_path / "timings.json").write_text(json.dumps(timings))
    os.remove(tmp_path / "traces/p.good.torch.json.gz")
    done = run("matrix.py", tmp_path, "--pairs-file", tmp_path / "pairs.json", "--recorders", "torch")
    assert done.returncode == 1
    assert "PROBLEM: p: the twins compute different results: step 1: 1 against 1.5" in done.stdout
    assert "PROBLEM: p, torch: good: no trace" in done.stdout


def test_unknown_names_are_refused(tmp_path):
    done = run("run.py", "--pairs", "no_such_pair", "--out", tmp_path)
    assert done.returncode != 0 and "found 'no_such_pair'" in done.stdout
    assert not (tmp_path / "timings.json").exists()


def test_a_missing_gpu_is_a_failure(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU, where --device cuda fails")
    done = run("run.py", "--pairs", "tiny_ops,small_collectives", "--recorders", "", "--out", tmp_path)
    assert done.returncode == 1 and "torch sees no CUDA device" in done.stdout
    assert "left out, with 0 GPUs here: small_collectives (needs 2)\n" in done.stdout
    assert "FAILED: 0 of 2 programs ran" in done.stdout
    nothing = run("run.py", "--pairs", "small_collectives", "--recorders", "", "--out", tmp_path)
    assert nothing.returncode == 1 and "FAILED: 0 of 0 programs ran" in nothing.stdout
    alone = run("harness.py", "small_collectives", "bad")
    assert alone.returncode == 3 and "cannot run here: torch sees no CUDA device" in alone.stdout
