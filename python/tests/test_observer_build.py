"""The observer is compiled once, by one process, and says in one line why it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lanescope import _observer_build as observer_build
from lanescope import observer
from lanescope._observer_build import ObserverUnavailable, build, cached_path, find_compiler, find_torch


@pytest.fixture
def real_torch():
    return pytest.importorskip("torch")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LANESCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fake_compiler(tmp_path, monkeypatch):
    """A compiler that takes half a second, counts its calls and writes a small file."""
    script = tmp_path / "fake-c++"
    script.write_text(
        "#!/bin/sh\n"
        f"echo call >> {tmp_path}/calls\n"
        "sleep 0.5\n"
        'while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo library > "$2"; fi; shift; done\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    return tmp_path / "calls"


def test_the_system_ends_the_compiler_first_when_memory_runs_out(cache, fake_compiler, real_torch, tmp_path):
    script = tmp_path / "fake-c++"
    script.write_text(script.read_text() + f"cat /proc/self/oom_score_adj > {tmp_path}/score\n")
    build()
    assert (tmp_path / "score").read_text().strip() == "1000"
    with open("/proc/self/oom_score_adj", encoding="utf-8") as own:
        assert own.read().strip() != "1000"


def test_a_user_without_a_home_gets_no_folder_named_tilde(tmp_path, monkeypatch):
    for name in ("LANESCOPE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does for a user id without a name
    monkeypatch.setattr(observer_build.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    assert observer_build.cache_root().startswith(str(tmp_path / "temporary"))
    assert not (tmp_path / "~").exists()


def test_no_folder_for_temporary_files_is_one_line(tmp_path, monkeypatch):
    def no_folder():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.delenv("LANESCOPE_CACHE_DIR", raising=False)
    monkeypatch.setattr(observer_build.tempfile, "gettempdir", no_folder)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nobody/can/write")
    with pytest.raises(ObserverUnavailable, match="no cache directory can be written; tried /proc/nobody.*LANESCOPE_CACHE_DIR"):
        observer_build.cache_root()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert observer_build.cache_root().startswith(str(tmp_path / "home"))


def test_torch_is_found_as_it_says_itself(real_torch):
    torch = find_torch()
    assert torch.version == real_torch.__version__
    assert torch.cxx11_abi == int(real_torch.compiled_with_cxx11_abi())
    assert all(os.path.isdir(path) for path in torch.include_dirs)


def test_finding_torch_does_not_import_it(run_python):
    pytest.importorskip("torch")
    code = "import sys; from lanescope._observer_build import find_torch; print(find_torch().version, 'torch' in sys.modules)"
    assert run_python(code=code).stdout.split()[1] == "False"


def test_no_torch_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(observer_build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ObserverUnavailable, match="no torch is installed"):
        find_torch()


def test_an_old_torch_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "version.py").write_text("__version__ = '2.1.0'\n")
    fake = type(sys)("torch")
    fake.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "torch", fake)
    with pytest.raises(ObserverUnavailable, match="torch 2.1.0 is older than 2.4"):
        find_torch()


def test_no_compiler_is_one_line(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ObserverUnavailable, match="no C\\+\\+ compiler"):
        find_compiler()
    monkeypatch.setenv("CXX", "missing-compiler -m64")
    with pytest.raises(ObserverUnavailable, match="missing-compiler"):
        find_compiler()


def test_a_compiler_that_fails_is_one_line_with_its_first_error(real_torch, cache, tmp_path, monkeypatch):
    script = tmp_path / "bad-c++"
    script.write_text("#!/bin/sh\necho 'note: hm'; echo 'x.cpp:1: error: too old'; echo 'error: more'; exit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(ObserverUnavailable, match="x.cpp:1: error: too old") as caught:
        build()
    assert "\n" not in str(caught.value)
    assert not os.path.exists(cached_path(find_torch()))
    assert [f for f in os.listdir(os.path.dirname(cached_path(find_torch()))) if f.startswith("building")] == []


def test_it_is_compiled_once_and_again_when_asked(real_torch, cache, fake_compiler):
    assert build() == build() == cached_path(find_torch())
    assert fake_compiler.read_text() == "call\n"
    build(again=True)
    assert fake_compiler.read_text() == "call\n" * 2


def test_two_processes_at_once_compile_once(real_torch, cache, fake_compiler):
    command = [sys.executable, "-m", "lanescope.observer", "build"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0, 0]
    assert len(set(outputs)) == 1 and os.path.exists(outputs[0].strip())
    assert fake_compiler.read_text() == "call\n"


def test_the_cache_key_changes_with_the_sources(real_torch, cache, tmp_path, monkeypatch):
    before = cached_path(find_torch())
    changed = tmp_path / "torch_observer.cpp"
    changed.write_text("// another\n")
    monkeypatch.setattr(observer_build, "SOURCE", str(changed))
    assert cached_path(find_torch()) != before


def test_status_says_what_is_there(real_torch, cache, fake_compiler, capsys):
    assert observer.main(["status"]) == 1
    assert "not built yet" in capsys.readouterr().out
    assert observer.main(["build"]) == 0
    captured = capsys.readouterr()
    assert "compiling the observer for torch" in captured.err and "done in" in captured.err
    assert observer.main(["status"]) == 0


def test_a_program_goes_on_without_the_observer_and_records_ranges(real_torch, run_python, tmp_path):
    code = (
        "import torch, lanescope\n"
        "with lanescope.profile() as prof:\n"
        "    with lanescope.record_function('mine'):\n"
        "        torch.ones(2)\n"
        "print([e.name for e in prof.events()])\n"
    )
    environment = {"CXX": "/nonexistent/c++", "LANESCOPE_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python(code=code, env=environment)
    assert done.stdout.strip() == "['mine']"
    assert done.stderr.count("torch operators are not recorded, only ranges") == 1


@pytest.fixture
def without_compilers(tmp_path):
    """An environment whose PATH has what a Python program needs, and no compiler."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(sys.executable)
    environment = {key: value for key, value in os.environ.items() if key != "CXX" and not key.startswith("LANESCOPE")}
    return {**environment, "PATH": str(tools), "LANESCOPE_CACHE_DIR": str(tmp_path / "cache")}


PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import torch
from lanescope import profile, record_function
with profile() as prof:
    with record_function("mine"):
        torch.ones(2)
print(prof.key_averages().table())
"""


def run_without_compilers(environment, *command):
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_without_a_compiler_that_is_the_first_thing_said(real_torch, tmp_path, without_compilers):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_without_compilers(without_compilers, sys.executable, str(tmp_path / "program.py"))
    assert done.returncode == 0, done.stderr
    first = [line for line in done.stderr.splitlines() if line.startswith("lanescope")][0]
    assert first.startswith("lanescope: ERROR: torch operators are not recorded, only ranges: no C++ compiler was found")
    assert "apt-get install g++" in first and "dnf install gcc-c++" in first
    assert "mine" in done.stdout and "aten::" not in done.stdout


def test_lanescope_record_says_so_before_the_program_starts(real_torch, tmp_path, without_compilers):
    (tmp_path / "program.py").write_text("import sys; print('the program', file=sys.stderr); import torch; torch.ones(2)")
    done = run_without_compilers(
        without_compilers,
        *(sys.executable, "-m", "lanescope.record", "-o", str(tmp_path / "out"), "--"),
        *(sys.executable, str(tmp_path / "program.py")),
    )
    lines = done.stderr.splitlines()
    assert lines[0].startswith("lanescope record: ERROR: torch operators will not be recorded: no C++ compiler was found")
    assert "apt-get install g++" in lines[0] and lines[1] == "the program"


def test_status_says_what_to_install(real_torch, without_compilers):
    done = run_without_compilers(without_compilers, sys.executable, "-m", "lanescope.observer", "status")
    assert "compiler  none: no C++ compiler was found" in done.stdout and "apt-get install g++" in done.stdout
    done = run_without_compilers(without_compilers, sys.executable, "-m", "lanescope.observer", "build")
    assert done.returncode == 1 and "apt-get install g++" in done.stderr


def test_a_version_that_cannot_be_read_says_why(tmp_path):
    (tmp_path / "version.py").mkdir()
    with pytest.raises(ObserverUnavailable, match="does not say its version: .*Is a directory"):
        observer_build._torch_version(str(tmp_path))
