"""`lanescope view` of a folder or a recording that grows while the page is open."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import time
from typing import Any, Dict, Optional

import pytest

from conftest import SOURCE, clean_environment
from view_server import View, viewing, write_trace


def test_a_folder_is_followed(binary: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5} for i in range(5)]
    write_trace(folder / "a.json", events)
    with viewing(binary, folder) as view:
        meta = view.json("/api/meta")
        assert meta["live"] and meta["generation"] == 1 and meta["traces"][0]["slice_count"] == 5
        more = [{**event, "ts": event["ts"] + 100} for event in events]
        write_trace(tmp_path / "new.json", events + more)
        os.replace(tmp_path / "new.json", folder / "a.json")
        deadline = time.monotonic() + 60
        while json.loads(view.ask("GET", "/api/alive?gen=1").content)["generation"] == 1:
            assert time.monotonic() < deadline
        assert view.json("/api/meta")["traces"][0]["slice_count"] == 10


class GrowingRecording:
    """A program that records steps when it is asked to; its recording is at `path`."""

    def __init__(self, path: pathlib.Path, last_ms: Optional[int] = None) -> None:
        found = sorted(SOURCE.glob("build/*/tests/end_to_end/growing_recording_program"), key=lambda each: each.stat().st_mtime)
        if not found:
            pytest.skip("needs growing_recording_program: cmake --build ... --target all")
        self.path = path
        self.process = subprocess.Popen([found[-1], path, *([] if last_ms is None else [str(last_ms)])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment())

    def do_steps(self, count: int) -> None:
        self.begin_steps(count)
        self.wait_for_steps()

    def begin_steps(self, count: int) -> None:
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()

    def wait_for_steps(self) -> None:
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(60) == 0


def wait_for(view: View, generation: int, is_there: Any) -> Dict[str, Any]:
    """The first meta after `generation` for which `is_there` holds."""
    deadline = time.monotonic() + 60
    while True:
        meta = view.json("/api/meta")
        if meta["generation"] > generation and is_there(meta):
            return meta
        assert time.monotonic() < deadline, meta
        view.json(f"/api/alive?gen={meta['generation']}")


def test_a_recording_that_runs_is_followed_to_its_end(binary: str, tmp_path: pathlib.Path) -> None:
    program = GrowingRecording(tmp_path / "run.lspool")
    program.do_steps(3)
    with viewing(binary, program.path) as view:
        first = view.json("/api/meta")
        trace = first["traces"][0]
        assert first["live"] and len(trace["steps"]) >= 3
        assert [item for item in trace["quality"] if item["severity"] != "note"] == []  # open chunks are no damage
        threads = [lane["title"] for lane in trace["lanes"] if lane["kind"] == "cpu"]
        program.do_steps(4)
        grown = wait_for(view, first["generation"], lambda meta: len(meta["traces"][0]["steps"]) >= 7)
        assert grown["live"]
        after = [lane["title"] for lane in grown["traces"][0]["lanes"] if lane["kind"] == "cpu"]
        assert len(after) == len(threads) + 1 and set(threads) < set(after)
        # What was asked with the old numbers of lanes and slices gets no answer of the new trace.
        old = {"X-Generation": str(first["generation"])}
        assert view.ask("POST", "/api/event", {"slice": 0}, headers=old).status == 409
        assert view.ask("POST", "/api/event", {"slice": 0}, headers={"X-Generation": str(grown["generation"])}).status == 200
        program.end()
        ended = wait_for(view, grown["generation"], lambda meta: not meta["live"])
        assert len(ended["traces"][0]["steps"]) >= 7


def test_a_ring_that_runs_is_followed(binary: str, tmp_path: pathlib.Path) -> None:
    """A flight recorder keeps the last second, and a step takes 3 ms: new events appear, and old ones go."""
    program = GrowingRecording(tmp_path / "run.lspool", last_ms=1000)
    program.begin_steps(2500)
    time.sleep(1)
    with viewing(binary, program.path) as view:
        first = wait_for(view, 0, lambda meta: meta["traces"][0]["slice_count"] >= 40)
        assert first["live"]
        end = int(first["traces"][0]["origin_ns"]) + first["traces"][0]["span_ns"]
        later = wait_for(view, first["generation"], lambda meta: int(meta["traces"][0]["origin_ns"]) > end)
        trace = later["traces"][0]
        assert later["live"] and trace["slice_count"] >= 40
        assert [item for item in trace["quality"] if item["severity"] == "lost"] == []  # a ring forgets on purpose
        program.wait_for_steps()
        program.end()
        assert not wait_for(view, later["generation"], lambda meta: not meta["live"])["live"]


def test_a_recording_that_became_a_trace_is_followed_there(binary: str, run: Any, tmp_path: pathlib.Path) -> None:
    program = GrowingRecording(tmp_path / "run.lspool")
    program.do_steps(2)
    with viewing(binary, program.path) as view:
        first = view.json("/api/meta")
        program.do_steps(2)
        program.end()
        # As the end of a short program does.
        assert run("convert", program.path, tmp_path / "part.json").code == 0
        os.rename(tmp_path / "part.json", tmp_path / "run.json")
        program.path.unlink()
        ended = wait_for(view, first["generation"], lambda meta: meta["traces"][0]["title"] == "run.json")
        assert not ended["live"] and len(ended["traces"][0]["steps"]) >= 4
