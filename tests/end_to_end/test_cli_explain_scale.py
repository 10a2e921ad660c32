"""bench/explain_scale.py: the longer traces that it makes are the real one, repeated, and its table holds what it measured."""

from __future__ import annotations

import collections
import importlib.util
import json
import subprocess
import sys
from typing import Any, Dict, List

from conftest import SOURCE, clean_environment, find_binary

SCRIPT = SOURCE / "bench" / "explain_scale.py"
TRACE = SOURCE / "tests" / "data" / "h200_mlp_train" / "trace.json.gz"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("explain_scale", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lanescope(*arguments: object) -> Dict[str, Any]:
    done = subprocess.run([str(find_binary()), *map(str, arguments)], capture_output=True, text=True, timeout=300, check=True,
                          env=clean_environment())
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def test_cli_scale_copies_hold_the_same_work_one_behind_the_other(tmp_path):
    base = load().Repeated(str(TRACE))
    made = tmp_path / "three.json"
    one = tmp_path / "one.json"
    assert base.write(str(one), 0)[1] == 1
    size, copies = base.write(str(made), 3 * one.stat().st_size)
    assert size == made.stat().st_size and copies == 3
    events = json.loads(made.read_text())["traceEvents"]
    single = json.loads(one.read_text())["traceEvents"]

    def count(of: List[Dict[str, Any]]) -> "collections.Counter[Any]":
        return collections.Counter((e["cat"], e["name"]) for e in of
                                   if e["ph"] == "X" and not e["name"].startswith("ProfilerStep"))

    assert count(events) == collections.Counter({key: 3 * value for key, value in count(single).items()})
    steps = sorted((e["ts"], e["name"]) for e in events if e["name"].startswith("ProfilerStep") and e["cat"] == "user_annotation")
    numbers = [int(name.split("#")[1]) for _, name in steps]
    assert numbers == list(range(numbers[0], numbers[0] + 9))  # 3 steps, three times
    launches = [e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    assert len(set(launches)) == len(launches)
    durations = {e["name"]: e["dur"] for e in single if e.get("cat") == "kernel"}
    assert {e["name"]: e["dur"] for e in events if e.get("cat") == "kernel"}.keys() == durations.keys()
    # Every kernel of every copy finds the launch of the same copy.
    whole, part = lanescope("info", made, "--json"), lanescope("info", one, "--json")
    assert whole["launched_count"] == 3 * part["launched_count"] > 0


def test_cli_scale_prints_what_it_measured():
    done = subprocess.run([sys.executable, str(SCRIPT), str(TRACE), "--sizes", "0.3,0.6", "--runs", "2", "--most-exponent", "99"],
                          capture_output=True, text=True, timeout=300, check=False,
                          env={**clean_environment(), "LANESCOPE_COMMAND": str(find_binary())})
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "kept", done.stdout + done.stderr
    rows = [[float(cell.replace(",", "")) for cell in line.split()] for line in lines[2:4]]
    for megabytes, events, copies, load, explain, beyond, per_event in rows:
        assert megabytes > 0.2 and events > 0 and copies >= 1 and load > 0 and explain > 0
        assert abs(beyond / events * 1e6 - per_event) < 0.02 + 1000 / events
    assert lines[-2].startswith("exponent of load ")


def test_cli_scale_fails_when_the_promise_is_broken():
    done = subprocess.run([sys.executable, str(SCRIPT), str(TRACE), "--sizes", "0.3", "--runs", "1", "--most-beyond", "-1"],
                          capture_output=True, text=True, timeout=300, check=False,
                          env={**clean_environment(), "LANESCOPE_COMMAND": str(find_binary())})
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "NOT KEPT"
