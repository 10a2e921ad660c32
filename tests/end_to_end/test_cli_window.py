"""`--window` and `--step`: the part of a trace that commands read, compared with plain json."""

from __future__ import annotations

import csv
import json
import pathlib
import shutil

import pytest

from conftest import SOURCE

TRACE = SOURCE / "tests" / "data" / "h200_64_bf16_warm_eager" / "trace.json"


def to_ns(number: str) -> int:
    whole, _, fraction = str(number).partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


def slices(path: pathlib.Path):
    """(name, category, start, end) of every complete event."""
    events = json.loads(path.read_text(), parse_float=str, parse_int=str)["traceEvents"]
    found = []
    for event in events:
        if event.get("ph") == "X" and "dur" in event:
            start = to_ns(event["ts"])
            found.append((event["name"], event.get("cat", ""), start, start + to_ns(event["dur"])))
    return found


ALL = slices(TRACE)
ORIGIN = min(start for _, _, start, _ in ALL)
END = max(end for _, _, _, end in ALL)
MIDDLE = (ORIGIN + END) // 2
FIRST, LAST = MIDDLE - (END - ORIGIN) // 5, MIDDLE + (END - ORIGIN) // 7
WINDOW = f"{FIRST - ORIGIN}ns..{LAST - ORIGIN}ns"


def inside():
    for name, category, start, end in ALL:
        if start < LAST and (start >= FIRST or end > FIRST):
            yield name, category, max(start, FIRST), min(end, LAST)


def rows_of(text: str):
    return list(csv.DictReader(text.splitlines()))


def test_sql_sees_the_slices_that_touch_the_window_and_cuts_them(run):
    ran = run("sql", TRACE, "SELECT name, category, ts, dur FROM slice", "--window", WINDOW, "--csv")
    assert ran.code == 0, ran.err
    base = {}
    found = sorted((row["name"], row["category"], int(row["dur"])) for row in rows_of(ran.out))
    assert found == sorted((name, category, end - start) for name, category, start, end in inside())
    assert len(found) > 10


def test_the_line_about_cut_slices_counts_them(run):
    crossing = sum(1 for _, _, start, end in ALL if start < LAST and (start >= FIRST or end > FIRST) and (start < FIRST or end > LAST))
    assert crossing > 0
    ran = run("table", TRACE, "--window", WINDOW)
    assert f"({crossing} of {len(list(inside()))} slices reach beyond the part; only what is within it counts.)" in ran.err


def test_the_table_adds_up_what_is_in_the_window(run):
    ran = run("table", TRACE, "--window", WINDOW, "--json")
    assert ran.code == 0, ran.err
    calls = [each for each in inside() if each[0] == "aten::matmul" and each[1] == "cpu_op"]
    rows = [row for row in json.loads(ran.out)["rows"] if row["name"] == "aten::matmul"]
    assert len(rows) == 1 and rows[0]["count"] == len(calls)
    assert rows[0]["cpu_time_total_ns"] == sum(end - start for _, _, start, end in calls)


def test_convert_writes_whole_slices(run, tmp_path):
    out = tmp_path / "part.json"
    assert run("convert", TRACE, out, "--window", WINDOW).code == 0
    expected = sorted((name, category, end - start) for name, category, start, end in ALL if start < LAST and (start >= FIRST or end > FIRST))
    assert sorted((name, category, end - start) for name, category, start, end in slices(out)) == expected


def test_an_index_changes_nothing(run, tmp_path):
    trace = tmp_path / "trace.json"
    shutil.copy(TRACE, trace)
    for command in (["table", "--json"], ["sql", "SELECT * FROM slice", "--csv"], ["kernels", "--json"]):
        question = [command[0], str(trace), *command[1:], "--window", WINDOW]
        (tmp_path / "trace.json.lanescope").unlink(missing_ok=True)
        plain = run(*question)
        assert run("index", trace).code == 0
        indexed = run(*question)
        assert plain.code == indexed.code == 0, plain.err
        assert indexed.out == plain.out


def test_a_step_is_its_range_and_its_time_on_the_device(run):
    step = next(each for each in ALL if each[0] == "ProfilerStep#3" and each[1] == "user_annotation")
    ran = run("sql", TRACE, "SELECT name, dur FROM slice WHERE name = 'ProfilerStep#3' AND category = 'user_annotation'", "--step", "3", "--csv")
    assert ran.code == 0, ran.err
    assert [int(row["dur"]) for row in rows_of(ran.out)] == [step[3] - step[2]]
    table = run("table", TRACE, "--step", "3", "--json")
    assert any(row["name"] == "aten::mm" for row in json.loads(table.out)["rows"])


@pytest.mark.parametrize("command", ["table", "tree", "explain", "kernels", "roofline", "flame", "info", "memory", "whatif"])
def test_a_wrong_window_is_one_line(run, command):
    for window in ("5", "5ms..", "9ms..2ms", "a..b", "1ms..1ms"):
        ran = run(command, TRACE, "--window", window)
        assert ran.code == 2
        assert "--window expects two times since the start of the trace" in ran.complaint()
        assert window in ran.complaint()


def test_a_window_beyond_the_trace_says_how_long_the_trace_is(run):
    ran = run("table", TRACE, "--window", "100s..200s")
    assert ran.code == 2
    assert "expected --window to show something; the trace is" in ran.complaint()


def test_a_step_that_is_not_there(run):
    ran = run("table", TRACE, "--step", "999")
    assert ran.code == 2
    assert "--step: expected a step of the trace" in ran.complaint()


def test_step_and_window_exclude_each_other(run):
    assert run("tree", TRACE, "--step", "3", "--window", WINDOW).code == 2


def test_info_counts_what_is_in_the_window(run):
    ran = run("info", TRACE, "--window", WINDOW, "--json")
    assert ran.code == 0, ran.err
    found = {each["category"]: each["slice_count"] for each in json.loads(ran.out)["categories"]}
    for category in ("cpu_op", "kernel"):
        assert found[category] == sum(1 for each in inside() if each[1] == category)


def test_info_takes_a_step(run):
    ran = run("info", TRACE, "--step", "3", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["steps"]["count"] == 1


def test_whatif_replays_the_steps_of_the_window_only(run):
    ends = {name: end for name, category, _, end in ALL if category == "user_annotation"}
    part = run("whatif", TRACE, "--json", "--window", f"0ns..{ends['ProfilerStep#3'] - ORIGIN + 1}ns")
    assert part.code == 0, part.err
    whole = json.loads(run("whatif", TRACE, "--json").out)
    assert (whole["steady_step_count"], json.loads(part.out)["steady_step_count"]) == (2, 1)


def test_memory_takes_a_window(run, tmp_path):
    def record(at, change, total):
        arguments = {"Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": change, "Total Allocated": total, "Total Reserved": 4096}
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": arguments}

    trace = tmp_path / "memory.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [record(0, 512, 512), record(100, 1024, 1536), record(200, -1024, 512)]}))
    peaks = []
    for window in ([], ["--window", "0us..50us"], ["--window", "50us..150us"]):
        ran = run("memory", trace, "--json", *window)
        assert ran.code == 0, ran.err
        peaks.append(json.loads(ran.out)["devices"][0]["peak_bytes"])
    assert peaks == [1536, 512, 1536]


@pytest.mark.parametrize("command", ["explain", "kernels", "roofline", "tree"])
def test_commands_with_steps_of_their_own_take_a_window(run, command):
    ran = run(command, TRACE, "--window", WINDOW)
    assert ran.code == 0, ran.err
    assert ran.out


def of_category(*categories):
    return [each for each in ALL if each[1] in categories]


def test_a_category_is_read_alone(run):
    ran = run("sql", TRACE, "SELECT name, category, dur FROM slice", "--category", "kernel,cuda_runtime", "--csv")
    assert ran.code == 0, ran.err
    found = sorted((row["name"], row["category"], int(row["dur"])) for row in rows_of(ran.out))
    assert found == sorted((name, category, end - start) for name, category, start, end in of_category("kernel", "cuda_runtime"))
    assert len({category for _, category, _ in found}) == 2
    info = json.loads(run("info", TRACE, "--category", "kernel", "--json").out)
    assert {each["category"]: each["slice_count"] for each in info["categories"] if each["slice_count"]} == {"kernel": len(of_category("kernel"))}


def test_convert_writes_a_category_alone(run, tmp_path):
    out = tmp_path / "gpu.json"
    assert run("convert", TRACE, out, "--category", "kernel", "--window", WINDOW).code == 0
    expected = sorted(each[0] for each in of_category("kernel") if each[2] < LAST and (each[2] >= FIRST or each[3] > FIRST))
    assert sorted(each[0] for each in slices(out)) == expected and expected


def test_self_time_counts_only_the_categories_that_are_read(run):
    rows = json.loads(run("table", TRACE, "--category", "user_annotation", "--json").out)["rows"]
    within = {row["name"]: row["self_cpu_time_total_ns"] for row in rows}
    total = {row["name"]: row["cpu_time_total_ns"] for row in rows}
    assert within["matmul_add"] == total["matmul_add"] > 0  # its operators are not read
    assert 0 < within["ProfilerStep*"] == total["ProfilerStep*"] - total["matmul_add"]


def test_an_unknown_category_is_one_line_with_those_of_the_trace(run):
    ran = run("table", TRACE, "--category", "kernels")
    assert ran.code == 2
    assert "--category expects names with commas between them; the trace has " in ran.complaint()
    assert "cpu_op, " in ran.complaint() and "found 'kernels'" in ran.complaint()


def test_an_index_changes_nothing_for_a_category(run, tmp_path):
    trace = tmp_path / "trace.json"
    shutil.copy(TRACE, trace)
    question = ["sql", str(trace), "SELECT * FROM slice", "--csv", "--category", "cpu_op"]
    plain = run(*question)
    assert run("index", trace).code == 0
    indexed = run(*question)
    assert plain.code == indexed.code == 0, plain.err
    assert indexed.out == plain.out
