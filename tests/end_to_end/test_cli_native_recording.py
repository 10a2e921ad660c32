"""Programs that know nothing of lanescope: recorded from inside, without Python and without a GPU.

`native_recording_program` starts the recording as the CUDA library would; `fake_cuda_program` runs under `lanescope record`
with a fake driver and a fake source of GPU activities.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
from typing import Dict, List

import pytest

from conftest import SOURCE, clean_environment

sys.path.insert(0, str(SOURCE / "tests"))
from background import wait_for_results  # noqa: E402


STARTED = "20261123T061902Z"
NAME_END = re.compile(r"_\d{8}T\d{6}Z_[^_]+_\d+")


def built(name: str) -> pathlib.Path:
    # The sanitizers of other builds would report what a process that ends by exit() still holds.
    found = [path for preset in ("dev", "release") for path in SOURCE.glob(f"build/{preset}/tests/end_to_end/{name}")]
    found.sort(key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"needs {name}: cmake --build ... --target all")
    return found[-1]


@pytest.fixture
def record_natively(binary, tmp_path):
    """Runs the program's words under the variables that `lanescope record` sets."""

    def go(*words: str, program: str = "native_recording_program", **settings: str) -> subprocess.CompletedProcess:
        env = {"NATIVE": "1", "OWNER": "0000000000", "DIR": str(tmp_path / "out dir"), "COMMAND": binary,
               "ACTIVITIES": "cpu", **settings}
        env = {f"LANESCOPE_RECORD_{key}": value for key, value in env.items() if value}
        done = subprocess.run([built(program), *words], cwd=tmp_path, env=clean_environment(env), capture_output=True,
                              text=True, timeout=300, check=False)
        wait_for_results(done.stderr)
        return done

    return go


def files(tmp_path: pathlib.Path) -> List[str]:
    """Names in the results' folder; time, host and process id as N."""
    folder = tmp_path / "out dir"
    return sorted(NAME_END.sub("_N", name) for name in os.listdir(folder)) if folder.exists() else []


def names_in(path: pathlib.Path) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") != "Trace":
            found[event["name"]] = found.get(event["name"], 0) + 1
    return found


def only(tmp_path: pathlib.Path, suffix: str) -> pathlib.Path:
    found = [path for path in (tmp_path / "out dir").iterdir() if path.name.endswith(suffix)]
    assert len(found) == 1, files(tmp_path)
    return found[0]


def test_a_program_leaves_trace_and_table_and_its_own_exit_code(record_natively, tmp_path):
    done = record_natively("start", "work=3", "threads", "environment", "exit=7")
    assert done.returncode == 7, done.stderr
    assert files(tmp_path) == ["native_recording_program_N.json", "native_recording_program_N.txt"]
    trace, table = only(tmp_path, ".json"), only(tmp_path, ".txt")
    names = names_in(trace)
    assert names["work 2"] == 5 and names["inner"] == 3 + 4 * 100  # once by the main thread, once by each of four
    assert "work 2" in table.read_text()
    # In this order: the recording ends before handlers that were there earlier.
    assert done.stderr.splitlines() == [f"lanescope: trace {trace}", f"lanescope: table {table}", "late handler"]
    owner, pid = re.search(r"owner (\d+), process (\d+)", done.stdout).groups()
    assert len(owner) == 10 and int(owner) == int(pid)


def test_a_budget_is_heard(record_natively, tmp_path):
    done = record_natively("start", "work=300", BUDGET="1%")
    assert done.returncode == 0, done.stderr
    trace = json.loads(only(tmp_path, ".json").read_text())
    assert trace["lanescope_cost"]["budget_ratio"] == 0.01 and trace["lanescope_cost"]["ranges_ns"] > 0


def test_the_flags_of_record_are_heard(record_natively, tmp_path):
    done = record_natively("start", "work=1", GZIP="1", QUIET="1", KEEP_SPOOL="1", PROGRAM="/a b/my prog (2)")
    assert done.returncode == 0 and done.stderr == "late handler\n"
    assert files(tmp_path) == ["my_prog__2__N.json.gz", "my_prog__2__N.lspool", "my_prog__2__N.txt"]


def test_nothing_happens_unless_asked(record_natively, tmp_path):
    done = record_natively("start", "work=1", NATIVE="")
    assert done.stdout == "started 0\n" and done.returncode == 0 and files(tmp_path) == []
    done = record_natively("start", "start", "work=1")
    assert done.stdout == "started 1\nstarted 0\n"


def test_settings_from_inside_replace_the_environment(record_natively, tmp_path):
    done = record_natively("settings=", "start")
    assert done.stdout == "started 0\n" and files(tmp_path) == []
    done = record_natively(f"settings=NATIVE=1;DIR={tmp_path}/out dir;PROGRAM=train", "start", "work=1", COMMAND="")
    assert done.stdout == "started 1\n"
    assert files(tmp_path) == ["train_N.lspool"]  # no command: nothing turns it into a trace
    assert f"lanescope explain {only(tmp_path, '.lspool')}" in done.stderr


def test_a_command_that_fails_leaves_the_recording(record_natively, tmp_path, run):
    done = record_natively("start", "work=4", COMMAND="/bin/false")
    assert done.returncode == 0
    assert files(tmp_path) == ["native_recording_program_N.lspool"]
    assert "what was recorded is in" in done.stderr
    assert "work 3" in run("table", only(tmp_path, ".lspool")).out
    done = record_natively("start", "work=4", COMMAND="/no/such/command", DIR=str(tmp_path / "other"))
    assert "/no/such/command: No such file or directory" in done.stderr


@pytest.mark.parametrize("word, code", [("_exit=9", 9), (f"signal={int(signal.SIGTERM)}", -signal.SIGTERM),
                                        (f"signal={int(signal.SIGKILL)}", -signal.SIGKILL),
                                        (f"signal={int(signal.SIGSEGV)}", -signal.SIGSEGV)])
def test_an_end_without_exit_leaves_what_recover_opens(record_natively, tmp_path, run, word, code):
    done = record_natively("start", "work=5", word)
    assert done.returncode == code
    assert files(tmp_path) == ["native_recording_program_N.lspool"]
    recovered = run("recover", tmp_path / "out dir")
    assert recovered.code == 0, recovered.err
    assert names_in(only(tmp_path, ".json"))["work 4"] == 1


@pytest.mark.parametrize("word", ["ignore-children", "reap-children", "busy-thread"])
def test_what_the_program_does_with_its_children_and_threads_does_no_harm(record_natively, tmp_path, word):
    done = record_natively(word, "start", "work=1", "exit=4")
    assert done.returncode == 4, done.stderr
    assert files(tmp_path) == ["native_recording_program_N.json", "native_recording_program_N.txt"], done.stderr


def test_a_closed_standard_error_does_no_harm(record_natively, tmp_path):
    done = record_natively("start", "work=1", "close-stderr", "exit=3")
    assert done.returncode == 3
    assert files(tmp_path) == ["native_recording_program_N.json", "native_recording_program_N.txt"]


def test_a_forked_child_ends_without_the_parents_recording(record_natively, tmp_path):
    done = record_natively("start", "work=2", "fork", "work=3", "exit=6")
    assert done.returncode == 6 and "child 6" in done.stdout
    assert done.stderr.count("lanescope: trace") == 1
    assert names_in(only(tmp_path, ".json"))["work 2"] == 1  # the parent's, not the child's


def test_children_are_recorded_only_when_asked(record_natively, tmp_path):
    done = record_natively("start", "work=1", "spawn", "start", "work=2")
    assert done.stdout == "started 1\nstarted 0\nchild 0\n"
    assert files(tmp_path) == ["native_recording_program_N.json", "native_recording_program_N.txt"]
    # A process that only starts others is no owner.
    done = record_natively("spawn", "start", "work=2", DIR=str(tmp_path / "second"))
    assert done.stdout == "started 1\nchild 0\n" and len(os.listdir(tmp_path / "second")) == 2
    done = record_natively("start", "work=1", "spawn", "start", "work=2", CHILDREN="1", DIR=str(tmp_path / "third"))
    assert done.stdout == "started 1\nstarted 1\nchild 0\n" and len(os.listdir(tmp_path / "third")) == 4


def test_a_process_that_becomes_another_program_writes_over_nothing(record_natively, tmp_path):
    done = record_natively("start", "work=1", "exec", "start", "work=2", PROGRAM="both", STARTED=STARTED)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["both_N.lspool", "both_N_2.json", "both_N_2.txt"]


def test_what_an_earlier_run_left_stops_nothing_and_is_not_touched(record_natively, tmp_path):
    """As in a container that starts again: same program, host and process id, and a run of the same second."""
    before = {}
    words = ["start", "work=1", "exec", "start", "work=2", "exec", "start", "work=3"]
    done = record_natively(*words, PROGRAM="train", STARTED=STARTED, COMMAND="")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["train_N.lspool", "train_N_2.lspool", "train_N_3.lspool"]
    for path in (tmp_path / "out dir").iterdir():
        before[path] = path.read_bytes()
    done = record_natively("start", "work=1", PROGRAM="train", STARTED=STARTED)
    assert done.returncode == 0 and "not recorded" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("settings, rank", [({}, None), ({"RANK": "3"}, 3)])
def test_names_follow_the_same_rule_as_those_of_recorded_python_programs(record_natively, tmp_path, settings, rank):
    done = record_natively("start", "work=1", PROGRAM="/a b/my prog (2)", STARTED=STARTED, COMMAND="", **settings)
    assert done.returncode == 0, done.stderr
    code = f"from lanescope import _autorecord as a; print(a.AutoRecording({{'LANESCOPE_RECORD_STARTED': {STARTED!r}}}, "
    code += f"a.name_of('/a b/my prog (2)'), {rank})._wanted_base())"
    python = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    without_pid = re.compile(r"_\d+$")
    native = only(tmp_path, ".lspool").name[: -len(".lspool")]
    assert without_pid.sub("", native) == without_pid.sub("", os.path.basename(python))
    assert ("_rank3_" in native) == (rank == 3)


def test_a_launchers_rank_is_in_the_name_and_not_in_that_of_a_ranks_child(record_natively, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "5")
    record_natively("start", "work=1", COMMAND="")
    assert "Z_rank5_" in only(tmp_path, ".lspool").name
    record_natively("start", "work=1", COMMAND="", PARENT_RANK="5", DIR=str(tmp_path / "child"))
    (child,) = (tmp_path / "child").iterdir()
    assert "rank" not in child.name


def test_a_folder_that_cannot_be_made_costs_one_line(record_natively, tmp_path):
    (tmp_path / "taken").touch()
    done = record_natively("start", "work=1", "exit=2", DIR=str(tmp_path / "taken"))
    assert done.returncode == 2
    assert done.stdout == "started 0\n" and done.stderr.count("lanescope: this process is not recorded") == 1


# --- under `lanescope record`, with a fake driver --------------------------------------------------------------------


@pytest.fixture
def fake_gpu(tmp_path):
    """(command, environment): the built command, with a library of a GPU that does not exist."""
    folder = built("fake_gpu")
    build = folder.parents[2]
    together = tmp_path / "lib"
    together.mkdir()
    for path in [folder / "libcuda.so.1", folder / "liblanescope_record_cupti.so",
                 build / "src" / "lanescope" / "record" / "liblanescope_record.so.0"]:
        shutil.copy(path, together)  # no links: the recorder searches next to the real file
    return str(build / "src" / "lanescope" / "cli" / "lanescope"), {"LD_LIBRARY_PATH": str(together)}


def run_with(fake_gpu, tmp_path, *arguments, **env) -> subprocess.CompletedProcess:
    command, environment = fake_gpu
    return subprocess.run([command, *map(str, arguments)], cwd=tmp_path, env=clean_environment({**environment, **env}),
                          capture_output=True, text=True, timeout=300, check=False)


def without_python(tmp_path) -> str:
    """A PATH without any python3."""
    (tmp_path / "empty").mkdir(exist_ok=True)
    return str(tmp_path / "empty")


def test_a_flight_recorder_keeps_the_last_and_dumps_on_a_signal(record_natively, tmp_path):
    done = record_natively("start", "work=3", "dump", "work=5", LAST="10m")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["native_recording_program_N.json", "native_recording_program_N.txt",
                               "native_recording_program_N_dump1.json", "native_recording_program_N_dump1.txt"]
    whole, dump = sorted((tmp_path / "out dir").glob("*.json"), key=lambda path: len(path.name))
    assert (names_in(dump)["inner"], names_in(whole)["inner"]) == (3, 8)
    assert "SIGUSR2" in done.stderr and dump.name in done.stderr


def test_a_dump_under_way_at_the_end_becomes_a_trace_too(record_natively, tmp_path):
    done = record_natively("start", "work=30000", "begin-dump", LAST="10m")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["native_recording_program_N.json", "native_recording_program_N.txt",
                               "native_recording_program_N_dump1.json", "native_recording_program_N_dump1.txt"]


def test_a_flight_recorder_of_a_moment_forgets_what_was_before(record_natively, tmp_path):
    for last_ms in (300, 3000, 20_000):  # a busy machine may need longer than a moment from the last range to the end
        folder = tmp_path / str(last_ms)
        done = record_natively("start", "work=3", f"pause={2 * last_ms}", "work=5", LAST=f"{last_ms}ms", KEEP_SPOOL="1",
                               DIR=str(folder))
        assert done.returncode == 0, done.stderr
        (whole,) = folder.glob("*.json")
        found = names_in(whole).get("inner", 0)
        assert found <= 5
        if found == 5:
            return
    raise AssertionError(f"{found} ranges of the last 20 seconds")


def test_record_runs_a_program_without_python(fake_gpu, tmp_path):
    program = tmp_path / "my program"
    program.symlink_to(built("fake_cuda_program"))
    done = run_with(fake_gpu, tmp_path, "record", "-o", "out dir", "--", program, PATH=without_python(tmp_path))
    assert done.returncode == 5, done.stderr  # its own
    assert files(tmp_path) == ["my_program_N.json", "my_program_N.txt"], done.stderr
    assert done.stderr.splitlines() == [
        f"lanescope: record: '{program}' is recorded from its first use of CUDA; if it uses none, nothing is written",
        f"lanescope: trace {only(tmp_path, '.json')}", f"lanescope: table {only(tmp_path, '.txt')}"]
    assert names_in(only(tmp_path, ".json")) == {"cuLaunchKernel": 2, "lanescope_probe": 2}
    assert "lanescope_probe" in only(tmp_path, ".txt").read_text()


def test_record_says_when_the_driver_belongs_to_another_tool(fake_gpu, tmp_path):
    other = tmp_path / "other.so"
    done = run_with(fake_gpu, tmp_path, "record", "--", built("fake_cuda_program"), PATH=without_python(tmp_path),
                    CUDA_INJECTION64_PATH=str(other))
    assert done.returncode == 5
    lines = done.stderr.splitlines()
    assert lines[0].startswith("lanescope: record: the GPU is not recorded: CUDA_INJECTION64_PATH names another tool, "
                               f"'{other}'; unset it")
    assert os.listdir(tmp_path / "lanescope_traces") == []


def test_record_without_cuda_leaves_the_driver_alone(fake_gpu, tmp_path):
    done = run_with(fake_gpu, tmp_path, "record", "--activities", "cpu", "--", "/usr/bin/env", PATH=without_python(tmp_path))
    assert done.returncode == 1, "no Python, no GPU: nothing could be recorded"
    assert "found no 'python3' in the PATH" in done.stderr
    done = run_with(fake_gpu, tmp_path, "record", "--activities", "cuda", "--all-api", "--", "/usr/bin/env",
                    PATH=without_python(tmp_path))
    assert done.returncode == 0
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert variables["CUDA_INJECTION64_PATH"] == variables["NVTX_INJECTION64_PATH"]
    assert pathlib.Path(variables["CUDA_INJECTION64_PATH"]).name == "liblanescope_record_cupti.so"
    recorded = {key: value for key, value in variables.items() if key.startswith("LANESCOPE_RECORD")}
    assert re.fullmatch(r"\d{8}T\d{6}Z", recorded.pop("LANESCOPE_RECORD_STARTED"))
    assert recorded == {
        "LANESCOPE_RECORD_DIR": f"{tmp_path}/lanescope_traces",
        "LANESCOPE_RECORD_ACTIVITIES": "cuda",
        "LANESCOPE_RECORD_ALL_API": "1",
        "LANESCOPE_RECORD_NATIVE": "1",
        "LANESCOPE_RECORD_OWNER": "0000000000",
        "LANESCOPE_RECORD_COMMAND": fake_gpu[0],
    }
    assert "Python programs that '/usr/bin/env' starts are not recorded" in done.stderr


def test_record_says_what_a_schedule_and_slow_steps_mean_without_python(fake_gpu, tmp_path):
    done = run_with(fake_gpu, tmp_path, "record", "--schedule", "active=1", "--", built("fake_cuda_program"),
                    PATH=without_python(tmp_path))
    assert done.returncode == 5 and "--schedule counts the steps of Python programs" in done.stderr
    done = run_with(fake_gpu, tmp_path, "record", "--last", "5s", "--slow-step", "2x", "--", built("fake_cuda_program"),
                    PATH=without_python(tmp_path))
    assert done.returncode == 5 and "--slow-step watches the steps of Python programs" in done.stderr
    assert "kill -USR2 makes dumps" in done.stderr


def test_a_python_program_that_uses_cuda_without_torch(run, tmp_path):
    """The package's own library, which needs no GPU to be loaded, started by the fake driver."""
    lanescope = pytest.importorskip("lanescope", reason="needs the installed package")
    if lanescope.ProfilerActivity.CUDA not in lanescope.supported_activities():
        pytest.skip("needs a package built with CUPTI")
    if "built without CUPTI" in run("doctor").out:
        pytest.skip("needs a command built with CUPTI")
    driver = built("fake_gpu") / "libcuda.so.1"
    script = tmp_path / "use cuda.py"
    script.write_text(f"""
import ctypes, os, subprocess, sys
print([name for name in os.environ if name.startswith("LANESCOPE_RECORD")])
ctypes.CDLL({str(driver)!r}, mode=ctypes.RTLD_GLOBAL).cuInit(0)
import lanescope
with lanescope.record_function("after cuInit"):
    pass
subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL({str(driver)!r}).cuInit(0)"], check=True)
sys.exit(8)
""")
    ran = run("record", "-o", "out dir", "--activities", "cpu,cuda", "--", sys.executable, script)
    assert ran.code == 8 and ran.out == "[]\n", ran.err
    assert files(tmp_path) == ["use_cuda_N.json", "use_cuda_N.txt"], ran.err
    assert names_in(only(tmp_path, ".json"))["after cuInit"] == 1
    assert ran.err.count("lanescope: trace") == 1 and "nothing was recorded" not in ran.err


def test_a_native_recording_keeps_to_its_size(record_natively, tmp_path):
    done = record_natively("start", "work=60000", MAX_SIZE="1100K", KEEP_SPOOL="1")
    assert done.returncode == 0, done.stderr
    assert only(tmp_path, ".lspool").stat().st_size <= 1_100_000
    assert 0 < names_in(only(tmp_path, ".json"))["work 2"] < 60_000
