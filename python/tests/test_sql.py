"""Trace.sql(): rows of a query as columns, compared with the columns of the Trace."""

from __future__ import annotations

import pathlib
import signal
import threading

import numpy
import pytest

import lanescope

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
TRACES = ["h200_mlp_train/trace.json.gz", "h200_64_bf16_warm_eager/trace.json"]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module", params=TRACES)
def trace(request):
    return lanescope.read_trace(DATA / request.param)


def test_the_columns_of_slice_are_those_of_the_trace(trace):
    rows = trace.sql("SELECT * FROM slice ORDER BY id")
    assert numpy.array_equal(rows["ts"], trace.start_ns) and rows["ts"].dtype == numpy.int64
    assert numpy.array_equal(rows["dur"], trace.dur_ns)
    assert numpy.array_equal(rows["track_id"], trace.track_id)
    assert numpy.array_equal(rows["event_index"], trace.event_index)
    assert rows["name"] == [trace.names[i] for i in trace.name_id]
    assert rows["category"] == [trace.categories[i] for i in trace.category_id]
    assert numpy.array_equal(numpy.nan_to_num(rows["correlation"], nan=-1), trace.correlation)
    assert numpy.array_equal(numpy.nan_to_num(rows["external_id"], nan=-1), trace.external_id)


def test_small_tables_are_those_of_the_trace(trace):
    tracks = trace.sql("SELECT t.*, p.pid, p.name AS process_name FROM track t LEFT JOIN process p USING(upid) ORDER BY id")
    assert list(tracks["type"]) == [track["kind"] for track in trace.tracks]
    assert list(tracks["name"]) == [track["name"] for track in trace.tracks]
    assert list(tracks["pid"]) == [track["process"] for track in trace.tracks]
    assert list(tracks["tid"]) == [track["thread"] for track in trace.tracks]
    steps = trace.sql("SELECT number, slice_id FROM step")
    assert list(zip(steps["number"], steps["slice_id"])) == trace.steps
    flows = trace.sql("SELECT trace_id, name, from_track, from_ts, to_track, to_ts FROM flow ORDER BY id")
    assert list(zip(*flows.values())) == trace.flows


def test_arguments_are_those_of_the_trace(trace):
    rows = trace.sql("SELECT s.id, key, int_value, string_value FROM slice s JOIN args USING(arg_set_id) WHERE s.id % 37 = 0")
    assert len(rows["id"]) > 0
    for row, key, number, text in zip(*rows.values()):
        value = trace.args(int(row))[key]
        if isinstance(value, (int, bool)):
            assert number == value
        elif isinstance(value, str):
            assert text == value


def test_types_of_columns(trace):
    rows = trace.sql("SELECT 1 AS i, 2.5 AS r, NULL AS n, 'x' AS t, x'01' AS b UNION ALL SELECT 2, NULL, NULL, NULL, NULL")
    assert rows["i"].dtype == numpy.int64 and list(rows["i"]) == [1, 2]
    assert rows["r"].dtype == numpy.float64 and rows["r"][0] == 2.5 and numpy.isnan(rows["r"][1])
    assert rows["n"] == [None, None] and rows["t"] == ["x", None] and rows["b"] == [b"\x01", None]
    large = trace.sql("SELECT 9007199254740993 AS i UNION ALL SELECT NULL")  # no double holds it
    assert large["i"] == [9007199254740993, None]
    assert list(trace.sql("SELECT 1 AS a, 2 AS a")) == ["a", "a:1"]
    assert list(trace.sql("SELECT id FROM slice WHERE 0")) == ["id"]


def test_errors(trace):
    with pytest.raises(lanescope.InvalidArgumentError, match="did you mean name"):
        trace.sql("SELECT nam FROM kernel")
    with pytest.raises(lanescope.InvalidArgumentError, match="only reading is allowed"):
        trace.sql("DELETE FROM slice")
    with pytest.raises(lanescope.LimitError, match="stopped after 0.05 s"):
        trace.sql(ENDLESS, timeout=0.05)
    with pytest.raises(lanescope.InvalidArgumentError, match="pandas"):
        trace.sql("SELECT 1", frame="excel")
    with pytest.raises(lanescope.InvalidArgumentError, match="seconds"):
        trace.sql("SELECT 1", timeout=-1)


def test_ctrl_c_ends_a_query(trace):
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        trace.sql(ENDLESS, timeout=60)
    assert trace.sql("SELECT 7 AS n")["n"][0] == 7


def test_threads_ask_one_after_the_other(trace):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(int(trace.sql("SELECT count(*) AS n FROM slice")["n"][0]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [len(trace)] * 8


def test_the_module_functions_take_a_path():
    assert lanescope.sql(DATA / TRACES[0], "SELECT count(*) AS n FROM step")["n"][0] == 3
    assert "TABLE kernel (" in lanescope.sql_schema("kernel")
    with pytest.raises(lanescope.InvalidArgumentError, match="did you mean kernel"):
        lanescope.sql_schema("kernle")


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_data_frames(trace, name):
    pytest.importorskip(name, reason=f"needs {name}, which ./check installs")
    query = "SELECT name, dur, dur / 1000.0 AS us, nullif(row_number() OVER (ORDER BY dur DESC), 1) AS others FROM kernel ORDER BY dur DESC LIMIT 3"
    columns, frame = trace.sql(query), trace.sql(query, frame=name)
    assert list(frame.columns) == ["name", "dur", "us", "others"] and len(frame) == 3
    assert str(frame["dur"].dtype).lower() == "int64" and str(frame["us"].dtype).lower() == "float64"
    assert all(frame[key].to_list() == list(columns[key]) for key in ("name", "dur", "us"))
    assert sorted(str(value) for value in frame["others"].to_list()) == ["2.0", "3.0", "nan"]  # NULL is NaN
    empty = trace.sql("SELECT name, dur FROM kernel WHERE 0", frame=name)
    assert list(empty.columns) == ["name", "dur"] and len(empty) == 0


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_missing_library_is_named(trace, name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(lanescope.UnavailableError, match=f"pip install {name}"):
        trace.sql("SELECT 1", frame=name)
