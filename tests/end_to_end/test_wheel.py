"""The wheel in a new virtual environment does what the README says: its program, the command, and the error without a compiler."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import zipfile
from typing import Dict, List, NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)


def why_not() -> str:
    """What is missing here to build a wheel and to install it."""
    for module in ("pip", "scikit_build_core", "pybind11", "ensurepip", "torch"):
        if importlib.util.find_spec(module) is None:
            return f"needs {module} in {sys.executable}"
    if not list(ROOT.glob("build/wheel-*/CMakeCache.txt")):
        return "needs the package to be built in this folder before (./check does, or pip install --no-build-isolation .): it takes minutes"
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"no wheel is built: {why_not()}")


def run_in(folder: pathlib.Path, command: List[str], **options) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False, **options)


def must(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


class Installed(NamedTuple):
    home: pathlib.Path
    wheel: pathlib.Path
    environment: Dict[str, str]

    @property
    def python(self) -> str:
        return str(self.home / "bin" / "python")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    pip = ["-m", "pip", "--disable-pip-version-check", "-q"]
    must(run_in(ROOT, [sys.executable, *pip, "wheel", "--no-build-isolation", "--no-deps", "-w", str(folder), str(ROOT)]))
    (wheel,) = folder.glob("lanescope-*.whl")
    home = folder / "home"
    must(run_in(folder, [sys.executable, "-m", "venv", str(home)]))
    python = str(home / "bin" / "python")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LANESCOPE", "PYTHON", "VIRTUAL_ENV"))}
    environment = {**environment, "LANESCOPE_CACHE_DIR": str(folder / "cache"), "PATH": f"{home / 'bin'}:{environment['PATH']}"}
    must(run_in(folder, [python, *pip, "install", "--no-index", "--no-deps", str(wheel)], env=environment))
    # torch and numpy are those of here, behind what was just installed.
    (site,) = home.glob("lib/python*/site-packages")
    (site / "from_outside.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("-packages")))
    return Installed(home, wheel, environment)


def test_the_wheel_has_the_package_and_nothing_of_this_folder(installed):
    with zipfile.ZipFile(installed.wheel) as file:
        names = file.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        assert "Requires-Dist: numpy" in file.read(metadata).decode()
    assert {"lanescope/py.typed", "lanescope/_core.pyi", "lanescope/__init__.py"} <= set(names)
    assert any(name.endswith("scripts/lanescope") for name in names)
    assert [name for name in names if "test" in name.lower() or name.endswith(("CMakeLists.txt", ".pyc"))] == []


def test_the_first_program_of_the_readme_runs_in_a_new_environment(installed, tmp_path):
    where = run_in(tmp_path, [installed.python, "-c", "import lanescope; print(lanescope.__file__)"], env=installed.environment)
    assert where.stdout.startswith(str(installed.home)), where.stderr
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_in(tmp_path, [installed.python, "program.py"], env=installed.environment)
    must(done)
    assert "ERROR" not in done.stderr
    calls = {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines() if "aten::" in line or "matmul_add" in line}
    assert calls["matmul_add"] == calls["aten::mm"] == calls["aten::add"] == "3"
    table = run_in(tmp_path, [str(installed.home / "bin" / "lanescope"), "table", "trace.json.gz"], env=installed.environment)
    must(table)
    assert "aten::mm" in table.stdout


def test_without_a_compiler_the_first_line_says_what_to_install(installed, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    environment = {k: v for k, v in installed.environment.items() if k not in ("CC", "CXX")}
    environment.update(PATH=str(tools), LANESCOPE_CACHE_DIR=str(tmp_path / "cache"))
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_in(tmp_path, [installed.python, "-W", "ignore", "program.py"], env=environment)
    must(done)
    first = done.stderr.splitlines()[0]
    assert first.startswith("lanescope: ERROR: torch operators are not recorded, only ranges: no C++ compiler was found")
    assert "apt-get install g++" in first
    assert "matmul_add" in done.stdout and "aten::" not in done.stdout
