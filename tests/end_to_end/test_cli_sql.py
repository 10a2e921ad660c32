"""`lanescope sql`: rows compared with plain json, and what a person sees."""

from __future__ import annotations

import collections
import gzip
import json
import os
import pathlib
import pty
import random
import select
import signal
import subprocess
import time

import pytest

from conftest import SOURCE, clean_environment

SHIPPED = SOURCE / "tests" / "data"
TRACES = [
    SHIPPED / "h200_64_bf16_warm_eager" / "trace.json",
    SHIPPED / "h200_mlp_train" / "trace.json.gz",
    SHIPPED / "h200_stacks",
    SHIPPED / "ddp4",
    SHIPPED / "torch213_graph_break",
]


def trace_file(path: pathlib.Path) -> pathlib.Path:
    return path if path.is_file() else sorted(p for p in path.rglob("*.json*") if p.name.endswith((".json", ".json.gz")))[0]


def to_ns(number: str) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


def slices_of(path: pathlib.Path):
    """Complete events of the file, read by Python alone; times in nanoseconds."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    events = json.loads(data, parse_float=str, parse_int=str)["traceEvents"]
    found = []
    for event in events:
        if event.get("ph") == "X":
            found.append({**event, "ts": to_ns(event["ts"]), "dur": to_ns(event.get("dur", "0"))})
    return found


@pytest.fixture(params=TRACES, ids=lambda path: path.name)
def trace(request):
    return trace_file(request.param)


def query(run, trace, text):
    ran = run("sql", trace, text, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_counts_and_sums_are_those_of_the_file(run, trace):
    events = slices_of(trace)
    count, total = collections.Counter(), collections.Counter()
    for event in events:
        key = (event["name"], event.get("cat"))
        count[key] += 1
        total[key] += event["dur"]
    rows = query(run, trace, "SELECT name, category, count(*) AS n, sum(dur) AS dur FROM slice GROUP BY name, category")
    assert {(row["name"], row["category"]): (row["n"], row["dur"]) for row in rows} == {
        key: (count[key], total[key]) for key in count
    }
    kinds = {"kernel": ["kernel"], "memcpy": ["gpu_memcpy", "gpu_memset"], "op": ["cpu_op"],
             "runtime_call": ["cuda_runtime", "cuda_driver"], "annotation": ["user_annotation", "gpu_user_annotation"],
             "stack_frame": ["python_function"]}
    for table, categories in kinds.items():
        of_kind = [event for event in events if event.get("cat") in categories]
        [row] = query(run, trace, f"SELECT count(*) AS n, coalesce(sum(dur), 0) AS dur, coalesce(max(ts), -1) AS ts FROM {table}")
        assert row == {"n": len(of_kind), "dur": sum(e["dur"] for e in of_kind), "ts": max((e["ts"] for e in of_kind), default=-1)}


def test_random_slices_have_the_values_and_arguments_of_the_file(run, trace):
    events = slices_of(trace)
    picked = random.Random(7).sample(events, min(8, len(events)))
    for event in picked:
        rows = query(run, trace, "SELECT s.id, s.name, s.category, dur, arg_set_id, CAST(tid AS TEXT) AS tid FROM slice s JOIN track t "
                                 f"ON t.id = track_id WHERE ts = {event['ts']}")
        same = [row for row in rows if row["name"] == event["name"] and row["dur"] == event["dur"]]
        assert same, event
        expected = {}
        for key, value in event.get("args", {}).items():
            expected[key] = value
        names = []
        for row in same:
            args = query(run, trace, f"SELECT key, coalesce(int_value, real_value, string_value) AS value FROM args WHERE arg_set_id = {row['arg_set_id']}") \
                if row["arg_set_id"] is not None else []
            names.append({arg["key"] for arg in args})
        assert set(expected) in names


def test_parents_are_the_innermost_slices_around(run, trace):
    rows = query(run, trace, "SELECT id, ts, dur, track_id, parent_id, depth FROM slice WHERE depth IS NOT NULL ORDER BY id")
    by_id = {row["id"]: row for row in rows}
    for row in random.Random(3).sample(rows, min(60, len(rows))):
        parent = by_id.get(row["parent_id"])
        if parent is None:
            assert row["depth"] == 0
            continue
        end = row["ts"] + row["dur"]
        assert parent["track_id"] == row["track_id"] and parent["ts"] <= row["ts"] and end <= parent["ts"] + parent["dur"]
        assert row["depth"] == parent["depth"] + 1
        closer = [one for one in rows if one["track_id"] == row["track_id"] and one["id"] < row["id"]
                  and one["depth"] >= row["depth"] and one["ts"] <= row["ts"] and one["ts"] + one["dur"] >= end
                  and one["dur"] > row["dur"] and one["ts"] > parent["ts"] and one["ts"] + one["dur"] < parent["ts"] + parent["dur"]]
        assert not closer, (row, closer)


def test_launches_join_by_correlation(run, trace):
    rows = query(run, trace, "SELECT extract_arg(k.arg_set_id, 'correlation') AS work, c.correlation AS call FROM launch l "
                             "JOIN slice k ON k.id = l.id JOIN runtime_call c ON c.id = l.call_id")
    assert all(row["work"] == row["call"] for row in rows)
    [counted] = query(run, trace, "SELECT (SELECT count(*) FROM kernel) + (SELECT count(*) FROM memcpy) AS work, "
                                  "(SELECT count(*) FROM launch) AS launched, (SELECT sum(launched_count) FROM runtime_call) AS by_calls")
    assert counted["launched"] == len(rows) == (counted["by_calls"] or 0) <= counted["work"]


# --- what a person sees ---------------------------------------------------------------------------------------------

MLP = SHIPPED / "h200_mlp_train" / "trace.json.gz"


def test_a_query_comes_from_a_file_or_a_pipe(run, tmp_path, binary):
    text = ".schema step\n-- a comment; still one\nSELECT count(*) AS n\nFROM step;\nSELECT 2 AS two"
    file = tmp_path / "q.sql"
    file.write_text(text)
    from_file = run("sql", MLP, "--file", file)
    assert from_file.code == 0 and "TABLE step (" in from_file.out and "n\n-\n3\n" in from_file.out and "two\n---\n  2\n" in from_file.out
    piped = subprocess.run([binary, "sql", str(MLP)], input=text, text=True, capture_output=True, check=True, env=clean_environment())
    assert piped.stdout == from_file.out


def test_errors_name_what_is_wrong(run, tmp_path):
    for query_text, expected in [("SELECT nam FROM kernel", "did you mean name?"), ("SELECT * FROM kernal", "did you mean kernel?"),
                                 ("DROP TABLE slice", "only reading is allowed"), (".schema kernal", "did you mean kernel?"),
                                 (".xyzzy", "there is no command '.xyzzy'"), ("SELECT (", "not a query that SQLite takes")]:
        ran = run("sql", MLP, query_text)
        assert ran.code == 2 and ran.out == "" and expected in ran.complaint(), query_text
    assert "cannot open" in run("sql", MLP, "--file", tmp_path / "none.sql").complaint()
    assert "--timeout expects" in run("sql", MLP, "SELECT 1", "--timeout", "soon").complaint()
    assert "--memory expects" in run("sql", MLP, "SELECT 1", "--memory", "1").complaint()


def test_limits_end_a_query_and_not_the_machine(run):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    assert "stopped after 0.05 s" in run("sql", MLP, endless, "--timeout", "50ms").complaint()
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(randomblob(1000)) AS x FROM n ORDER BY x"
    assert "more memory than it may take" in run("sql", MLP, many, "--memory", "20MiB").complaint()


def test_row_limit_says_that_there_are_more(run):
    ran = run("sql", MLP, "SELECT id FROM slice", "--row-limit", "2", "--csv")
    assert ran.code == 0 and ran.out.split() == ["id", "0", "1"] and "first 2 rows" in ran.err
    assert run("sql", MLP, "SELECT id FROM slice LIMIT 2", "--row-limit", "2").err == ""


class Prompt:
    """`lanescope sql` at a terminal of its own."""

    def __init__(self, binary, home):
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(binary, [binary, "sql", str(MLP)], clean_environment({"HOME": str(home), "XDG_STATE_HOME": str(home)}))

    def until(self, text, again=b""):
        """Reads until the text is shown; a minute is far more than any answer takes. `again` is typed each second: a control
        key that comes between the prompt and the terminal's raw mode is lost."""
        end = time.monotonic() + 60
        next_key = time.monotonic() + 1
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.shown += os.read(self.terminal, 65536).decode(errors="replace")
            elif again and time.monotonic() > next_key:
                self.type(again)
                next_key = time.monotonic() + 1
        shown, self.shown = self.shown.split(text, 1)
        return shown

    def type(self, keys):
        os.write(self.terminal, keys)

    def works(self):
        """Waits until the program has used 0.2 s of CPU from now on: more than reading a line takes."""
        def used():
            with open(f"/proc/{self.pid}/stat") as file:
                return int(file.read().rpartition(")")[2].split()[11]) / os.sysconf("SC_CLK_TCK")

        enough, end = used() + 0.2, time.monotonic() + 60
        while used() < enough:
            assert time.monotonic() < end, "the query does not run"
            time.sleep(0.05)

    def close(self):
        for _ in range(60):  # a Ctrl-D that comes too early (see until()) is a character of the line: Ctrl-U removes it
            self.type(b"\x15\x04")
            for _ in range(20):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.pid = 0
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.05)
        raise AssertionError("Ctrl-D does not end the prompt")


@pytest.fixture
def prompt(binary, tmp_path):
    started = Prompt(binary, tmp_path)
    yield started
    if started.pid:
        os.kill(started.pid, signal.SIGKILL)
        os.waitpid(started.pid, 0)
    os.close(started.terminal)


def test_the_prompt_answers_and_outlives_ctrl_c(prompt):
    prompt.until("sql> ")
    prompt.type(b"SELECT count(*) AS steps\n")
    prompt.until("...> ")
    prompt.type(b"FROM step;\n")
    prompt.until("steps\r\n-----\r\n    3\r\n")
    prompt.until("sql> ")
    prompt.type(b"SELECT half a line")
    prompt.until("half a line")
    prompt.type(b"\x03")
    prompt.until("sql> ", again=b"\x03")
    prompt.type(b"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'run' || max(i) FROM n;\n")
    prompt.works()  # before the query runs, the key would clear the line
    prompt.type(b"\x03")
    prompt.until("the query was interrupted", again=b"\x03")
    prompt.until("sql> ")
    prompt.type(b"SELECT id FROM slice;\n")
    prompt.until("The first 100 rows")
    prompt.until("sql> ")
    prompt.type(b"SELECT 6 * 7 AS ans;\n")
    prompt.until("42\r\n")
    prompt.until("sql> ")
    assert prompt.close() == 0


def test_the_prompt_completes_names_and_keeps_history(prompt, tmp_path):
    prompt.until("sql> ")
    prompt.type(b".sch\tcolle\t\n")
    prompt.until("TABLE collective (")
    prompt.until("sql> ")
    assert prompt.close() == 0
    history = tmp_path / "lanescope" / "sql_history"
    if not history.exists():
        pytest.skip("this lanescope was built without libedit, which keeps the history")
    assert "schema" in history.read_text()
