"""The tables that Trace.tables() declares are those that a Trace has."""

import pathlib
import threading
import weakref

import numpy
import pytest

import lanescope

TRACE = """{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":0,"dur":9,"args":{"External id":4}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":1,"dur":2,"args":{"correlation":7}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,"dur":2,"args":{"correlation":7}},
{"ph":"s","cat":"ac2g","name":"ac2g","id":7,"pid":1,"tid":1,"ts":1},
{"ph":"f","cat":"ac2g","name":"ac2g","id":7,"pid":0,"tid":7,"ts":4,"bp":"e"},
{"ph":"i","name":"mark","pid":1,"tid":1,"ts":3},
{"ph":"C","name":"memory","pid":1,"ts":1,"args":{"used":5}},
{"ph":"?","name":"odd","ts":1}]}"""
PYTHON_TYPES = {"int": (int,), "str": (str,), "int or str": (int, str), "float": (float,)}
TRACE_OF_MANY = pathlib.Path(__file__).parents[2] / "tests" / "data" / "h200" / "llama_prefill.json.gz"
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "formats" / "trace_tables.md"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "trace.json"
    path.write_text(TRACE)
    return lanescope.read_trace(path)


def tables(form):
    found = [table for table in lanescope.Trace.tables() if table["form"] == form]
    assert found
    return found


def test_the_arrays_of_a_trace_are_those_declared(trace):
    declared = {column["name"]: column for table in tables("arrays") for column in table["columns"]}
    attributes = {name for name in dir(trace) if isinstance(getattr(trace, name), numpy.ndarray)}
    assert set(declared) == attributes
    for name, column in declared.items():
        assert getattr(trace, name).dtype == numpy.dtype(column["type"]), name
        assert column["meaning"] in getattr(lanescope.Trace, name).__doc__, name
        assert name.endswith("_ns") == (column["unit"] == "ns"), name


def test_the_arrays_of_a_table_have_one_length(trace):
    for table in tables("arrays"):
        lengths = {len(getattr(trace, column["name"])) for column in table["columns"]}
        assert len(lengths) == 1 and lengths != {0}, table["name"]


def test_an_array_is_one_read_only_object_and_its_docstring_says_what_it_is(trace):
    for name in [column["name"] for table in tables("arrays") for column in table["columns"]]:
        array = getattr(trace, name)
        assert getattr(trace, name) is array, name
        assert not array.flags.writeable, name
        with pytest.raises(ValueError):
            array[0] = 0
        text = "Made at the first access, then kept; read-only." if array.flags.owndata else "A read-only view of the rows."
        assert getattr(lanescope.Trace, name).__doc__.endswith(text), name


def test_an_array_outlives_its_trace_and_does_not_keep_it(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(TRACE)
    trace = lanescope.read_trace(path)
    start_ns, correlation, lived = trace.start_ns, trace.correlation, weakref.ref(trace)
    kept = [start_ns.tolist(), correlation.tolist()]
    del trace
    assert lived() is None  # at once: nothing waits for the garbage collector
    assert [start_ns.tolist(), correlation.tolist()] == kept


def test_threads_that_make_a_column_at_the_same_time_get_one_object():
    fresh = [lanescope.read_trace(TRACE_OF_MANY) for _ in range(5)]
    for each in fresh:
        barrier, seen = threading.Barrier(4), []

        def look(each=each, barrier=barrier, seen=seen):
            barrier.wait()
            seen.append(each.correlation)

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(array) for array in seen}) == 1


@pytest.mark.parametrize("form", ["dicts", "tuples"])
def test_lists_have_the_declared_columns(trace, form):
    for table in tables(form):
        rows = getattr(trace, table["name"])
        assert rows, table["name"]
        names = [column["name"] for column in table["columns"]]
        for row in rows:
            if form == "dicts":
                assert list(row) == names, table["name"]
            values = row.values() if form == "dicts" else row
            assert len(values) == len(names), table["name"]
            for value, column in zip(values, table["columns"]):
                assert value is None or isinstance(value, PYTHON_TYPES[column["type"]]), (table["name"], column["name"])


def test_every_list_of_rows_is_declared(trace):
    lists = {n for n in dir(trace) if isinstance(getattr(trace, n), list) and not isinstance(getattr(trace, n)[0], str)}
    assert lists == {table["name"] for form in ("dicts", "tuples") for table in tables(form)}


def test_the_page_lists_every_column():
    page = PAGE.read_text()
    for table in lanescope.Trace.tables():
        assert f"## {table['name']} ({table['form']})\n\n{table['meaning']}\n" in page
        for column in table["columns"]:
            assert "| `{name}` | {type} | {unit} | {meaning} |\n".format(**column) in page, column["name"]
