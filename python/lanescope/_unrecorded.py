"""Finds Python processes that this one starts but that cannot be recorded, because they do not import our start-up file."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_SHELLS = ("sh", "bash", "dash", "zsh")
_SHELL_WORDS = frozenset(";|&()<>`$")
_MAX_NAMED = 3
_LONGEST_COMMAND = 120

_CLEARED = "its environment was cleared"
_OWN_ENVIRONMENT = "it got an environment without lanescope's variables"


def _text(word: Any) -> str:
    try:
        return os.fsdecode(word)
    except TypeError:
        return ""


def isolating_flag(words: Sequence[str]) -> str:
    """The flag in ``words`` (after the interpreter) that turns PYTHONPATH or start-up files off, or ``""``."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if len(word) < 2 or word[0] != "-" or word == "--":
            return ""
        if word.startswith("--"):
            continue
        for place, flag in enumerate(word[1:], 2):
            if flag in "IES":
                return "-" + flag
            if flag in "cm":
                return ""
            if flag in "WX":  # the rest of the word, or the next word, is its value
                at += place == len(word)
                break
    return ""


def _command_after_env(words: List[str]) -> Tuple[List[str], bool]:
    """What ``env`` runs, and whether it clears the environment."""
    at, cleared = 1, False
    while at < len(words):
        word = words[at]
        if word in ("-", "-i", "--ignore-environment"):
            cleared = True
        elif word in ("-u", "--unset", "-C", "--chdir"):
            at += 1
        elif not word.startswith("-") and "=" not in word:
            break
        at += 1
    return words[at:], cleared


def reason_not_recorded(words: Sequence[Any], environment: Optional[Mapping[Any, Any]]) -> str:
    """Why the command starts a Python that cannot be recorded; ``""``: it can, or is not a Python. ``environment`` None: ours."""
    command = [_text(word) for word in words]
    if len(command) > 2 and os.path.basename(command[0]) in _SHELLS and command[1] == "-c":
        if _SHELL_WORDS & set(command[2]):
            return ""  # nobody can know what such a line starts
        try:
            command = shlex.split(command[2])
        except ValueError:
            return ""
    cleared = False
    if command and os.path.basename(command[0]) == "env":
        command, cleared = _command_after_env(command)
    if not command or not _PYTHON.fullmatch(os.path.basename(command[0])):
        return ""
    flag = isolating_flag(command[1:])
    if flag:
        return f"{flag} turns start-up files off"
    if cleared:
        return _CLEARED
    if environment is not None:
        names = {_text(name): _text(value) for name, value in environment.items()}
        if names.get("LANESCOPE_RECORD") != "1" or "_inject" not in names.get("PYTHONPATH", ""):
            return _OWN_ENVIRONMENT
    return ""


class Watch:
    """Notes such processes when they start. An audit hook stays for ever, so there is one per process."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._pid = os.getpid()
        self._found: List[Tuple[str, str]] = []
        self._count = 0
        self._of_popen: Sequence[Any] = ()

    def start(self) -> None:
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: Tuple[Any, ...]) -> None:
        if event not in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
            return
        try:
            self._look(event, arguments)
        except Exception:  # the program comes first
            pass

    def _look(self, event: str, arguments: Tuple[Any, ...]) -> None:
        environment: Optional[Mapping[Any, Any]] = None
        if event == "os.system":
            words: Sequence[Any] = ["sh", "-c", _text(arguments[0])]
        else:
            words = arguments[1]
            words = [words] if isinstance(words, (str, bytes)) else list(words)
            environment = arguments[3] if event == "subprocess.Popen" else arguments[2]
        if event == "os.posix_spawn" and words == self._of_popen:  # Popen starts it so
            self._of_popen = ()
            return
        self._of_popen = words if event == "subprocess.Popen" else ()
        why = reason_not_recorded(words, environment)
        if not why:
            return
        line = " ".join(shlex.quote(_text(word)) for word in words)
        found = (line if len(line) <= _LONGEST_COMMAND else line[: _LONGEST_COMMAND - 3] + "...", why)
        if event == "os.exec":  # nothing of this program runs afterwards
            self._say(text_of([found], 1))
            return
        self._count += 1
        if found not in self._found:
            self._found.append(found)

    def finish(self) -> None:
        """At the end of the program: one line, if there were any."""
        if self._found and os.getpid() == self._pid:
            self._say(text_of(self._found, self._count))


def text_of(found: Sequence[Tuple[str, str]], count: int) -> str:
    named = "; ".join(f"{line} ({why})" for line, why in found[:_MAX_NAMED])
    more = f"; and {len(found) - _MAX_NAMED} more commands" if len(found) > _MAX_NAMED else ""
    which = "1 Python process" if count == 1 else f"{count} Python processes"
    return (f"{which} that this program started could not be recorded: {named}{more}. "
            "Leave out -I, -E and -S, and hand os.environ on to what is started")
