"""The tables that Trace.tables() declares are those that a Trace has."""

import pathlib

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
