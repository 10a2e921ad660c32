"""tests/torch_suite: what it rewrites, how it sorts results, and the suite itself where PyTorch's sources are at hand."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = ROOT / "tests" / "torch_suite"
sys.path.insert(0, str(SUITE))

import internals  # noqa: E402
import run as suite  # noqa: E402
from rewrite import rewrite  # noqa: E402

NAMES = {"profile", "schedule", "record_function"}


def test_imports_come_from_lanescope_where_it_has_them():
    source = "import torch\nfrom torch.profiler import (\n    kineto_available,\n    profile as p,\n    schedule,\n)\nx = 1\n"
    rewritten = rewrite(source, NAMES)
    assert "from torch.profiler import kineto_available" in rewritten
    assert "from lanescope import profile as p, schedule" in rewritten
    assert rewritten.splitlines()[6] == "x = 1"  # lines keep their numbers


def test_attributes_are_replaced_and_lanescope_is_imported():
    source = "import torch\nwith torch.profiler.profile() as p, torch.autograd.profiler.profile():\n    torch.profiler.itt\n"
    assert rewrite(source, NAMES).splitlines() == [
        "import torch; import lanescope, lanescope_autograd",
        "with lanescope.profile() as p, lanescope_autograd.profile():",
        "    torch.profiler.itt",
    ]


def test_a_program_in_a_string_is_rewritten_and_other_text_is_not():
    program = 'SCRIPT = """\nimport torch\nfrom torch.profiler import profile\n"""\nTEXT = "from torch.profiler import profile"\n'
    rewritten = rewrite(program, NAMES)
    assert "\nfrom lanescope import profile\n" in rewritten
    assert 'TEXT = "from torch.profiler import profile"' in rewritten


def result(outcome, message=""):
    return suite.Result(outcome, message, message)


def test_results_are_sorted_by_who_fails():
    torch = {name: result("passed") for name in ("both", "ours", "inside", "lost")}
    torch.update(torchs=result("failed", "new torch"), skipped=result("skipped", "Skipped: no GPU"))
    lanescope = {
        "both": result("passed"),
        "ours": result("failed", "AssertionError: 1 != 2"),
        "inside": result("failed", "UnsupportedError: experimental_event_tree: no tensors"),
        "torchs": result("passed"),
        "skipped": result("skipped"),
    }
    groups = {row.test: row.group for row in suite.compare(torch, lanescope)}
    assert groups == {
        "both": "both", "ours": "ours", "inside": "internals", "lost": "ours", "torchs": "torch", "skipped": "skipped"
    }  # fmt: skip
    page = suite.report(suite.compare(torch, lanescope), "torch 0", "sources.tar")
    assert "| 2 | pass with torch.profiler, fail with lanescope |" in page and "| 6 | all |" in page
    assert "- `torchs` (passes with lanescope)" in page and "no GPU:" in page


def test_an_excuse_holds_only_for_the_failure_it_names():
    test = "test_profiler.py::TestProfiler::test_profiler_type"
    assert internals.reason_of(test, "ActiveProfilerType.NONE: 0> != <ActiveProfilerType.KINETO") is not None
    assert internals.reason_of(test, "TypeError: something else") is None


TESTS = """
import os, unittest
import torch
from torch.profiler import profile

class TestSmall(unittest.TestCase):
    def test_public(self):
        with profile() as prof:
            torch.ones(2)
        self.assertIn("aten::ones", [row.key for row in prof.key_averages()])
    def test_inside(self):
        with profile() as prof:
            torch.ones(2)
        self.assertIsNotNone(prof.profiler.kineto_results.experimental_event_tree())
    def test_crash(self):
        with profile() as prof:
            torch.ones(2)
        if not type(prof).__module__.startswith("torch"):
            os._exit(3)
    def test_unsteady_with_torch(self):
        with profile() as prof:
            torch.ones(2)
        if type(prof).__module__.startswith("torch") and not os.path.exists("ran before"):
            open("ran before", "w").close()
            self.fail("the first time")
    def test_fails_with_torch(self):
        with profile() as prof:
            torch.ones(2)
        self.assertFalse(type(prof).__module__.startswith("torch"))
"""


def test_a_small_suite_from_a_tar_with_a_crash(tmp_path):
    pytest.importorskip("torch", reason="needs torch")
    (tmp_path / "test_profiler.py").write_text(TESTS)
    with tarfile.open(tmp_path / "sources.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "test_profiler.py", "pytorch-0/test/profiler/test_profiler.py")
    page = tmp_path / "page.md"
    command = [sys.executable, str(SUITE / "run.py"), str(tmp_path / "sources.tar.gz"), "--write", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr
    assert "2 both, 1 ours, 1 internals, 1 torch, 0 skipped" in done.stdout
    text = page.read_text()
    assert "- `test_profiler.py::TestSmall::test_public`" in text
    assert "the process ended in it" in text and "prof.profiler.kineto_results" in text


def test_what_passes_with_torch_profiler_passes_with_lanescope(tmp_path):
    sources = os.environ.get("LANESCOPE_TORCH_SOURCES")
    if not sources:
        pytest.skip("needs PyTorch's sources: LANESCOPE_TORCH_SOURCES names their folder or tar (tests/torch_suite/README.md)")
    pytest.importorskip("expecttest", reason="needs expecttest")
    command = [sys.executable, str(SUITE / "run.py"), sources]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
