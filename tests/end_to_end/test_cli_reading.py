"""Opening traces: what is no trace, what is damaged, what a terminal may see, what happens to the output."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import clean_environment, matmul_events, slice_event, trace_json

READERS = [["table"], ["tree"], ["info"], ["memory"]]


def write(path, data) -> str:
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return str(path)


# --- no trace ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", READERS)
def test_a_missing_file_suggests_close_names(run, command, tmp_path, matmul_trace):
    ran = run(*command, "matmull.json")
    assert ran.code == 2 and ran.out == ""
    assert "found no 'matmull.json'; did you mean 'matmul.json'?" in ran.complaint()


def test_a_missing_file_without_neighbours_says_only_that(run):
    line = run("table", "nothing.json").complaint()
    assert line == "lanescope: expected a trace file, found no 'nothing.json'"


def test_a_missing_folder_is_named(run):
    assert "found no folder 'no/such'" in run("table", "no/such/trace.json").complaint()


def test_an_empty_file(run, tmp_path):
    ran = run("table", write(tmp_path / "empty.json", b""))
    assert ran.code == 2 and ran.out == "" and "empty" in ran.complaint()


def test_of_a_folder_the_newest_trace_is_opened(run, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    assert "found a folder without one" in run("table", folder).complaint()
    (folder / "inner").mkdir()
    write(folder / "inner" / "other.json", trace_json([]))
    assert "found a folder without one" in run("table", folder).complaint()
    one = {"ph": "X", "cat": "cpu_op", "name": "aten::one", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    write(folder / "old.json", trace_json([one]))
    os.utime(folder / "old.json", (1, 1))
    for command in ("table", "info", "tree"):
        ran = run(command, folder)
        assert ran.code == 0 and f"opened '{folder}/old.json', the only trace in '{folder}'" in ran.err, ran.err
    assert "aten::one" in run("table", folder).out
    write(folder / "new.json.gz", b"")
    ran = run("table", folder)
    assert f"opened '{folder}/new.json.gz', the newest of 2 traces in '{folder}'" in ran.err
    assert ran.code == 2 and "empty" in ran.err


READING = {
    "table": ["table", "FOLDER"], "explain": ["explain", "FOLDER"], "diff": ["diff", "FOLDER", "FOLDER"],
    "check": ["check", "FOLDER", "--budget", "BUDGET"], "kernels": ["kernels", "FOLDER"], "roofline": ["roofline", "FOLDER"],
    "tree": ["tree", "FOLDER"], "info": ["info", "FOLDER"], "memory": ["memory", "FOLDER"], "name": ["name", "--trace", "FOLDER"],
    "convert": ["convert", "FOLDER", "-"],
}


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("newest", ["json", "lspool"])
def test_every_reading_command_opens_the_newest_trace_of_a_folder(run, tmp_path, command, newest):
    folder = tmp_path / "traces"
    folder.mkdir()
    one = {"ph": "X", "cat": "cpu_op", "name": "aten::one", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    write(folder / "a.json", trace_json([one]))
    spool = gzip.decompress((pathlib.Path(__file__).parent.parent / "data" / "spools" / "layout5_gpu.lspool.gz").read_bytes())
    (folder / "b.lspool").write_bytes(spool)
    os.utime(folder / ("b.lspool" if newest == "json" else "a.json"), (1, 1))
    (tmp_path / "budget.toml").write_text("[at_most]\nlaunches = 1000000\n")
    words = [str(folder) if word == "FOLDER" else str(tmp_path / "budget.toml") if word == "BUDGET" else word
             for word in READING[command]]
    ran = run(*words)
    name = "a.json" if newest == "json" else "b.lspool"
    assert f"opened '{folder}/{name}', the newest of 2 traces in '{folder}'" in ran.err, ran.err
    named = run(*[str(folder / name) if word == str(folder) else word for word in words])
    assert (ran.code, ran.out.replace(str(folder), "")) == (named.code, named.out.replace(str(folder / name), ""))


def test_a_folder_of_ranks_says_which_are_there_and_how_to_open_one(run, tmp_path):
    for rank in (2, 0, 1):
        write(tmp_path / f"rank{rank}.json", trace_json([]))
    ran = run("info", tmp_path)
    assert (f"opened '{tmp_path}/rank0.json', the newest of 3 traces in '{tmp_path}'; it is rank 0, and ranks 0 to 2 of its run "
            f"are here: to open another one, name its file, such as '{tmp_path}/rank1.json'") in ran.err


def test_a_second_document_in_a_file_is_named_with_its_place(run, tmp_path):
    first = json.dumps(trace_json(matmul_events()))
    path = tmp_path / "two.json"
    path.write_text(first + "\n" + first + first)
    ran = run("table", path)
    assert ran.code == 0 and "aten::mm" in ran.out
    assert (f"lost: another JSON document follows the first one and was not read (split the file to read it) "
            f"(2 times, first at byte {len(first) + 1:,})") in ran.err
    assert "another JSON document" in run("info", path).out


def test_a_database_is_named_as_such(run, tmp_path):
    with sqlite3.connect(tmp_path / "report.sqlite") as database:
        database.execute("create table events (id integer)")
    ran = run("table", tmp_path / "report.sqlite")
    assert ran.code == 2 and ran.out == ""
    assert "sqlite" in ran.complaint().lower()


@pytest.mark.parametrize("name, data", [
    ("garbage", bytes((i * 7919 + 13) % 256 for i in range(4096))),
    ("zeros", bytes(4096)),
    ("text", b"step 1 loss 0.3\nstep 2 loss 0.2\n"),
    ("number", b"42"),
    ("string", b'"traceEvents"'),
    ("other_json", b'{"nodes": [1, 2, 3], "schema": "1.0.2"}'),
    ("python", b"#!/usr/bin/env python3\nimport torch\n"),
    ("elf", b"\x7fELF\x02\x01\x01" + bytes(200)),
    ("gzip_of_text", gzip.compress(b"hello world, this is no trace")),
    ("gzip_header_only", b"\x1f\x8b\x08\x00"),
])
def test_what_is_no_trace_gets_one_line_and_exit_code_2(run, tmp_path, name, data):
    for command in READERS:
        ran = run(*command, write(tmp_path / name, data))
        assert ran.code == 2, (command, ran)
        assert ran.out == ""
        assert "expected" in ran.complaint() and len(ran.complaint()) < 500


def test_a_file_that_may_not_be_read(run, tmp_path, matmul_trace):
    if os.geteuid() == 0:
        pytest.skip("needs a user other than root, who may read every file")
    matmul_trace.chmod(0)
    ran = run("table", matmul_trace)
    assert ran.code == 2 and "Permission denied" in ran.complaint()


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_truncated_file_is_read_and_the_loss_is_said_once(run, tmp_path):
    text = json.dumps(trace_json(matmul_events())).encode()
    path = write(tmp_path / "cut.json", text[:-120])
    ran = run("table", path)
    assert ran.code == 0 and "aten::mm" in ran.out
    lines = ran.err.splitlines()
    assert 1 <= len(lines) <= 2
    assert lines[0].startswith("lanescope: lost: ") and "byte" in lines[0]
    assert lines[-1].endswith(f"; see lanescope info {path}")
    assert "truncated-file" in run("info", path, "--json").out


def test_a_truncated_gzip_is_read_as_far_as_it_goes(run, tmp_path):
    events = [slice_event("cpu_op", f"aten::op{i}", 10 * i, 5) for i in range(5000)]
    path = write(tmp_path / "cut.json.gz", gzip.compress(json.dumps(trace_json(events)).encode())[:-2000])
    ran = run("table", path, "--row-limit", "3")
    assert ran.code == 0 and "aten::op0" in ran.out
    assert "lost: " in ran.err


def test_a_gzip_of_many_members_is_read_as_one_text(run, tmp_path):
    """As bgzip writes them. The members are random numbers, so that they take more bytes than one thread unpacks at a time."""
    events = [slice_event("cpu_op", f"op {i * 7919 % 10007}", i * 10, 5) for i in range(20000)]
    text = json.dumps(trace_json(events)).encode()
    members = [gzip.compress(text[at:at + 60000]) for at in range(0, len(text), 60000)]
    plain = write(tmp_path / "plain.json", text)
    whole = write(tmp_path / "many.json.gz", b"".join(members))
    assert run("convert", whole, "-").out == run("convert", plain, "-").out
    members[-3] = members[-3][:200] + bytes([members[-3][200] ^ 255]) + members[-3][201:]
    damaged = run("info", write(tmp_path / "damaged.json.gz", b"".join(members)))
    assert damaged.code == 0 and "truncated-stream" in damaged.out


MANY_EVENTS = [slice_event("cpu_op", f"op {i * 7919 % 10007}", i * 10, 5) for i in range(20000)]


def gzip_members(text, size):
    return [gzip.compress(text[at:at + size]) for at in range(0, len(text), size)]


def flipped(data, from_end):
    return data[:-from_end] + bytes([data[-from_end] ^ 1]) + data[len(data) - from_end + 1:]


@pytest.mark.parametrize("member_bytes", [60000, 10**9])
@pytest.mark.parametrize("damage", [lambda last: flipped(last, 8), lambda last: flipped(last, 1), lambda last: last[:-8],
                                    lambda last: last[:-3]], ids=["crc", "size", "no-trailer", "half-a-trailer"])
def test_a_wrong_checksum_over_a_whole_text_is_no_missing_end(run, tmp_path, member_bytes, damage):
    text = json.dumps(trace_json(MANY_EVENTS)).encode()
    members = gzip_members(text, member_bytes)
    members[-1] = damage(members[-1])
    path = write(tmp_path / "trace.json.gz", b"".join(members))
    plain = write(tmp_path / "plain.json", text)
    table = run("table", path, "--row-limit", "3")
    assert table.code == 0 and table.out == run("table", plain, "--row-limit", "3").out
    assert table.err.startswith("lanescope: note: the checksum of the compressed stream is wrong or missing")
    assert "lost" not in table.err
    assert "wrong-checksum" in run("info", path).out and "truncated" not in run("info", path).out
    assert run("info", "-", stdin=pathlib.Path(path).read_bytes()).out.count("wrong-checksum") == 1
    explained = run("explain", path).out
    assert "Warning: the checksum of the compressed file is wrong or missing" in explained
    assert "missing end" not in explained and "was cut" not in explained and "end is missing" not in explained


def test_a_wrong_checksum_in_the_middle_does_not_end_the_text(run, tmp_path):
    text = json.dumps(trace_json(MANY_EVENTS)).encode()
    members = gzip_members(text, 60000)
    members[3] = flipped(members[3], 6)
    path = write(tmp_path / "trace.json.gz", b"".join(members))
    plain = write(tmp_path / "plain.json", text)
    assert run("convert", path, "-").out == run("convert", plain, "-").out
    assert "wrong-checksum" in run("info", path).out


def test_a_wrong_checksum_of_zstd_is_no_missing_end_either(run, tmp_path):
    plain = write(tmp_path / "plain.json", trace_json(MANY_EVENTS))
    packed = tmp_path / "trace.json.zst"
    converted = run("convert", plain, packed)
    if "without libzstd" in converted.err:
        pytest.skip("needs a command built with zstd: " + converted.err)
    whole = packed.read_bytes()
    for damaged in flipped(whole, 1), whole[:-4]:
        packed.write_bytes(damaged)
        assert run("table", packed, "--row-limit", "3").out == run("table", plain, "--row-limit", "3").out
        info = run("info", packed).out
        assert "wrong-checksum" in info and "truncated" not in info


def test_an_index_keeps_that_the_checksum_is_wrong(run, tmp_path):
    path = write(tmp_path / "trace.json.gz", flipped(gzip.compress(json.dumps(trace_json(MANY_EVENTS)).encode()), 8))
    assert run("index", path).code == 0
    assert "wrong-checksum" in run("info", path).out
    assert "checksum" in run("table", path).err


def test_a_good_file_says_nothing_on_standard_error(run, matmul_trace):
    for command in READERS:
        ran = run(*command, matmul_trace)
        assert (ran.code, ran.err) == (0, "")


def test_standard_input_from_pipe_file_and_socket(run, binary, matmul_trace, tmp_path):
    expected = run("table", matmul_trace).out
    assert "aten::mm" in expected
    data = matmul_trace.read_bytes()
    assert run("table", "-", stdin=data).out == expected
    assert run("table", "-", stdin=gzip.compress(data)).out == expected
    with open(matmul_trace, "rb") as file:
        done = subprocess.run([binary, "table", "-"], stdin=file, capture_output=True, check=False)
    assert done.stdout.decode() == expected
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = subprocess.Popen([binary, "table", "-"], stdin=theirs, stdout=subprocess.PIPE)
        theirs.close()
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        assert child.communicate(timeout=300)[0].decode() == expected


def test_standard_input_that_is_empty_or_closed(run, binary):
    assert run("table", "-", stdin=b"").code == 2
    done = subprocess.run(["sh", "-c", f"exec '{binary}' table - <&-"], capture_output=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith(b"lanescope: ")


def test_a_terminal_is_no_trace(run_in_terminal):
    ran = run_in_terminal("table", "-")
    assert ran.code == 2 and "found a terminal" in ran.out


# --- untrusted names --------------------------------------------------------------------------------------------------

HOSTILE = "evil\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt"


def test_escape_sequences_of_a_trace_never_reach_a_terminal(run_in_terminal, tmp_path):
    events = matmul_events(kernel=HOSTILE) + [slice_event("cpu_op", HOSTILE, 300, 20)]
    path = write(tmp_path / "hostile.json", trace_json(events))
    for command in (["table"], ["table", "--style", "torch"], ["table", "--json"], ["table", "--csv"], ["tree"],
                    ["tree", "--json"], ["info"], ["info", "--json"]):
        ran = run_in_terminal(*command, path, env={"NO_COLOR": "1"})
        assert ran.code == 0, command
        assert b"\x1b" not in ran.out_bytes and b"\x07" not in ran.out_bytes, command
        assert "\x9b".encode() not in ran.out_bytes and "\u202e".encode() not in ran.out_bytes, command
    assert "evil\\u001b[2J" in run_in_terminal("table", "--max-name-column-width", "200", "--csv", path).out


def test_escape_sequences_of_a_trace_reach_no_pipe_through_a_text_report(run, tmp_path):
    lines = HOSTILE + "\nsecond\r\tline"
    events = matmul_events(kernel=lines) + [slice_event("cpu_op", lines, 300, 20)]
    path = write(tmp_path / "hostile.json", trace_json(events))
    for command in (["table"], ["table", "--style", "torch"], ["tree"], ["info"], ["kernels"], ["explain"],
                    ["explain", "--md"], ["memory"], ["roofline"], ["describe", "--trace"], ["describe", "--events", "--trace"],
                    ["diff", path]):
        ran = run(*command, path)
        assert ran.code == 0, command
        assert not [c for c in ran.out if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f" or c == "\u202e")], command
    for style in ("torch", "lanescope"):
        assert "evil?[2J?]0;owned??31m?txt?second??line  " in run("table", "--style", style, path).out


def test_unicode_names(run, run_in_terminal, tmp_path):
    path = write(tmp_path / "größe 行列.json", trace_json([slice_event("cpu_op", "größe::行列 🚀", 1, 2)]))
    assert "größe::行列 🚀" in run("table", path).out
    assert "größe::行列 🚀" in run_in_terminal("table", path).out


# --- output -----------------------------------------------------------------------------------------------------------


def test_colours_only_on_a_terminal_that_wants_them(run, run_in_terminal, matmul_trace):
    assert "\x1b[" in run_in_terminal("table", matmul_trace).out
    assert "\x1b[" in run_in_terminal("--help").out
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in run_in_terminal("table", matmul_trace, env=env).out
    assert "\x1b[" in run_in_terminal("table", matmul_trace, env={"NO_COLOR": ""}).out, "empty means unset"
    assert "\x1b" not in run("table", matmul_trace).out
    assert "\x1b" not in run_in_terminal("table", "--json", matmul_trace).out


@pytest.mark.parametrize("arguments", [["--help"], ["table", "TRACE"], ["tree", "TRACE"], ["info", "TRACE", "--json"]])
def test_a_full_disk_is_said_and_exit_code_1(binary, matmul_trace, arguments):
    words = [str(matmul_trace) if word == "TRACE" else word for word in arguments]
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "could not write to standard output: No space left on device" in done.stderr


def test_closed_standard_output_is_said(binary, matmul_trace):
    done = subprocess.run(["sh", "-c", f"exec '{binary}' table '{matmul_trace}' >&-"], stderr=subprocess.PIPE,
                          text=True, check=False)
    assert done.returncode == 1 and "could not write to standard output" in done.stderr


def big_trace(tmp_path) -> str:
    """A table far larger than a pipe's buffer."""
    events = [slice_event("cpu_op", f"aten::operator_{i}", 10 * i, 5) for i in range(4000)]
    return write(tmp_path / "big.json", trace_json(events))


def read_one_line_and_leave(words, ignore_sigpipe: bool):
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=not ignore_sigpipe)
    child.stdout.readline()
    child.stdout.close()
    return child.wait(timeout=300), child.stderr.read()


def test_a_reader_that_leaves_ends_the_command_quietly(binary, tmp_path):
    words = [binary, "table", big_trace(tmp_path), "--row-limit", "-1"]
    assert read_one_line_and_leave(words, ignore_sigpipe=False) == (-signal.SIGPIPE, b"")
    assert read_one_line_and_leave(words, ignore_sigpipe=True) == (141, b"")


# --- progress ---------------------------------------------------------------------------------------------------------


def slow_pipe(data: bytes, seconds: float):
    """The reading end of a pipe whose writer takes that long."""
    read_end, write_end = os.pipe()

    def feed():
        for i in range(20):
            os.write(write_end, data[i * len(data) // 20:(i + 1) * len(data) // 20])
            time.sleep(seconds / 20)
        os.close(write_end)

    threading.Thread(target=feed, daemon=True).start()
    return read_end


def test_progress_on_a_terminal_after_a_second_and_cleared_at_the_end(run_in_terminal, tmp_path):
    data = json.dumps(trace_json([slice_event("cpu_op", f"aten::op{i % 7}", 10 * i, 5) for i in range(60000)])).encode()
    read_end = slow_pipe(data, 2.0)
    ran = run_in_terminal("table", "-", stdin_from=read_end, env={"NO_COLOR": "1"})
    os.close(read_end)
    assert ran.code == 0
    assert "\rreading standard input" in ran.out and "MB/s" in ran.out
    last = ran.out.rsplit("\r", 1)[1]
    assert "reading" not in last and "aten::op0" in last


def test_no_progress_into_a_pipe(binary, matmul_trace):
    read_end = slow_pipe(matmul_trace.read_bytes(), 1.5)
    done = subprocess.run([binary, "table", "-"], stdin=read_end, capture_output=True, env=clean_environment(), check=False)
    os.close(read_end)
    assert done.returncode == 0 and done.stderr == b""
