"""`lanescope memory` and memory-growth on traces that torch writes here and now, of known sizes."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from conftest import clean_environment

pytest.importorskip("torch", reason="needs torch, which makes the traces")

KIB = 1024
# A layer of 512 x 512 on 256 rows: each step keeps its input, the two activations that backward needs, and its output.
PROGRAM = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, schedule
kept = []
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))

def train_step(keep):
    loss = model(torch.randn(256, 512)).pow(2).mean()
    loss.backward()
    model.zero_grad()
    if keep:
        kept.append(model(torch.randn(256, 512)))

with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True,
             schedule=schedule(wait=0, warmup=1, active=6, repeat=1)) as prof:
    for _ in range(7):
        train_step(sys.argv[2] == "keep")
        prof.step()
prof.export_chrome_trace(sys.argv[1])
"""


@pytest.fixture(scope="module", params=["keep", "free"])
def recorded(request, tmp_path_factory) -> tuple[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp("memory")
    (folder / "train.py").write_text(PROGRAM)
    path = folder / f"{request.param}.json"
    subprocess.run([sys.executable, "train.py", str(path), request.param], cwd=folder, check=True, capture_output=True,
                   env=clean_environment({"OMP_NUM_THREADS": "2"}))
    return request.param, path


def test_steps_keep_what_the_program_keeps(run, recorded):
    kind, path = recorded
    document = json.loads(run("memory", path, "--json").out)
    (device,) = document["devices"]
    assert device["type"] == "CPU" and device["has_totals"] and device["has_addresses"]
    kept = 3 * 256 * 512 * 4 if kind == "keep" else 0
    assert [step["never_freed_bytes"] for step in device["steps"]] == [kept] * 6
    assert [step["end_bytes"] - step["start_bytes"] for step in device["steps"]] == [kept] * 6
    assert device["end_bytes"] - device["start_bytes"] == 6 * kept
    assert sum(row["bytes"] for row in device["never_freed"]) == 6 * kept
    names = [document["owners"][row["owner"]] for row in device["never_freed"]]
    assert all(owner["frame"].startswith("train.py(") and owner["frame"].endswith(": train_step") for owner in names)
    held = device["held_at_peak_from_before_bytes"] + sum(row["bytes"] for row in device["held_at_peak"])
    assert held == device["peak_bytes"] == max(record["allocated_bytes"] for record in device["records"])


def test_growth_is_found_and_only_where_it_is(run, recorded):
    kind, path = recorded
    document = json.loads(run("explain", path, "--question", "memory-growth", "--json").out)
    (rule,) = document["rules"]
    assert rule["state"] == ("found" if kind == "keep" else "quiet")
    if kind == "keep":
        text = document["findings"][0]["verdict"]["text"]
        assert text.startswith("CPU memory grows by 1.50 MiB per step: 5 of 5 steps")
