"""`lanescope ranks hang`: dumps of the flight recorder, and recordings of killed ranks."""

from __future__ import annotations

import csv
import json
import random
import shutil
import xml.etree.ElementTree

import pytest

from conftest import DATA

DUMPS = DATA / "flight_recorder"
pytestmark = pytest.mark.usefixtures("own_cache")


# Real dumps of two H100s. Rank 1 sleeps after collective 27, while rank 0 calls the 28th.
@pytest.mark.parametrize("form", ["stop", "stop_json"])
def test_the_rank_that_stopped_is_found_in_real_dumps(run, form):
    found = json.loads(run("ranks", "hang", str(DUMPS / form), "--json").out)
    assert [finding["kind"] for finding in found["findings"]] == ["not-called"]
    assert found["findings"][0]["ranks"] == [1] and found["findings"][0]["sequence"] == 28
    assert "it stopped in its own code after collective 27" in found["findings"][0]["text"]
    assert found["ranks"][0]["open"]["name"] == "all_reduce" and found["ranks"][1]["open"] is None
    assert found["call_count"] == 55 and found["remarks"] == []


@pytest.mark.parametrize("form", ["mismatch", "mismatch_json"])
def test_ranks_that_disagree_are_found_in_real_dumps(run, form):
    found = json.loads(run("ranks", "hang", str(DUMPS / form), "--json").out)
    assert [finding["kind"] for finding in found["findings"]] == ["mismatch"]
    text = " ".join(run("ranks", "hang", str(DUMPS / form)).out.split())
    assert "Ranks disagree: collective 28 of group 0 (default_pg): rank 1 calls all_gather of 3072 Float" in text
    assert ("called in hang (toy_jobs.py:243)" in text) == (form == "mismatch")


def test_a_hang_as_csv_and_as_a_page(run, tmp_path):
    rows = list(csv.DictReader(run("ranks", "hang", str(DUMPS / "stop"), "--csv").out.splitlines()))
    assert [row["rank"] for row in rows] == ["0", "1"]
    assert [row["sequence"] for row in rows] == ["28", "27"] and [row["state"] for row in rows] == ["scheduled", "completed"]
    assert rows[0]["call"] == "all_reduce" and rows[0]["in_elements"] == "1024" and rows[0]["place"] == "hang (toy_jobs.py:243)"
    assert [row["findings"] for row in rows] == ["", "not-called"]
    page = tmp_path / "hang.html"
    assert run("ranks", "hang", str(DUMPS / "stop"), "--html", str(page)).code == 0
    text = page.read_text()
    assert xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1)).tag.endswith("html")
    assert "<h1>Some ranks wait in a collective that others have not called</h1>" in text
    assert "rank 1 has not called all_reduce of 1024 Float" in text and text.count('<tr class="sum">') == 1
    assert "exists" in run("ranks", "hang", str(DUMPS / "stop"), "--html", str(page)).complaint()


def test_a_missing_dump_and_wrong_files_get_a_line(run, tmp_path):
    shutil.copy(DUMPS / "stop" / "nccl_trace_rank_0", tmp_path / "nccl_trace_rank_0")
    (tmp_path / "nccl_trace_rank_1").write_bytes((DUMPS / "stop" / "nccl_trace_rank_1").read_bytes()[:900])
    (tmp_path / "notes.txt").write_text("no dump")
    out = " ".join(run("ranks", "hang", str(tmp_path)).out.split())
    assert "there is no dump of rank 1" in out and "the pickle ends early" in out and "notes.txt" not in out
    code = tmp_path / "code"
    code.mkdir()
    (code / "nccl_trace_rank_0").write_bytes(b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.")
    line = run("ranks", "hang", str(code)).complaint()
    assert "runs no code of a pickle" in line and "_dump_fr_trace_json" in line
    (tmp_path / "empty").mkdir()
    assert "found none in" in run("ranks", "hang", str(tmp_path / "empty")).complaint()
    assert "found nothing at" in run("ranks", "hang", str(tmp_path / "nowhere")).complaint()
    assert run("ranks", "hang").code == 2


# Bytes are cut, doubled and replaced, from a fixed seed: an answer or a message, never a crash.
def test_damaged_dumps_end_in_an_answer_or_a_message(run, tmp_path):
    choose = random.Random(3)
    for form, name in (("stop", "nccl_trace_rank_0"), ("stop_json", "rank_0.json")):
        whole = (DUMPS / form / name).read_bytes()
        for _ in range(100):
            data = bytearray(whole)
            for _ in range(choose.randint(1, 4)):
                at = choose.randrange(len(data))
                if choose.random() < 0.5:
                    data[at] = choose.choice([0, 0x28, 0x2E, 0x5B, 0x68, 0x71, 0x7B, 0x80, 0x8A, 0xFF, choose.randrange(256)])
                else:
                    data[at:at + choose.randint(0, 40)] = data[max(0, at - 60):at]
            (tmp_path / name).write_bytes(data)
            ran = run("ranks", "hang", str(tmp_path / name), "--json")
            assert ran.code in (0, 2), (ran.code, ran.err)
            if ran.code == 0:
                json.loads(ran.out)


# What killed processes leave: the calls of the CPU, without what ended. Rank 1 lacks rank 0's last call.
def killed_rank(folder, rank, calls, end_us, start=True):
    names = (["init"] if start else []) + ["allreduce"] * calls
    events = [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": 10,
               "args": {"Collective name": name, "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2,
                        "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]"}}
              for i, name in enumerate(names)]
    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::ones", "pid": 1, "tid": 1, "ts": end_us - 1, "dur": 1})
    (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events}))


def test_recordings_of_killed_ranks_show_who_stopped(run, tmp_path):
    killed_rank(tmp_path, 0, 5, 4_005_000)
    killed_rank(tmp_path, 1, 4, 4_004_000)
    found = json.loads(run("ranks", "hang", str(tmp_path), "--json").out)
    assert [(finding["kind"], finding["ranks"], finding["sequence"]) for finding in found["findings"]] == [("not-called", [1], 5)]
    assert found["findings"][0]["text"] == (
        "collective 5 of group 0 (default_pg): rank 1 has not called allreduce of 8 Float, the last call of rank 0, 4.0 s before "
        "the recording ends. The last call of rank 1 is collective 4 (allreduce of 8 Float), 4.0 s before its end")
    # A CPU that ran ahead, and a recording that begins in the middle.
    killed_rank(tmp_path, 0, 5, 500_000)
    assert json.loads(run("ranks", "hang", str(tmp_path), "--json").out)["findings"] == []
    killed_rank(tmp_path, 1, 4, 4_004_000, start=False)
    assert "which calls belong together is unknown" in " ".join(run("ranks", "hang", str(tmp_path)).out.split())
