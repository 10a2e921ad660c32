"""`lanescope view`: what the server of the page answers, the command, pages without a server."""

from __future__ import annotations

import http.client
import json
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any, Dict, List

import pytest

from conftest import NEEDS_SHARED_TRACES, SHARED_TRACES, SOURCE, clean_environment
from view_server import View, has_page, saved_data, small, small_trace, viewing, write_trace  # noqa: F401  # `small` is a fixture

TRACE = SHARED_TRACES / "h200" / "64_bf16_warm_eager.json"


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


@pytest.mark.skipif(not TRACE.exists(), reason=f"{NEEDS_SHARED_TRACES}; without it: the tests of this file on a small trace")
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


# Pages without a server.

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


@pytest.mark.skipif(not (SHARED_TRACES / "public").exists(), reason=f"{NEEDS_SHARED_TRACES}; without it: the test above, on a small trace")
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
