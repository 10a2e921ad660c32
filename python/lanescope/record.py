"""Record an unmodified Python program: ``python3 -m lanescope.record [FLAGS] -- python3 script.py ARGS...``.

The command ``lanescope record`` runs this module. It sets the environment that ``_inject/README.md`` describes and
replaces itself by the program, so that the process id, signals and the exit code are the program's own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import Callable, Dict, List, Mapping, NoReturn, Optional, Sequence

from ._autorecord import run_stamp
from ._budget import parse_budget
from ._flight import parse_last, parse_slow_step
from ._hardware import DEFAULT_INTERVAL, parse_interval
from ._observer_build import why_unavailable
from ._samples import USUAL, parse_rate
from ._sizes import LEAST_SIZE, parse_size

SCHEDULE_KEYS = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")


def parse_schedule(text: str) -> Dict[str, int]:
    """``"wait=1,warmup=1,active=3"`` as keyword arguments of :func:`lanescope.schedule`; counts of steps.

    Raises ValueError with the keys that are allowed when the text is not of that form.
    """
    values = {key: 0 for key in SCHEDULE_KEYS}
    values["active"] = 1
    for part in text.split(","):
        key, separator, number = part.strip().partition("=")
        if not separator or key not in values or not number.strip().isdigit():
            raise ValueError(
                f"expected key=number pairs of {', '.join(SCHEDULE_KEYS)}, joined by commas; found {part.strip()!r}"
            )
        values[key] = int(number)
    if values["active"] == 0:
        raise ValueError("active must be at least 1: nothing would be recorded")
    return values


def check_activities(text: str) -> str:
    """``"cpu"``, ``"cuda"`` or both joined by a comma, as they are; ValueError for anything else."""
    words = text.split(",")
    if not set(words) <= {"cpu", "cuda"} or len(set(words)) != len(words):
        raise ValueError(f"expected cpu, cuda or cpu,cuda; found {text!r}")
    return text


def inject_dir() -> str:
    """The directory that holds the ``sitecustomize.py`` of recorded processes."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_inject")


def results_command() -> str:
    """The ``lanescope`` command, which makes trace and table at the end: next to this Python, else in PATH; else ""."""
    own = os.path.join(os.path.dirname(sys.executable), "lanescope")
    return own if os.access(own, os.X_OK) else shutil.which("lanescope") or ""


def environment(
    out: str,
    *,
    schedule: Optional[str] = None,
    shapes: bool = False,
    memory: bool = False,
    stack: bool = False,
    json: bool = False,
    gzip: bool = False,
    keep_spool: bool = False,
    children: bool = False,
    quiet: bool = False,
    last: Optional[str] = None,
    slow_step: Optional[str] = None,
    max_dumps: Optional[int] = None,
    activities: Optional[str] = None,
    all_api: bool = False,
    max_size: Optional[str] = None,
    disk_reserve: Optional[str] = None,
    budget: Optional[str] = None,
    hardware: Optional[str] = None,
    sample_python: Optional[int] = None,
    base: Optional[Mapping[str, str]] = None,
) -> Dict[str, str]:
    """The environment in which a Python process records itself into the directory ``out``."""
    env = dict(os.environ if base is None else base)
    for name in [name for name in env if name.startswith("LANESCOPE_RECORD")]:
        del env[name]
    env["LANESCOPE_RECORD"] = "1"
    env["LANESCOPE_RECORD_DIR"] = os.path.abspath(out)
    env["LANESCOPE_RECORD_STARTED"] = run_stamp()
    if schedule is not None:
        parse_schedule(schedule)
        env["LANESCOPE_RECORD_SCHEDULE"] = schedule
    env.update(flight_environment(last, slow_step, max_dumps, schedule))
    env.update(limit_environment(max_size, disk_reserve, budget))
    env.update(sampling_environment(hardware, sample_python, last))
    if activities is not None:
        env["LANESCOPE_RECORD_ACTIVITIES"] = check_activities(activities)
    flags = {"SHAPES": shapes, "MEMORY": memory, "STACK": stack, "JSON": json, "GZIP": gzip, "ALL_API": all_api}
    flags.update({"KEEP_SPOOL": keep_spool, "CHILDREN": children, "QUIET": quiet})
    for name, wanted in flags.items():
        if wanted:
            env["LANESCOPE_RECORD_" + name] = "1"
    env["LANESCOPE_RECORD_COMMAND"] = results_command()
    before = env.get("PYTHONPATH", "")
    env["LANESCOPE_RECORD_PYTHONPATH"] = before
    env["PYTHONPATH"] = inject_dir() + (os.pathsep + before if before else "")
    return env


def limit_environment(max_size: Optional[str], disk_reserve: Optional[str], budget: Optional[str]) -> Dict[str, str]:
    """The variables of the limits of size and cost; ValueError names the flag and what it expects."""
    env: Dict[str, str] = {}
    if max_size is not None:
        _check("--max-size", lambda: parse_size(max_size, LEAST_SIZE))
        env["LANESCOPE_RECORD_MAX_SIZE"] = max_size
    if disk_reserve is not None:
        _check("--disk-reserve", lambda: parse_size(disk_reserve, 0))
        env["LANESCOPE_RECORD_DISK_RESERVE"] = disk_reserve
    if budget is not None:
        _check("--budget", lambda: parse_budget(budget))
        env["LANESCOPE_RECORD_BUDGET"] = budget
    return env


def sampling_environment(hardware: Optional[str], sample_python: Optional[int], last: Optional[str]) -> Dict[str, str]:
    """The variables of samples, of the GPU and of Python; ValueError names the flag and what it expects."""
    env: Dict[str, str] = {}
    if hardware is not None:
        _check("--hardware", lambda: parse_interval(hardware))
        if last is not None:
            raise ValueError(
                "--hardware and --last exclude each other: the file of hardware counters keeps all samples; leave out one"
            )
        env["LANESCOPE_RECORD_HARDWARE"] = hardware
    if sample_python is not None:
        rate = _check("--sample-python", lambda: parse_rate(sample_python))
        env["LANESCOPE_RECORD_SAMPLE_PYTHON"] = str(rate)
    return env


def _check(flag: str, parse: Callable[[], object]) -> object:
    """What ``parse`` returns. Its ValueError gets the name of the flag."""
    try:
        return parse()
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


def flight_environment(
    last: Optional[str], slow_step: Optional[str], max_dumps: Optional[int], schedule: Optional[str]
) -> Dict[str, str]:
    """The variables of a flight recorder; ValueError names the flag and what it expects."""
    env: Dict[str, str] = {}
    if last is None:
        for flag, value in (("--slow-step", slow_step), ("--max-dumps", max_dumps)):
            if value is not None:
                raise ValueError(f"{flag} needs --last, which says how much is kept, such as --last 10s")
        return env
    if schedule is not None:
        raise ValueError(
            "--last and --schedule exclude each other: a schedule chooses its steps in advance, --last keeps the last "
            "moments before a problem; leave out one"
        )
    for flag, name, text, parse in (
        ("--last", "LAST", last, parse_last),
        ("--slow-step", "SLOW_STEP", slow_step, parse_slow_step),
    ):
        if text is None:
            continue
        try:
            parse(text)
        except ValueError as error:
            raise ValueError(f"{flag}: {error}") from None
        env["LANESCOPE_RECORD_" + name] = text
    if max_dumps is not None:
        if max_dumps < 0:
            raise ValueError(f"--max-dumps: expected a whole number, 0 or more; found {max_dumps}")
        env["LANESCOPE_RECORD_MAX_DUMPS"] = str(max_dumps)
    return env


def _no_operators(program: str, activities: Optional[str]) -> str:
    """Why the program's torch operators cannot be recorded, known before it starts; "" when they can.

    Another Python may have another torch: it says so itself, when it has imported torch.
    """
    # Environments share interpreters through links, but have separate folders.
    is_this_python = os.path.samefile(program, sys.executable) and os.path.samefile(
        os.path.dirname(program), os.path.dirname(sys.executable)
    )
    return why_unavailable() if is_this_python and activities != "cuda" else ""


def _activities(text: str) -> str:
    try:
        return check_activities(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lanescope record",
        usage="lanescope record [FLAGS] -- python3 script.py ARGS...",
        description="Run a Python program unmodified and record what PyTorch does in it.",
    )
    add = parser.add_argument
    add("-o", "--out", metavar="DIR", default="lanescope_traces", help="where results go (default: %(default)s)")
    add("--schedule", metavar="KEYS", help="record steps by a schedule, such as wait=1,warmup=1,active=3")
    add("--last", metavar="TIME", help="keep only the last TIME: 10s, 500ms, 2m; SIGUSR2 makes a dump at any time")
    add("--slow-step", metavar="FACTOR", help="with --last: dump when a step takes FACTOR times the median, such as 2x")
    add("--max-dumps", metavar="N", type=int, help="with --slow-step: at most so many dumps (default: 8)")
    add("--max-size", metavar="SIZE", help="largest recording: 500M, 2G, 4GiB (default: 4GiB)")
    add("--disk-reserve", metavar="SIZE", help="leave SIZE free on the disk")
    add("--budget", metavar="SHARE", help="record operators for at most this share of the time: 1%%, 0.5%%")
    add("--activities", metavar="WORDS", type=_activities, help="cpu, cuda or cpu,cuda (default: both)")
    add("--hardware", metavar="TIME", nargs="?", const=DEFAULT_INTERVAL, help="sample the GPU's counters each TIME (100us)")
    add("--sample-python", metavar="N", nargs="?", const=USUAL, type=int, help="take Python stacks N times a second (1000)")
    add("--all-api", action="store_true", help="record every call of the CUDA runtime and driver")
    add("--shapes", action="store_true", help="record input shapes, types, strides and concrete inputs")
    add("--memory", action="store_true", help="record allocations and frees")
    add("--stack", action="store_true", help="record each Python call, and the lines that operators are called from")
    add("--json", action="store_true", help="make the .json of recordings over 16 MiB, too")
    add("--gzip", action="store_true", help="write .json.gz instead of .json")
    add("--keep-spool", action="store_true", help="keep the .lspool files after a clean exit")
    add("--children", action="store_true", help="record Python processes that the program starts, too")
    add("--quiet", action="store_true", help="do not print where the files are")
    add("command", nargs=argparse.REMAINDER, help="the program and its arguments")
    return parser


def main(argv: Optional[Sequence[str]] = None) -> NoReturn:
    parser = _parser()
    arguments = parser.parse_args(argv)
    command: List[str] = arguments.command
    if command and command[0] == "--":
        command = command[1:]
    if not command:
        parser.error("expected a command after --, such as: lanescope record -- python3 train.py")
    program = shutil.which(command[0])
    if program is None:
        print(f"lanescope record: no such program: {command[0]}", file=sys.stderr)
        raise SystemExit(2)
    try:
        env = environment(
            arguments.out,
            schedule=arguments.schedule,
            shapes=arguments.shapes,
            memory=arguments.memory,
            stack=arguments.stack,
            json=arguments.json,
            gzip=arguments.gzip,
            keep_spool=arguments.keep_spool,
            children=arguments.children,
            quiet=arguments.quiet,
            last=arguments.last,
            slow_step=arguments.slow_step,
            max_dumps=arguments.max_dumps,
            activities=arguments.activities,
            all_api=arguments.all_api,
            max_size=arguments.max_size,
            disk_reserve=arguments.disk_reserve,
            budget=arguments.budget,
            hardware=arguments.hardware,
            sample_python=arguments.sample_python,
        )
    except ValueError as error:
        parser.error(str(error) if str(error).startswith("--") else f"--schedule: {error}")
    reason = _no_operators(program, arguments.activities)
    if reason:
        print(f"lanescope record: ERROR: torch operators will not be recorded: {reason}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, command, env)


if __name__ == "__main__":
    main()
