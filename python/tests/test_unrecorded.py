"""Children that cannot be recorded are named: lanescope/_unrecorded.py."""
from __future__ import annotations

import subprocess
import sys

import pytest

from lanescope._unrecorded import Watch, isolating_flag, reason_not_recorded

OURS = {"LANESCOPE_RECORD": "1", "PYTHONPATH": "/x/lanescope/_inject"}


def test_flags_of_python_that_turn_start_up_files_off() -> None:
    for words, flag in [(["-I", "a.py"], "-I"), (["-uE", "a.py"], "-E"), (["-X", "dev", "-S", "a.py"], "-S"),
                        (["a.py", "-I"], ""), (["-u", "-m", "a", "-E"], ""), (["-c", "pass", "-S"], ""),
                        (["-XIgnored", "-WError", "a.py"], ""), ([], "")]:
        assert isolating_flag(words) == flag, words


@pytest.mark.parametrize("words, environment, why", [
    (["python3", "a.py"], None, ""),
    (["python3", "a.py"], OURS, ""),
    (["python3", "a.py"], {"PATH": "/bin"}, "without lanescope's variables"),
    (["python3", "a.py"], {b"LANESCOPE_RECORD": b"1", b"PYTHONPATH": b"/x/_inject"}, ""),
    (["/usr/bin/python3.11", "-I", "a.py"], OURS, "-I turns"),
    ([b"python", b"-S"], None, "-S turns"),
    (["env", "-i", "A=1", "python3", "a.py"], None, "was cleared"),
    (["/usr/bin/env", "-u", "B", "A=1", "python3", "a.py"], None, ""),
    (["/bin/sh", "-c", "env -i python3 a.py"], None, "was cleared"),
    (["/bin/sh", "-c", "python3 -E a.py"], None, "-E turns"),
    (["/bin/sh", "-c", "cd x; python3 -E a.py"], None, ""),
    (["bash", "script.sh"], {}, ""),
    (["ls", "-I"], {}, ""),
    (["env"], None, ""),
    ([], None, ""),
])
def test_why_a_command_cannot_be_recorded(words, environment, why) -> None:
    said = reason_not_recorded(words, environment)
    assert (why in said) if why else said == ""


CHILDREN = """
import os, subprocess, sys
from lanescope._unrecorded import Watch
watch = Watch(lambda line: print(line, flush=True))
watch.start()
os.environ.update(LANESCOPE_RECORD="1", PYTHONPATH="/nowhere/_inject")
for _ in range(2):
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
subprocess.run([sys.executable, "-c", "pass"], check=True)
subprocess.run([sys.executable, "-c", "pass"], env={"PATH": os.environ["PATH"]}, check=True)
os.system("env -i " + sys.executable + " -c pass")
os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", "pass"], os.environ), 0)
watch.finish()
print("end", flush=True)
os.execv(sys.executable, [sys.executable, "-E", "-c", "pass"])
"""


def test_each_way_to_start_a_process_is_seen() -> None:
    done = subprocess.run([sys.executable, "-c", CHILDREN], capture_output=True, text=True, check=True)
    line, end, last = done.stdout.splitlines()
    python = sys.executable
    assert line.startswith("5 Python processes that this program started could not be recorded: ")
    assert f"{python} -I -c pass (-I turns start-up files off); {python} -c pass (it got an environment without" in line
    assert "(its environment was cleared); and 1 more commands. Leave out -I, -E and -S" in line
    assert end == "end" and last.startswith(f"1 Python process that this program started could not be recorded: {python} -E")


def test_nothing_is_said_where_there_was_nothing(capsys) -> None:
    Watch(print).finish()
    assert capsys.readouterr().out == ""
