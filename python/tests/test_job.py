"""A process's place in its job: what the launcher said, what torch.distributed says, when it is asked."""

from __future__ import annotations

import json
import os
import re
import socket

import pytest

import lanescope
from lanescope import _autorecord, _job

RANK = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}


@pytest.fixture(autouse=True)
def nothing_inherited(monkeypatch):
    monkeypatch.setattr(_job, "_inherited_rank", None)


def test_the_launchers_words():
    assert _job.launcher_info(RANK) == {"rank": 3, "world_size": 8, "local_rank": 1}
    assert _job.launcher_info({"RANK": "0", "WORLD_SIZE": "1"}) == {"rank": 0, "world_size": 1}
    assert _job.launcher_info({}) is None and _job.launcher_info({"RANK": "3"}) is None
    for rank, size in (("3", "3"), ("-1", "3"), ("", "x"), ("1.0", "3")):
        assert _job.launcher_info({"RANK": rank, "WORLD_SIZE": size}) is None, (rank, size)


def test_a_child_of_a_rank_is_not_that_rank():
    assert _autorecord.rank_of(RANK, {}) == 3
    assert _autorecord.rank_of({}, {}) is None and _autorecord.rank_of({"RANK": "../3"}, {}) is None
    assert _autorecord.rank_of(RANK, {_autorecord.PARENT_RANK: "3"}) is None
    assert _autorecord.rank_of(RANK, {_autorecord.PARENT_RANK: "0"}) == 3  # started by a rank, as another one
    _job.ignore_launcher(RANK)
    assert _job.launcher_info(RANK) is None
    assert _job.launcher_info({**RANK, "RANK": "4"}) is not None


def test_the_rank_is_in_the_names_of_the_files(tmp_path):
    settings = {"LANESCOPE_RECORD_DIR": str(tmp_path)}
    settings["LANESCOPE_RECORD_STARTED"] = "20261123T061902Z"
    here = f"{re.sub('[^A-Za-z0-9]', '-', socket.gethostname().split('.')[0])[:40]}_{os.getpid()}"
    ranked = _autorecord.AutoRecording(settings, "train", 12)._wanted_base()
    assert ranked == str(tmp_path / f"train_20261123T061902Z_rank12_{here}")
    alone = _autorecord.AutoRecording(settings, "train")._wanted_base()
    assert alone == str(tmp_path / f"train_20261123T061902Z_{here}")


def test_a_job_too_large_for_the_recorder_loses_its_lists_and_not_its_rank():
    groups = [{"pg_name": str(n), "ranks": list(range(1000))} for n in range(100)]
    info = {"rank": 1, "world_size": 1000, "pg_config": groups}
    text = _job.fitting_json(info)
    assert len(text) <= _job.MAX_JSON_BYTES
    assert json.loads(text) == {**info, "pg_config": [{"pg_name": str(n)} for n in range(100)]}
    info["pg_config"] = groups * 100
    assert json.loads(_job.fitting_json(info)) == {"rank": 1, "world_size": 1000}
    small = {"rank": 1, "pg_config": groups[:1]}
    assert json.loads(_job.fitting_json(small)) == small


JOB = """
import json, os, sys, torch, lanescope
import torch.distributed as dist
from torch.distributed import destroy_process_group

def recorded(work):
    with lanescope.profile() as prof:
        work()
        torch.ones(2)
    prof.export_chrome_trace("t.json")
    return json.load(open("t.json")).get("distributedInfo")

def whole_job():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    dist.new_group([0], group_desc="mine")
    dist.destroy_process_group()

infos = [recorded(lambda: None)]
os.environ.update(RANK="0", WORLD_SIZE="1")
infos.append(recorded(lambda: None))
infos.append(recorded(whole_job))
lines = []
prof = lanescope.profile(schedule=lanescope.schedule(wait=0, warmup=1, active=1, repeat=1),
                         on_trace_ready=lambda p: p.export_chrome_trace("ready.json"))
with prof:
    prof.step()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.ones(2)
    prof.step()
infos.append(json.load(open("ready.json")).get("distributedInfo"))
prof = lanescope.profile()
prof.preset_metadata_json("distributedInfo", '"mine"')
with prof:
    torch.ones(2)
    destroy_process_group()
prof.export_chrome_trace("t.json")
infos.append(json.load(open("t.json"))["distributedInfo"])
print(json.dumps(infos))
"""


def test_groups_are_asked_for_whenever_they_can_answer(run_python, torch):
    clean = {key: value for key, value in os.environ.items() if key in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    assert clean == {}
    done = run_python(code=JOB)
    before, launched, whole, ready, mine = json.loads(done.stdout.splitlines()[-1])
    assert before is None
    assert launched == {"rank": 0, "world_size": 1}
    assert (whole["backend"], whole["rank"], whole["world_size"], whole["pg_count"]) == ("gloo", 0, 1, 2)
    assert [(group["pg_desc"], group["ranks"]) for group in whole["pg_config"]] == [("default_pg", [0]), ("mine", [0])]
    assert ready["backend"] == "gloo" and ready["pg_count"] == 1
    assert mine == "mine"


def test_clock_anchors_are_in_the_trace_and_read_back(tmp_path):
    with lanescope.profile() as prof:
        with lanescope.record_function("a"):
            pass
    prof.export_chrome_trace(tmp_path / "t.json")
    written = json.loads((tmp_path / "t.json").read_text())["lanescope_clock_anchors"]
    assert len(written) >= 2
    assert [anchor["monotonic_ns"] for anchor in written] == sorted(anchor["monotonic_ns"] for anchor in written)
    shifts = {anchor["trace_unix_ns"] - anchor["monotonic_ns"] for anchor in written}
    assert shifts == {written[0]["realtime_ns"] - written[0]["monotonic_ns"]}
    again = lanescope.read_trace(tmp_path / "t.json").metadata["lanescope_clock_anchors"]
    assert (json.loads(again) if isinstance(again, str) else again) == written
