"""Records this process without a change to its program; ``_inject/sitecustomize.py`` starts it, see the README there.

The program comes first: nothing here may raise into it, change its exit code or keep it from ending.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import time
import warnings
import weakref
from types import FrameType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from . import _job
from ._activities import cupti_library
from ._after_import import after_import
from ._unrecorded import Watch

LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
PARENT_RANK = "LANESCOPE_RECORD_PARENT_RANK"
_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")

_active: Optional["AutoRecording"] = None


def say(line: str) -> None:
    try:
        print(f"lanescope: {line}", file=sys.stderr, flush=True)
    except Exception:  # stderr may be closed at exit
        pass


def command_line() -> List[str]:
    """The interpreter's arguments; sys.argv does not exist yet when Python starts up."""
    found = getattr(sys, "orig_argv", None)  # Python 3.10
    if found is not None:
        return list(found)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def program_of(argv: Sequence[str]) -> str:
    """What a Python command line runs: a path, ``-m``'s module, ``"-c"``, or ``""`` (a console, standard input)."""
    at = 1
    while at < len(argv):
        word = argv[at]
        if word in ("-m", "-c"):
            return argv[at + 1] if word == "-m" and at + 1 < len(argv) else "-c"
        if word in _OPTIONS_WITH_VALUE:
            at += 2
        elif word.startswith("-") and word != "-":
            at += 1
        else:
            return "" if word == "-" else word
    return ""


def run_stamp() -> str:
    """The time now, as in the names of results (record/recording_name.h)."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def name_of(program: str) -> str:
    """A file name for the results of ``program``."""
    stem = {"": "python", "-c": "command"}.get(program)
    if stem is None:
        stem = os.path.basename(program)
        stem = stem[:-3] if stem.endswith(".py") else stem
    return re.sub(r"[^A-Za-z0-9._-]", "_", stem)[:80] or "python"


def folder_of(program: str) -> str:
    """The folder that Python will put first in sys.path for the program: the script's, or the current one."""
    return os.path.dirname(os.path.realpath(program)) if program.endswith(".py") else os.getcwd()


def rank_of(environ: Mapping[str, str], settings: Mapping[str, str]) -> Optional[int]:
    """The global rank of this process, from a launcher's RANK; None: none.

    A process that a rank starts (with --children) inherits RANK but is not that rank.
    """
    rank = _job.whole_number(environ, "RANK")
    return None if rank is None or settings.get(PARENT_RANK) == str(rank) else rank


def is_launcher(program: str) -> bool:
    """Whether the program is a launcher: it only starts the processes to record."""
    return program in LAUNCHER_MODULES or os.path.basename(program) in LAUNCHERS


def arm(settings: Mapping[str, str], path_of_children: str) -> None:
    """Start-up of a process that is to be recorded: waits for the program to import torch.

    ``settings`` are the LANESCOPE_RECORD* variables, already taken out of the environment; ``path_of_children`` is
    PYTHONPATH as it was, with the injected directory. Children inherit both only with --children or from a launcher.
    """
    owner = settings.get("LANESCOPE_RECORD_OWNER", "")  # the natively recorded process, if any
    if owner.strip("0") and settings.get("LANESCOPE_RECORD_CHILDREN") != "1":
        return
    program = program_of(command_line())
    launcher = is_launcher(program)
    # All processes of a run have its start time in their file names.
    settings = {"LANESCOPE_RECORD_STARTED": run_stamp(), **settings}
    rank = rank_of(os.environ, settings)
    if rank is None:
        _job.ignore_launcher(os.environ)
    _select_injected_library()
    if launcher or settings.get("LANESCOPE_RECORD_CHILDREN") == "1":
        os.environ.update(settings)
        os.environ["PYTHONPATH"] = path_of_children
        if rank is not None and not launcher:
            os.environ[PARENT_RANK] = str(rank)
        if settings.get("LANESCOPE_RECORD_QUIET") != "1":
            watch = Watch(say)
            watch.start()
            atexit.register(watch.finish)
    if launcher:
        _native("")  # a launcher may use the GPUs; record the processes that it starts
    else:
        if settings.get("LANESCOPE_RECORD_LAST"):
            hold_signal()
        recording = AutoRecording(settings, name_of(program), rank)
        atexit.register(recording.finish)
        recording.wait_for_cuda()
        if settings.get("LANESCOPE_RECORD_CHILDREN") != "1" or rank is not None:  # else each small child leaves a recording
            recording.sample_the_start(folder_of(program))
        after_import("torch", recording.begin)


# SIGTERM ends a program whose main thread is in C code for so long that our handler cannot run.
STUCK_SECONDS = 3.0

# This signal makes a dump. It would kill a process that does not record yet.
DUMP_SIGNAL = signal.SIGUSR2


def _warn_too_early(_number: int, _frame: Optional[FrameType]) -> None:
    say("SIGUSR2: nothing is recorded yet, because the program has not imported torch; no dump")


def hold_signal() -> None:
    if signal.getsignal(DUMP_SIGNAL) == signal.SIG_DFL:
        signal.signal(DUMP_SIGNAL, _warn_too_early)


def free_signal() -> None:
    """Frees the signal for the recorder, which takes it only if the program has no handler for it."""
    try:
        if signal.getsignal(DUMP_SIGNAL) is _warn_too_early:
            signal.signal(DUMP_SIGNAL, signal.SIG_DFL)
    except ValueError:  # torch is imported by a thread other than the main one
        pass


def _native(lines: Optional[str]) -> bool:
    """Whether this process is recorded natively; ``lines`` "" prevents that from now on."""
    if not cupti_library():
        return False
    from . import _core

    return _core.native_settings(cupti_library(), lines)


def _select_injected_library() -> None:
    """Makes the CUDA driver load the library that belongs to this package's recorder."""
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        named = os.environ.get(name, "")
        if os.path.basename(named) == "liblanescope_record_cupti.so" and named != cupti_library():
            if cupti_library():
                os.environ[name] = cupti_library()
            else:
                del os.environ[name]


class AutoRecording:
    """One process's recording, from the import of torch to the exit."""

    def __init__(self, settings: Mapping[str, str], name: str, rank: Optional[int] = None) -> None:
        self._settings = settings
        self._directory = settings.get("LANESCOPE_RECORD_DIR", "lanescope_traces")
        self._name = name
        self._rank = rank
        self._base = ""  # of the result files, without an ending; chosen when the recording begins
        self._base_ending = ""
        self._pid = os.getpid()
        self._profile: Any = None
        self._early: Any = None  # a profile with samples only, until torch is imported
        self._problem = ""
        self._source = 0  # rank of the best source of steps seen so far
        self._optimizer: Optional[weakref.ref[Any]] = None
        self._range: Any = None
        self._step = 0
        self._finished = False

    def _on(self, name: str) -> bool:
        return self._settings.get("LANESCOPE_RECORD_" + name) == "1"

    def wait_for_cuda(self) -> None:
        """A program that uses CUDA and never imports torch is recorded natively, from its first use of CUDA."""
        if not self._on("NATIVE"):
            return
        values = {k[len("LANESCOPE_RECORD_") :]: v for k, v in self._settings.items() if k.startswith("LANESCOPE_RECORD_")}
        values.update(OWNER=f"{self._pid:010}", PROGRAM=self._name)
        if self._rank is not None:
            values["RANK"] = str(self._rank)
        _native("\n".join(f"{key}={value}" for key, value in values.items()))

    def sample_the_start(self, folder: str) -> None:
        """With --sample-python: samples from now on, so that imports, and all that runs before the import of torch, are there.

        Does nothing with a schedule or --last, which choose what is recorded. ``folder``: that of the program.
        """
        rate = int(self._settings.get("LANESCOPE_RECORD_SAMPLE_PYTHON") or 0)
        if not rate or self._settings.get("LANESCOPE_RECORD_SCHEDULE") or self._settings.get("LANESCOPE_RECORD_LAST"):
            return
        try:
            import lanescope

            from . import _samples

            os.makedirs(self._directory, exist_ok=True)
            _samples.folders_to_come.append(folder)
            early = lanescope.profile(
                activities=[lanescope.ProfilerActivity.CPU],
                acc_events=True,
                max_size=self._settings.get("LANESCOPE_RECORD_MAX_SIZE") or None,
                disk_reserve=self._settings.get("LANESCOPE_RECORD_DISK_RESERVE") or None,
                sample_python=rate,
            )
            early._spool_path = self._wanted_base() + ".lspool"
            early._free_name = True
            early.start()
            self._base = early.spool_path[: -len(".lspool")]
            self._early = early
        except Exception as error:
            say(f"what runs before torch is imported is not sampled: {error}")

    def _end_early(self) -> None:
        early, self._early = self._early, None
        if early is not None:
            early.stop()

    def begin(self) -> None:
        global _active
        try:
            if _native(""):
                self._base_ending = "_torch"  # one process has two recordings: CUDA came first
                self._end_early()
                self._base = ""
            self._begin()
            self._end_early()  # both are in one file
            _active = self
        except Exception as error:
            self._problem = str(error)
            say(f"this process is not recorded: {error}")

    def _wanted_base(self) -> str:
        from . import _core

        name = _core.recording_name(self._name, self._rank, self._settings.get("LANESCOPE_RECORD_STARTED", ""))
        return os.path.join(self._directory, name + self._base_ending)

    def _begin(self) -> None:
        import lanescope
        from lanescope.record import parse_schedule

        os.makedirs(self._directory, exist_ok=True)
        text = self._settings.get("LANESCOPE_RECORD_SCHEDULE")
        words = self._settings.get("LANESCOPE_RECORD_ACTIVITIES", "")
        counts: Optional[Dict[str, int]] = parse_schedule(text) if text else None
        plan = None
        if counts is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the user chose no warm-up on the command line
                plan = lanescope.schedule(**counts)
        last = self._settings.get("LANESCOPE_RECORD_LAST")
        if last:
            free_signal()
        self._profile = lanescope.profile(
            activities=[lanescope.ProfilerActivity[word.upper()] for word in words.split(",")] if words else None,
            schedule=plan,
            acc_events=True,
            record_shapes=self._on("SHAPES"),
            profile_memory=self._on("MEMORY"),
            with_stack=self._on("STACK"),
            last=last or None,
            slow_step=self._settings.get("LANESCOPE_RECORD_SLOW_STEP") or None,
            max_dumps=int(self._settings.get("LANESCOPE_RECORD_MAX_DUMPS") or 8),
            dump_signal=DUMP_SIGNAL if last else None,
            all_api=self._on("ALL_API"),
            max_size=self._settings.get("LANESCOPE_RECORD_MAX_SIZE") or None,
            disk_reserve=self._settings.get("LANESCOPE_RECORD_DISK_RESERVE") or None,
            budget=self._settings.get("LANESCOPE_RECORD_BUDGET") or None,
            hardware=self._settings.get("LANESCOPE_RECORD_HARDWARE") or None,
            sample_python=int(self._settings.get("LANESCOPE_RECORD_SAMPLE_PYTHON") or 0),
            detach=None if plan else False,  # without a schedule the window ends with the program
        )
        self._profile._quiet_dumps = self._on("QUIET")
        self._profile._frames_of_imports = False  # torch imports much of itself when it is first used
        self._base = self._base or self._wanted_base()
        self._profile._spool_path = self._base + ".lspool"
        self._profile._free_name = True
        self._profile._hardware.command = self._settings.get("LANESCOPE_RECORD_COMMAND", "")
        with warnings.catch_warnings():
            if self._early is not None:  # it is ours
                warnings.filterwarnings("ignore", message="lanescope: shares the file of a recording that runs already")
            self._profile.start()
        spool = self._profile.spool_path
        if spool.startswith(self._base):  # else a profile of the program came first, and both share its file
            self._base = spool[: -len(".lspool")]
        self._watch_steps()
        try:
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                from . import _core

                signal.signal(signal.SIGTERM, self._terminated)
                _core.end_if_handler_is_stuck(signal.SIGTERM, STUCK_SECONDS)
        except ValueError:  # torch is imported by a thread other than the main one
            pass

    # -- steps --------------------------------------------------------------------------------------------------------

    def _watch_steps(self) -> None:
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            register_optimizer_step_post_hook(self._optimizer_stepped)
        except ImportError:
            pass
        try:
            import torch.profiler

            profiler: Any = torch.profiler.profile
            original: Callable[..., Any] = profiler.step

            def step(prof: Any, *args: Any, **kwargs: Any) -> Any:
                self.step(2, marked=bool(getattr(prof, "record_steps", False)))
                return original(prof, *args, **kwargs)

            profiler.step = step
        except (ImportError, AttributeError):
            pass

    def _optimizer_stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        chosen = self._optimizer() if self._optimizer is not None else None
        if chosen is None:
            self._optimizer = weakref.ref(optimizer)
        elif chosen is not optimizer:
            return
        self.step(1)

    def step(self, source: int, *, marked: bool = False) -> None:
        """``source`` reports the start of a step: 3 the program, 2 its torch.profiler, 1 its optimizer.

        Only the best source so far counts, so that no step counts twice. ``marked``: the source opens
        ProfilerStep ranges itself.
        """
        if source < self._source or self._finished or os.getpid() != self._pid:
            return
        self._source = source
        try:
            if self._profile.record_steps:
                self._profile.step()
                return
            import lanescope

            if self._range is not None:
                self._range.__exit__(None, None, None)
                self._range = None
            self._profile.step()  # judges the step that ends, with --slow-step
            self._step += 1
            if marked:
                return
            self._range = lanescope.record_function(f"ProfilerStep#{self._step}")
            self._range.__enter__()
        except Exception as error:
            say(f"a step could not be recorded: {error}")

    # -- the end ------------------------------------------------------------------------------------------------------

    def _terminated(self, number: int, _frame: Optional[FrameType]) -> None:
        from . import _core

        _core.handler_has_begun()
        self.finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def finish(self) -> None:
        """Writes the results, once, in the process that recorded."""
        global _active
        if self._finished or os.getpid() != self._pid:
            return
        self._finished = True
        _active = None
        try:
            self._finish()
        except Exception as error:
            say(f"the results could not be written: {error}")
            if self._profile is not None and os.path.exists(self._base + ".lspool"):
                say(f"what was recorded is in {self._base}.lspool; every lanescope command opens it")

    def _finish(self) -> None:
        if self._profile is None and self._early is not None:  # no torch
            self._end_early()
            if not _native(None):  # else it shares the file, and writes the results
                self._write([self._base + ".lspool"])
            return
        if self._profile is None:
            if not self._problem and not _native(None):
                say("nothing was recorded: the program did not import torch")
            return
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None
        self._profile.stop()
        recordings = self._profile.dumps()
        reason = self._profile._never_recorded()
        if reason:
            say(reason)
        else:
            recordings.append(self._base + ".lspool")
        self._write(recordings)

    def _write(self, recordings: Sequence[str]) -> None:
        """Starts another process that makes traces and tables; this one never reads its recording."""
        from . import _core

        ending = ".json.gz" if self._on("GZIP") else ".json"
        lines = _core.write_results(
            command=self._settings.get("LANESCOPE_RECORD_COMMAND", ""),
            recordings=[(path, path[: -len(".lspool")] + ending) for path in recordings],
            always_json=self._on("JSON"),
            keep_recordings=self._on("KEEP_SPOOL"),
        )
        if not self._on("QUIET"):
            for line in lines:
                say(line)


def step() -> None:
    """Marks the beginning of the next training step for ``lanescope record``.

    A program that calls it marks its steps itself; optimizers then no longer count. Does nothing in a process that
    ``lanescope record`` did not start.
    """
    if _active is not None:
        _active.step(3)
