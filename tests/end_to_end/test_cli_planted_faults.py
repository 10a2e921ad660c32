"""explain on recordings of planted faults (tests/data/faults): the planted rule is first or second on the program with the
fault, by the count of examples/faults/matrix.py, and says nothing about its mended twin."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from typing import Any, Dict, Tuple

import pytest

from conftest import SOURCE, find_binary

FAULTS = SOURCE / "examples" / "faults"
DATA = SOURCE / "tests" / "data" / "faults"
PAIRS: Dict[str, Any] = json.loads((FAULTS / "pairs.json").read_text())["pairs"]
RECORDED = sorted({(path.name.split(".")[0], path.name.split(".")[2]) for path in DATA.glob("*.json.gz")})
NO_GOOD_TWIN = {"shared_core", "temporaries_at_the_peak"}


def load_matrix() -> Any:
    spec = importlib.util.spec_from_file_location("faults_matrix", FAULTS / "matrix.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


matrix = load_matrix()


def answers(pair: str, recorder: str) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Of the program with the fault and of its twin, which may not have been recorded."""
    bad, good = (matrix.explain(str(find_binary()), str(DATA / f"{pair}.{variant}.{recorder}.json.gz"))
                 for variant in matrix.VARIANTS)
    assert "failed" not in bad, bad
    assert ("failed" in good) == (pair in NO_GOOD_TWIN), good
    return bad, good


def test_cli_there_are_pairs_of_many_rules_from_both_recorders():
    assert len(RECORDED) >= 18 and {recorder for _, recorder in RECORDED} == {"lanescope", "torch"}
    assert len({PAIRS[pair]["rules"][0] for pair, _ in RECORDED}) >= 15
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 5_000_000


@pytest.mark.parametrize("pair,recorder", RECORDED)
def test_cli_planted_fault_is_found_and_its_twin_is_left_alone(pair: str, recorder: str):
    bad, good = answers(pair, recorder)
    if pair in NO_GOOD_TWIN:
        good = {"findings": []}
    remark = bool(PAIRS[pair].get("remark"))
    row = matrix.judge({"bad": bad, "good": good}, PAIRS[pair]["rules"], matrix.known_rules(str(find_binary())), remark)
    assert row["state"] == "judged"
    assert row["place"] in (1, 2) or remark and row["place"], row
    assert row["in_good"] == [], row
    assert row["at_stake_us"] > 0 or row["kind"] in ("ends", "where", "memory", "normal", "trust"), row


# Nothing is to do first about what happens once. But where it takes longer than all measured steps, the first screen says so.
@pytest.mark.parametrize(("trace", "cause"), [
    ("cold_first_step.bad.torch", "the first step took 221 ms"),
    ("one_time_notes.bad.lanescope", "the GPU was idle for 185 ms in step 5"),
    ("table_on_first_use.bad.lanescope", "augment took 64.5 ms before its first operator"),
    ("cold_first_step.good.torch", None),
    ("one_time_notes.good.lanescope", None),
    ("table_on_first_use.good.lanescope", None),
])
def test_cli_the_first_screen_names_a_large_cause_that_happens_once(trace: str, cause: str):
    run = subprocess.run([str(find_binary()), "explain", str(DATA / f"{trace}.json.gz")], capture_output=True, text=True,
                         check=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith("Once: ")]
    assert len(lines) == (1 if cause else 0)
    assert not cause or cause in lines[0]
    assert len(run.stdout.splitlines()) <= 24
