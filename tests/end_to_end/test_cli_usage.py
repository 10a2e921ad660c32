"""Flags, help, mistakes, exit codes, completion: what the command says before it opens a trace."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import pytest

from conftest import SOURCE, clean_environment

GOLDEN = SOURCE / "tests" / "golden" / "cli"
COMMANDS = ["table", "explain", "view", "whatif", "diff", "check", "ranks", "merge", "kernels", "roofline", "tree", "sql", "info", "memory", "describe", "convert", "index", "record", "recover",
            "clean", "doctor", "completion", "version", "help", "flame", "sample"]


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("LANESCOPE_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


def test_alone_it_teaches_the_first_steps(run):
    ran = run()
    assert ran.code == 0 and ran.err == ""
    check_golden("help.txt", ran.out)
    assert len(re.findall(r"^  lanescope (record|table|tree) ", ran.out, re.M)) == 3
    assert run("--help").out == run("help").out == ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(run, command):
    ran = run("help", command)
    assert ran.code == 0 and ran.err == ""
    check_golden(f"help_{command}.txt", ran.out)
    assert run(command, "--help").out == ran.out
    assert run(command, "-h").out == ran.out


def test_help_fits_a_hundred_columns_and_says_the_exit_codes(run):
    for command in COMMANDS:
        text = run("help", command).out
        assert max(map(len, text.splitlines())) <= 122, command
        assert "Exit codes:\n  0 " in text


def test_version(run):
    number = re.search(r"project\(lanescope VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
    assert run("version").out == run("--version").out == f"lanescope {number}\n"
    assert run("version").code == run("--version").code == 0


@pytest.mark.parametrize("arguments, parts", [
    (["tabel", "x.json"], ["there is no command 'tabel'", "did you mean table?"]),
    (["xyzzy"], ["there is no command 'xyzzy'", "commands are ", "table"]),
    (["--tabel"], ["there is no flag --tabel"]),
    (["table"], ["table: expected TRACE", "see lanescope table --help"]),
    (["table", "x.json", "--row-limt", "3"], ["table: there is no flag --row-limt", "did you mean --row-limit?"]),
    (["table", "x.json", "--row-limit"], ["table: --row-limit expects a value"]),
    (["table", "x.json", "--row-limit", "many"], ["--row-limit expects a whole number", "found 'many'"]),
    (["table", "x.json", "--row-limit", "-2"], ["--row-limit expects a whole number", "found '-2'"]),
    (["table", "x.json", "--row-limit", "1.5"], ["--row-limit expects a whole number", "found '1.5'"]),
    (["table", "x.json", "--row-limit", "99999999999999999999"], ["--row-limit expects", "found '99999999999999999999'"]),
    (["table", "x.json", "--style", "fancy"], ["--style expects torch or lanescope; found 'fancy'"]),
    (["table", "x.json", "--time-unit", "h"], ["--time-unit expects s, ms or us; found 'h'"]),
    (["table", "x.json", "y.json"], ["table: expected no further argument, found 'y.json'"]),
    (["table", "x.json", "--json", "--csv"], ["--json", "--csv"]),
    (["table", "x.json", "--sort-by", "cuda_tiem_total"], ["sort", "cuda_tiem_total", "cuda_time_total", "count"]),
    (["help", "tabel"], ["help: expected a command, found 'tabel'"]),
    (["completion", "tcsh"], ["expected bash, zsh or fish; found 'tcsh'"]),
    (["completion"], ["completion: expected SHELL"]),
])
def test_each_mistake_is_one_line_that_names_it_and_exit_code_2(run, arguments, parts):
    ran = run(*arguments)
    assert ran.code == 2 and ran.out == ""
    line = ran.complaint()
    for part in parts:
        assert part in line


def test_a_file_in_place_of_a_command_shows_the_command(run, matmul_trace):
    ran = run(matmul_trace)
    assert ran.code == 2
    assert f"lanescope explain {matmul_trace}" in ran.complaint()


def test_mistakes_never_print_escape_sequences(run):
    ran = run("table", "\x1b]0;owned\x07.json")
    assert ran.code == 2
    assert "\x1b" not in ran.err and "\\u001b]0;owned\\u0007.json" in ran.complaint()


# --- completion -------------------------------------------------------------------------------------------------------


def complete(binary, tmp_path, *words: str) -> list:
    """What bash offers for the last word."""
    script = """
source <("$1" completion bash)
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_lanescope
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", binary, *words], cwd=tmp_path, capture_output=True,
                          text=True, env=clean_environment(), check=False, timeout=300)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return sorted(line for line in done.stdout.split("\n") if line)


def test_bash_completes_commands(binary, tmp_path):
    assert complete(binary, tmp_path, "lanescope", "") == sorted([*COMMANDS, "--help", "--version"])
    assert complete(binary, tmp_path, "lanescope", "rec") == ["record", "recover"]


def test_bash_completes_flags_and_their_words(binary, tmp_path):
    assert complete(binary, tmp_path, "lanescope", "table", "--group") == [
        "--group-by-input-shape", "--group-by-overload-name", "--group-by-stack"]
    assert complete(binary, tmp_path, "lanescope", "table", "--style", "") == ["lanescope", "torch"]
    assert complete(binary, tmp_path, "lanescope", "table", "--time-unit", "m") == ["ms"]
    assert "cuda_time_total" in complete(binary, tmp_path, "lanescope", "table", "--sort-by", "cuda")
    assert complete(binary, tmp_path, "lanescope", "table", "--row-limit", "") == []


def test_bash_completes_files_with_blanks(binary, tmp_path):
    (tmp_path / "my trace.json").touch()
    (tmp_path / "other.json").touch()
    assert complete(binary, tmp_path, "lanescope", "table", "my") == ["my trace.json"]
    assert complete(binary, tmp_path, "lanescope", "convert", "my trace.json", "o") == ["other.json"]


def test_bash_completes_the_program_behind_two_dashes(binary, tmp_path):
    (tmp_path / "train.py").touch()
    assert "python3" in complete(binary, tmp_path, "lanescope", "record", "--", "python")
    assert complete(binary, tmp_path, "lanescope", "record", "--", "python3", "tr") == ["train.py"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command_and_flag(run, shell):
    ran = run("completion", shell)
    assert ran.code == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", ran.out)
    for flag in re.findall(r"--([a-z-]+)", run("help", "table").out.split("Examples:")[0]):
        assert flag in ran.out


def test_the_bash_script_is_clean_shell(run, tmp_path):
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").out)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


# --- record -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fake_python(tmp_path: pathlib.Path) -> pathlib.Path:
    """A `python3` that has the package and, asked to run a script, prints its environment."""
    package = tmp_path / "site" / "lanescope"
    (package / "_inject").mkdir(parents=True)
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f"""#!/bin/sh
if [ "$1" = -c ]; then printf '\\nlanescope-package:{package}\\n'; exit 0; fi
for word in "$@"; do echo "arg=$word"; done
env | grep -E '^(LANESCOPE_RECORD|PYTHONPATH)' | grep -vE '_(NATIVE|OWNER|COMMAND)=' | sort
exit 7
""")
    python.chmod(0o755)
    return python


def test_record_sets_the_environment_and_becomes_the_program(run, fake_python, tmp_path):
    ran = run("record", "-o", "out dir", "--schedule", "wait=1,active=3", "--shapes", "--", fake_python, "train.py",
              "--shapes", "-o", "x", env={"PYTHONPATH": "/before", "LANESCOPE_RECORD_MEMORY": "1"})
    assert ran.err == ""
    assert ran.code == 7, "the program's own exit code"
    inject = tmp_path / "site" / "lanescope" / "_inject"
    assert re.sub(r"(?<=STARTED=)\d{8}T\d{6}Z$", "NOW", ran.out, flags=re.M).splitlines() == [
        "arg=train.py", "arg=--shapes", "arg=-o", "arg=x",
        "LANESCOPE_RECORD=1",
        f"LANESCOPE_RECORD_DIR={tmp_path}/out dir",
        "LANESCOPE_RECORD_PYTHONPATH=/before",
        "LANESCOPE_RECORD_SCHEDULE=wait=1,active=3",
        "LANESCOPE_RECORD_SHAPES=1",
        "LANESCOPE_RECORD_STARTED=NOW",
        f"PYTHONPATH={inject}:/before",
    ]
    assert (tmp_path / "out dir").is_dir()


def test_record_hands_the_flight_recorder_on(run, fake_python):
    ran = run("record", "--last", "2.5s", "--slow-step", "2x", "--max-dumps", "3", "--", fake_python, "train.py")
    assert ran.code == 7, ran.err
    assert [line for line in ran.out.splitlines() if line.startswith(("LANESCOPE_RECORD_LAST", "LANESCOPE_RECORD_SL",
                                                                      "LANESCOPE_RECORD_M"))] == [
        "LANESCOPE_RECORD_LAST=2.5s", "LANESCOPE_RECORD_MAX_DUMPS=3", "LANESCOPE_RECORD_SLOW_STEP=2x"]


def test_record_hands_sizes_on(run, fake_python):
    ran = run("record", "--max-size", "500M", "--disk-reserve", "10GiB", "--", fake_python, "train.py")
    assert ran.code == 7, ran.err
    assert "LANESCOPE_RECORD_DISK_RESERVE=10GiB\n" in ran.out and "LANESCOPE_RECORD_MAX_SIZE=500M\n" in ran.out


def test_record_hands_the_budget_on(run, fake_python):
    ran = run("record", "--budget", "2.5 %", "--", fake_python, "train.py")
    assert ran.code == 7, ran.err
    assert "LANESCOPE_RECORD_BUDGET=2.5 %\n" in ran.out
    assert "LANESCOPE_RECORD_BUDGET" not in run("record", "--", fake_python, "train.py").out


def test_record_passes_activities_on(run, fake_python):
    ran = run("record", "--activities", "cpu", "--all-api", "--", fake_python, "train.py")
    assert "LANESCOPE_RECORD_ACTIVITIES=cpu\nLANESCOPE_RECORD_ALL_API=1\n" in ran.out
    assert "LANESCOPE_RECORD_ACTIVITIES" not in run("record", "--", fake_python, "train.py").out


def test_record_asks_the_python_that_a_script_names(run, fake_python, tmp_path):
    launcher = tmp_path / "torchrun"
    launcher.write_text(f"#!{fake_python}\n")
    launcher.chmod(0o755)
    ran = run("record", "--", launcher, "train.py")
    assert ran.code == 7 and "LANESCOPE_RECORD=1" in ran.out


@pytest.mark.parametrize("arguments, parts", [
    (["record"], ["expected a program after --", "lanescope record -- python3 train.py"]),
    (["record", "--"], ["expected a program after --"]),
    (["record", "python3", "train.py"], ["expected no further argument", "python3"]),
    (["record", "--", "no-such-program"], ["found no 'no-such-program' in the PATH"]),
    (["record", "--", "./no-such-program"], ["found no such file"]),
    (["record", "--", "/"], ["found a folder"]),
    (["record", "--", "train.py"], ["lanescope record -- python3 train.py"]),
    (["record", "--schedule", "wait", "--", "python3"], ["--schedule expects key=number", "found 'wait'"]),
    (["record", "--schedule", "active=0", "--", "python3"], ["active=1 or more"]),
    (["record", "--schedule", "active=-1", "--", "python3"], ["0 or more; found '-1'"]),
    (["record", "--schedule", "wait=1,wait=2", "--", "python3"], ["each key once; found wait twice"]),
    (["record", "--last", "10", "--", "python3"], ["--last expects a time", "10s, 500ms or 2m; found '10'"]),
    (["record", "--last", "0s", "--", "python3"], ["1 ms or more", "found '0s'"]),
    (["record", "--last", "1.s", "--", "python3"], ["found '1.s'"]),
    (["record", "--last", "10s", "--slow-step", "1x", "--", "python3"], ["--slow-step expects", "above 1", "found '1x'"]),
    (["record", "--last", "10s", "--slow-step", "2y", "--", "python3"], ["2x or 2.5x; found '2y'"]),
    (["record", "--slow-step", "2x", "--", "python3"], ["--slow-step needs --last", "--last 10s"]),
    (["record", "--max-dumps", "2", "--", "python3"], ["--max-dumps needs --last", "--last 10s"]),
    (["record", "--last", "10s", "--schedule", "active=1", "--", "python3"], ["--last and --schedule exclude each other"]),
    (["record", "--max-size", "1000", "--", "python3"], ["--max-size expects a size of 1MiB or more", "found '1000'"]),
    (["record", "--max-size", "big", "--", "python3"], ["500M, 2G or 4GiB; found 'big'"]),
    (["record", "--disk-reserve", "1 G", "--", "python3"], ["--disk-reserve expects a size", "found '1 G'"]),
    (["record", "--budget", "1", "--", "python3"], ["--budget expects a share of the time from 0.1% to 50%", "found '1'"]),
    (["record", "--budget", "60%", "--", "python3"], ["found '60%'"]),
    (["record", "--shaps", "--", "python3"], ["no flag --shaps; did you mean --shapes?"]),
    (["record", "--activities", "gpu", "--", "python3"], ["--activities expects cpu, cuda or cpu,cuda; found 'gpu'"]),
    (["record", "--activities", "cpu,cpu", "--", "python3"], ["found 'cpu' twice"]),
    (["record", "--activities", "cpu,", "--", "python3"], ["found ''"]),
])
def test_record_mistakes_are_one_line_and_start_nothing(run, arguments, parts):
    ran = run(*arguments)
    assert ran.code == 2 and ran.out == ""
    for part in parts:
        assert part in ran.complaint()


def test_record_refuses_a_python_that_ignores_start_up_files(run, fake_python):
    ran = run("record", "--", fake_python, "-I", "train.py")
    assert ran.code == 2 and "its flag -I" in ran.complaint()


def test_record_without_the_package_names_that_python(run, tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'lanescope'\" >&2\nexit 1\n")
    python.chmod(0o755)
    ran = run("record", "--", python, "train.py")
    assert ran.code == 1
    assert f"expected the Python package lanescope in {python}" in ran.complaint()
    assert "No module named 'lanescope'" in ran.err and "pip install" in ran.err


def test_record_checks_the_results_folder_before_it_starts(run, fake_python, tmp_path):
    (tmp_path / "taken").touch()
    ran = run("record", "-o", "taken", "--", fake_python, "train.py")
    assert ran.code == 2 and ran.out == ""
    assert "'taken' cannot be used" in ran.complaint()
