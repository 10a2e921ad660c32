"""Record an unmodified Python program: ``python3 -m lanescope.record [FLAGS] -- python3 script.py ARGS...``.

The command ``lanescope record`` runs this module. It sets the environment that ``_inject/README.md`` describes and
replaces itself by the program, so that the process id, signals and the exit code are the program's own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import Dict, List, Mapping, NoReturn, Optional, Sequence

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


def inject_dir() -> str:
    """The directory that holds the ``sitecustomize.py`` of recorded processes."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_inject")


def environment(
    out: str,
    *,
    schedule: Optional[str] = None,
    shapes: bool = False,
    memory: bool = False,
    stack: bool = False,
    gzip: bool = False,
    keep_spool: bool = False,
    children: bool = False,
    quiet: bool = False,
    base: Optional[Mapping[str, str]] = None,
) -> Dict[str, str]:
    """The environment in which a Python process records itself into the directory ``out``."""
    env = dict(os.environ if base is None else base)
    for name in [name for name in env if name.startswith("LANESCOPE_RECORD")]:
        del env[name]
    env["LANESCOPE_RECORD"] = "1"
    env["LANESCOPE_RECORD_DIR"] = os.path.abspath(out)
    if schedule is not None:
        parse_schedule(schedule)
        env["LANESCOPE_RECORD_SCHEDULE"] = schedule
    flags = {"SHAPES": shapes, "MEMORY": memory, "STACK": stack, "GZIP": gzip}
    flags.update({"KEEP_SPOOL": keep_spool, "CHILDREN": children, "QUIET": quiet})
    for name, wanted in flags.items():
        if wanted:
            env["LANESCOPE_RECORD_" + name] = "1"
    before = env.get("PYTHONPATH", "")
    env["LANESCOPE_RECORD_PYTHONPATH"] = before
    env["PYTHONPATH"] = inject_dir() + (os.pathsep + before if before else "")
    return env


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lanescope record",
        usage="lanescope record [FLAGS] -- python3 script.py ARGS...",
        description="Run a Python program unmodified and record what PyTorch does in it.",
    )
    add = parser.add_argument
    add("-o", "--out", metavar="DIR", default="lanescope_traces", help="where results go (default: %(default)s)")
    add("--schedule", metavar="KEYS", help="record steps by a schedule, such as wait=1,warmup=1,active=3")
    add("--shapes", action="store_true", help="record input shapes, types, strides and concrete inputs")
    add("--memory", action="store_true", help="record allocations and frees")
    add("--stack", action="store_true", help="record the Python lines that operators are called from")
    add("--gzip", action="store_true", help="write .json.gz in place of .json")
    add("--keep-spool", action="store_true", help="leave the recorder's own files after a clean exit")
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
        parser.error("expected a command behind --, such as: lanescope record -- python3 train.py")
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
            gzip=arguments.gzip,
            keep_spool=arguments.keep_spool,
            children=arguments.children,
            quiet=arguments.quiet,
        )
    except ValueError as error:
        parser.error(f"--schedule: {error}")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, command, env)


if __name__ == "__main__":
    main()
