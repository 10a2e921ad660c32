"""Compiles the torch observer against the user's torch, once, into a cache.

Problem: the observer is C++ that uses torch's headers, so a binary fits only one torch version and ABI, and no wheel
can contain them all. Idea: ship the source file, compile it when a torch is first profiled (about ten seconds), and
keep the result by (torch version, C++ ABI, our version, hash of our sources). If that is impossible, one line says why,
and only ranges are recorded. docs/decisions/python_package.md compares the alternatives.

Several processes at once (the ranks of torchrun): a lock file lets one compile, and a rename makes the result visible
only when it is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Iterator, List, Optional

from ._version import __version__

PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(PACKAGE_DIR, "_observer", "torch_observer.cpp")
INCLUDE_DIR = os.path.join(PACKAGE_DIR, "_observer", "include")
RECORD_LIBRARY = os.path.join(PACKAGE_DIR, "lib", "liblanescope_record.so")
LIBRARY_NAME = "liblanescope_torch_observer.so"
OLDEST_TORCH = (2, 4)
COMPILERS = ("c++", "g++", "clang++")
INSTALL_HINT = "install one: apt-get install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora), conda install gxx (conda)"
LOCK_TIMEOUT_S = 300.0
COMPILE_TIMEOUT_S = 300.0


class ObserverUnavailable(Exception):
    """Why torch operators cannot be observed here: one line for the user."""


@dataclass(frozen=True)
class Torch:
    """A torch installation as the observer build sees it."""

    version: str  # "2.13.0+cpu"
    directory: str  # holds include/ and lib/
    cxx11_abi: int  # value of _GLIBCXX_USE_CXX11_ABI

    @property
    def include_dirs(self) -> List[str]:
        base = os.path.join(self.directory, "include")
        return [base, os.path.join(base, "torch", "csrc", "api", "include")]


def torch_directory() -> Optional[str]:
    """The folder of the torch that ``import torch`` would load, found without importing it; None: none."""
    module = sys.modules.get("torch")
    origin = getattr(module, "__file__", None)
    if origin is None:
        spec = importlib.util.find_spec("torch")
        origin = spec.origin if spec is not None else None
    return None if origin is None else os.path.dirname(os.path.abspath(origin))


def torch_has_cuda(directory: str) -> bool:
    """Whether that torch was built for CUDA; True if its ``version.py`` does not say."""
    try:
        with open(os.path.join(directory, "version.py"), encoding="utf-8") as file:
            return re.search(r"^cuda\s*(?::[^=]*)?=\s*None", file.read(), re.MULTILINE) is None
    except OSError:
        return True


def find_torch() -> Torch:
    """The torch that ``import torch`` would load, found without importing it. Raises ObserverUnavailable."""
    directory = torch_directory()
    if directory is None:
        raise ObserverUnavailable("no torch is installed in this Python environment")
    version = _torch_version(directory)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_TORCH:
        raise ObserverUnavailable(f"torch {version} is older than {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]}")
    if not os.path.exists(os.path.join(directory, "include", "ATen", "record_function.h")):
        raise ObserverUnavailable(f"torch in {directory} has no C++ headers")
    return Torch(version, directory, _cxx11_abi(directory))


def _torch_version(directory: str) -> str:
    reason = ""
    try:
        with open(os.path.join(directory, "version.py"), encoding="utf-8") as file:
            found = re.search(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", file.read(), re.MULTILINE)
    except OSError as error:  # also: the program has too many files open
        found, reason = None, f": {error}"
    if found is None:
        raise ObserverUnavailable(f"torch in {directory} does not say its version{reason}")
    return found.group(1)


def _cxx11_abi(directory: str) -> int:
    """torch's CMake package has the flag of its build; in wheels since 2.7 it is always 1."""
    path = os.path.join(directory, "share", "cmake", "Torch", "TorchConfig.cmake")
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(r"_GLIBCXX_USE_CXX11_ABI=(\d)", file.read())
    except OSError:
        found = None
    return int(found.group(1)) if found else 1


def find_compiler() -> List[str]:
    """The C++ compiler's command: ``$CXX``, else the first of c++, g++, clang++. Raises ObserverUnavailable."""
    chosen = os.environ.get("CXX", "").split()
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise ObserverUnavailable(f"$CXX names {chosen[0]}, which is not there; {INSTALL_HINT}, or unset CXX")
        return chosen
    for name in COMPILERS:
        found = shutil.which(name)
        if found is not None:
            return [found]
    raise ObserverUnavailable(f"no C++ compiler was found (looked for $CXX, {', '.join(COMPILERS)}); {INSTALL_HINT}")


def cache_root() -> str:
    """The folder of built observers; made if missing. ``LANESCOPE_CACHE_DIR`` overrides. Raises ObserverUnavailable."""
    chosen = os.environ.get("LANESCOPE_CACHE_DIR")
    if chosen:
        candidates = [chosen]
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        # A user without a home has "~" left there, which would be a folder in the current one.
        candidates = [os.path.join(home, "lanescope")] if os.path.isabs(home) else []
        with contextlib.suppress(OSError):  # there may be no folder for temporary files
            candidates.append(os.path.join(tempfile.gettempdir(), f"lanescope-{os.getuid()}"))
    for candidate in candidates:
        root = os.path.join(os.path.abspath(candidate), "observer")
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)
        except OSError:
            continue
        # A library is loaded from here, so do not trust a directory of another user.
        if os.access(root, os.W_OK) and os.stat(root).st_uid == os.getuid():
            return root
    tried = " and ".join(candidates) or "none: there is neither a home nor a folder for temporary files"
    raise ObserverUnavailable(f"no cache directory can be written; tried {tried}; set LANESCOPE_CACHE_DIR")


def _source_hash() -> str:
    """A hash of all our sources that the compiler reads, and of the name of the record library."""
    digest = hashlib.sha256()
    paths = [SOURCE]
    for folder in ("base", "codec", "record", "record_torch"):
        top = os.path.join(INCLUDE_DIR, "lanescope", folder)
        paths += [os.path.join(top, name) for name in os.listdir(top) if name.endswith(".h")]
    for path in sorted(paths):
        digest.update(os.path.relpath(path, PACKAGE_DIR).encode() + b"\0")
        with open(path, "rb") as file:
            digest.update(file.read())
    digest.update(os.path.basename(os.path.realpath(RECORD_LIBRARY)).encode())
    return digest.hexdigest()[:16]


def cached_path(torch: Torch) -> str:
    """The path of the observer for this torch, built or not. Raises ObserverUnavailable."""
    try:
        key = f"torch-{torch.version}-abi{torch.cxx11_abi}-lanescope-{__version__}-{_source_hash()}"
    except OSError as error:
        raise ObserverUnavailable(f"lanescope's own files are incomplete: {error}") from None
    return os.path.join(cache_root(), re.sub(r"[^A-Za-z0-9._+-]", "_", key), LIBRARY_NAME)


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Locks ``path`` against other processes. Does nothing where locks do not work (some network file systems)."""
    with open(path, "a", encoding="utf-8") as file:
        give_up = time.monotonic() + LOCK_TIMEOUT_S
        while time.monotonic() < give_up:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        yield


def _command(torch: Torch, compiler: List[str], out: str) -> List[str]:
    command = compiler + ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-DNDEBUG"]
    # If the compiler links libstdc++ statically, torch must not find its symbols in our library.
    command.append("-Wl,--exclude-libs,ALL")
    command.append(f"-D_GLIBCXX_USE_CXX11_ABI={torch.cxx11_abi}")
    command.append(f"-I{INCLUDE_DIR}")
    for directory in torch.include_dirs:
        command += ["-isystem", directory]
    lib = os.path.join(torch.directory, "lib")
    return command + [SOURCE, "-o", out, RECORD_LIBRARY, f"-L{lib}", "-ltorch_cpu", "-lc10"]


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if "error" in line.lower():
            return line[:300]
    return lines[0][:300] if lines else "the compiler said nothing"


# The compiler takes up to 1 GB. When memory runs out, the system must end it and not the program that wants to record.
_KILLED_FIRST = ["/bin/sh", "-c", '{ echo 1000 > /proc/self/oom_score_adj; } 2> /dev/null; exec "$@"', "sh"]


def _compile(torch: Torch, compiler: List[str], target: str) -> None:
    folder = os.path.dirname(target)
    handle, temporary = tempfile.mkstemp(prefix="building-", suffix=".so", dir=folder)
    os.close(handle)
    environment = dict(os.environ)
    environment.pop("LANESCOPE_RECORD", None)
    try:
        done = subprocess.run(
            _KILLED_FIRST + _command(torch, compiler, temporary),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMPILE_TIMEOUT_S,
            env=environment,
            check=False,
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            log = os.path.join(folder, "build.log")
            with open(log, "w", encoding="utf-8") as file:
                file.write(" ".join(_command(torch, compiler, target)) + "\n" + output)
            raise ObserverUnavailable(
                f"{compiler[0]} could not compile it for torch {torch.version}: {_first_error(output)} (all of it: {log})"
            )
        os.chmod(temporary, 0o755)
        os.replace(temporary, target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ObserverUnavailable(f"compiling it for torch {torch.version} failed: {error}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def why_unavailable() -> str:
    """Why torch operators cannot be recorded here; "": they can, or there is no torch. Compiles nothing."""
    try:
        torch = find_torch()
    except ObserverUnavailable:
        return ""
    try:
        if not os.path.exists(cached_path(torch)):
            find_compiler()
    except ObserverUnavailable as error:
        return str(error)
    return ""


def build(*, again: bool = False, announce: Optional[bool] = None) -> str:
    """The path of the observer for this environment's torch; compiles it if it is missing.

    ``again`` always compiles. ``announce`` prints a line on stderr before and after compiling; by default only if
    stderr is a terminal. Raises ObserverUnavailable with the reason.
    """
    torch = find_torch()
    target = cached_path(torch)
    if os.path.exists(target) and not again:
        return target
    compiler = find_compiler()
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    loud = sys.stderr.isatty() if announce is None else announce
    with _locked(os.path.join(os.path.dirname(target), "lock")):
        if os.path.exists(target) and not again:
            return target  # another process compiled it while this one waited
        if loud:
            line = f"lanescope: compiling the observer for torch {torch.version} (once; about ten seconds) ..."
            print(line, end="", file=sys.stderr, flush=True)
        begin = time.monotonic()
        try:
            _compile(torch, compiler, target)
        except ObserverUnavailable:
            if loud:
                print(" failed", file=sys.stderr, flush=True)
            raise
        if loud:
            print(f" done in {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
    return target
