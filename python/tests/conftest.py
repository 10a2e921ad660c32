"""Shared by the tests of the Python package."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def torch():
    module = pytest.importorskip("torch", reason="needs torch")
    from lanescope import _torch

    reason = _torch.ensure_observer()
    if reason:
        pytest.skip(f"needs the torch observer: {reason}")
    return module


@pytest.fixture
def run_python(tmp_path):
    """Runs Python code or arguments in a separate process, in an empty directory."""

    def run(*args, code=None, env=None, check=True, timeout=300):
        command = [sys.executable, *args]
        if code is not None:
            script = tmp_path / "script.py"
            script.write_text(code)
            command.append(str(script))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LANESCOPE_RECORD")}
        environment.update(env or {})
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    return run
