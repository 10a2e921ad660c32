"""tools/passed_before.py, which lets ./check leave out a stage that passed before with the same files."""

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Tuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with the tool, a file and an ignored program."""
    folder = tmp_path / "clone"
    (folder / "tools").mkdir(parents=True)
    for tool in ("passed_before.py", "check_cache.py"):
        shutil.copy(ROOT / "tools" / tool, folder / "tools")
    (folder / "results").mkdir()
    (folder / "source.txt").write_text("1")
    (folder / "program").write_text("1")
    (folder / ".gitignore").write_text("results\nprogram\n__pycache__\n")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def run(clone: pathlib.Path, command: str = "echo ran; echo '<testsuite/>' > results/a.xml") -> Tuple[int, str]:
    """Exit code and log of the stage, as ./check runs it."""
    (clone / "results/a.xml").unlink(missing_ok=True)
    tool = f"{sys.executable} tools/passed_before.py"
    about = "--results results --stage stage --junit a --program program"
    with open(clone / "results/stage.log", "w", encoding="utf-8") as log:
        done = subprocess.run(
            ["bash", "-c", f"{tool} known {about} || {{ ({command}) && {tool} keep {about}; }}"], cwd=clone, stdout=log, stderr=subprocess.STDOUT,
            check=False, env={**os.environ, "XDG_CACHE_HOME": str(clone.parent / "cache"), "LANESCOPE_SHARED_TRACES": str(clone.parent / "traces")})
    return done.returncode, (clone / "results/stage.log").read_text()


def test_what_passed_is_not_run_again_and_its_results_come_back(clone):
    assert run(clone) == (0, "ran\n")
    code, log = run(clone)
    assert code == 0 and log.startswith("known: it passed here at 2") and "ran" not in log
    assert (clone / "results/a.xml").read_text() == "<testsuite/>\n"


@pytest.mark.parametrize("path", ["source.txt", "program", "new.txt", "../traces/trace.json"])
def test_another_file_runs_it_again(clone, path):
    run(clone)
    (clone / path).parent.mkdir(exist_ok=True)
    (clone / path).write_text("another")
    assert run(clone) == (0, "ran\n")
    assert run(clone)[1].startswith("known: ")


def test_an_ignored_file_and_another_time_do_not(clone):
    run(clone)
    (clone / "results/other.txt").write_text("1")
    (clone / "source.txt").write_text("1")
    assert run(clone)[1].startswith("known: ")


def test_what_failed_or_passed_only_at_the_second_time_is_run_again(clone):
    failing = "echo ran; echo '<testsuite/>' > results/a.xml; exit 3"
    unsteady = "echo 'RERUN tests/test_a.py::test_b'; echo '<testsuite/>' > results/a.xml"
    for command, outcome in ((failing, (3, "ran\n")), (unsteady, (0, "RERUN tests/test_a.py::test_b\n"))):
        assert run(clone, command) == outcome
        assert run(clone, command) == outcome


def test_files_that_change_meanwhile_are_not_remembered(clone):
    changing = "echo ran; echo '<testsuite/>' > results/a.xml; echo x >> source.txt"
    assert run(clone, changing) == (0, "ran\n")
    assert run(clone, changing) == (0, "ran\n")
