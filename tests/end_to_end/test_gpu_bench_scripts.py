"""The scripts of bench/gpu, as far as a machine without a GPU goes: they run on the CPU, and they notice what is wrong.

A benchmark that cannot fail proves nothing, so real traces of a GPU are damaged here, row by row, and compare.py must say
DIFFERENT.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
from typing import Any, Callable, Dict, List

import pytest

from conftest import DATA, SOURCE

pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("lanescope", reason="needs the lanescope package (PYTHONPATH)")

SCRIPTS = SOURCE / "bench" / "gpu"
sys.path.insert(0, str(SCRIPTS))
import compare as compare_script  # noqa: E402
import kill9  # noqa: E402
from trace_json import Containment, Event, TraceJson, check_external_ids, exact_ns  # noqa: E402

REAL = DATA / "h200" / "cnn_train_mistakes.json.gz"


def run(script: str, *arguments: str, timeout: float = 600) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, str(SCRIPTS / script), *map(os.fspath, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)


def lanescope_command() -> str:
    for candidate in (os.environ.get("LANESCOPE_COMMAND"), str(pathlib.Path(sys.executable).with_name("lanescope")),
                      shutil.which("lanescope")):
        if candidate and os.path.exists(candidate):
            return candidate
    pytest.skip("needs the lanescope command next to this Python, or LANESCOPE_COMMAND")


# -- what compare.py notices -----------------------------------------------------------------------------------------------


def document() -> Dict[str, Any]:
    loaded: Dict[str, Any] = json.loads(gzip.decompress(REAL.read_bytes()))
    return loaded


def rows(trace: Dict[str, Any], cat: str, name: str = "") -> List[Dict[str, Any]]:
    found = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") == cat and name in e["name"]]
    assert found, f"the real trace has no {cat} {name}"
    return found


def in_a_step(trace: Dict[str, Any], cat: str, name: str = "") -> Dict[str, Any]:
    """A row whose launching call is in the second step."""
    step = rows(trace, "user_annotation", "ProfilerStep#")[1]
    calls = {e["args"]["correlation"]: e for e in trace["traceEvents"] if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    for row in rows(trace, cat, name):
        at = calls[row["args"]["correlation"]]["ts"] if "correlation" in row["args"] else row["ts"]
        if step["ts"] <= at < step["ts"] + step["dur"]:
            return row
    raise AssertionError(f"no {cat} {name} in the second step")


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    """compare(change): compare.py's exit code, and its row for the real and the changed trace."""
    return lambda change: compare_files(tmp_path, change, monkeypatch, capsys)


def compare_files(folder: pathlib.Path, change: Callable[[Dict[str, Any]], Any], monkeypatch: Any, capsys: Any) -> Any:
    changed = document()
    change(changed)
    path = folder / "lanescope.json"
    path.write_text(json.dumps(changed))
    monkeypatch.setattr(sys, "argv", ["compare.py", "--files", str(REAL), str(path), "--out", str(folder)])
    code = compare_script.main()
    result = json.loads((folder / "compare.json").read_text())["programs"][0]
    assert result["verdict"] in capsys.readouterr().out
    return code, result


def remove(*choice: str) -> Callable[[Dict[str, Any]], None]:
    return lambda trace: trace["traceEvents"].remove(in_a_step(trace, *choice))


def unexplained(result: Dict[str, Any]) -> List[str]:
    return sorted({d["what"] for d in result["differences"] if not d["reason"]})


def test_a_trace_is_equal_to_itself(compare):
    code, result = compare(lambda trace: None)
    assert (code, result["verdict"], result["differences"]) == (0, "equal", [])
    assert result["counts"]["kernels"][0] > 1000
    assert result["counts"]["external ids torch.profiler"] == [1464, 1464]


def test_what_lanescope_does_not_record_is_explained_by_name(compare):
    def without_queries(trace):
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e.get("name") != "cudaStreamIsCapturing"]

    code, result = compare(without_queries)
    assert (code, result["verdict"]) == (0, "explained")
    assert [d["name"] for d in result["differences"]] == ["cudaStreamIsCapturing in every step"]


@pytest.mark.parametrize("change, what", [
    (remove("kernel"), ["kernel launch shapes", "kernels", "op chains"]),
    (remove("gpu_memcpy"), ["copies", "op chains"]),
    (remove("gpu_memset"), ["memsets", "op chains"]),
    (remove("cpu_op", "aten::convolution"), None),
    (remove("cuda_runtime", "cudaStreamSynchronize"), ["runtime calls"]),
    (lambda t: in_a_step(t, "cuda_runtime", "cudaStreamIsCapturing").update(name="cudaFree"), ["runtime calls"]),
    (remove("cuda_runtime", "cudaStreamIsCapturing"), ["runtime calls"]),  # a part of them: explained is all or none
    (lambda t: in_a_step(t, "kernel").update(name="another"), ["kernel launch shapes", "kernels", "op chains"]),
    (lambda t: in_a_step(t, "kernel")["args"].update(grid=[7, 7, 7]), ["kernel launch shapes"]),
    (lambda t: in_a_step(t, "kernel")["args"].update({"External id": 1}), ["External ids"]),
    (lambda t: in_a_step(t, "kernel")["args"].pop("External id"), ["External ids"]),
    (lambda t: in_a_step(t, "kernel")["args"].update(correlation=-5), None),
    (remove("user_annotation", "ProfilerStep#"), ["windows"]),
], ids=["kernel", "copy", "memset", "operator", "call", "renamed call", "part of the queries", "renamed kernel", "grid",
        "external id", "no external id", "no launch", "window"])
def test_one_damaged_row_is_a_difference(compare, change, what):
    code, result = compare(change)
    assert (code, result["verdict"]) == (1, "DIFFERENT")
    assert unexplained(result)
    if what is not None:
        assert unexplained(result) == what


def test_the_explained_calls_are_those_that_the_recorder_leaves_out():
    lists = SOURCE / "src" / "lanescope" / "record_cupti" / "api_lists.cpp"
    if not lists.exists():
        pytest.skip("needs the list of recorded calls in the source")
    recorded = set(re.findall(r"// ((?:__)?cu[A-Za-z0-9]+)$", lists.read_text(), re.MULTILINE))
    assert {"cudaLaunchKernel", "cuLaunchKernelEx"} <= recorded
    explained = json.loads((SCRIPTS / "explained.json").read_text())
    assert not recorded & set(explained["torch_only_calls"])
    assert set(explained["lanescope_only_calls"]) <= recorded


def test_nothing_compared_is_no_success(tmp_path):
    done = run("compare.py", "--programs", "mlp_cudagraph", "--device", "cpu", "--small", "--allow-not-run",
               "--out", str(tmp_path))
    assert done.returncode == 1 and "0 of 1 tell the same" in done.stdout


def test_times_are_exact_and_containment_finds_the_innermost():
    texts = ("4365195367064.131", 12, "12.5", "-0.001", "1e3")
    assert [exact_ns(text) for text in texts] == [4365195367064131, 12000, 12500, -1, 1000000]
    ranges = [Event("cpu_op", name, 1, 1, start, end, {}) for name, start, end in
              (("a", 0, 100), ("b", 10, 50), ("c", 20, 30), ("d", 40, 60), ("e", 55, 58))]  # d crosses the end of b
    chain = lambda moment: "".join(e.name for e in Containment(ranges).chain(moment))  # noqa: E731
    moments = (5, 10, 25, 30, 45, 50, 56, 58, 60, 100)
    assert [chain(moment) for moment in moments] == ["a", "ab", "abc", "ab", "abd", "ad", "ade", "ad", "a", ""]


def test_ids_of_torch_profiler_are_found_by_containment_with_nccl_too():
    for path in sorted((DATA / "ddp4").glob("*/*.json.gz")):
        ids = check_external_ids(TraceJson(path))
        assert (ids.agree, ids.differ, ids.missing) == (549, 0, 0), path


# -- they run ----------------------------------------------------------------------------------------------------------------


def test_compare_runs_programs_under_both_profilers(tmp_path):
    done = run("compare.py", "--programs", "16_bf16_warm_eager,mlp_train", "--device", "cpu", "--small", "--active", "3",
               "--jobs", "2", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    result = {row["program"]: row for row in json.loads((tmp_path / "compare.json").read_text())["programs"]}
    assert {name: row["verdict"] for name, row in result.items()} == {"16_bf16_warm_eager": "equal", "mlp_train": "equal"}
    # Per step: ProfilerStep, matmul_add, aten::matmul, aten::mm, aten::add; on the CPU, mm may call helpers.
    theirs, ours = result["16_bf16_warm_eager"]["counts"]["CPU operators and ranges"]
    assert theirs == ours >= 3 * 5


def test_cost_measures_and_counts(tmp_path):
    done = run("cost.py", "--device", "cpu", "--seconds", "12", "--variants", "lanescope cpu", "--block-ms", "5",
               "--latency-steps", "400", "--after-steps", "300", "--memory-steps", "2000", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    row = json.loads((tmp_path / "cost.json").read_text())["results"]["lanescope cpu"]
    slow = row["slowdown"]
    assert slow["pairs"] == 2 * len(slow["cycles_us"]) >= 4
    assert slow["slowdown_percent"]["q1"] <= slow["slowdown_percent"]["q3"]
    # A cycle: without, recorded, without but with CUPTI in the process, recorded.
    attached = [100 * (with_ / cycle[2] - 1) for cycle in slow["cycles_us"] for with_ in (cycle[1], cycle[3])]
    stays = [100 * (cycle[2] / cycle[0] - 1) for cycle in slow["cycles_us"]]
    assert slow["attached_percent"]["median"] == pytest.approx(statistics.median(attached))
    assert slow["stays_percent"]["median"] == pytest.approx(statistics.median(stays))
    assert row["latency"]["with"]["p50_us"] <= row["latency"]["with"]["p99.99_us"] <= row["latency"]["with"]["most_us"]
    assert row["after"]["ranges"] == 300 and row["after"]["stop_ms"] > 0 and row["after"]["json_bytes"] > 0
    assert row["memory"]["samples"][0]["steps"] == 100


def test_cost_fails_when_a_variant_fails(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU, where --device cuda fails")
    done = run("cost.py", "--device", "cuda", "--seconds", "5", "--sections", "after", "--variants", "lanescope cuda",
               "--out", str(tmp_path))
    assert done.returncode == 1
    assert "PROBLEM: lanescope cuda, after: ended with 2: torch sees no CUDA device" in done.stdout


def test_what_stays_is_measured_in_processes_that_take_turns(tmp_path):
    done = run("residual.py", "--device", "cpu", "--processes", "1", "--steps", "50", "--seconds", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    result = json.loads((tmp_path / "residual.json").read_text())
    assert result["percent"]["none"] == [0.0]  # one process is its own median
    low = [sorted(times)[-(-len(times) // 10) - 1] for times in result["before_us"]]
    then = [sorted(times)[-(-len(times) // 10) - 1] for times in result["after_us"]]
    at = result["names"].index("lanescope")
    drift = then[result["names"].index("none")] / low[result["names"].index("none")]
    assert result["percent"]["lanescope"] == [pytest.approx(100 * (then[at] / low[at] / drift - 1))]
    assert len({len(times) for times in result["before_us"]}) == 1 and len(result["before_us"]) == len(result["names"]) == 4


def test_rules_that_find_nothing_fail_the_check(tmp_path, monkeypatch):
    """Without a GPU no rule finds anything: what must be found is then wrong, and what must not be found is right."""
    monkeypatch.setenv("LANESCOPE_COMMAND", lanescope_command())
    done = run("hardware_rules.py", "--device", "cpu", "--small", "--seconds", "0.1", "--cases", "pinned_copies,pauses_alone",
               "--out", str(tmp_path))
    assert done.returncode == 1, done.stdout
    assert "WRONG full-link" in done.stdout and "1 states are not as expected" in done.stdout
    assert (tmp_path / "pauses_alone.explain.json").exists() and not list(tmp_path.glob("*.lspool"))


def test_cost_of_hardware_lanes_says_what_was_not_sampled(tmp_path):
    done = run("hardware_cost.py", "--device", "cpu", "--seconds", "1", "--period", "0.1", "--variants", "100us", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "not sampled: " in done.stdout and re.search(r"^nothing +\d+ ", done.stdout, re.M)
    periods = json.loads((tmp_path / "hardware_cost.json").read_text())["periods"]
    assert {period["variant"] for period in periods} == {"nothing", "100us"}
    assert not re.search(r"^100us ", done.stdout, re.M)  # a period that was not sampled counts for nothing


def test_windows_with_and_without_sampling_are_compared(tmp_path):
    (tmp_path / "sampler.py").write_text(
        "import mmap, sys, time\nfile = open(sys.argv[1], 'r+b')\npage = mmap.mmap(file.fileno(), 4096)\n"
        "page[1] = 0\nwhile page[0] != 9:\n    page[1] = page[0]\n    if page[2]:\n        page[2], page[3] = 0, 1\n"
        "    time.sleep(0.0003)\nprint('all was sampled')\n")
    sampler = tmp_path / "sampler"
    sampler.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{tmp_path}/sampler.py' \"$1\"\n")
    sampler.chmod(0o755)
    done = run("hardware_windows.py", "--device", "cpu", "--pm-windows", str(sampler), "--seconds", "2", "--window-ms", "2", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "mean of a window, median of pairs" in done.stdout and "all was sampled" in done.stdout
    result = json.loads((tmp_path / "hardware_windows.json").read_text())
    assert result["sampling"]["pairs"] == len(result["ratios"]["sampling"]) > 0
    sampler.write_text("#!/bin/sh\necho 'pm_windows: enable: 26'\n")
    done = run("hardware_windows.py", "--device", "cpu", "--pm-windows", str(sampler), "--seconds", "1", "--out", str(tmp_path))
    assert done.returncode == 1 and "the sampler does not answer: pm_windows: enable: 26" in done.stdout


def test_a_picture_of_lanes_shows_the_middle_steps(tmp_path):
    """Eight steps of 100 us, a sample every 50 us: SM active is 80 % in the first half of a step and 20 % in the second."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 100 * i, "dur": 100} for i in range(8)]
    events += [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100 * i, "dur": 50, "args": {"device": 0, "stream": 7}}
               for i in range(8)]
    events += [{"ph": "C", "name": "SM active", "pid": 0, "ts": 50 * i, "args": {"%": 80 if i % 2 == 0 else 20}} for i in range(17)]
    (tmp_path / "lanes.json").write_text(json.dumps({"traceEvents": events}))
    done = run("hardware_pictures.py", "draw", str(tmp_path / "lanes.json"), "--steps", "2", "--lanescope", lanescope_command(),
               "--out", str(tmp_path / "lanes.svg"))
    assert done.returncode == 0, done.stdout
    picture = (tmp_path / "lanes.svg").read_text()
    assert "lanes: 2 steps, 0.20 ms" in picture and "SM active, mean 50 %" in picture
    # 100 us are 415 of 960 units; 80 % are 72 of the lane's 90.
    assert "M120.0 94.0L327.5 94.0L327.5 148.0L535.0 148.0" in picture
    done = run("hardware_pictures.py", "draw", str(tmp_path / "lanes.json"), "--steps", "8", "--lanescope", lanescope_command(),
               "--out", str(tmp_path / "lanes.svg"))
    assert done.returncode == 1 and "expected a trace with more than 8 steps, found 8" in done.stdout


def test_leaving_says_that_there_is_no_gpu():
    import torch

    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    done = run("leaving.py")
    assert done.returncode == 2 and "torch sees no CUDA device" in done.stdout


def test_kill9_reads_what_killed_programs_leave(tmp_path):
    done = run("kill9.py", "--device", "cpu", "--small", "--rounds", "2", "--least-s", "2", "--most-s", "2.5",
               "--margin-ms", "60000",
               "--lanescope", lanescope_command(), "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout
    rounds = json.loads((tmp_path / "kill9.json").read_text())["rounds"]
    assert [(r["way"], r["problems"]) for r in rounds] == [("record", []), ("profile", [])]
    assert all(r["cpu_events"] >= r["ranges_in_closed"] and r["open"] > 0 for r in rounds)


def test_kill9_notices_a_changed_chunk(tmp_path):
    import lanescope

    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], output_dir=tmp_path) as prof:
        for _ in range(4000):  # more than one chunk of 2,728 records
            with lanescope.record_function("range"):
                pass
    path = pathlib.Path(prof.spool_path)
    chunks = kill9.count_chunks(path)
    assert chunks["closed"] > 0 and chunks["wrong_checksum"] == 0 and chunks["ranges_in_closed"] == 4000
    data = bytearray(path.read_bytes())
    full = [at for at in range(kill9.HEADER_BYTES, len(data), kill9.CHUNK_BYTES)
            if struct.unpack_from("<I", data, at + 16)[0] == kill9.RECORDS and struct.unpack_from("<I", data, at + 36)[0] == 1]
    data[full[0] + kill9.CHUNK_HEADER_BYTES] ^= 0xFF
    path.write_bytes(data)
    assert kill9.count_chunks(path)["wrong_checksum"] == 1


def test_the_visit_names_what_it_does_not_know(tmp_path):
    done = subprocess.run([str(SCRIPTS / "run.sh"), "no_such_section"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env={**os.environ, "OUT": str(tmp_path / "never")}, timeout=300)
    assert done.returncode == 2 and "usage: bench/gpu/run.sh" in done.stdout and not (tmp_path / "never").exists()
