"""`lanescope view FOLDER`: the ranks of a run, one by one and together."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Dict, List

import pytest

from conftest import SOURCE
from view_server import View, viewing, write_trace


def rank_events(rank: int) -> List[Dict[str, Any]]:
    """Two steps of 100 us with one operator each; rank 1 has one more operator."""
    events = []
    for step in range(2):
        start = 1000 + 100 * step
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 7, "tid": 7, "ts": start, "dur": 100})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": start + 1, "dur": 50})
    if rank == 1:
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::late", "pid": 7, "tid": 7, "ts": 1060, "dur": 5})
    return events


@pytest.fixture()
def two_ranks(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        write_trace(folder / f"rank{rank}.json", rank_events(rank))
    return folder


def ask_rank(view: View, rank: str, path: str, body: Any = None) -> Any:
    answer = view.ask("GET" if body is None else "POST", path, body, headers={"X-Rank": rank})
    assert answer.status == 200, answer.content
    return json.loads(answer.content)


def test_the_page_knows_the_ranks_and_opens_each(binary: str, two_ranks: pathlib.Path) -> None:
    with viewing(binary, two_ranks) as view:
        meta = view.json("/api/meta")
        assert meta["ranks"] == {"together": True, "shown": "0", "list": [{"rank": 0, "title": "rank0.json"}, {"rank": 1, "title": "rank1.json"}]}
        assert meta["traces"][0]["slice_count"] == 4
        other = ask_rank(view, "1", "/api/meta")
        assert other["ranks"]["shown"] == "1" and not other["live"]
        assert other["traces"][0]["slice_count"] == 5 and other["traces"][0]["path"] == str(two_ranks / "rank1.json")
        hits = ask_rank(view, "1", "/api/search", {"trace": 0, "text": "late", "limit": 10})
        assert hits["total"] == 1
        assert view.json("/api/search", {"trace": 0, "text": "late", "limit": 10})["total"] == 0
        assert ask_rank(view, "0", "/api/meta") == meta  # the one that was opened


def test_the_command_says_that_the_page_has_the_other_ranks(binary: str, two_ranks: pathlib.Path) -> None:
    with viewing(binary, two_ranks) as view:
        said = view.process.stderr.readline()
    assert said.endswith("it is rank 0, and ranks 0 and 1 of its run are here: the list at the top of the page opens the others\n"), said


def test_all_ranks_are_one_trace(binary: str, two_ranks: pathlib.Path) -> None:
    with viewing(binary, two_ranks) as view:
        both = ask_rank(view, "all", "/api/meta")
        assert both["ranks"]["shown"] == "all"
        assert both["traces"][0]["slice_count"] == 4 + 5
        assert ask_rank(view, "all", "/api/explain?trace=0")["full_command"] == f"lanescope ranks {two_ranks}"


def test_a_rank_that_is_not_there_is_refused(binary: str, two_ranks: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with viewing(binary, two_ranks) as view:
        for rank in ("2", "-1", "00", "all.", "../rank0.json", "9" * 4000):
            answer = view.ask("GET", "/api/meta", headers={"X-Rank": rank})
            assert answer.status == 400 and "no such rank" in json.loads(answer.content)["error"], rank
    alone = tmp_path / "alone.json"
    write_trace(alone, rank_events(0))
    with viewing(binary, alone) as view:
        assert "ranks" not in view.json("/api/meta")
        assert "one trace" in view.refused("/api/ranks")
        assert view.ask("GET", "/api/meta", headers={"X-Rank": "0"}).status == 400


def test_the_verdict_on_the_ranks_is_that_of_the_command(binary: str, run: Any) -> None:
    folder = SOURCE / "tests" / "data" / "ddp4" / "straggler"
    with viewing(binary, folder) as view:
        job = view.json("/api/ranks")
        said = json.loads(run("ranks", folder, "--json").out)
        assert job["late"] == [1] and job["sentences"][0].startswith("Rank 1 delays the others")
        assert [row["rank"] for row in job["rows"]] == [0, 1, 2, 3]
        for row in job["rows"]:
            assert row["step_ns"] == row["own_ns"] + row["transfer_ns"] + row["wait_ns"]
            assert abs(row["own_ns"] - row["compute_ns"] - row["idle_ns"] - row["copy_ns"]) <= 3  # means, rounded down
        assert " ".join(job["sentences"]).startswith(said["verdict"]["text"])
        for row, rank in zip(job["rows"], said["ranks"]):
            times = rank["per_step"]
            assert (row["own_ns"], row["compute_ns"], row["wait_ns"]) == (times["own_ns"], times["compute_ns"], times["exposed_wait_ns"])
        lanes = ask_rank(view, "all", "/api/meta")["traces"][0]["lanes"]
        titles = [lane["title"] for lane in lanes if lane["main"]]
        for rank in range(4):
            assert f"rank {rank}: stream 7" in titles and f"rank {rank}: stream 19" in titles
        assert "rank 0: GPU idle" in titles
