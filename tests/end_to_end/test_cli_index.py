"""`lanescope index`, and that commands answer the same with an index and without."""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import DATA, Ran, clean_environment

TRACE = DATA / "h200_mlp_train" / "trace.json.gz"
READING = [("info",), ("table",), ("explain",), ("tree", "--row-limit", "20"), ("kernels",), ("memory",)]


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """A copy of a real trace, and an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LANESCOPE_INDEX", raising=False)
    (tmp_path / "traces").mkdir()
    path = tmp_path / "traces" / "trace.json.gz"
    shutil.copy(TRACE, path)
    return path


def answers(run, trace):
    """What each command prints, but for the memory that columns take: vectors have spare room, an index has none."""
    return [(ran.code, re.sub("in memory .*", "", ran.out), ran.err) for ran in (run(*command, trace) for command in READING)]


def test_every_command_answers_the_same_with_an_index(run, trace, monkeypatch):
    before = answers(run, trace)
    assert before[0][0] == 0
    ran = run("index", trace)
    index = trace.parent / "trace.json.gz.lanescope"
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"wrote {index}: ") and "it is used as long as trace.json.gz stays as it is" in ran.out
    assert answers(run, trace) == before
    assert run("info", trace.parent).code == 0  # its newest trace, not the index in it
    monkeypatch.setenv("LANESCOPE_INDEX", "off")
    assert answers(run, trace) == before


def test_the_trace_itself_is_not_read_again(run, trace, monkeypatch):
    path = trace.with_name("plain.json")
    text = gzip.decompress(trace.read_bytes())
    path.write_bytes(text)
    assert run("index", path).code == 0
    before = run("table", path).out
    # Damage in the middle that neither size, time nor fingerprint tells.
    time_ns = path.stat().st_mtime_ns
    middle = len(text) // 2
    path.write_bytes(text[:middle] + b"{" * 5000 + text[middle + 5000 :])
    os.utime(path, ns=(time_ns, time_ns))
    assert run("table", path).out == before
    monkeypatch.setenv("LANESCOPE_INDEX", "off")
    assert run("table", path).out != before


def test_info_is_remembered_beside_the_index(run, trace, tmp_path):
    assert run("index", trace).code == 0
    first, first_json = run("info", trace).out, run("info", "--json", trace).out
    (note,) = (tmp_path / "cache" / "lanescope" / "checked").glob("*-info")
    kept = note.read_text()
    assert first in kept and first_json in kept
    # The note is what is printed, so nothing walks the events again.
    note.write_text(kept.replace("slices", "pieces"))
    assert run("info", trace).out == first.replace("slices", "pieces")
    # A part of the trace has no note, and a note that is cut or of another index is not used.
    assert run("info", "--window", "0ms..1ms", trace).out != first
    for damaged in (kept[: len(kept) // 2], kept.replace("lanescope checked", "lanescope chequed"), ""):
        note.write_text(damaged)
        assert run("info", trace).out == first
        assert note.read_text() == kept
    assert run("index", trace).code == 0
    assert run("info", trace).out == first
    assert note.read_text() != kept  # of the new index


def test_a_step_is_found_by_its_note_and_not_in_all_of_the_trace(run, trace, tmp_path, monkeypatch):
    def of_step(number):
        ran = [run(*command, trace, "--step", str(number)) for command in (("info",), ("table",), ("memory",))]
        ran.append(run("sql", trace, "SELECT name, ts, dur FROM slice", "--csv", "--step", str(number)))
        out = tmp_path / "part.json"
        out.unlink(missing_ok=True)
        code = run("convert", trace, out, "--step", str(number)).code
        return [(each.code, re.sub("in memory .*", "", each.out), each.err) for each in ran], code, out.exists() and out.read_bytes()

    monkeypatch.setenv("LANESCOPE_INDEX", "off")
    steps = [int(line) for line in run("sql", trace, "SELECT number FROM step ORDER BY number", "--csv").out.split()[1:]]
    before = {number: of_step(number) for number in (*steps[:2], steps[-1] + 1)}
    monkeypatch.delenv("LANESCOPE_INDEX")
    assert run("index", trace).code == 0
    (note,) = (tmp_path / "cache" / "lanescope" / "checked").glob("*-steps")
    kept = note.read_bytes()
    assert {number: of_step(number) for number in before} == before
    assert note.read_bytes() == kept
    # The note says where a step is, so nothing looks for it: with the numbers of two steps exchanged, each has the part of the other.
    first, second = (struct.pack("=q", number) for number in steps[:2])
    head, at = kept.index(b" steps\n") + len(b" steps\n"), struct.calcsize("=qqqqqqq")
    assert kept[head:].startswith(first) and kept[head + at :].startswith(second)
    note.write_bytes(kept[:head] + second + kept[head + 8 : head + at] + first + kept[head + at + 8 :])
    assert [of_step(number) for number in steps[:2]] == [before[number] for number in reversed(steps[:2])]
    # A note that is cut, of another index or of another build is not used, and written again.
    for damaged in (kept[:-1], kept.replace(b"lanescope checked", b"lanescope chequed"), kept.replace(b" steps ", b" steps 0"), b""):
        note.write_bytes(damaged)
        assert of_step(steps[0]) == before[steps[0]]
        assert note.read_bytes() == kept
    assert run("index", trace).code == 0
    assert of_step(steps[1]) == before[steps[1]]
    assert note.read_bytes() != kept  # of the new index
    # Without a note, as of an index that another command wrote, the first question about a step leaves one.
    note.unlink()
    assert of_step(steps[1]) == before[steps[1]]
    assert note.exists()


# What a step needs to be analysed alone is in the same note: those commands read no more, and say the same.
def test_commands_with_a_step_of_their_own_read_what_it_needs(run, trace, tmp_path, monkeypatch):
    commands = [["kernels"], ["kernels", "--json"], ["roofline"], ["roofline", "--json"], ["tree"], ["tree", "--json"], ["tree", "--stacks"],
                ["tree", "--op", "aten::mm"], ["tree", "--op", "no such operator"]]

    def of_step(number):
        ran = [run(*command, trace, "--step", str(number)) for command in commands]
        return [(each.code, each.out, each.err) for each in ran]

    monkeypatch.setenv("LANESCOPE_INDEX", "off")
    steps = [int(line) for line in run("sql", trace, "SELECT number FROM step ORDER BY number", "--csv").out.split()[1:]]
    before = {number: of_step(number) for number in (*steps, steps[-1] + 1)}
    assert "event_index" in before[steps[0]][1][1] and before[steps[0]][8][0] == 2
    monkeypatch.delenv("LANESCOPE_INDEX")
    assert run("index", trace).code == 0
    assert {number: of_step(number) for number in before} == before
    # The note says what a step needs, so no other part is read: with a nanosecond at the start, the step is not in it.
    (note,) = (tmp_path / "cache" / "lanescope" / "checked").glob("*-steps")
    kept = note.read_bytes()
    head, row = kept.index(b" steps\n") + len(b" steps\n"), struct.calcsize("=qqqqqqq")
    at = {number: head + row * i + 24 for i, number in enumerate(steps)}
    first = next(number for number in steps if any(kept[at[number] : at[number] + 32]))
    note.write_bytes(kept[: at[first]] + struct.pack("=qqqq", 0, 1, 0, 1) + kept[at[first] + 32 :])
    assert of_step(first)[0][0] == 2
    # Where the note says that a step needs the whole trace, and where there is none, the answer is that of the whole. kernels leaves a note.
    note.write_bytes(kept[: at[first]] + bytes(32) + kept[at[first] + 32 :])
    assert of_step(first) == before[first]
    note.unlink()
    assert of_step(first) == before[first]
    assert note.read_bytes() == kept


def test_json_says_what_was_written(run, trace):
    found = json.loads(run("index", "--json", trace).out)
    assert found["slice_count"] > 0
    assert found["index_bytes"] == os.path.getsize(found["index"])
    assert found["trace_bytes"] == trace.stat().st_size
    assert found["trace"] == str(trace)


def test_an_outdated_index_is_noticed_and_written_again(run, trace):
    path = trace.with_name("small.json")
    event = {"ph": "X", "cat": "cpu_op", "name": "first", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    path.write_text(json.dumps({"traceEvents": [event]}))
    assert run("index", path).code == 0
    path.write_text(json.dumps({"traceEvents": [event, {**event, "name": "second", "ts": 5}]}))
    assert "second" in run("table", "--style", "lanescope", path).out
    index = path.with_name("small.json.lanescope")
    whole = index.read_bytes()
    assert b"second" in whole
    # Cut, changed, empty, another file: read as if it were not there, and only our own indexes are replaced.
    for damaged in (whole[:-64], whole[:3000], whole.replace(b"second", b"third!"), b"", b"LSINDEX\n"):
        index.write_bytes(damaged)
        ran = run("table", path)
        assert (ran.code, ran.err) == (0, "") and "second" in ran.out


def test_a_file_of_another_program_is_named_and_left_alone(run, trace, tmp_path, monkeypatch):
    index, notes = trace.with_name("trace.json.gz.lanescope"), b"notes of mine" * 100
    clean = [run(*command, trace).out for command in READING]
    index.write_bytes(notes)
    line = (f"lanescope: {index} is not an index of lanescope, and left as it was: "
            "move it, or let lanescope index --force write over it")
    assert [(run(*command, trace).complaint(), run(*command, trace).out) for command in READING] == [(line, out) for out in clean]
    out = tmp_path / "part.json"
    assert run("convert", trace, out).complaint() == line
    assert run("diff", trace, out).complaint() == line  # of that one trace
    # Of many ranks: one line, where their traces were read.
    for rank in range(2):
        shutil.copy(trace, tmp_path / f"rank{rank}.json.gz")
        (tmp_path / f"rank{rank}.json.gz.lanescope").write_bytes(notes)
    said = [line for line in run("ranks", *tmp_path.glob("rank?.json.gz")).err.splitlines() if "index of lanescope" in line]
    assert said == [f"lanescope: {tmp_path}/rank0.json.gz.lanescope and 1 other are not an index of lanescope, and left as they were: "
                    "move them, or let lanescope index --force write over them"]
    # Only --force writes over it, and never over a folder.
    ran = run("index", trace)
    assert ran.code == 2 and ran.complaint() == (f"lanescope: index: expected an index of lanescope at {index}, found another file; "
                                                 "move it, or write over it with --force")
    assert index.read_bytes() == notes and run("index", "--cache", trace).code == 0
    monkeypatch.setenv("LANESCOPE_INDEX", "off")
    assert run("table", trace).err == ""
    monkeypatch.delenv("LANESCOPE_INDEX")
    ran = run("index", "--force", trace)
    assert (ran.code, ran.err) == (0, "") and run("table", trace).err == ""
    index.unlink()
    index.mkdir()
    ran = run("index", "--force", trace)
    assert ran.code == 2 and "found no regular file; move it, or put the index into your cache folder with --cache" in ran.complaint()


def test_the_cache_folder_is_used_on_request(run, trace, tmp_path):
    assert run("index", "--cache", trace).code == 0
    assert os.listdir(trace.parent) == ["trace.json.gz"]
    (index,) = (tmp_path / "cache" / "lanescope" / "indexes").iterdir()
    assert index.name.endswith("-trace.json.gz.lanescope")
    assert index.stat().st_mode & 0o022 == 0
    assert (tmp_path / "cache" / "lanescope").stat().st_mode & 0o777 == 0o700
    assert run("info", trace).code == 0


@pytest.fixture
def run_unprivileged(binary, tmp_path):
    """run(), for whom permissions count: root without the capability to ignore them."""
    libc = ctypes.CDLL(None, use_errno=True)
    bounding_set_drop, dac_override = 24, 1  # linux/prctl.h, linux/capability.h

    def drop():
        if os.geteuid() == 0 and libc.prctl(bounding_set_drop, dac_override, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")

    def go(*arguments):
        done = subprocess.run([binary, *map(os.fspath, arguments)], capture_output=True, env=clean_environment(), cwd=tmp_path,
                              timeout=300, check=False, preexec_fn=drop)
        return Ran(done.returncode, done.stdout, done.stderr)

    try:
        go("--version")
    except subprocess.SubprocessError:
        pytest.skip("needs a user whom permissions stop, or the right to drop the capability that ignores them")
    return go


def test_next_to_a_trace_in_a_folder_that_cannot_be_written_the_cache_is_used(run_unprivileged, trace, tmp_path, monkeypatch):
    run = run_unprivileged
    text = gzip.decompress(trace.read_bytes())
    trace.unlink()
    trace = trace.with_name("trace.json")
    trace.write_bytes(text)
    before = run("table", trace).out
    trace.parent.chmod(0o555)
    try:
        ran = run("index", trace)
        (index,) = (tmp_path / "cache" / "lanescope" / "indexes").iterdir()
        assert ran.code == 0 and ran.out.startswith(f"wrote {index}: ")
        assert ran.complaint() == (f"lanescope: index: cannot write {trace}.lanescope: Permission denied; "
                                   f"the index is in your cache folder instead: {index}")
        ran = run("index", "--json", trace)
        assert json.loads(ran.out)["index"] == str(index) and "in your cache folder instead" in ran.complaint()
        # It is used: the trace itself is damaged in a way that neither size, time nor fingerprint tells.
        assert os.listdir(trace.parent) == ["trace.json"]
        time_ns, middle = trace.stat().st_mtime_ns, len(text) // 2
        trace.write_bytes(text[:middle] + b"{" * 5000 + text[middle + 5000 :])
        os.utime(trace, ns=(time_ns, time_ns))
        assert run("table", trace).out == before
        # With a place that was asked for, or no cache folder, there is nothing to fall back to.
        monkeypatch.setenv("XDG_CACHE_HOME", str(trace.parent))
        ran = run("index", "--cache", trace)
        assert ran.code == 1 and "--cache: expected a cache folder that only you can write" in ran.complaint()
        ran = run("index", trace)
        assert ran.code == 1 and ran.complaint() == (
            f"lanescope: index: cannot write {trace}.lanescope: Permission denied; expected a cache folder that only you can write: "
            "$XDG_CACHE_HOME or ~/.cache; found none")
    finally:
        trace.parent.chmod(0o755)


def test_small_traces_leave_nothing_behind(run, trace, tmp_path):
    assert run("info", trace).code == 0
    assert os.listdir(trace.parent) == ["trace.json.gz"]
    assert not (tmp_path / "cache").exists()


def test_errors_say_what_to_do(run, trace, tmp_path, monkeypatch):
    ran = run("index", trace.with_name("trace.json"))
    assert ran.code == 2 and ran.complaint().endswith(f"found no '{trace.with_name('trace.json')}'; did you mean '{trace}'?")
    ran = run("index", "-")
    assert ran.code == 2 and "found standard input, which has no index" in ran.complaint()
    index = trace.with_name("trace.json.gz.lanescope")
    assert run("index", trace).code == 0
    copy = trace.with_name("copy")
    shutil.move(index, copy)
    ran = run("info", copy)
    assert ran.code == 2 and "an index of lanescope; give the trace that it is of" in ran.complaint()
    monkeypatch.setenv("LANESCOPE_INDEX", "no")
    assert run("info", trace).complaint() == "lanescope: LANESCOPE_INDEX: expected off, read or auto, found 'no'"


def test_a_killed_writer_leaves_a_file_that_clean_lists(run, trace):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    partial = trace.with_name(f"trace.json.gz.lanescope.partial-{process.pid}")
    partial.write_bytes(gzip.decompress(trace.read_bytes())[:1000])
    assert run("info", trace).code == 0
    ran = run("clean", trace.parent, "--any-host", "--yes")
    assert "half-written file" in ran.out and "removed 1 file" in ran.out
    assert os.listdir(trace.parent) == ["trace.json.gz"]


def test_a_recording_has_an_index_once_it_is_finished(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LANESCOPE_INDEX", raising=False)
    recording = tmp_path / "run.lspool"
    data = bytearray(gzip.decompress((DATA / "spools" / "layout7_cpu.lspool.gz").read_bytes()))
    state = 52  # docs/formats/spool.md: 0 while the program records, 1 once it has finished
    data[state : state + 4] = (1).to_bytes(4, "little")
    recording.write_bytes(data)
    before = run("table", recording)
    assert before.code == 0
    ran = run("index", recording)
    assert ran.code == 0, ran.err
    after = run("table", recording)
    assert (after.out, after.err) == (before.out, before.err)
    assert run("info", tmp_path).code == 0  # the folder's newest trace is still the recording
    index = tmp_path / "run.lspool.lanescope"
    index.unlink()
    (tmp_path / "run.lspool.counters").write_bytes(b"")
    ran = run("index", recording)
    assert ran.code == 2 and "hardware counters" in ran.complaint()
    (tmp_path / "run.lspool.counters").unlink()
    data[state : state + 4] = bytes(4)
    recording.write_bytes(data)
    ran = run("index", recording)
    assert ran.code == 2 and "a recording that its program has not finished" in ran.complaint()
    assert not index.exists()
