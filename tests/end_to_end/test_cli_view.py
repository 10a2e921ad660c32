"""`lanescope view`: the server of the page, who may ask it, and what it does with hostile input."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, List, Optional

import pytest

from conftest import NEEDS_SHARED_TRACES, SHARED_TRACES, SOURCE, clean_environment

TRACE = SHARED_TRACES / "h200" / "64_bf16_warm_eager.json"
NONE = 0xFFFFFFFF


class View:
    """A running `lanescope view`."""

    def __init__(self, process: subprocess.Popen, url: str) -> None:
        self.process = process
        address, self.token = url.split("/#t=")
        self.port = int(address.rsplit(":", 1)[1])

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None,
            token: Optional[str] = "own") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = dict(headers or {})
        if token is not None:
            sent["X-Token"] = self.token if token == "own" else token
        data = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def json(self, path: str, body: Any = None) -> Any:
        answer = self.ask("GET" if body is None else "POST", path, body)
        assert answer.status == 200, answer.content
        return json.loads(answer.content)

    def refused(self, path: str, body: Any = None) -> str:
        answer = self.ask("GET" if body is None else "POST", path, body)
        assert answer.status == 400, answer.content
        return json.loads(answer.content)["error"]


@contextlib.contextmanager
def viewing(binary: str, *arguments: Any, env: Optional[Dict[str, str]] = None) -> Iterator[View]:
    page = pathlib.Path(__file__).parent / "view_page"  # the server runs without a built page, too
    process = subprocess.Popen([binary, "view", *map(os.fspath, arguments), "--no-open"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=clean_environment({"LANESCOPE_PAGE": str(page), **(env or {})}))
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), (url, process.stderr.read() if not url else "")
        yield View(process, url)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def write_trace(path: pathlib.Path, events: List[Dict[str, Any]]) -> pathlib.Path:
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def small_trace(folder: pathlib.Path) -> pathlib.Path:
    events = []
    for step in range(4):
        at = 1000 + step * 500
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 2, "ts": at, "dur": 480},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": at + 10, "dur": 60,
             "args": {"External id": step + 1, "Input Dims": [[64, 64], [64, 64]]}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": at + 30, "dur": 10,
             "args": {"correlation": step + 1}},
            {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_nn", "pid": 0, "tid": 7, "ts": at + 50, "dur": 100,
             "args": {"correlation": step + 1, "device": 0, "stream": 7}},
        ]
    return write_trace(folder / "small.json", events)


@pytest.fixture(scope="module")
def small(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    with viewing(binary, small_trace(tmp_path_factory.mktemp("view"))) as view:
        yield view


def read_frame(data: bytes) -> List[Dict[str, Any]]:
    magic, version, generation, count, t0, step = struct.unpack_from("<4sIIIdd", data)
    assert (magic, version) == (b"LSVF", 1)
    entries = []
    for i in range(count):
        lane, row, kind, cells, offset, _ = struct.unpack_from("<6I", data, 32 + 24 * i)
        entry = {"lane": lane, "row": row, "kind": kind}
        if kind == 0:
            for number, (name, letter) in enumerate([("start", "f"), ("dur", "f"), ("slice", "I"), ("name", "I"), ("folded", "I")]):
                entry[name] = struct.unpack_from(f"<{cells}{letter}", data, offset + 4 * number * cells)
        entries.append(entry)
    return entries


def test_a_frame_has_the_slices_of_its_window(small: View) -> None:
    meta = small.json("/api/meta")["traces"][0]
    assert [lane["kind"] for lane in meta["lanes"]][:2] == ["steps", "cpu"]
    answer = small.ask("POST", "/api/frame", {"t0": 0, "t1": meta["span_ns"], "step": 1000, "lanes": [lane["lane"] for lane in meta["lanes"]]})
    entries = [entry for entry in read_frame(answer.content) if entry["kind"] == 0]
    by_kind: Dict[str, int] = {}
    for entry in entries:
        kind = meta["lanes"][entry["lane"]]["kind"]
        by_kind[kind] = by_kind.get(kind, 0) + sum(entry["folded"])
    assert by_kind["steps"] == 4 and by_kind["cpu"] == 12 and by_kind["gpu"] == 4
    gpu = next(entry for entry in entries if meta["lanes"][entry["lane"]]["kind"] == "gpu")
    assert gpu["start"] == (50000.0, 550000.0, 1050000.0, 1550000.0) and set(gpu["dur"]) == {100000.0}
    names = small.json("/api/names", {"names": [gpu["name"][0]]})["names"][0]
    assert names["full"] == "ampere_sgemm_128x64_nn" and "GEMM" in names["short"]


def test_a_kernel_leads_back_to_its_step(small: View) -> None:
    hit = small.json("/api/search", {"text": "sgemm"})
    assert hit["total"] == 4
    event = small.json("/api/event", {"slice": hit["hits"][1]["slice"]})
    assert [link["role"] for link in event["chain"]] == ["step", "operator", "launch", "kernel"]
    assert event["queue_ns"] == 10000 and event["like"]["count"] == 4
    assert event["arrows"][0]["to"] == event["slice"]
    launch = small.json("/api/event", {"slice": event["chain"][2]["slice"]})
    assert [work["slice"] for work in launch["launched"]] == [event["slice"]]


def test_sums_and_tables_agree(small: View) -> None:
    area = small.json("/api/area", {})
    by_name = {name["name"]: name for name in area["names"]}
    assert by_name["aten::mm"]["total_ns"] == 240000 and by_name["aten::mm"]["self_ns"] == 200000
    table = small.json("/api/table", {"table": "operators", "sort": "self_cpu_time_total_ns"})
    row = next(row for row in table["rows"] if row["name"] == "aten::mm")
    assert (row["cpu_time_total_ns"], row["self_cpu_time_total_ns"], row["count"]) == (240000, 200000, 4)
    kernels = small.json("/api/table", {"table": "kernels"})
    assert kernels["rows"][0]["busy_ns"] == 400000 and kernels["total"] == 1
    flame = small.json("/api/flame", {"lane": 1})["nodes"]
    assert [node["name"] for node in flame if node["parent"] >= 0][:1] == ["aten::mm"]


def test_the_verdict_and_the_tour_are_about_this_trace(small: View) -> None:
    explain = small.json("/api/explain?trace=0")
    assert explain["headline"] and explain["wall"]
    meta = small.json("/api/meta")
    known = {kind["key"] for kind in meta["kinds"]} | {"idle"}
    assert {line["shows"] for line in explain["wall"] if "shows" in line} <= known
    assert next(line["shows"] for line in explain["wall"] if line["label"] == "GPU compute") == "compute"
    assert all(line["shows"] == "idle" for line in explain["wall"] if line["label"].startswith("idle: "))
    assert {cause for line in explain["wall"] for cause in line.get("causes", [])} <= {cause["key"] for cause in meta["causes"]}
    gaps = small.json("/api/gaps?trace=0&sort=cost")
    assert gaps["total"] == sum(cause["count"] for cause in gaps["by_cause"])
    assert gaps["gaps"] == sorted(gaps["gaps"], key=lambda gap: -gap["dur_ns"])
    stops = small.json("/api/tour?trace=0")["stops"]
    words = [stop["word"] for stop in stops]
    assert "ProfilerStep" in words and "aten::" in words and "cudaLaunchKernel" in words and "stream" in words
    assert "Activity Buffer Request" not in words and "memory" not in words  # the trace has none


def test_notes_are_kept_next_to_the_trace(binary: str, tmp_path: pathlib.Path) -> None:
    path = small_trace(tmp_path)
    with viewing(binary, path) as view:
        assert view.json("/api/notes")["notes"] == []
        view.json("/api/notes", {"notes": [{"t_ns": 5, "text": "look <b>here</b>", "lane": 1}]})
        assert view.json("/api/notes")["notes"][0]["text"] == "look <b>here</b>"
        kept = pathlib.Path(f"{path}.notes.json")
        assert kept.exists()
        view.json("/api/notes", {"notes": []})
        assert not kept.exists()
        kept.write_text("my own file")
        assert view.ask("POST", "/api/notes", {"notes": [{"t_ns": 5, "text": "x"}]}).status == 500
        assert kept.read_text() == "my own file"


def test_two_traces_are_compared(binary: str, tmp_path: pathlib.Path) -> None:
    path = small_trace(tmp_path)
    with viewing(binary, path, path) as view:
        assert len(view.json("/api/meta")["traces"]) == 2
        assert view.json("/api/compare")["lanescope"]["command"] == "diff"
        assert view.json("/api/search", {"trace": 1, "text": "aten::mm"})["total"] == 4
    with viewing(binary, path) as view:
        assert "lanescope view A B" in view.refused("/api/compare")


def test_a_range_for_perfetto_is_a_trace(binary: str, small: View, run: Any, tmp_path: pathlib.Path) -> None:
    part = tmp_path / "part.json"
    part.write_bytes(small.ask("POST", "/api/perfetto", {"t0": 500000, "t1": 980000}).content)
    names = [event["name"] for event in json.loads(part.read_text())["traceEvents"] if event.get("ph") == "X"]
    assert names.count("aten::mm") == 1 and "ProfilerStep#1" in names and "ProfilerStep#2" not in names
    assert "aten::mm" in run("table", part).out


def test_more_lanes_than_are_listed_are_all_there(binary: str, tmp_path: pathlib.Path) -> None:
    threads = 5000
    events = [{"ph": "X", "cat": "cpu_op", "name": f"work {tid}", "pid": 1, "tid": tid, "ts": 10 * tid, "dur": 5 + (tid > 900)} for tid in range(1, threads + 1)]
    with viewing(binary, write_trace(tmp_path / "wide.json", events)) as view:
        meta = view.json("/api/meta")["traces"][0]
        assert len(meta["lanes"]) == 4096 and meta["lanes_left_out"] == threads - 4096
        others = [lane["lane"] for offset in (0, 500, 1000) for lane in
                  view.json("/api/lanes", {"offset": offset, "limit": 500})["lanes"]]
        assert len(others) == threads - 4096
        assert sorted(others + [lane["lane"] for lane in meta["lanes"]]) == list(range(threads))
        # Those that do least are left out; each can be found and asked for by its number.
        hit = view.json("/api/search", {"text": "work 7"})["hits"]
        assert hit[0]["lane"] in others
        page = view.json("/api/lanes", {"lanes": [hit[0]["lane"]]})
        assert [lane["title"] for lane in page["lanes"]] == ["thread 7"] and page["groups"][0]["id"] == page["lanes"][0]["group"]
        found = view.json("/api/lanes", {"text": "thread 77", "limit": 1000})
        assert found["total"] == len(found["lanes"]) == sum("77" == str(tid)[:2] for tid in range(1, 901))
        assert "below 5000" in view.refused("/api/lanes", {"lanes": [5000]})
        view.refused("/api/lanes", {"limit": 5000})


# Who may ask.

def test_questions_need_the_token(small: View) -> None:
    for token in [None, "", "x", small.token[:-1], small.token + "0", small.token.upper() + " "]:
        for method, path in [("GET", "/api/meta"), ("POST", "/api/frame"), ("GET", "/api/alive"), ("GET", "/api/none")]:
            answer = small.ask(method, path, "{}" if method == "POST" else None, token=token)
            assert answer.status == 401 and small.token.encode() not in answer.content
            assert b"slice" not in answer.content
    assert small.ask("GET", "/", token=None).status == 200  # the page itself, which holds nothing


def test_a_name_that_was_bound_to_this_machine_gets_nothing(small: View) -> None:
    for host in ["evil.example", f"evil.example:{small.port}", f"127.0.0.1.evil.example:{small.port}", "0.0.0.0", "192.168.0.1"]:
        for path in ["/", "/api/meta", "/assets/page.js"]:
            assert small.ask("GET", path, headers={"Host": host}).status == 403
    for host in [f"localhost:{small.port}", "127.0.0.1:9999", f"[::1]:{small.port}"]:  # as ssh forwards it
        assert small.ask("GET", "/api/meta", headers={"Host": host}).status == 200


def test_another_page_gets_nothing(small: View) -> None:
    own = f"http://127.0.0.1:{small.port}"
    for origin in ["http://evil.example", "null", "https://127.0.0.1", f"http://127.0.0.1:{small.port + 1}", f"http://localhost:{small.port}"]:
        answer = small.ask("POST", "/api/frame", "{}", headers={"Origin": origin})
        assert answer.status == 403
        assert answer.getheader("Access-Control-Allow-Origin") is None
    answer = small.ask("POST", "/api/names", {"names": [0]}, headers={"Origin": own})
    assert answer.status == 200 and answer.getheader("Access-Control-Allow-Origin") is None
    assert small.ask("OPTIONS", "/api/frame", headers={"Origin": "http://evil.example"}).status in (403, 404, 405)


def test_every_answer_has_the_headers(small: View) -> None:
    for path in ["/", "/api/meta", "/none"]:
        answer = small.ask("GET", path)
        policy = answer.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none'; script-src 'self'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Referrer-Policy") == "no-referrer"
        assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert answer.getheader("Cache-Control") == "no-store"


def test_no_path_leads_out_of_the_page(small: View) -> None:
    for path in ["/assets/../index.html", "/assets/..%2f..%2fetc/passwd", "/../../etc/passwd", "/assets/%2e%2e/%2e%2e/conftest.py",
                 "//etc/passwd", "/assets/", "/assets/..", "/assets/a/b", "/etc/passwd", "/assets/page.js%00"]:
        answer = small.ask("GET", path)
        assert answer.status in (400, 404), path
        assert b"root:" not in answer.content and b"import" not in answer.content


def test_long_and_broken_requests_get_an_error_and_nothing_else(small: View) -> None:
    assert small.ask("POST", "/api/frame", b'{"a":"' + b"x" * (2 << 20) + b'"}').status in (400, 413)
    assert small.ask("GET", "/api/" + "a" * 100_000).status in (400, 404, 414)
    for body in ["", "[]", "null", "{", '{"t0":1e999}', '{"t0":"x","t1":2,"step":1}', '{"lanes":[1e300],"t0":0,"t1":1,"step":1}',
                 '{"t0":5,"t1":5,"step":1,"lanes":[]}', '{"t0":0,"t1":9e15,"step":1,"lanes":[0]}', '{"trace":7}', '{"trace":-1}',
                 "[" * 5000, '{"t0":0,"t1":100,"step":1,"lanes":[4000000000]}', "\xff"]:
        assert small.ask("POST", "/api/frame", body.encode("latin-1")).status == 400, body
    for path in ["event", "at", "area", "lanes", "search", "table", "flame", "gap", "save", "perfetto", "notes", "names"]:
        assert small.ask("POST", f"/api/{path}", '{"slice":4294967295,"lane":99999,"row":-1,"t0":3,"t1":1,"text":7,"names":7}').status == 400, path
    assert small.json("/api/meta")


def test_slow_clients_do_not_keep_others_waiting(small: View) -> None:
    slow = []
    for _ in range(12):
        connection = socket.create_connection(("127.0.0.1", small.port))
        connection.sendall(b"POST /api/frame HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\nX-Token: " + small.token.encode() + b"\r\n\r\n{")
        slow.append(connection)
    start = time.monotonic()
    assert small.json("/api/meta")
    assert time.monotonic() - start < 5
    for connection in slow:
        connection.close()


def test_only_this_machine_is_listened_to(small: View) -> None:
    listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=True).stdout
    own = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[1].endswith(f":{small.port:04X}") and line.split()[3] == "0A"]
    assert own == [f"0100007F:{small.port:04X}"]


def test_hostile_texts_of_a_trace_stay_text(binary: str, tmp_path: pathlib.Path) -> None:
    hostile = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\u202egnirts\u202c", "k" * 5000, "", "\x1b[31m", "a\nb",
               "\"'`${}", "_Z" + "N" * 3000]
    events = []
    for i, name in enumerate(hostile):
        events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5, "args": {name or "e": name}},
                   {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 0}]
    with viewing(binary, write_trace(tmp_path / "hostile.json", events)) as view:
        meta = view.json("/api/meta")["traces"][0]
        assert meta["slice_count"] == len(events)
        for slice_ in range(meta["slice_count"]):
            event = view.json("/api/event", {"slice": slice_})
            shown = json.dumps([event["name"], event["short"], event["args"], event["command"]])
            assert "\\u202e" not in shown and "\\u001b" not in shown and len(event["short"]) <= 130 and len(event["name"]) <= 5010
        for page in [view.ask("GET", "/api/explain?trace=0"), view.ask("GET", "/api/tour?trace=0")]:
            assert page.getheader("Content-Type") == "application/json; charset=utf-8"


# The command.

def test_ctrl_c_ends_it_and_the_port_is_the_one_asked_for(binary: str, tmp_path: pathlib.Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = small_trace(tmp_path)
    with viewing(binary, path, "--port", str(port)) as view:
        assert view.port == port
        second = subprocess.run([binary, "view", path, "--no-open", "--port", str(port)], capture_output=True, text=True, timeout=60,
                                env=clean_environment({"LANESCOPE_PAGE": "x"}), check=False)
        assert second.returncode == 1 and f"port {port}" in second.stderr
        view.process.send_signal(signal.SIGINT)
        assert view.process.wait(20) == 0


def test_ctrl_c_ends_it_while_the_rules_run(binary: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "long.json"
    subprocess.run([sys.executable, SOURCE / "tools" / "make_bench_trace.py", path, "--steps", "6000"], check=True)
    with viewing(binary, path) as view:
        request = http.client.HTTPConnection("127.0.0.1", view.port, timeout=60)
        request.request("GET", "/api/explain?trace=0", headers={"X-Token": view.token})
        time.sleep(0.1)
        view.process.send_signal(signal.SIGINT)
        assert view.process.wait(20) == 0
        request.close()


def test_over_ssh_it_prints_the_line_to_type(binary: str, tmp_path: pathlib.Path) -> None:
    process = subprocess.Popen([binary, "view", small_trace(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**{k: v for k, v in clean_environment().items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")},
                                    "SSH_CONNECTION": "1 2 3 4", "LANESCOPE_PAGE": "x"})
    port = process.stdout.readline().split(":")[2].split("/")[0]
    lines = [process.stderr.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert f"ssh -N -L {port}:127.0.0.1:{port}" in lines[1]


def test_a_wrong_file_is_one_clear_line(run: Any) -> None:
    ran = run("view", "missing.json", "--no-open", env={"LANESCOPE_PAGE": "x"})
    assert ran.code == 2 and "missing.json" in ran.complaint()


@pytest.mark.skipif(not TRACE.exists(), reason=NEEDS_SHARED_TRACES)
@pytest.mark.parametrize("name", ["h200/64_bf16_warm_eager.json", "h200/llama_decode.json.gz", "h200/mlp_cudagraph.json.gz",
                                  "public/hta_cpu_only_gloo_small.pt.trace.json.gz", "public/odd_truncated_mid_event.json",
                                  "public/tracelens_mi300_qwen_stack_memory.json.gz"])
def test_real_traces_answer_every_question(binary: str, run: Any, name: str) -> None:
    with viewing(binary, SHARED_TRACES / name) as view:
        meta = view.json("/api/meta")["traces"][0]
        lanes = [lane["lane"] for lane in meta["lanes"]]
        assert sum(lane["slice_count"] for lane in meta["lanes"] if lane["kind"] not in ("steps", "idle", "counter")) == meta["slice_count"]
        step = max(1, meta["span_ns"] // 2000)
        drawn = sum(sum(entry["folded"]) for entry in read_frame(view.ask("POST", "/api/frame", {
            "t0": 0, "t1": meta["span_ns"] + 1, "step": step, "lanes": lanes[:512]}).content)
            if entry["kind"] == 0 and meta["lanes"][entry["lane"]]["kind"] not in ("steps", "idle"))
        assert drawn == meta["slice_count"]
        explain = view.json("/api/explain?trace=0")
        # What to do first, and what it gains, is what the command says.
        said = json.loads(run("explain", "--json", SHARED_TRACES / name).out)["do_first"]
        gains = [[(each["rule"], each["gain_ns"]) for each in answer] for answer in (explain["do_first"], said)]
        assert gains[0] == gains[1]
        for finding in explain["findings"]:
            for evidence in finding["evidence"][:3]:
                if "slice" in evidence:
                    assert view.json("/api/event", {"slice": evidence["slice"]})["short"] is not None
        for stop in view.json("/api/tour?trace=0")["stops"]:
            assert stop["text"] and stop["t0"] < stop["t1"]
        for path in ["/api/gaps?trace=0", "/api/memory?trace=0"]:
            view.json(path)
        for table in ["kernels", "operators", "names"]:
            view.json("/api/table", {"table": table})


# Following a recording, and pages without a server.

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


def has_page(binary: str) -> bool:
    ran = subprocess.run([binary, "view", "/nonexistent.json", "--no-open"], capture_output=True, text=True, check=False)
    return "built without" not in ran.stderr


def saved_data(html: str) -> Any:
    import base64
    import gzip

    packed = html.split('<script type="text/plain" id="lanescope-saved">')[1].split("</script>")[0]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_a_saved_page_holds_its_range_and_loads_nothing(binary: str, run: Any, tmp_path: pathlib.Path) -> None:
    if not has_page(binary):
        pytest.skip("the command was built without its page (needs Node.js)")
    path = small_trace(tmp_path)
    page = tmp_path / "look.html"
    ran = run("view", path, "--html", page)
    assert ran.code == 0, ran.err
    html = page.read_text()
    data = saved_data(html)
    assert sum(len(row["slice"]) for row in data["rows"] if data["answers"]["/api/meta"]["traces"][0]["lanes"][row["lane"]]["kind"] in ("cpu", "gpu")) == 16
    assert len(data["links"]) == 8 and data["answers"]["/api/explain?trace=0"]["headline"]
    assert {name["full"] for name in data["names"]} >= {"aten::mm", "cudaLaunchKernel", "ampere_sgemm_128x64_nn"}
    assert "default-src 'none'" in html and "src=" not in html.split("<script type=\"module\">")[0].split("lanescope-saved")[0]
    assert html.count("</script>") == 2
    assert run("view", path, "--html", page).code == 2  # exists
    ran = run("view", path, "--html", page, "--force", "--step", "2")
    assert ran.code == 0 and sum(row["row"] == 0 and len(row["slice"]) for row in saved_data(page.read_text())["rows"]) < 16
    for wrong in [["--step", "77"], ["--window", "5ms..1ms"], ["--window", "x"]]:
        assert run("view", path, "--html", page, "--force", *wrong).code == 2


@pytest.mark.skipif(not (SHARED_TRACES / "public").exists(), reason=NEEDS_SHARED_TRACES)
def test_a_saved_page_of_100000_slices_has_at_most_2_mb(binary: str, run: Any, tmp_path: pathlib.Path) -> None:
    if not has_page(binary):
        pytest.skip("the command was built without its page (needs Node.js)")
    page = tmp_path / "look.html"
    assert run("view", SHARED_TRACES / "h200" / "matmul_add_64_20000steps.json.gz", "--html", page, "--window", "0ms..450ms").code == 0
    slices = sum(len(row["slice"]) for row in saved_data(page.read_text())["rows"])
    assert slices >= 100_000
    assert page.stat().st_size <= 2_000_000 * slices / 100_000


def is_soon_free(port: int) -> bool:
    """The tests of the page use this port, too, for a few seconds, and ./check runs both at once."""
    for _ in range(40):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return True
        time.sleep(0.5)
    return False


def test_perfetto_fetches_the_trace_once_and_nobody_else_can(binary: str, tmp_path: pathlib.Path) -> None:
    if not is_soon_free(9001):
        pytest.skip("another program uses port 9001")
    process = subprocess.Popen([binary, "view", small_trace(tmp_path), "--perfetto", "--no-open"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=clean_environment())
    link = process.stdout.readline().strip()
    assert link.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/")
    path = "/" + link.rsplit("/", 1)[1]

    def fetch(target: str, host: str = "127.0.0.1:9001") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", 9001, timeout=20)
        connection.request("GET", target, headers={"Host": host, "Origin": "https://ui.perfetto.dev"})
        answer = connection.getresponse()
        answer.content = answer.read()
        return answer

    assert fetch("/status").status == 404 and fetch("/" + "0" * 32 + ".json").status == 404
    assert fetch(path, "evil.example").status == 404
    assert fetch("/status").getheader("Access-Control-Allow-Origin") is None
    answer = fetch(path)
    assert answer.getheader("Access-Control-Allow-Origin") == "https://ui.perfetto.dev"
    assert "aten::mm" in [event.get("name") for event in json.loads(answer.content)["traceEvents"]]
    assert process.wait(20) == 0
