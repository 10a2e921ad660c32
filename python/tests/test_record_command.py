"""An unmodified script is recorded: `python3 -m lanescope.record -- python3 script.py`, which `lanescope record` runs."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import lanescope
from lanescope import _autorecord, record

TRAIN = """
import sys, torch
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(6):
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def run_recorded(tmp_path, torch):
    """Runs a script under the recorder; gives the process and the directory of the results."""

    def run(code, *flags, script_args=(), env=None):
        (tmp_path / "script.py").write_text(code)
        command = [sys.executable, "-m", "lanescope.record", "-o", "out", *flags, "--", sys.executable, "script.py"]
        done = subprocess.run(
            [*command, *script_args], cwd=tmp_path, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=300,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )
        assert "not recorded" not in done.stderr, done.stderr
        return done, tmp_path / "out"

    return run


def only(folder, suffix):
    found = [path for path in folder.iterdir() if path.name.endswith(suffix)]
    assert len(found) == 1, sorted(os.listdir(folder))
    return found[0]


def names_of(path):
    trace = lanescope.read_trace(path)
    return [trace.name(i) for i in range(len(trace))]


def test_a_training_script_leaves_trace_and_table_and_its_own_exit_code(run_recorded):
    done, out = run_recorded(TRAIN + "print(sys.argv[1:])\nsys.exit(7)", script_args=["--lr", "3"])
    assert done.returncode == 7, done.stderr
    assert done.stdout == "['--lr', '3']\n"
    trace = only(out, ".json")
    assert trace.name.startswith("script_") and str(trace) in done.stderr
    names = names_of(trace)
    assert names.count("aten::linear") == 6
    assert [name for name in names if name.startswith("ProfilerStep#")] == [f"ProfilerStep#{n}" for n in range(1, 7)]
    assert "aten::linear" in only(out, ".txt").read_text()
    assert [f for f in os.listdir(out) if f.endswith(".lspool")] == []


def test_a_schedule_takes_its_steps_from_the_optimizer(run_recorded):
    done, out = run_recorded(TRAIN, "--schedule", "wait=1,warmup=1,active=2,repeat=1", "--shapes", "--gzip")
    assert done.returncode == 0, done.stderr
    trace = lanescope.read_trace(only(out, ".json.gz"))
    names = [trace.name(i) for i in range(len(trace))]
    assert [n for n in names if n.startswith("ProfilerStep#")] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert names.count("aten::linear") == 2
    assert trace.args(names.index("aten::linear"))["Input Dims"] == [[2, 8], [4, 8], [4]]


def test_explicit_steps_win_over_the_optimizers(run_recorded):
    code = TRAIN.replace("import sys, torch", "import sys, torch, lanescope").replace(
        "    optimizer.zero_grad()", "    lanescope.step(); optimizer.zero_grad()"
    )
    done, out = run_recorded(code, "--schedule", "wait=0,warmup=1,active=4,repeat=1")
    assert done.returncode == 0, done.stderr
    assert len([n for n in names_of(only(out, ".json")) if n.startswith("ProfilerStep#")]) == 4


def test_steps_of_a_torch_profiler_in_the_script_count(run_recorded):
    code = """
import torch
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)) as prof:
    for _ in range(4):
        torch.ones(3).sin()
        prof.step()
print(sum(row.count for row in prof.key_averages() if row.key == "aten::sin"))
"""
    done, out = run_recorded(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"  # the script's own profiler works as ever
    names = names_of(only(out, ".json"))
    assert names.count("aten::sin") == 4
    # Its profiler marks steps itself; they are not marked twice.
    assert [n for n in names if n.startswith("ProfilerStep#")] == [f"ProfilerStep#{n}" for n in range(5)]


def test_an_exception_keeps_its_traceback_and_the_results(run_recorded):
    done, out = run_recorded("import torch\ntorch.ones(2).sin()\nraise ValueError('mine')")
    assert done.returncode == 1 and "ValueError: mine" in done.stderr
    assert "aten::sin" in names_of(only(out, ".json"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_script_as_ever_and_leaves_the_results(run_recorded, number):
    code = f"import os, torch, time\ntorch.ones(2).sin()\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)"
    done, out = run_recorded(code)
    assert done.returncode == -number, done.stderr
    assert "aten::sin" in names_of(only(out, ".json"))


@pytest.mark.parametrize("where", ["the program", "a forked child"])
def test_sigterm_ends_a_program_that_hangs_in_c_code(run_recorded, where):
    code = f"""
import ctypes, os, signal, sys, time, torch
torch.ones(2).sin()
child = os.fork() if {where == "a forked child"} else 0
if child == 0:
    if not {where == "a forked child"}:
        os.system("(sleep 1; kill -TERM %d) &" % os.getpid())
    lock = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(lock)  # for ever, and no signal interrupts it
time.sleep(1)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    begun = time.monotonic()
    done, out = run_recorded(code)
    assert time.monotonic() - begun < 100
    if where == "the program":
        assert done.returncode == -signal.SIGTERM, done.stderr
        assert only(out, ".lspool").stat().st_size > 0
    else:
        assert done.returncode == 0 and done.stdout == f"{-signal.SIGTERM}\n", done.stderr


def test_children_are_not_recorded_and_see_no_trace_of_it(run_recorded):
    code = """
import multiprocessing, os, subprocess, sys, torch

def child(queue):
    torch.ones(2).tan()
    queue.put([k for k in os.environ if "LANESCOPE_RECORD" in k])

if __name__ == "__main__":
    torch.ones(2).sin()
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        assert process.exitcode == 0
    print(subprocess.run([sys.executable, "-c", "import os, sys; print([k for k in os.environ if 'LANESCOPE_RECORD' in k], "
          "any('_inject' in p for p in sys.path))"], capture_output=True, text=True).stdout, end="")
    loader = torch.utils.data.DataLoader(list(range(8)), num_workers=2)
    print(len([x for x in loader]))
"""
    done, out = run_recorded(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "[]", "[] False", "8"]
    names = names_of(only(out, ".json"))
    assert "aten::sin" in names and "aten::tan" not in names


def test_children_are_recorded_when_asked(run_recorded):
    code = """
import subprocess, sys, torch
torch.ones(2).sin()
subprocess.run([sys.executable, "-c", "import torch; torch.ones(2).cos()"], check=True)
"""
    done, out = run_recorded(code, "--children")
    assert done.returncode == 0, done.stderr
    traces = sorted(path.name for path in out.iterdir() if path.name.endswith(".json"))
    assert len(traces) == 2 and traces[0].startswith("command_")
    assert "aten::cos" in names_of(out / traces[0])


def test_children_that_cannot_be_recorded_are_named_at_the_end(run_recorded):
    code = """
import subprocess, sys, torch
torch.ones(2).sin()
subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
subprocess.run(["env", "-i", sys.executable, "-c", "pass"], check=True)
"""
    done, _ = run_recorded(code, "--children")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "could not be recorded" in line]
    assert line.startswith("lanescope: 2 Python processes that this program started could not be recorded: ")
    assert "-I -c pass (-I turns start-up files off); env -i " in line and "(its environment was cleared)" in line
    done, _ = run_recorded(code)  # nobody asked for children
    assert "could not be recorded" not in done.stderr


JOB = """
import subprocess, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(4)
dist.all_reduce(x)
if dist.get_rank() == 0:
    subprocess.run([sys.executable, "-c", "import torch; torch.ones(2).cos()"], check=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("children", [False, True], ids=["ranks", "ranks and their children"])
def test_each_rank_of_torchrun_has_its_own_files_and_says_which_it_is(tmp_path, torch, children):
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "lanescope.record", "-o", "out", *(["--children"] if children else []), "--",
               sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "job.py"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir() if path.name.endswith(".json"))
    (stamp,) = {name.split("_")[1] for name in names}  # one run
    parts = ["_".join(name.split("_")[:3]) for name in names]
    assert parts[children:] == [f"job_{stamp}_rank0", f"job_{stamp}_rank1"], names
    assert [part.rsplit("_", 1)[0] for part in parts[:children]] == [f"command_{stamp}"] * children, names
    for rank, name in enumerate(names[-2:]):
        trace = json.loads((tmp_path / "out" / name).read_text())
        assert "c10d::allreduce_" in {event["name"] for event in trace["traceEvents"]}
        info = trace["distributedInfo"]  # although both have taken their groups down before they ended
        assert (info["backend"], info["rank"], info["local_rank"], info["world_size"]) == ("gloo", rank, rank, 2)
        (group,) = info["pg_config"]
        assert (group["pg_desc"], group["pg_size"], group["ranks"]) == ("default_pg", 2, [0, 1])
    if children:
        assert "distributedInfo" not in json.loads((tmp_path / "out" / names[0]).read_text())


def test_the_users_own_sitecustomize_runs(run_recorded, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import builtins\nbuiltins.MINE = 'seen'\n")
    code = "import os, sitecustomize; print(MINE, os.environ['PYTHONPATH'].startswith(os.getcwd())); import torch"
    path = f"{tmp_path / 'mine'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done, _ = run_recorded(code, env={"PYTHONPATH": path})
    assert done.stdout == "seen True\n", done.stderr


SHOW = """
import os, sys, __main__
spec = getattr(__main__, "__spec__", None)
print(sys.argv[1:], __name__, getattr(spec, "name", None), os.path.basename(sys.path[0]), sys.flags.optimize)
"""


@pytest.mark.parametrize(
    "arguments, stdin",
    [(["script.py", "--lr", "3"], ""), (["-O", "-m", "package", "x"], ""), (["-c", SHOW, "x"], ""), (["-", "x"], SHOW)],
    ids=["script", "module", "text", "stdin"],
)
def test_a_program_sees_what_it_sees_alone(tmp_path, arguments, stdin):
    (tmp_path / "script.py").write_text(SHOW)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "__main__.py").write_text(SHOW)
    alone = [sys.executable, *arguments]
    recorded = [sys.executable, "-m", "lanescope.record", "-o", "out", "--", *alone]
    seen = [
        subprocess.run(command, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=120, check=True).stdout
        for command in (alone, recorded)
    ]
    assert seen[0] == seen[1] and "__main__" in seen[0]


def test_a_module_may_be_watched_more_than_once(tmp_path, monkeypatch):
    from lanescope._after_import import after_import

    (tmp_path / "watched_twice.py").write_text("value = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    after_import("watched_twice", lambda: seen.append(("first", sys.modules["watched_twice"].value)))
    after_import("watched_twice", lambda: seen.append(("second", sys.modules["watched_twice"].value)))
    import watched_twice

    assert seen == [("first", 1), ("second", 1)]
    assert "exec_module" not in vars(watched_twice.__loader__)


EARLY = """
import time

def before_torch():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        sum(range(1000))

before_torch()
"""


def samples_of(path):
    """Names of the functions with samples."""
    trace = lanescope.read_trace(path)
    return [trace.name(i) for i in range(len(trace)) if trace.categories[trace.category_id[i]] == "python_sample"]


def test_samples_begin_with_the_interpreter(run_recorded):
    done, out = run_recorded(EARLY + TRAIN, "--sample-python", "200")
    assert done.returncode == 0 and "shares the file" not in done.stderr, done.stderr
    trace = only(out, ".json")  # one file with all
    sampled, names = samples_of(trace), names_of(trace)
    assert any(re.fullmatch(r"script\.py\(\d+\): before_torch", name) for name in sampled)
    assert any(name.startswith("torch/__init__.py(") for name in sampled)
    assert names.count("aten::linear") == 6 and names.count("ProfilerStep#6") == 1
    assert [f for f in os.listdir(out) if f.endswith(".lspool")] == []


def test_samples_of_a_script_without_torch_are_kept(run_recorded):
    done, out = run_recorded(EARLY, "--sample-python", "200")
    assert done.returncode == 0 and "did not import torch" not in done.stderr, done.stderr
    assert any(name.endswith(": before_torch") for name in samples_of(only(out, ".json")))


def test_a_schedule_has_no_samples_before_torch(run_recorded):
    done, out = run_recorded(EARLY + TRAIN, "--sample-python", "200", "--schedule", "wait=1,warmup=1,active=2,repeat=1")
    assert done.returncode == 0, done.stderr
    assert not any(name.endswith(": before_torch") for name in samples_of(only(out, ".json")))


def test_a_script_without_torch_runs_and_is_told(run_recorded):
    done, out = run_recorded("print('hello')")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "nothing was recorded: the program did not import torch" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("attempt", range(2))
def test_what_a_killed_script_recorded_can_be_read(run_recorded, tmp_path, torch, attempt):
    code = TRAIN.replace("range(6)", "range(10**9)") + "\n"
    code = code.replace("    optimizer.zero_grad()", "    number == 20 and print('go', flush=True)\n    optimizer.zero_grad()")
    (tmp_path / "script.py").write_text(code)
    command = [sys.executable, "-m", "lanescope.record", "-o", "out", "--", sys.executable, "script.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"go\n"
    time.sleep(random.random())
    process.kill()
    process.wait()
    process.stdout.close()
    trace = lanescope.read_trace(tmp_path / "out")
    names = set(trace.names)
    assert {"aten::linear", "aten::addmm", "Optimizer.step#SGD.step"} <= names
    assert len(trace) > 100 and len(trace.steps) >= 20
    assert "aten::addmm" in lanescope.key_averages(trace).table(sort_by="cpu_time_total", row_limit=50)


def test_wrong_flags_exit_with_2_and_name_the_problem(run_python):
    for flags, problem in (
        (["--", "no-such-program"], "no such program"),
        (["--schedule", "wait=x", "--", "true"], "wait=x"),
        (["--schedule", "active=0", "--", "true"], "active"),
        ([], "expected a command"),
    ):
        done = run_python("-m", "lanescope.record", *flags, check=False)
        assert done.returncode == 2 and problem in done.stderr, done.stderr


def test_the_environment_is_what_the_readme_says(tmp_path):
    env = record.environment(
        str(tmp_path), schedule="active=2", shapes=True, base={"PYTHONPATH": "/mine", "LANESCOPE_RECORD_QUIET": "1", "A": "b"}
    )
    assert re.fullmatch(r"\d{8}T\d{6}Z", env.pop("LANESCOPE_RECORD_STARTED"))
    assert env.pop("LANESCOPE_RECORD_COMMAND") == record.results_command()
    assert env == {
        "A": "b",
        "LANESCOPE_RECORD": "1",
        "LANESCOPE_RECORD_DIR": str(tmp_path),
        "LANESCOPE_RECORD_SCHEDULE": "active=2",
        "LANESCOPE_RECORD_SHAPES": "1",
        "LANESCOPE_RECORD_PYTHONPATH": "/mine",
        "PYTHONPATH": record.inject_dir() + os.pathsep + "/mine",
    }


def test_programs_and_launchers_are_recognised():
    program = _autorecord.program_of
    assert program(["python3", "-u", "-X", "dev", "train.py", "-m"]) == "train.py"
    assert program(["python3", "-m", "torch.distributed.run", "x.py"]) == "torch.distributed.run"
    assert program(["python3", "-c", "pass"]) == "-c"
    assert program(["python3"]) == "" and program(["python3", "-"]) == ""
    assert _autorecord.is_launcher("/usr/bin/torchrun") and _autorecord.is_launcher("torch.distributed.run")
    assert not _autorecord.is_launcher("train.py")
    assert _autorecord.name_of("/a/my train.py") == "my_train" and _autorecord.name_of("pkg.tool") == "pkg.tool"


def test_results_are_json_that_any_parser_reads(run_recorded):
    done, out = run_recorded("import torch\nwith torch.profiler.record_function('a \"b\" \\\\ \\n'):\n    torch.ones(1)")
    assert done.returncode == 0, done.stderr
    events = json.loads(only(out, ".json").read_text())["traceEvents"]
    assert 'a "b" \\ \n' in {event["name"] for event in events}
