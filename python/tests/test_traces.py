"""Reading trace files: columns, errors, tables; without torch."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import threading

import numpy
import pytest

import lanescope

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"  # traces of real programs

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 70, "ts": 10.0, "dur": 5.0,
     "args": {"External id": 3, "Input Dims": [[2, 3], [3, 4]], "note": "a \"quote\""}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 7, "tid": 70, "ts": 8.001, "dur": 20.0},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 70, "ts": 11.0, "dur": 1.0,
     "args": {"correlation": 55}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 14.0, "dur": 2.5,
     "args": {"correlation": 55, "device": 0, "stream": 7}},
]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "mine": {"a": [1, 2]}, "traceEvents": EVENTS}))
    return file


def test_columns_are_exact_nanoseconds(path):
    trace = lanescope.read_trace(path)
    assert len(trace) == 4
    by_name = {trace.name(i): i for i in range(len(trace))}
    step, op, kernel = by_name["ProfilerStep#4"], by_name["aten::mm"], by_name["gemm"]
    assert trace.start_ns[step] - trace.base_time_ns in (8001, 8001 - trace.base_time_ns)
    assert trace.start_ns[op] - trace.start_ns[step] == 1999
    assert list(trace.dur_ns[[step, op, kernel]]) == [20000, 5000, 2500]
    assert trace.correlation[kernel] == 55 and trace.correlation[op] == -1
    assert trace.external_id[op] == 3
    assert trace.integer_args("External id", missing=-7)[kernel] == -7
    assert trace.steps == [(4, step)]
    assert trace.categories[trace.category_id[kernel]] == "kernel"
    assert trace.tracks[trace.track_id[kernel]]["stream"] == 7
    assert trace.names[trace.name_id[op]] == "aten::mm"


def test_of_a_folder_the_newest_trace_is_read_and_named(path, tmp_path, recwarn):
    os.utime(path, (1, 1))
    assert len(lanescope.read_trace(tmp_path)) == 4 and not recwarn  # there is nothing to choose
    (tmp_path / "newer.json").write_text(json.dumps({"traceEvents": EVENTS[:1]}))
    (tmp_path / "inner").mkdir()
    readers = {
        lanescope.read_trace: len,
        lanescope.info_data: lambda data: data["slice_count"],
        lambda folder: lanescope.sql(folder, "select count(*) as n from slice"): lambda rows: rows["n"][0],
        lanescope.explain: lambda explanation: len(explanation.trace),
    }
    for read, count in readers.items():
        with pytest.warns(UserWarning, match=r"opened '.*newer\.json', the newest of 2 traces in ") as warned:
            result = read(tmp_path)
        assert count(result) == 1
        assert warned[0].filename == __file__
    with pytest.raises(lanescope.InvalidArgumentError, match="found a folder without one"):
        lanescope.read_trace(tmp_path / "inner")


def test_a_file_of_another_program_under_the_name_of_the_index_is_named(path):
    path.with_name("trace.json.lanescope").write_text("notes of mine")
    with pytest.warns(UserWarning, match=r"trace\.json\.lanescope is not an index of lanescope, and left as it was") as warned:
        assert len(lanescope.read_trace(path)) == 4
    assert warned[0].filename == __file__


def test_a_window_or_a_step_alone(path):
    whole = lanescope.read_trace(path)
    origin = min(whole.start_ns)
    op = [whole.name(i) for i in range(len(whole))].index("aten::mm")
    first, middle = whole.start_ns[op] - origin, whole.start_ns[op] + whole.dur_ns[op] // 2 - origin
    part = lanescope.read(path, window=f"{first}ns..{middle}ns")
    names = {part.name(i): part.dur_ns[i] for i in range(len(part))}
    assert names["aten::mm"] == middle - first  # cut at the end of the window
    assert names["ProfilerStep#4"] == middle - first
    assert len(lanescope.read_trace(path, step=4)) == len(whole)
    with pytest.raises(ValueError, match="window expects two times"):
        lanescope.read(path, window="5")
    with pytest.raises(ValueError, match="expected a step of the trace, 4 to 4; found 9"):
        lanescope.read(path, step=9)
    with pytest.raises(ValueError, match="found both"):
        lanescope.read(path, window="0ns..1ns", step=4)


def test_a_category_alone(path):
    whole = lanescope.read_trace(path)
    part = lanescope.read(path, category="cpu_op")
    assert sorted(part.name(i) for i in range(len(part))) == sorted(whole.sql("SELECT name FROM slice WHERE kind = 'cpu_op'")["name"])
    assert 0 < len(part) < len(whole)
    with pytest.raises(ValueError, match="category expects names with commas between them; the trace has .*cpu_op.*; found 'cpu_ops'"):
        lanescope.read(path, category="cpu_ops")


def test_arguments_are_python_values(path):
    trace = lanescope.read_trace(path)
    rows = [trace.args(i) for i in range(len(trace)) if trace.name(i) == "aten::mm"]
    assert rows == [{"External id": 3, "Input Dims": [[2, 3], [3, 4]], "note": 'a "quote"'}]
    assert trace.metadata["mine"] == {"a": [1, 2]}
    with pytest.raises(IndexError):
        trace.args(4)


def test_columns_keep_the_trace_alive_and_cannot_be_written(path):
    column = lanescope.read_trace(path).start_ns
    gc.collect()
    assert int(column.max()) > 0
    with pytest.raises(ValueError):
        column[0] = 1
    with pytest.raises(ValueError):
        column.setflags(write=True)


def test_an_empty_trace_has_empty_columns(tmp_path):
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    trace = lanescope.read_trace(tmp_path / "empty.json")
    assert len(trace) == 0 and trace.start_ns.dtype == numpy.int64 and trace.start_ns.size == 0
    assert len(lanescope.EventList(trace)) == 0
    assert len(lanescope.key_averages(trace)) == 0


def test_errors_are_lanescope_errors_and_the_built_in_ones(tmp_path):
    with pytest.raises(lanescope.IoError, match="nowhere.json") as caught:
        lanescope.read_trace(tmp_path / "nowhere.json")
    assert isinstance(caught.value, (lanescope.Error, OSError)) and caught.value.code == "io"
    (tmp_path / "letter.txt").write_text("Dear reader, this is no trace.")
    with pytest.raises(lanescope.Error, match="expected"):
        lanescope.read_trace(tmp_path / "letter.txt")


def test_a_file_of_another_tool_is_named(tmp_path):
    (tmp_path / "export.sqlite").write_bytes(b"SQLite format 3\0" + bytes(4000) + b"CUPTI_ACTIVITY_KIND_KERNEL")
    with pytest.raises(lanescope.Error) as caught:
        lanescope.read_trace(tmp_path / "export.sqlite")
    message = str(caught.value)
    assert "expected a PyTorch or Chrome trace (.json, .json.gz, .json.zst), a lanescope recording (.lspool)" in message
    assert "found an SQLite database of Nsight Systems" in message
    assert caught.value.code == "unsupported"


def test_damage_is_counted(path):
    text = path.read_text()
    path.write_text(text[: text.index('"gemm"')])
    trace = lanescope.read_trace(path)
    assert len(trace) == 3
    issues = {row["name"]: row for row in trace.import_stats}
    assert "truncated-file" in issues and issues["truncated-file"]["severity"] == "lost"


def test_writing_and_reading_back_gives_the_same_columns(path, tmp_path):
    trace = lanescope.read_trace(path)
    lanescope.write_kineto_json(trace, tmp_path / "again.json.gz")
    again = lanescope.read_trace(tmp_path / "again.json.gz")
    assert [again.name(i) for i in range(4)] == [trace.name(i) for i in range(4)]
    assert list(again.start_ns) == list(trace.start_ns) and list(again.dur_ns) == list(trace.dur_ns)


def test_rows_and_table_of_a_file(path):
    rows = lanescope.key_averages(lanescope.read_trace(path))
    mm = next(row for row in rows if row.key == "aten::mm")
    assert (mm.count, mm.cpu_time_total, mm.self_cpu_time_total) == (1, 5.0, 4.0)
    text = rows.table(sort_by="cpu_time_total", row_limit=1)
    assert "ProfilerStep*" in text and "aten::mm" not in text
    with pytest.raises(ValueError, match="cpu_time_total"):
        rows.table(sort_by="best")
    assert json.loads(rows.json())["lanescope"]["command"] == "table"
    assert rows.csv().splitlines()[0].startswith("name")


def test_tables_show_escaped_in_a_notebook(tmp_path):
    event = dict(EVENTS[0], name="<script>alert('x')</script>")
    (tmp_path / "evil.json").write_text(json.dumps([event]))
    html = lanescope.key_averages(lanescope.read_trace(tmp_path / "evil.json"))._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and html.startswith("<pre")


def test_events_know_parent_children_and_kernels(path):
    events = lanescope.EventList(lanescope.read_trace(path))
    mm = next(e for e in events if e.name == "aten::mm")
    assert mm.cpu_parent.trace_name == "ProfilerStep#4" and mm.cpu_parent.name == "ProfilerStep*"
    assert [child.name for child in mm.cpu_children] == ["cudaLaunchKernel"]
    assert mm.time_range.elapsed_us() == 5.0 and mm.self_cpu_time_total == 4.0
    assert mm.input_shapes == [[2, 3], [3, 4]]
    assert mm.device_type == lanescope.DeviceType.CPU
    assert events.column("start_us").shape == (4,)
    assert not events.column("start_us").flags.writeable
    assert events.column("start_us") is events.column("start_us")
    with pytest.raises(ValueError, match="start_us"):
        events.column("begin")


def test_reading_runs_without_the_interpreter_lock_and_reports_progress():
    seen = []
    trace = lanescope.read_trace(DATA / "h200" / "llama_prefill.json.gz", progress=lambda *a: seen.append(a))
    assert len(trace) > 1000 and seen and seen[-1][0] <= seen[-1][1]


def test_many_threads_read_one_trace():
    trace = lanescope.read_trace(DATA / "h200_mlp_train" / "trace.json.gz")
    tables = []
    threads = [
        threading.Thread(target=lambda: tables.append(lanescope.key_averages(trace).table(sort_by="cuda_time_total")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tables)) == 1 and len(tables) == 4


def test_the_table_of_a_real_trace_is_torchs_text():
    folder = DATA / "h200_64_bf16_warm_eager"
    trace = lanescope.read_trace(folder / "trace.json")
    text = lanescope.key_averages(trace).table(sort_by="cuda_time_total", row_limit=15)
    assert text.strip() == (folder / "torch_table.txt").read_text().strip()


def test_import_needs_neither_torch_nor_numpy(run_python):
    code = "import sys, lanescope; print(sorted(m for m in ('torch', 'numpy', 'pandas') if m in sys.modules))"
    assert run_python(code=code).stdout.strip() == "[]"


def test_tree_and_info_are_what_the_commands_print(path):
    trace = lanescope.read_trace(path)
    tree = lanescope.dispatch_tree(trace)
    places = [tree.index(name) for name in ("ProfilerStep", "aten::mm", "cudaLaunchKernel", "gemm")]
    assert places == sorted(places)  # each inside the one before
    assert lanescope.dispatch_tree_data(trace, op="aten::mm")["lanescope"]["command"] == "tree"
    with pytest.raises(ValueError, match="9"):
        lanescope.dispatch_tree(trace, step=9)
    assert "kernel" in lanescope.info(trace)
    assert lanescope.info_data(trace)["lanescope"]["command"] == "info"
    assert json.loads(lanescope.kineto_json(trace))["traceEvents"]


def test_info_takes_a_path_or_a_trace(path):
    trace = lanescope.read_trace(path)
    assert lanescope.info(str(path)) == lanescope.info(path) == lanescope.info(trace) and "cpu_op" in lanescope.info(path)
    assert lanescope.info_data(path) == lanescope.info_data(trace)
    with pytest.raises(OSError):
        lanescope.info(path.parent / "missing.json")


def test_a_trace_says_what_it_holds(path):
    assert repr(lanescope.read_trace(path)) == "<lanescope.Trace: 4 slices on 1 thread and 1 stream, 1 step, 0.020 ms>"
    rows = [{"ph": "i", "name": "x", "pid": 1, "tid": 1, "ts": 1.0, "s": "t"}, *EVENTS[:2]]
    path.write_text(json.dumps({"traceEvents": [*rows, {**EVENTS[1], "name": "ProfilerStep#5", "tid": 71, "ts": 40.0}]}))
    text = repr(lanescope.read_trace(path))
    assert text.startswith("<lanescope.Trace: 3 slices, 1 instant on 2 threads, 2 steps, ")
    assert repr(lanescope.Trace()) == "<lanescope.Trace: 0 slices on 0 threads, 0.000 ms>"
