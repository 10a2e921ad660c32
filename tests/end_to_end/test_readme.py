"""What the README shows is what happens: its Python program runs, its sample output is the command's."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_sample_output_is_what_the_command_prints(run):
    block = re.search(r"```\n\$ (lanescope [^\n]*)\n(.*?)```", README, re.DOTALL)
    assert block, "the README opens with a sample"
    shown = block.group(2).rstrip("\n").split("\n")
    printed = run(*block.group(1).split()[1:], cwd=ROOT).out.split("\n")
    for line, real in zip(shown, printed):  # long kernel names are cut in the README
        assert real.startswith(line[: -len("...")].rstrip() if line.endswith("...") else line)


def test_the_python_program_runs_as_written(tmp_path):
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("lanescope", reason="needs the installed package")
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert program
    done = subprocess.run([sys.executable, "-c", program.group(1)], cwd=tmp_path, capture_output=True, text=True,
                          check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    calls = {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines() if "aten::" in line or "matmul_add" in line}
    assert calls["matmul_add"] == calls["aten::mm"] == calls["aten::add"] == "3"
    assert (tmp_path / "trace.json.gz").stat().st_size > 0


def test_the_python_explanation_runs_as_written(tmp_path):
    pytest.importorskip("lanescope", reason="needs the installed package")
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    program = next(text for text in programs if "lanescope.explain(" in text)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("GPU-bound") and "\ngpu-bound " in done.stdout
    assert (tmp_path / "why.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_sample_of_explain_is_what_it_prints(run):
    """The README shows the first screen of a trace of the repository."""
    sample = re.search(r"```\n\$ lanescope explain (\S+)\n(.*?)```", README, re.DOTALL)
    assert run("explain", sample.group(1), cwd=ROOT).out == sample.group(2)
